"""Table `scenarios`: service times and GPU time with all tiers, without some of them, and with none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvreplay.tables.schema import FLOAT, INT, TEXT, Column, Table

if TYPE_CHECKING:
    import polars as pl

    from kvreplay.tables.study import Study


def _build(study: Study) -> pl.DataFrame | None:
    return study.scenarios


TABLE = Table(
    name="scenarios",
    version=1,
    doc="One row per set of tiers; times are service times, without any queueing.",
    columns=(
        Column("scenario", TEXT, "all tiers, without TIER, the first tier alone, or no cache"),
        Column("hit_tokens", INT, "tokens served"),
        Column("requests", INT, "requests"),
        Column("mean_us", FLOAT, "mean time to the first token"),
        Column("p50_us", INT, "median (nearest rank)"),
        Column("p90_us", INT, "90th percentile"),
        Column("p95_us", INT, "95th percentile"),
        Column("p99_us", INT, "99th percentile"),
        Column("compute_us", INT, "time of computing, all requests together"),
        Column("gpu_usd_per_million_tokens", FLOAT, "GPU time per million input tokens"),
        Column("tiers_usd_per_million_tokens", FLOAT, "what the tiers cost meanwhile; the GPU's memory is 0"),
    ),
    sort=(),
    build=_build,
)
