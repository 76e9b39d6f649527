"""Table `demand`: what arrives, against what the GPU and the links can do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvreplay.tables.schema import FLOAT, INT, TEXT, Column, Table

if TYPE_CHECKING:
    import polars as pl

    from kvreplay.tables.study import Study


def _build(study: Study) -> pl.DataFrame | None:
    return study.demand


TABLE = Table(
    name="demand",
    version=1,
    doc="One row per length of window, resource and direction; windows without requests count as 0.",
    columns=(
        Column("window_s", INT, "length of the windows in seconds"),
        Column("resource", TEXT, "prefill, or the tier (else the link) whose link is asked"),
        Column("direction", TEXT, "prefill with_tiers or without_tiers (the first alone); read or write"),
        Column("unit", TEXT, "of mean, p99 and max, per second: seconds of one engine, or bytes of one rank"),
        Column("mean", FLOAT, "mean of the windows"),
        Column("p99", FLOAT, "99th percentile of the windows (nearest rank)"),
        Column("max", FLOAT, "busiest window"),
        Column("burst", FLOAT, "busiest window / mean"),
        Column("capacity", FLOAT, "what the resource can do per second; null where nobody said"),
        Column("mean_share", FLOAT, "mean / capacity"),
        Column("p99_share", FLOAT, "p99 / capacity; beyond 0.8 waiting rules"),
        Column("max_share", FLOAT, "max / capacity"),
    ),
    sort=(),
    build=_build,
)
