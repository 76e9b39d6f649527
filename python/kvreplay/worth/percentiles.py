"""Distributions of times in few numbers: mean and nearest-rank percentiles."""

from __future__ import annotations

from typing import Any

import polars as pl

PERCENTILES = (50, 90, 95, 99)
TIME_COLUMNS: dict[str, Any] = {
    "requests": pl.Int64,
    "mean_us": pl.Float64,
    **{f"p{q}_us": pl.Int64 for q in PERCENTILES},
}


def spread(values: pl.Series) -> dict[str, Any]:
    """Count, mean and percentiles of times; nulls of all but the count where a time is not known.

    A percentile is the nearest rank: the smallest time that at least so many percent of the times do not
    exceed, so it is a time that occurs.
    """
    out: dict[str, Any] = {"requests": len(values), "mean_us": None}
    out |= {f"p{q}_us": None for q in PERCENTILES}
    if values.null_count() or not len(values):
        return out
    # One thread takes no longer over a million times than several, and half the CPU.
    ordered = values.sort(multithreaded=False)
    # ceil(q * n / 100) in integers: a float product may step over a whole number
    ranks = {f"p{q}_us": -(-q * len(values) // 100) - 1 for q in PERCENTILES}
    return out | {"mean_us": ordered.mean()} | {name: ordered[at] for name, at in ranks.items()}
