"""The answer in sentences: three to six lines, each with the numbers it rests on.

Definitions are those of ``docs/what-the-numbers-mean.md``; every sentence names the ratio it uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kvreplay import display
from kvreplay.report import knee, worth

if TYPE_CHECKING:
    from kvreplay.tables.study import Study

# A last quarter that adds a whole point says that a longer trace would add more.
_POINT = 0.01
_QUARTERS = 15  # of 20 windows: where the last quarter starts


def compose(study: Study) -> list[dict[str, Any]]:
    """All lines that apply, as ``{code, text, evidence}``, the answer first."""
    lines = [_ceiling(study), _tiers(study), *worth.compose(study)]
    lines += [_knee(study), _lost(study), _policies(study)]
    lines += [_window(study), _definition(study)]
    return [line for line in lines if line is not None]


def _line(code: str, text: str, **evidence: Any) -> dict[str, Any]:
    return {"code": code, "text": text, "evidence": evidence}


def _ceiling(study: Study) -> dict[str, Any]:
    value = study.ceiling("token_hit_ratio")
    upper = study.ceiling("token_hit_ratio_upper")
    row = study.ceiling_ratios.filter(name="token_hit_ratio").row(0, named=True)
    evidence = {
        "token_hit_ratio": value,
        "token_hit_ratio_upper": upper,
        "hit_tokens": row["numerator"],
        "input_tokens": row["denominator"],
    }
    if not value:
        return _line(
            "ceiling", "Nothing in this trace is reused: no prefix cache can serve anything.", **evidence
        )
    text = (
        f"{display.percent(value)} of the input tokens ({display.tokens(row['numerator'])} of "
        f"{display.tokens(row['denominator'])}) stood in an earlier prompt. No prefix cache can serve more: "
        "this is the ceiling"
    )
    if upper is not None and display.percent(upper) != display.percent(value):
        text += f" (up to {display.percent(upper)} if partial last blocks were shared too)"
    return _line("ceiling", f"{text}.", **evidence)


def _tiers(study: Study) -> dict[str, Any] | None:
    if study.result is None or study.totals["input_tokens"] == 0:
        return None
    shares = dict(study.result.tiers.select("tier", "tier_share").iter_rows())
    computed = study.result.summary["computed_tokens"]
    total = study.totals["input_tokens"]
    parts = [
        f"{name} {'serves' if at == 0 else 'adds'} {display.percent(share)}"
        for at, (name, share) in enumerate(shares.items())
    ]
    text = f"{', '.join(parts)} of the input tokens; {display.percent(computed / total)} must be computed."
    return _line("tiers", text, tier_share=shares, computed_tokens=computed)


def _knee(study: Study) -> dict[str, Any] | None:
    bend = knee.find(study.curve)
    if bend is None:
        return None
    total = study.totals["input_tokens"]
    gain = display.points(bend.doubling_gain_tokens / total)
    text = (
        f"One LRU cache gets 95 % of the ceiling at {capacity_text(study, bend.nearly_all_blocks)}. "
        f"The doubling that pays most goes from {display.count(bend.doubling_from_blocks)} to "
        f"{display.count(2 * bend.doubling_from_blocks)} blocks: +{gain}."
    )
    return _line("knee", text, **vars(bend))


def capacity_text(study: Study, blocks: int) -> str:
    """A capacity in every unit that is known."""
    parts = [f"{display.count(blocks)} blocks", f"{display.tokens(study.scale.tokens(blocks))} tokens"]
    size = study.scale.bytes(blocks)
    if size is not None:
        parts.append(display.size(size))
    return " = ".join(parts)


def _lost(study: Study) -> dict[str, Any] | None:
    """Split what the tiers miss of the ceiling: what no policy could get at this size, and the rest."""
    if study.result is None or study.opt is None:
        return None
    together = sum(study.tier_capacities)
    reusable = int(study.ceiling_ratios.filter(name="block_hit_ratio")["numerator"][0])
    hit = study.hit_blocks
    best = int(study.opt.filter(capacity_blocks=together)["hit_blocks"][0])
    if reusable == 0:
        return None
    evidence = {
        "ceiling_hit_blocks": reusable,
        "opt_hit_blocks": best,
        "hit_blocks": hit,
        "capacity_blocks": together,
    }
    text = (
        f"Of {display.count(reusable)} reusable blocks the tiers hit {display.percent(hit / reusable)}; "
        f"the best possible policy (OPT) in one cache of {display.count(together)} blocks would hit "
        f"{display.percent(best / reusable)}. So {display.percent((reusable - best) / reusable)} are lost to "
        f"capacity and {display.percent(max(0, best - hit) / reusable)} to policy and placement."
    )
    return _line("lost", text, **evidence)


def _policies(study: Study) -> dict[str, Any] | None:
    """Say whether more room or another policy would help, where policies were compared."""
    if study.policies is None:
        return None
    together = sum(study.tier_capacities)
    rows = study.policies.filter(capacity_blocks=together).to_dicts()
    mine = [row for row in rows if row["policy"] in study.compare]
    reusable = mine[0]["ceiling_hit_blocks"]
    if reusable == 0:
        return None
    return policy_line(mine[0], mine[-1], capacity_text(study, together))


def policy_line(best: dict[str, Any], worst: dict[str, Any], capacity: str) -> dict[str, Any]:
    """The verdict between capacity and policy from the best and the worst row of one capacity."""
    reusable, bound = best["ceiling_hit_blocks"], best["opt_hit_blocks"]
    by_capacity, by_policy = reusable - bound, best["gap_to_opt_blocks"]
    cause = "capacity" if by_capacity >= by_policy else "policy"
    advice = {
        "capacity": "more room helps more than a better policy could",
        "policy": "a better policy could help more than room",
    }[cause]
    text = (
        f"In one cache of {capacity}, {best['policy']} hits {display.percent(best['hit_blocks'] / reusable)} "
        f"of the reusable blocks"
    )
    if worst["policy"] != best["policy"]:
        text += f" and {worst['policy']}, the last, {display.percent(worst['hit_blocks'] / reusable)}"
    text += (
        f"; {display.percent(by_capacity / reusable)} are lost to capacity (OPT misses them too) and "
        f"{display.percent(by_policy / reusable)} to even the best of these policies: {advice}."
    )
    return _line(
        "capacity_or_policy",
        text,
        cause=cause,
        best=best["policy"],
        lost_to_capacity_blocks=by_capacity,
        lost_to_policy_blocks=by_policy,
        ceiling_hit_blocks=reusable,
    )


def _window(study: Study) -> dict[str, Any] | None:
    """Say where the trace is too short to price longer retention."""
    growth = study.growth
    reasons: list[str] = []
    evidence: dict[str, Any] = {}
    if growth.height > _QUARTERS:
        then, now = (_growth_ratio(growth.row(at, named=True)) for at in (_QUARTERS - 1, growth.height - 1))
        if then is not None and now is not None:
            evidence["ceiling_gain_of_last_quarter"] = now - then
            if now - then >= _POINT:
                reasons.append(f"the ceiling still rose by {display.points(now - then)} in the last quarter")
    never_full = _never_full(study)
    if never_full:
        evidence["never_full"] = never_full
        reasons.append(f"{' and '.join(never_full)} never filled")
    if not reasons:
        return None
    text = f"The trace is too short to price longer retention or larger tiers: {'; '.join(reasons)}."
    return _line("window_limited", text, **evidence)


def _growth_ratio(row: dict[str, Any]) -> float | None:
    return row["ceiling_hit_tokens"] / row["input_tokens"] if row["input_tokens"] else None


def _never_full(study: Study) -> list[str]:
    if study.result is None:
        return []
    rows = study.result.tiers.iter_rows(named=True)
    return [
        row["tier"]
        for row in rows
        if row["evicted_blocks"] == 0 and row["resident_blocks"] < row["capacity_blocks"]
    ]


def _definition(study: Study) -> dict[str, Any]:
    rules = [name for name in ("last_token", "full_blocks_only") if study.rules.get(name)]
    text = (
        "Numbers are token_hit_ratio: tokens in the longest leading run of resident blocks / all input "
        "tokens, cold start counted. The trace is replayed as ONE cache, right for one engine or perfect "
        "affinity; replicas with caches of their own hit less."
    )
    if rules:
        text += f" Rules in force: {', '.join(rules)}."
    if study.result is not None and "profile" in study.result.summary:
        text += f" The tiers follow the engine's own rules: {study.result.summary['profile']}."
    return _line("definition", text, ratio="token_hit_ratio", replicas=1, rules=rules)
