"""Table `ratios`: every named hit ratio, of the infinite cache and of the tiers together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from kvreplay.tables.schema import FLOAT, INT, TEXT, Column, Table

if TYPE_CHECKING:
    from kvreplay.tables.study import Study


def _build(study: Study) -> pl.DataFrame:
    parts = [study.ceiling_ratios.with_columns(scope=pl.lit("ceiling"))]
    if study.result is not None:
        parts.append(study.result.ratios.with_columns(scope=pl.lit("tiers")))
    return pl.concat(parts, how="vertical")


TABLE = Table(
    name="ratios",
    version=1,
    doc="One row per named hit ratio.",
    columns=(
        Column("scope", TEXT, "ceiling: an infinite cache; tiers: all tiers together"),
        Column("name", TEXT, "name of the ratio"),
        Column("value", FLOAT, "the ratio, null where the denominator is zero"),
        Column("numerator", INT, "what was hit"),
        Column("denominator", INT, "what was asked"),
        Column("definition", TEXT, "the definition in words"),
    ),
    sort=(),
    build=_build,
)
