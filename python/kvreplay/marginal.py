"""Hierarchies without one of their tiers, and with other filters in front of them: one replay each."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from kvreplay.replaying import replay
from kvreplay.worth.facts import Without
from kvreplay.worth.timing import RECOMPUTE, WITH
from kvreplay.worth.totals import per_day, total

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvreplay.calls import ProgressHook
    from kvreplay.replaying import Tier
    from kvreplay.results import ReplayResult
    from kvreplay.trace import Trace

ADMISSIONS_SCHEMA: dict[str, Any] = {
    "tier": pl.String,
    "admission": pl.String,
    "hit_tokens": pl.Int64,
    "all_hit_tokens": pl.Int64,
    "hits": pl.Int64,
    "harmful_hits": pl.Int64,
    "saved_us": pl.Int64,
    "all_saved_us": pl.Int64,
    "inserted_blocks": pl.Int64,
    "rejected_blocks": pl.Int64,
    "dead_on_arrival_blocks": pl.Int64,
    "written_bytes": pl.Int64,
    "written_bytes_per_day": pl.Int64,
    "lifetime_years": pl.Float64,
}


def without_each(
    trace: Trace,
    tiers: Sequence[Tier],
    result: ReplayResult,
    *,
    arguments: dict[str, Any],
    progress: ProgressHook | None = None,
) -> dict[str, Without]:
    """What the hierarchy does without each tier below the first.

    The lowest tier needs no replay where nothing above depends on it: it hands blocks up, but an upper tier
    takes them whether they were loaded or computed. Only a ``write_back`` tier takes the former alone. An
    engine profile is made for its tiers and cannot lose one of several: there the lowest is taken off the
    same way, since engines fill their GPU with loaded and computed blocks alike, and the others are left out.

    Parameters
    ----------
    trace, tiers, result
        The trace, its tiers, and their timed replay with ``per_request``.
    arguments
        Other arguments of :func:`kvreplay.replay`.
    progress
        The hook of :func:`kvreplay.replay`.
    """
    out = {}
    for at in range(1, len(tiers)):
        name = tiers[at].name
        last, profiled = at == len(tiers) - 1, arguments.get("profile") is not None
        if last and (profiled or all(tier.fill != "write_back" for tier in tiers[1:at])):
            out[name] = _without_last(result, name)
            continue
        if profiled:
            continue
        rest = [tier for tier in tiers if tier.name != name]
        other = replay(trace, rest, per_request=True, progress=progress, **arguments)
        out[name] = Without(
            hit_tokens=int(other.tiers["hit_tokens"].sum()),
            ttft_us=_known(other.requests[WITH]),
            compute_us=int(other.requests[RECOMPUTE].sum()),
        )
    return out


def _without_last(result: ReplayResult, name: str) -> Without:
    requests = result.requests
    plan = result.plan
    assert plan is not None  # noqa: S101 - the replay was timed
    assert plan.cost is not None  # noqa: S101 - so there is a cost
    rest = [one for one in plan.tiers if one != name]
    resident = pl.sum_horizontal(f"hit_tokens_{one}" for one in rest)
    compute = plan.cost.recompute_expr(pl.col("computed_tokens") + pl.col(f"hit_tokens_{name}"), resident)
    return Without(
        hit_tokens=int(result.tiers.filter(pl.col("tier") != name)["hit_tokens"].sum()),
        ttft_us=_known(requests[WITH] + requests[f"saved_us_{name}"]),
        compute_us=int(requests.select(compute.round(0).cast(pl.Int64)).sum().item()),
    )


def _known(values: pl.Series) -> pl.Series | None:
    return None if values.null_count() else values


def compare_admissions(
    trace: Trace,
    tiers: Sequence[Tier],
    admissions: Sequence[str],
    *,
    arguments: dict[str, Any],
    progress: ProgressHook | None = None,
) -> pl.DataFrame:
    """Replay the tiers with each filter in front of each tier below the first, one tier at a time.

    Parameters
    ----------
    trace, tiers
        The trace and its tiers. Of a single tier the filter is tried on that one.
    admissions
        Names of :func:`kvreplay.admissions` with optional parameters.
    arguments, progress
        As for :func:`without_each`.

    Returns
    -------
    polars.DataFrame
        One row per tier and filter, in their order: what the tier and all tiers serve and save, what is
        written to it, and how long its drive lasts; null where that is not known.
    """
    rows = []
    names = list(dict.fromkeys(admissions))
    for at, tier in enumerate(tiers):
        if at == 0 and len(tiers) > 1:
            continue
        for admission in names:
            changed = [*tiers[:at], replace(tier, admission=admission), *tiers[at + 1 :]]
            result = replay(trace, changed, per_request=True, progress=progress, **arguments)
            rows.append(_admission_row(result, at))
    return pl.DataFrame(rows, ADMISSIONS_SCHEMA, strict=True)


def _admission_row(result: ReplayResult, at: int) -> dict[str, Any]:
    row = result.tiers.row(at, named=True)
    plan = result.plan
    lower = result.tiers[0 if plan is None else plan.resident_tiers :]
    daily = per_day(row["written_bytes"], result.span_us)
    values = {name: row.get(name) for name in ADMISSIONS_SCHEMA}
    return values | {
        "all_hit_tokens": int(result.tiers["hit_tokens"].sum()),
        "all_saved_us": total(lower["saved_us"]),
        "written_bytes_per_day": None if daily is None else round(daily),
    }
