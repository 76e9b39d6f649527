"""Table `hit_quality`: what the hits of each tier are worth, and what keeping them costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvreplay.tables.schema import FLOAT, INT, TEXT, Column, Table

if TYPE_CHECKING:
    import polars as pl

    from kvreplay.tables.study import Study


def _build(study: Study) -> pl.DataFrame | None:
    return study.hit_quality


TABLE = Table(
    name="hit_quality",
    version=1,
    doc="One row per tier, fastest first; what is not known is null.",
    columns=(
        Column("tier", TEXT, "name"),
        Column("link", TEXT, "link its hits are loaded over, null where none is needed or known"),
        Column("hits", INT, "requests this tier served at least a block of"),
        Column("hit_tokens", INT, "tokens it served"),
        Column("load_us", INT, "time to load them, all requests together"),
        Column("store_us", INT, "time by which its writes delay requests; 0 where they do not"),
        Column("saved_us", INT, "time saved: computing its runs with everything before resident, less loads"),
        Column("gpu_saved_us", INT, "time of computing that it saves, loads not counted"),
        Column("harmful_hits", INT, "hits that take longer to load than to compute"),
        Column("harmful_tokens", INT, "their tokens"),
        Column("lost_us", INT, "time they lose"),
        Column("oracle_saved_us", INT, "what an engine would save that loads only where it helps"),
        Column("marginal_hit_tokens", INT, "tokens all tiers serve less without this one"),
        Column("marginal_saved_us", INT, "time all tiers save less without this one"),
        Column("read_bytes", INT, "bytes read"),
        Column("written_bytes", INT, "bytes stored"),
        Column("moved_bytes_per_saved_s", FLOAT, "bytes read and stored per second saved; null if none is"),
        Column("promoted_blocks", INT, "blocks it handed up"),
        Column("stores_per_load", FLOAT, "blocks stored / blocks served"),
        Column(
            "never_read_share", FLOAT, "of the blocks stored, those never served before they left or the end"
        ),
        Column("stranded_bytes", INT, "resident behind a hole at look-up, summed over requests"),
        Column("superseded_bytes", INT, "of a victim tier: left because the GPU computed them again"),
        Column(
            "residence_us", INT, "mean time a block stays (Little's law with the most held: an upper bound)"
        ),
        Column("reuse_gap_p50_us", INT, "time since the previous use of what it served, median of blocks"),
        Column("reuse_gap_p90_us", INT, "the same, 90th percentile"),
        Column("tier_usd_per_hour", FLOAT, "what the tier costs; null where nobody knows what it is made of"),
        Column("gpu_usd_saved_per_hour", FLOAT, "what the GPU time it saves is worth"),
        Column("net_usd_per_hour", FLOAT, "the latter less the former"),
        Column("usd_per_saved_gpu_hour", FLOAT, "its cost per GPU hour it saves"),
        Column("written_bytes_per_day", INT, "bytes stored per day at the pace of the trace"),
        Column(
            "drive_writes_per_day", FLOAT, "drive writes per day, with write amplification; of drives only"
        ),
        Column("lifetime_years", FLOAT, "life of the drive at this pace; null for what is no drive"),
    ),
    sort=(),
    build=_build,
)
