"""Table `policies`: eviction policies side by side, between the bound and the ceiling."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvreplay.tables.schema import FLOAT, INT, TEXT, Column, Table

if TYPE_CHECKING:
    import polars as pl

    from kvreplay.tables.study import Study


def _build(study: Study) -> pl.DataFrame | None:
    return study.policies


TABLE = Table(
    name="policies",
    version=1,
    doc="One row per capacity (of each tier, of all together) and policy of one cache, best policy first.",
    columns=(
        Column("policy", TEXT, "eviction policy; opt is the bound in hit blocks"),
        Column("capacity_blocks", INT, "capacity"),
        Column("capacity_tokens", INT, "capacity in tokens of full blocks"),
        Column("capacity_bytes", INT, "capacity in bytes, null without bytes per token"),
        Column("hit_blocks", INT, "hit blocks of all requests"),
        Column("hit_tokens", INT, "hit tokens of all requests; a policy can have more than opt"),
        Column("token_hit_ratio", FLOAT, "hit tokens / input tokens"),
        Column(
            "usable_share", FLOAT, "of the hits counted block by block (object mode), those in a leading run"
        ),
        Column("inserted_blocks", INT, "blocks stored; null for opt, which may store any number"),
        Column("dead_on_arrival_blocks", INT, "blocks that left without having been served once"),
        Column("written_bytes", INT, "bytes stored, null without bytes per token"),
        Column("opt_hit_blocks", INT, "hit blocks of opt at this capacity"),
        Column("ceiling_hit_blocks", INT, "hit blocks of an infinite cache"),
        Column("gap_to_opt_blocks", INT, "lost to the policy: opt's hit blocks less these"),
        Column(
            "gap_to_ceiling_blocks", INT, "lost to capacity and policy: the ceiling's hit blocks less these"
        ),
    ),
    sort=(),
    build=_build,
)
