"""The tables of a report: one file each, listed here in the order they are shown.

Parquet is the contract, the page and the screen are views of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvreplay.tables import (
    admissions,
    break_even,
    demand,
    hit_curve,
    hit_quality,
    hits_by_length,
    policies,
    quality,
    ratios,
    requests,
    reuse_distance,
    reuse_time,
    scenarios,
    tiers,
    window_growth,
    windows,
)

if TYPE_CHECKING:
    import polars as pl

    from kvreplay.results import ReplayResult
    from kvreplay.tables.schema import Table
    from kvreplay.tables.study import Study

TABLES: tuple[Table, ...] = (
    tiers.TABLE,
    ratios.TABLE,
    hit_curve.TABLE,
    window_growth.TABLE,
    reuse_distance.TABLE,
    reuse_time.TABLE,
    quality.TABLE,
)
# What a cost model adds.
WORTH: tuple[Table, ...] = (
    hit_quality.TABLE,
    scenarios.TABLE,
    hits_by_length.TABLE,
    demand.TABLE,
    admissions.TABLE,
)


def build(study: Study, *, per_request: bool = False) -> dict[str, tuple[Table, pl.DataFrame]]:
    """Build every table a study has something for, by name."""
    chosen = [*TABLES, policies.TABLE, break_even.TABLE, *WORTH]
    if study.result is not None:
        chosen += _by_tier(study.result, per_request=per_request)
    out = {}
    for table in chosen:
        frame = table.build(study)
        if frame is not None:
            out[table.name] = (table, table.conform(frame))
    return out


def optional() -> list[Table]:
    """The tables that are made when asked for, as they are for a tier called TIER and a column COLUMN."""
    tiers = ["TIER"]
    return [
        policies.TABLE,
        break_even.TABLE,
        *WORTH,
        windows.windows_table(tiers),
        windows.groups_table(["COLUMN"], tiers),
        requests.table(tiers, timed=True),
    ]


def _by_tier(result: ReplayResult, *, per_request: bool) -> list[Table]:
    """The tables that were asked for and have columns for each tier."""
    names = result.tier_names
    out = []
    if result.has_windows:
        out.append(windows.windows_table(names))
    if result.group_by:
        out.append(windows.groups_table(result.group_by, names))
    if per_request:
        out.append(requests.table(names, timed=result.times is not None))
    return out
