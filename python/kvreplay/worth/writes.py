"""What each request writes to a tier: by its insert events, else spread over the requests that could have.

A replay counts what a tier stored over the whole trace. Per request it keeps hits only, so without events its
writes are spread: a `write_through` tier is offered what the request computed and what tiers below served; a
tier that takes evictions gets as much as the tier above takes in. Both ways sum to the exact total.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from kvreplay.worth.timing import sum_of

if TYPE_CHECKING:
    from collections.abc import Sequence


def written_tokens(weights: pl.DataFrame, tiers: Sequence[str], totals: Sequence[int]) -> pl.DataFrame:
    """Tokens that each request writes to each tier.

    Parameters
    ----------
    weights
        One column per tier: what a request's share is proportional to.
    tiers
        Names of the tiers.
    totals
        Tokens of the blocks each tier stored over the whole trace.

    Returns
    -------
    polars.DataFrame
        ``written_tokens_<tier>``, Int64.
    """
    sums = weights.sum().row(0)
    scales = [total / weight if weight else 0.0 for total, weight in zip(totals, sums, strict=True)]
    # Rounded where it is cumulative: whole tokens that sum to the total, whoever adds them up.
    return weights.select(
        (pl.col(name).cum_sum() * scale)
        .round(0)
        .cast(pl.Int64)
        .diff(null_behavior="ignore")
        .fill_null((pl.col(name).first() * scale).round(0).cast(pl.Int64))
        .alias(f"written_tokens_{name}")
        for name, scale in zip(tiers, scales, strict=True)
    )


def weights_by_offers(
    hits: pl.DataFrame, tiers: Sequence[str], fills: Sequence[str], *, block_tokens: int
) -> pl.DataFrame:
    """Weights where no events were kept: blocks of each request that a tier may be given.

    Parameters
    ----------
    hits
        ``hit_tokens_<tier>`` and ``computed_tokens``.
    tiers, fills
        Names and fill rules of the tiers, fastest first.
    block_tokens
        Tokens of a block; a partial one is stored as a whole.
    """
    return hits.select(
        (-(-_offered(tiers, fills, at) // block_tokens)).alias(name) for at, name in enumerate(tiers)
    )


def _offered(tiers: Sequence[str], fills: Sequence[str], at: int) -> pl.Expr:
    if at > 0 and fills[at] != "write_through":
        return _offered(tiers, fills, at - 1)
    return pl.col("computed_tokens") + sum_of(tiers[at + 1 :])


def weights_by_events(events: pl.DataFrame, tiers: Sequence[str], requests: int) -> pl.DataFrame:
    """Weights from events: how many blocks (or chunks) each request stored in each tier."""
    inserts = events.filter(event="insert").group_by("request", "tier").agg(stored=pl.len().cast(pl.Int64))
    out = pl.DataFrame({"request": pl.int_range(requests, eager=True)})
    for name in tiers:
        mine = inserts.filter(tier=name).select("request", pl.col("stored").alias(name))
        out = out.join(mine, on="request", how="left", maintain_order="left")
    return out.select(pl.col(name).fill_null(0) for name in tiers)
