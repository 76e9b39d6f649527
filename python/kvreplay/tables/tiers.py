"""Table `tiers`: what each tier served and what went through it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvreplay.tables.schema import FLOAT, INT, TEXT, Column, Table

if TYPE_CHECKING:
    import polars as pl

    from kvreplay.tables.study import Study


def _build(study: Study) -> pl.DataFrame | None:
    return None if study.result is None else study.result.tiers


TABLE = Table(
    name="tiers",
    version=1,
    doc="One row per tier, fastest first; what this version does not compute is null.",
    columns=(
        Column("tier", TEXT, "name"),
        Column("policy", TEXT, "eviction policy"),
        Column("admission", TEXT, "admission filter"),
        Column("fill", TEXT, "how the tier is filled"),
        Column("capacity_blocks", INT, "capacity"),
        Column("capacity_tokens", INT, "capacity in tokens of full blocks"),
        Column("capacity_bytes", INT, "capacity in bytes, null without bytes per token"),
        Column("asked_blocks", INT, "blocks that no upper tier served"),
        Column("hit_blocks", INT, "blocks this tier served"),
        Column("hit_tokens", INT, "tokens this tier served"),
        Column("tier_conditional_hit_ratio", FLOAT, "tokens served / tokens asked of this tier"),
        Column("tier_share", FLOAT, "tokens served / all input tokens"),
        Column("inserted_blocks", INT, "blocks stored"),
        Column("evicted_blocks", INT, "blocks evicted"),
        Column("rejected_blocks", INT, "blocks the admission filter, or want of a parent, kept out"),
        Column("moved_blocks", INT, "blocks that left for an upper tier (victim tiers)"),
        Column("dead_on_arrival_blocks", INT, "blocks that left without having been served once"),
        Column("unread_at_end_blocks", INT, "blocks still resident at the end and never served"),
        Column("no_room_blocks", INT, "blocks dropped because everything resident was protected"),
        Column("stranded_blocks", INT, "resident blocks behind a hole at look-up, which could not be used"),
        Column("resident_blocks", INT, "blocks resident at the end"),
        Column("written_bytes", INT, "bytes stored, null without bytes per token"),
        Column("read_bytes", INT, "bytes read, null without bytes per token"),
        Column("hits", INT, "requests this tier served at least a block of"),
        Column(
            "harmful_hits", INT, "hits that take longer to load than to recompute, null without a cost model"
        ),
        Column("saved_us", INT, "time saved in microseconds, null without a cost model"),
        Column("lifetime_years", FLOAT, "life of the device under these writes, null without its endurance"),
        Column("inserted_compute_blocks", INT, "stored because the request computed them"),
        Column("inserted_promotion_blocks", INT, "stored because a tier below served them"),
        Column("inserted_demotion_blocks", INT, "stored because the tier above evicted them"),
        Column("moved_up_blocks", INT, "of the moved blocks: served by this tier"),
        Column("superseded_blocks", INT, "of the moved blocks: behind the run, so computed again above"),
        Column("peak_blocks", INT, "most blocks resident at once"),
        Column("warm_hit_tokens", INT, "tokens served after the warm-up, null without one"),
        Column("warm_tier_share", FLOAT, "share of the input tokens after the warm-up"),
    ),
    sort=(),
    build=_build,
)
