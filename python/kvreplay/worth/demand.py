"""Demand: how much of the GPU and of every link the trace asks for, by windows of time.

Service times say nothing about waiting. Whether they can be trusted is a question of demand: what arrives in
a window against what the resource can do in it. Amounts fall into the window of the request's arrival.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Sequence

# Each a multiple of the one before.
WINDOWS_S = (10, 60)
# Above this share of a resource waiting outgrows service, and percentiles of service times mislead.
OVERLOAD = 0.8
_PERCENTILE = 0.99
_US = 1_000_000

DEMAND_SCHEMA: dict[str, Any] = {
    "window_s": pl.Int64,
    "resource": pl.String,
    "direction": pl.String,
    "unit": pl.String,
    "mean": pl.Float64,
    "p99": pl.Float64,
    "max": pl.Float64,
    "burst": pl.Float64,
    "capacity": pl.Float64,
    "mean_share": pl.Float64,
    "p99_share": pl.Float64,
    "max_share": pl.Float64,
}


@dataclass(frozen=True)
class Amount:
    """What each request asks of a resource.

    Parameters
    ----------
    resource
        ``prefill``, or the name of the tier whose link it is.
    direction
        ``with_tiers`` or ``without_tiers`` of the prefill, ``read`` or ``write`` of a link.
    unit
        What is counted per second: ``gpu_s`` or ``bytes``.
    per_request
        The amount of each request in whole numbers (so that sums do not depend on their order), no nulls.
    capacity
        What the resource does per second, ``None`` where nobody said.
    parts
        How many of what is summed make one of `unit`: 1,000,000 where microseconds are summed to seconds.
    """

    resource: str
    direction: str
    unit: str
    per_request: pl.Expr
    capacity: float | None
    parts: int = 1


def demand(requests: pl.DataFrame, amounts: Sequence[Amount]) -> pl.DataFrame:
    """Demand per second of every resource, one row per length of window and amount.

    Parameters
    ----------
    requests
        ``arrival_us`` without nulls, and what the amounts are made of.
    amounts
        What to sum.

    Returns
    -------
    polars.DataFrame
        ``mean`` over the whole span, ``p99`` and ``max`` over its windows, empty ones included (the last
        window counts as a whole one), ``burst`` = max / mean, and their shares of the capacity.
    """
    rows = []
    if requests.height:
        names = [f"amount_{at}" for at in range(len(amounts))]
        parts = requests.select(
            "arrival_us", *[one.per_request.alias(name) for name, one in zip(names, amounts, strict=True)]
        )
        first, last = _bounds(parts)
        sums, shorter_s = parts, 0
        for window_s in WINDOWS_S:
            # Long windows are made of short ones.
            sums = _window_sums(sums, names, window_s=window_s, shorter_s=shorter_s, first=first)
            shorter_s = window_s
            count = (last - first) // (window_s * _US) + 1
            for name, one in zip(names, amounts, strict=True):
                rows.append(_row(window_s, one, sums[name], count))
    return pl.DataFrame(rows, DEMAND_SCHEMA, strict=True)


def _window_sums(
    parts: pl.DataFrame, names: list[str], *, window_s: int, shorter_s: int, first: int
) -> pl.DataFrame:
    """Sums of the windows that have a request, from requests or from the sums of shorter windows."""
    if shorter_s:
        number = pl.col("window") // (window_s // shorter_s)
    else:
        number = (pl.col("arrival_us") - first) // (window_s * _US)
    numbered = parts.select(number.alias("window"), *names)
    if numbered["window"].is_sorted():  # as requests arrive: neighbours are summed, and nothing is hashed
        numbered = numbered.with_columns(pl.col("window").set_sorted())
    return numbered.group_by("window").agg(pl.col(name).sum() for name in names).sort("window")


def _bounds(parts: pl.DataFrame) -> tuple[int, int]:
    first, last = parts.select(
        first=pl.col("arrival_us").min().cast(pl.Int64), last=pl.col("arrival_us").max().cast(pl.Int64)
    ).row(0)
    return first, last


def _row(window_s: int, amount: Amount, sums: pl.Series, windows: int) -> dict[str, Any]:
    per = window_s * amount.parts
    mean = float(sums.sum()) / windows / per
    most = float(sums.max() or 0.0) / per  # type: ignore[arg-type]
    high = nearest_rank(sums, windows, _PERCENTILE) / per
    values = {"mean": mean, "p99": high, "max": most}
    shares = {f"{name}_share": _share(value, amount.capacity) for name, value in values.items()}
    return {
        "window_s": window_s,
        "resource": amount.resource,
        "direction": amount.direction,
        "unit": amount.unit,
        **values,
        "burst": most / mean if mean else None,
        "capacity": amount.capacity,
        **shares,
    }


def nearest_rank(present: pl.Series, count: int, quantile: float) -> float:
    """Quantile by nearest rank of `count` values, of which those not in `present` are 0.

    The windows of a long, sparse trace are never built: a year of 10 s windows is 3 million zeros.
    """
    at = math.ceil(quantile * count) - 1 - (count - len(present))
    return 0.0 if at < 0 else float(present.sort()[at])


def _share(value: float, capacity: float | None) -> float | None:
    return None if capacity is None else ratio_of(value, capacity)


def ratio_of(value: float, capacity: float) -> float | None:
    """A share of a capacity, ``None`` of none."""
    return value / capacity if capacity > 0 else None


def overloaded(table: pl.DataFrame) -> pl.DataFrame:
    """Rows of the busiest minute (p99 of the 60 s windows) that ask for more than 0.8 of a capacity.

    The prefill without the tiers is left out: it says what the tiers save, not what happens.
    """
    return table.filter(
        pl.col("window_s") == WINDOWS_S[-1],
        pl.col("direction") != "without_tiers",
        pl.col("p99_share") > OVERLOAD,
    )
