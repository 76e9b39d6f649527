"""What the tiers of a replay add up to in time and wear: columns of ``result.tiers``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from kvreplay.cost import wear
from kvreplay.cost.money import DAY_US

if TYPE_CHECKING:
    from kvreplay.worth.plan import Plan


def tier_totals(
    tiers: pl.DataFrame, times: pl.DataFrame | None, plan: Plan, *, span_us: int | None
) -> list[pl.Series]:
    """``harmful_hits``, ``saved_us`` and ``lifetime_years`` of each tier; null where they are not known.

    Parameters
    ----------
    tiers
        ``capacity_bytes`` and ``written_bytes`` of each tier, fastest first.
    times
        What :func:`kvreplay.worth.timing.timed` made, ``None`` without a cost model.
    plan
        Names and links of the tiers.
    span_us
        Length of the trace, ``None`` without times.
    """
    names = plan.tiers
    harmful: list[int | None] = [None] * len(names)
    saved: list[int | None] = [None] * len(names)
    if times is not None:
        harmful = [total(times[f"harmful_{name}"]) for name in names]
        saved = [total(times[f"saved_us_{name}"]) for name in names]
    return [
        pl.Series("harmful_hits", harmful, pl.Int64),
        pl.Series("saved_us", saved, pl.Int64),
        pl.Series("lifetime_years", lifetimes(tiers, plan, span_us=span_us), pl.Float64),
    ]


def lifetimes(tiers: pl.DataFrame, plan: Plan, *, span_us: int | None) -> list[float | None]:
    """Years that the drive of each tier lasts under the writes of the trace.

    ``None`` for what is no drive (:attr:`Plan.media`), without bytes or times, and where nothing is written.
    """
    out: list[float | None] = []
    own = plan.prices
    rows = tiers.select("capacity_bytes", "written_bytes").iter_rows()
    for medium, (capacity, written) in zip(plan.media, rows, strict=True):
        daily = per_day(written, span_us)
        years = None
        if medium == "ssd" and capacity and daily:
            years = wear.lifetime_years(
                capacity, daily, dwpd=own.ssd_dwpd, years=own.ssd_years, waf=own.ssd_waf
            )
        out.append(years)
    return out


def per_day(amount: float | None, span_us: int | None) -> float | None:
    """An amount of the whole trace per day, ``None`` where the trace has no length."""
    return None if amount is None or not span_us else amount * DAY_US / span_us


def total(values: pl.Series) -> int | None:
    """Sum of whole numbers or flags; ``None`` where one is not known."""
    return None if values.null_count() else int(values.sum())


def untimed_warnings(plan: Plan) -> list[dict[str, str]]:
    """Say which tiers have no link, where times were asked for."""
    if plan.cost is None:
        return []
    return [
        {
            "code": "tier_without_link",
            "text": f"tier {name} has no link: how long its hits take to load is not known, and neither is "
            f"any service time; give {name}=...,link=pcie5-x16 (kvreplay list links)",
        }
        for name in plan.untimed
    ]
