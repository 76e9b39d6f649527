"""Table `quality`: what reading the trace found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvreplay.tables.schema import INT, TEXT, Column, Table

if TYPE_CHECKING:
    import polars as pl

    from kvreplay.tables.study import Study


def _build(study: Study) -> pl.DataFrame:
    return study.trace.quality


TABLE = Table(
    name="quality",
    version=1,
    doc="One row per code found while reading the trace.",
    columns=(
        Column("code", TEXT, "what was found, a code of kvreplay list quality-codes"),
        Column("severity", TEXT, "error: rows were rejected; warning: rows were kept; info"),
        Column("count", INT, "how often"),
        Column("first_line", INT, "line of the file (row of a table) where it was found first, from 1"),
        Column("first_value", TEXT, "what stood there"),
        Column("message", TEXT, "what it means"),
        Column("hint", TEXT, "what to do about it"),
    ),
    sort=(),
    build=_build,
)
