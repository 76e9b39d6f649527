"""The tables of a report: one file each, listed here in the order they are shown.

Parquet is the contract, the page and the screen are views of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvreplay.tables import (
    hit_curve,
    quality,
    ratios,
    requests,
    reuse_distance,
    reuse_time,
    tiers,
    window_growth,
)

if TYPE_CHECKING:
    import polars as pl

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


def build(study: Study, *, per_request: bool = False) -> dict[str, tuple[Table, pl.DataFrame]]:
    """Build every table a study has something for, by name."""
    chosen = list(TABLES)
    if per_request and study.result is not None:
        chosen.append(requests.table(study.result.tier_names))
    out = {}
    for table in chosen:
        frame = table.build(study)
        if frame is not None:
            out[table.name] = (table, table.conform(frame))
    return out
