"""Table `hit_curve`: hits against capacity.

A curve has as many steps as the trace has different reuse distances, millions for a long one. The table holds
256 log-spaced capacities, those of the tiers (alone and summed from the top) and the last one that still
gains; `kvreplay curve --out` writes the exact curve.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

import polars as pl

from kvreplay.points import log_spaced
from kvreplay.tables.schema import FLOAT, INT, TEXT, Column, Table

if TYPE_CHECKING:
    from kvreplay.tables.study import Study

POINTS = 256


def _build(study: Study) -> pl.DataFrame:
    tiers = study.tier_capacities
    capacities = [*log_spaced(study.curve.last_capacity_blocks, POINTS), *tiers, *accumulate(tiers)]
    parts = [study.lru_at(capacities)]
    if study.opt is not None:
        parts.append(study.opt)
    return pl.concat(parts, how="vertical")


TABLE = Table(
    name="hit_curve",
    version=1,
    doc="One row per policy and capacity of a single cache.",
    columns=(
        Column("policy", TEXT, "lru, or opt: request-granular Belady with bypass, the bound in hit blocks"),
        Column("capacity_blocks", INT, "capacity"),
        Column("capacity_tokens", INT, "capacity in tokens of full blocks"),
        Column("capacity_bytes", INT, "capacity in bytes, null without bytes per token"),
        Column("hit_blocks", INT, "hit blocks of all requests"),
        Column("hit_tokens", INT, "hit tokens of all requests"),
        Column("block_hit_ratio", FLOAT, "hit blocks / listed blocks"),
        Column("token_hit_ratio", FLOAT, "hit tokens / input tokens"),
        Column("warm_hit_tokens", INT, "hit tokens after the warm-up, null without one"),
        Column("warm_token_hit_ratio", FLOAT, "the ratio after the warm-up"),
    ),
    sort=("policy", "capacity_blocks"),
    build=_build,
)
