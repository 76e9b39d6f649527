"""The answer in money and time: does each tier pay, from which length on, what wears, what was assumed.

Whether something pays is asked at both ends of what GPU and links may be, unless they were measured. Where
the sign differs, nothing is decided, and the line says which measurements would decide it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from kvreplay import display
from kvreplay.cost.lengths import Comparison
from kvreplay.report import sizing
from kvreplay.worth.budget import budget
from kvreplay.worth.demand import OVERLOAD, overloaded
from kvreplay.worth.links_demand import PREFILL
from kvreplay.worth.money import gpu_us_usd, tier_us_usd
from kvreplay.worth.retiming import grid

if TYPE_CHECKING:
    from kvreplay.tables.study import Study
    from kvreplay.worth.facts import Facts

# A drive that wears out within its warranty costs more than its price tag says.
_SHORT_LIFE_YEARS = 5.0


@dataclass(frozen=True)
class Worth:
    """What one tier is worth at both ends of what is assumed.

    Parameters
    ----------
    tier
        Its name.
    row
        Its row of table ``hit_quality``.
    saved_us
        Least and most time saved over the ends.
    net_usd_per_hour
        Least and most GPU money saved less what the tier costs; ``None`` where a price is not known.
    """

    tier: str
    row: dict[str, Any]
    saved_us: tuple[int, int]
    net_usd_per_hour: tuple[float, float] | None

    @property
    def latency(self) -> str:
        """``pays``, ``harms`` or ``undecided``."""
        return _sign(*self.saved_us)

    @property
    def money(self) -> str:
        """``pays``, ``harms``, ``undecided``, or ``unknown`` without a price."""
        return "unknown" if self.net_usd_per_hour is None else _sign(*self.net_usd_per_hour)


def _sign(low: float, high: float) -> str:
    if low > 0:
        return "pays"
    return "harms" if high <= 0 else "undecided"


def line(code: str, text: str, **evidence: Any) -> dict[str, Any]:
    """One line of a verdict."""
    return {"code": code, "text": text, "evidence": evidence}


def compose(study: Study) -> list[dict[str, Any]]:
    """The lines of a timed study; none without a cost model or a request."""
    facts = study.facts
    if facts is None or not facts.requests.height:
        return []
    tiers = worth_of(study, facts)
    lines: list[dict[str, Any] | None] = [_times(study, facts)]
    lines += [tier_line(facts, one) for one in tiers]
    lines += [_load_from(facts, one) for one in tiers]
    lines += [_size(study, facts, one) for one in tiers]
    lines += [_untimed(facts), _wear(study, facts), _filters(study), _instead(study, facts, tiers)]
    lines += [_limits(study, facts), _assumed(facts)]
    return [one for one in lines if one is not None]


def worth_of(study: Study, facts: Facts) -> list[Worth]:
    """The timed tiers below the first with what they save at every end of the plan."""
    requests = pl.concat([facts.requests, facts.writes], how="horizontal")
    ends = grid(requests, facts.plan.ends())
    rows = {row["tier"]: row for row in study.table("hit_quality")}
    out = []
    for name in facts.lower:
        mine = ends.filter(tier=name)
        if rows[name]["saved_us"] is None or mine["saved_us"].null_count():
            continue
        saved = [*mine["saved_us"], rows[name]["saved_us"]]
        gpu = [*mine["gpu_saved_us"], rows[name]["gpu_saved_us"]]
        out.append(Worth(name, rows[name], (min(saved), max(saved)), _net(facts, name, gpu)))
    return out


def _net(facts: Facts, tier: str, gpu_saved_us: list[int]) -> tuple[float, float] | None:
    price, rent, span = gpu_us_usd(facts.plan), tier_us_usd(facts, tier), facts.span_us
    if price is None or rent is None or not span:
        return None
    nets = [(price * saved / span - rent) * 3.6e9 for saved in gpu_saved_us]
    return min(nets), max(nets)


def _times(study: Study, facts: Facts) -> dict[str, Any]:
    """Percentiles of service times, or why there are none: demand beyond what the GPU or a link can do."""
    if study.demand is not None:
        over = overloaded(study.demand)
        if over.height:
            return _overload(over, study.demand)
    rows = {row["scenario"]: row for row in study.table("scenarios")}
    names = ["all tiers", f"{facts.plan.tiers[0]} alone" if facts.plan.resident_tiers else "no cache"]
    parts = [
        f"{_name(name)}: median {display.span(rows[name]['p50_us'])}, mean "
        f"{display.span(round(rows[name]['mean_us']))}, p99 {display.span(rows[name]['p99_us'])}"
        for name in names
        if rows[name]["mean_us"] is not None
    ]
    if not parts:
        return line("service_ttft", "Service times are not known: a tier has no link.", scenarios=rows)
    busy = (
        "; the trace has no times, so nobody can say how long requests wait"
        if study.demand is None
        else f"; GPU and links stay below {OVERLOAD:g} of what they can do in the busiest minutes"
    )
    text = f"Service time to the first token, without queueing: {'; '.join(parts)}{busy}."
    return line("service_ttft", text, scenarios=[rows[name] for name in names])


def _name(scenario: str) -> str:
    return f"with {scenario}" if scenario in {"all tiers", "no cache"} else scenario


def _overload(over: pl.DataFrame, demand: pl.DataFrame) -> dict[str, Any]:
    parts = []
    for row in over.iter_rows(named=True):
        what = (
            "the GPU" if row["resource"] == PREFILL else f"the link of {row['resource']} ({row['direction']})"
        )
        parts.append(
            f"{what} is asked for {row['p99_share']:.2f} of what it can do in the busiest minutes "
            f"({row['mean_share']:.2f} on average)"
        )
    text = (
        f"Overloaded: {'; '.join(parts)}. Requests wait, so percentiles of service times would mislead and "
        "are not quoted: replay the share of the traffic that one engine gets, or take a faster GPU."
    )
    return line("overload", text, demand=over.to_dicts(), limit=OVERLOAD, all_rows=demand.height)


def tier_line(facts: Facts, worth: Worth) -> dict[str, Any]:
    """Whether a tier pays in latency, in GPU time and in money."""
    row = worth.row
    total = sum(facts.compute_us[facts.plan.resident_tiers : facts.plan.resident_tiers + 1])
    share = row["saved_us"] / total if total else None
    hits = f"{display.count(row['hits'])} hits"
    if not row["hits"]:
        return line("tier_unused", f"{worth.tier} serves nothing: it saves nothing.", **_evidence(worth))
    verb = "save" if row["saved_us"] >= 0 else "cost"
    text = (
        f"{worth.tier} over {row['link']}: its {hits} {verb} {display.span(abs(row['saved_us']))} "
        f"({display.percent(None if share is None else abs(share))} of the prefill without it), "
        f"{display.count(row['harmful_hits'])} of them harmful"
    )
    if row["harmful_hits"]:
        text += f" (they lose {display.span(row['lost_us'])})"
    if row["store_us"]:
        text += f"; storing delays requests by {display.span(row['store_us'])}"
    text += f". {_pays(worth)}"
    if worth.net_usd_per_hour is not None:
        text += (
            f" GPU time saved is worth ${row['gpu_usd_saved_per_hour']:.2f} an hour, where it lets GPUs go; "
            f"the tier costs ${row['tier_usd_per_hour']:.2f}."
        )
    code = {"pays": "tier_pays", "harms": "tier_harms", "undecided": "undecided"}[worth.latency]
    if code == "undecided":
        text += f" {_settle(facts, worth.tier)}"
    return line(code, text, **_evidence(worth))


def _pays(worth: Worth) -> str:
    low, high = worth.saved_us
    words = {"pays": "yes", "harms": "no", "undecided": "undecided", "unknown": "unknown, no price"}
    latency = words[worth.latency]
    if worth.latency == "undecided":
        latency += f" (from {display.signed_span(low)} to {display.signed_span(high)})"
    return f"Does it pay: in latency {latency}, in GPU time yes, in money {words[worth.money]}."


def _evidence(worth: Worth) -> dict[str, Any]:
    names = ("tier", "link", "hits", "hit_tokens", "harmful_hits", "lost_us", "saved_us", "oracle_saved_us")
    more = ("gpu_saved_us", "marginal_saved_us", "tier_usd_per_hour", "gpu_usd_saved_per_hour")
    out = {name: worth.row[name] for name in (*names, *more)}
    out["saved_ends_us"] = list(worth.saved_us)
    out["net_ends_usd_per_hour"] = None if worth.net_usd_per_hour is None else list(worth.net_usd_per_hour)
    return out | {"latency": worth.latency, "gpu_time": "pays", "money": worth.money}


def _settle(facts: Facts, tier: str) -> str:
    """Which measurements would decide: a miss and a hit of the usual length."""
    hit = facts.requests.filter(pl.col(f"hit_tokens_{tier}") > 0)
    tokens = int(hit[f"hit_tokens_{tier}"].median() or 0)  # type: ignore[arg-type]
    return (
        f"Measure the time to the first token of a prompt of about {display.count(tokens)} tokens when it "
        f"misses and when it hits {tier}, and give both to kvreplay calibrate."
    )


def _load_from(facts: Facts, worth: Worth) -> dict[str, Any] | None:
    """From which prefix length on loading is faster than computing, with nothing resident before."""
    plan = facts.plan
    link = plan.links[plan.tiers.index(worth.tier)]
    lengths = []
    for end in [plan, *plan.ends()]:
        one = end.links[plan.tiers.index(worth.tier)]
        assert one is not None  # noqa: S101 - tiers with a worth are timed
        assert end.cost is not None  # noqa: S101 - so there is a cost
        model: Any = end.model
        lengths.append(Comparison(model, end.cost, one).break_even_tokens())
    assert link is not None  # noqa: S101 - as above
    known = [one for one in lengths[1:] if one is not None]
    evidence = {"tier": worth.tier, "break_even_tokens": lengths[0], "ends_tokens": lengths[1:]}
    if not known:
        text = f"From {worth.tier}, loading is never faster than computing, at any length."
        return line("load_from", text, **evidence)
    band = f"{display.count(min(known))} to {display.count(max(known))}"
    if None in lengths[1:]:
        band = f"{display.count(min(known))} (at the other end of what is assumed: none)"
    elif min(known) == max(known):
        band = display.count(min(known))
    text = f"From {worth.tier}, load runs of {band} tokens and more; shorter ones are computed faster."
    return line("load_from", text, **evidence)


def _size(study: Study, facts: Facts, worth: Worth) -> dict[str, Any] | None:
    """At which size a tier nets most, where that can be told."""
    found = sizing.best_size(study, facts, worth.tier)
    return None if found is None else line("best_size", sizing.size_text(study, found), **found)


def _untimed(facts: Facts) -> dict[str, Any] | None:
    names = facts.plan.untimed
    if not names:
        return None
    text = (
        f"What {' and '.join(names)} would save is not known: no link says how fast blocks come from there. "
        "More hits are not more speed."
    )
    return line("tier_untimed", text, tiers=names)


def _wear(study: Study, facts: Facts) -> dict[str, Any] | None:
    """How long drives last, and what to do where that is less than their warranty."""
    rows = [row for row in study.table("hit_quality") if row["lifetime_years"] is not None]
    if not rows:
        return None
    parts = []
    for row in rows:
        parts.append(
            f"{row['tier']} writes {display.size(row['written_bytes_per_day'])} a day, "
            f"{row['drive_writes_per_day']:.2f} drive writes per day, and lasts "
            f"{display.years(row['lifetime_years'])}"
        )
    own = facts.plan.prices
    text = f"{'; '.join(parts)} (made for {own.ssd_dwpd:g} over {own.ssd_years:g} years)."
    short = [row["tier"] for row in rows if row["lifetime_years"] < _SHORT_LIFE_YEARS]
    if short and not study.admissions:
        text += " A filter spares it: compare with --admission always --admission 'min_count(2)'."
    names = ("tier", "written_bytes_per_day", "drive_writes_per_day", "lifetime_years")
    return line("wear", text, drives=[{name: row[name] for name in names} for row in rows])


def _filters(study: Study) -> dict[str, Any] | None:
    """Of the filters compared, the one whose tiers save most; ties are broken by fewer bytes written."""
    table = study.compared_admissions
    if table is None or not table.height or table["all_saved_us"].null_count():
        return None
    parts, best = [], {}
    for name in dict.fromkeys(table["tier"]):
        rows = table.filter(tier=name).sort("all_saved_us", "inserted_blocks", descending=[True, False])
        first, least = rows.row(0, named=True), rows.sort("inserted_blocks").row(0, named=True)
        best[name] = first["admission"]
        saved, saved_least = (display.signed_span(row["all_saved_us"]) for row in (first, least))
        part = f"in front of {name}, {first['admission']} saves most ({saved})"
        if least["inserted_blocks"] < first["inserted_blocks"]:
            share = display.percent(least["inserted_blocks"] / first["inserted_blocks"])
            part += f"; {least['admission']} stores {share} as much and saves {saved_least}"
        parts.append(part)
    return line(
        "admission", f"Of the filters compared, {'; '.join(parts)}.", best=best, rows=table.to_dicts()
    )


def _instead(study: Study, facts: Facts, tiers: list[Worth]) -> dict[str, Any] | None:
    """Where no tier pays: what to try instead of offloading."""
    tiers = [one for one in tiers if one.row["hits"]]
    if not tiers or any(one.latency != "harms" for one in tiers):
        return None
    # Without what storing costs, do the loads alone pay?
    stores = all(one.row["saved_us"] + one.row["store_us"] > 0 for one in tiers)
    cause = (
        "storing delays requests by more than loads save" if stores else "loads take longer than computing"
    )
    other = "stores that do not block, a filter that stores less, " if stores else ""
    first = study.tier_capacities[0]
    now, twice = (study.lru_at([size])["hit_tokens"][0] for size in (first, 2 * first))
    total = study.totals["input_tokens"]
    gain = (twice - now) / total if total else 0.0
    text = (
        f"Do not offload: {cause}. Try instead: {other}more of the GPU's own memory "
        f"(twice {facts.plan.tiers[0]} would serve {display.points(gain)} more of the tokens), fp8 KV (half "
        "the bytes to keep and to load), shorter contexts, or routing requests to the engine that has their "
        "prefix."
    )
    names = [one.tier for one in tiers]
    return line("do_not_offload", text, tiers=names, cause=cause, doubled_gain_tokens=twice - now)


def _limits(study: Study, facts: Facts) -> dict[str, Any] | None:
    """What bounds the time saved: reuse, capacity, policy, or the links."""
    total = study.totals["input_tokens"]
    opt = study.opt
    if not total or opt is None:
        return None
    reusable = (study.ceiling("token_hit_ratio") or 0.0) * total
    best = int(opt.filter(capacity_blocks=sum(study.tier_capacities))["hit_tokens"][0])
    hit = int(facts.tiers["hit_tokens"].sum())
    load = int(facts.tiers["saved_us"].null_count() == 0) and sum(
        int(facts.requests[f"load_us_{name}"].sum()) for name in facts.lower
    )
    shares = {
        "reuse": 1 - reusable / total,
        "capacity": max(0.0, reusable - best) / total,
        "policy": max(0.0, best - hit) / total,
        "bandwidth": load / max(facts.compute_us[0], 1),
    }
    names = {
        "reuse": f"reuse ({display.percent(shares['reuse'])} of the tokens were never seen before)",
        "capacity": f"capacity ({display.percent(shares['capacity'])} out of reach of any policy)",
        "policy": f"policy and placement ({display.percent(shares['policy'])})",
        "bandwidth": f"links (loads take {display.percent(shares['bandwidth'])} of the time to compute all)",
    }
    ordered = sorted(names, key=lambda name: -shares[name])
    text = f"What limits, largest first: {'; '.join(names[name] for name in ordered if shares[name] > 0)}."
    return line("limits", text, shares=shares)


def _assumed(facts: Facts) -> dict[str, Any]:
    """What the times and the money stand on, and the memory the tiers take."""
    plan = facts.plan
    assert plan.cost is not None  # noqa: S101 - the study is timed
    model = "bytes per token as given" if plan.model is None else plan.model.name
    parts = [
        f"{model} on {plan.hardware.name if plan.hardware is not None else 'a GPU known by its cost model'}"
    ]
    parts.append(plan.cost.error)
    for name, link in zip(plan.tiers, plan.links, strict=True):
        if link is not None:
            parts.append(f"{name} over {link.name} at {link.bandwidth}")
    if plan.prices.gpu_hour_usd is not None:
        parts.append(f"${plan.prices.gpu_hour_usd:.2f} per GPU hour")
    memory = budget(facts.tiers, plan)
    if memory["host_bytes"]:
        parts.append(f"{display.size(memory['host_bytes'])} of host memory")
    return line("assumed", f"Assumed: {'; '.join(parts)}.", **plan.assumptions, memory=memory)
