"""Table `reuse_time`: how long before its use a block was used last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvreplay.curve import reuse_time
from kvreplay.tables.schema import INT, Column, Table

if TYPE_CHECKING:
    import polars as pl

    from kvreplay.tables.study import Study


def _build(study: Study) -> pl.DataFrame:
    return reuse_time(study.trace, progress=study.progress)


TABLE = Table(
    name="reuse_time",
    version=1,
    doc="Histogram of the time since a block's previous use; empty for a trace without times.",
    columns=(
        Column("lower", INT, "lower bound in microseconds"),
        Column("upper", INT, "upper bound in microseconds"),
        Column("accesses", INT, "block uses in the bin"),
        Column("tokens", INT, "their tokens"),
    ),
    sort=("lower",),
    build=_build,
)
