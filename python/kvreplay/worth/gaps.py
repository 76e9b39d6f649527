"""How long before its use a tier last saw what it served: to set against how long it keeps things."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Sequence

# Of ages: few enough that their sums cost little, enough that a bucket holds few of the ages.
_BUCKETS = 1 << 12
QUANTILES = {"reuse_gap_p50_us": 50, "reuse_gap_p90_us": 90}


def reuse_gaps(
    runs: pl.DataFrame, hits: pl.DataFrame, tiers: Sequence[str], *, block_tokens: int
) -> dict[str, dict[str, int | None]]:
    """Weighted quantiles of the time since the previous use, over the blocks that each tier served.

    Parameters
    ----------
    runs
        :func:`kvreplay.reuse_runs`: who held which blocks of a request's path last, and when.
    hits
        ``hit_tokens_<tier>``, one row per request.
    tiers
        Names of the tiers, fastest first.
    block_tokens
        Tokens of a block.

    Returns
    -------
    dict
        By tier ``reuse_gap_p50_us`` and ``reuse_gap_p90_us``: the smallest gap that so many percent of its
        blocks do not exceed; ``None`` where it served none, or without times.
    """
    owner = runs["request"]
    begin = pl.zeros(len(runs), pl.Int64, eager=True)
    parts = runs.lazy().select(
        age="age_us",
        start=pl.col("start") * block_tokens,
        end=(pl.col("start") + pl.col("length")) * block_tokens,
    )
    out = {}
    for name in tiers:
        until = begin + hits[f"hit_tokens_{name}"].gather(owner)
        weight = pl.min_horizontal("end", pl.lit(until)) - pl.max_horizontal("start", pl.lit(begin))
        weighted = parts.select("age", weight=weight).filter(pl.col("weight") > 0).collect()
        out[name] = _quantiles(weighted)
        begin = until
    return out


def _quantiles(weighted: pl.DataFrame) -> dict[str, int | None]:
    if not weighted.height or weighted["age"].null_count():
        return dict.fromkeys(QUANTILES)
    # Only the ages of the bucket that a rank falls into are sorted.
    oldest: Any = weighted["age"].max()
    width = oldest // _BUCKETS + 1
    counted = weighted.lazy().group_by(first=pl.col("age") // width * width).agg(pl.col("weight").sum())
    buckets = counted.collect(engine="streaming").sort("first")
    whole = int(buckets["weight"].sum())
    ranks = {name: -(-quantile * whole // 100) for name, quantile in QUANTILES.items()}
    out: dict[str, int | None] = {}
    for name, rank in ranks.items():
        at = _reaching(rank, buckets)
        first = int(buckets["first"][at])
        inside = pl.col("age").is_between(first, min(first + width - 1, oldest))
        ordered = weighted.filter(inside).sort("age")
        before = int(buckets["weight"][:at].sum())
        out[name] = int(ordered["age"][_reaching(rank - before, ordered)])
    return out


def _reaching(rank: int, ordered: pl.DataFrame) -> int:
    """The first row with which the weights sum up to `rank`."""
    return int(ordered["weight"].cum_sum().search_sorted(rank))
