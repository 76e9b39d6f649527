"""Table `reuse_distance`: how many distinct blocks came between two uses of a block."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvreplay.frames import frame
from kvreplay.tables.schema import INT, Column, Table

if TYPE_CHECKING:
    import polars as pl

    from kvreplay.tables.study import Study


def _build(study: Study) -> pl.DataFrame:
    return frame(study.curve.reuse_distance())


TABLE = Table(
    name="reuse_distance",
    version=1,
    doc="Histogram of LRU stack distances; first occurrences are in no bin.",
    columns=(
        Column("lower", INT, "lower bound in distinct blocks"),
        Column("upper", INT, "upper bound in distinct blocks"),
        Column("accesses", INT, "block uses in the bin"),
        Column("tokens", INT, "their tokens"),
    ),
    sort=("lower",),
    build=_build,
)
