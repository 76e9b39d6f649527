"""Table `hits_by_length`: from which loaded length on the hits of a tier help."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvreplay.tables.schema import FLOAT, INT, TEXT, Column, Table
from kvreplay.worth.quality import hits_by_length

if TYPE_CHECKING:
    import polars as pl

    from kvreplay.tables.study import Study


def _build(study: Study) -> pl.DataFrame | None:
    return None if study.facts is None else hits_by_length(study.facts)


TABLE = Table(
    name="hits_by_length",
    version=1,
    doc="One row per tier and power of two of loaded tokens: these requests with and without the load.",
    columns=(
        Column("tier", TEXT, "name"),
        Column("lower_tokens", INT, "least loaded tokens of the row"),
        Column("upper_tokens", INT, "most"),
        Column("hits", INT, "requests"),
        Column("harmful_hits", INT, "those whose load takes longer than computing"),
        Column("hit_tokens", INT, "tokens loaded"),
        Column("saved_us", INT, "time saved, writes not counted"),
        Column("lost_us", INT, "time the harmful ones lose"),
        Column("load_mean_us", FLOAT, "mean time of the load"),
        Column("with_mean_us", FLOAT, "mean service time of these requests"),
        Column("with_p50_us", FLOAT, "its median"),
        Column("without_mean_us", FLOAT, "the same requests, computing instead of loading"),
        Column("without_p50_us", FLOAT, "its median"),
    ),
    sort=(),
    build=_build,
)
