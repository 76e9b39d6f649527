"""How long before its use a tier last saw what it served: to set against how long it keeps things."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    start = runs["start"] * block_tokens
    end = start + runs["length"] * block_tokens
    begin = pl.zeros(len(runs), pl.Int64, eager=True)
    out = {}
    for name in tiers:
        until = begin + hits[f"hit_tokens_{name}"].gather(owner)
        share = pl.DataFrame(
            {"start": start, "end": end, "begin": begin, "until": until, "age": runs["age_us"]}
        )
        weighted = share.select(
            "age",
            weight=(pl.min_horizontal("end", "until") - pl.max_horizontal("start", "begin")).clip(0),
        ).filter(pl.col("weight") > 0)
        out[name] = _quantiles(weighted)
        begin = until
    return out


def _quantiles(weighted: pl.DataFrame) -> dict[str, int | None]:
    if not weighted.height or weighted["age"].null_count():
        return dict.fromkeys(QUANTILES)
    ordered = weighted.sort("age")
    sums = ordered["weight"].cum_sum()
    whole = int(sums[-1])
    ranks = {name: -(-quantile * whole // 100) for name, quantile in QUANTILES.items()}
    return {name: int(ordered["age"][int(sums.search_sorted(rank))]) for name, rank in ranks.items()}
