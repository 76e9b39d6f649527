"""Table `admissions`: admission filters side by side in front of the tiers below the first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvreplay.tables.schema import FLOAT, INT, TEXT, Column, Table

if TYPE_CHECKING:
    import polars as pl

    from kvreplay.tables.study import Study


def _build(study: Study) -> pl.DataFrame | None:
    return study.compared_admissions


TABLE = Table(
    name="admissions",
    version=1,
    doc="One row per tier and filter, all other tiers as they were.",
    columns=(
        Column("tier", TEXT, "tier that the filter stands in front of"),
        Column("admission", TEXT, "the filter"),
        Column("hit_tokens", INT, "tokens the tier serves"),
        Column("all_hit_tokens", INT, "tokens all tiers serve"),
        Column("hits", INT, "requests the tier serves"),
        Column(
            "harmful_hits", INT, "those whose load takes longer than computing; null without a cost model"
        ),
        Column("saved_us", INT, "time the tier saves; null without a cost model"),
        Column("all_saved_us", INT, "time all tiers below the first save"),
        Column("inserted_blocks", INT, "blocks stored"),
        Column("rejected_blocks", INT, "blocks kept out"),
        Column("dead_on_arrival_blocks", INT, "blocks that left without having been served"),
        Column("written_bytes", INT, "bytes stored; null without bytes per token"),
        Column("written_bytes_per_day", INT, "bytes stored per day at the pace of the trace"),
        Column("lifetime_years", FLOAT, "life of the drive at this pace; null for what is no drive"),
    ),
    sort=(),
    build=_build,
)
