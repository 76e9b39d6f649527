"""Policies side by side at the same capacities, between the bound and the ceiling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from kvreplay import _core, calls
from kvreplay.errors import ConfigError
from kvreplay.frames import frame, ratio
from kvreplay.sweeping import sweep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvreplay.calls import ProgressHook
    from kvreplay.trace import Trace

POLICIES_SCHEMA: dict[str, Any] = {
    "policy": pl.String,
    "capacity_blocks": pl.Int64,
    "capacity_tokens": pl.Int64,
    "capacity_bytes": pl.Int64,
    "hit_blocks": pl.Int64,
    "hit_tokens": pl.Int64,
    "token_hit_ratio": pl.Float64,
    "usable_share": pl.Float64,
    "inserted_blocks": pl.Int64,
    "dead_on_arrival_blocks": pl.Int64,
    "written_bytes": pl.Int64,
    "opt_hit_blocks": pl.Int64,
    "ceiling_hit_blocks": pl.Int64,
    "gap_to_opt_blocks": pl.Int64,
    "gap_to_ceiling_blocks": pl.Int64,
}


def compare_policies(
    trace: Trace,
    policies: Sequence[str],
    capacities: Sequence[int],
    *,
    model: object = None,
    progress: ProgressHook | None = None,
) -> pl.DataFrame:
    """Replay one cache per policy and capacity, and set each against ``opt`` and the ceiling.

    Parameters
    ----------
    trace
        The trace.
    policies
        Names of :func:`kvreplay.policies` with optional parameters.
    capacities
        Blocks.
    model
        As in :func:`kvreplay.hit_curve`.
    progress
        As in :func:`kvreplay.sweep`.

    Returns
    -------
    polars.DataFrame
        One row per capacity and policy, by capacity, best policy first (hit blocks, then name). ``opt`` has a
        row of its own. Gaps are in hit blocks: what ``opt`` misses of the ceiling is lost to capacity, what a
        policy misses of ``opt`` is lost to the policy. ``usable_share`` is what a general cache simulator
        would overstate: the share of the policy's hits, counted block by block in object mode, that lie in a
        leading run.

    Raises
    ------
    ConfigError
        For an unknown policy.
    """
    names = list(dict.fromkeys(policies))
    sizes = sorted(set(capacities))
    if not names or not sizes:
        raise ConfigError("nothing to compare", hint="give at least one policy and one capacity")
    grid = {"policy": [*names, "opt"], "capacity": sizes}
    prefix = sweep(trace, grid, model=model, progress=progress).unique(
        ["policy", "capacity_blocks"], keep="first", maintain_order=True
    )
    counted = sweep(
        trace,
        {"policy": names, "capacity": sizes, "mode": "object", "closure": "none"},
        progress=progress,
    )
    shares = counted.select(
        "policy", "capacity_blocks", usable_share=ratio(pl.col("usable_hit_blocks"), pl.col("hit_blocks"))
    )
    opt = prefix.filter(policy="opt").select("capacity_blocks", opt_hit_blocks="hit_blocks")
    reusable = int(frame(calls.run(lambda _: _core.ceiling(trace.core), what="ceiling"))["hit_blocks"].sum())
    hits = pl.col("hit_blocks")
    return (
        prefix.join(opt, on="capacity_blocks", how="left")
        .join(shares, on=["policy", "capacity_blocks"], how="left")
        .with_columns(
            ceiling_hit_blocks=pl.lit(reusable, pl.Int64),
            gap_to_opt_blocks=pl.col("opt_hit_blocks") - hits,
            gap_to_ceiling_blocks=reusable - hits,
        )
        .select(pl.col(name).cast(dtype) for name, dtype in POLICIES_SCHEMA.items())
        .sort("capacity_blocks", "hit_blocks", "policy", descending=[False, True, False])
    )
