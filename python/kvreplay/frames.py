"""From the core's tables to Polars, with fixed types.

Polars widens and narrows integers by itself (lengths are UInt32 and wrap silently when summed), so every
table that leaves the package goes through :func:`frame`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from kvreplay import _core

_SMALL_INTEGERS = (pl.Int8, pl.Int16, pl.Int32, pl.UInt8, pl.UInt16, pl.UInt32)


def frame(table: _core.Table) -> pl.DataFrame:
    """Take over a table of the core: integers as Int64 (ids UInt64), floats as Float64, texts as String."""
    out = pl.DataFrame(table)
    casts: list[pl.Expr] = []
    for name, dtype in out.schema.items():
        if isinstance(dtype, pl.Categorical | pl.Enum):
            casts.append(pl.col(name).cast(pl.String))
        elif dtype in _SMALL_INTEGERS:
            casts.append(pl.col(name).cast(pl.Int64))
        elif dtype == pl.Float32:
            casts.append(pl.col(name).cast(pl.Float64))
    return out.with_columns(casts) if casts else out


def ratio(numerator: pl.Expr, denominator: pl.Expr | int) -> pl.Expr:
    """A ratio that is null where its denominator is zero.

    Polars divides a column by one number as a product with its reciprocal, which can be off by one ulp;
    spread over a column, the number divides as everywhere else: equal ratios are equal to the last bit.
    """
    if isinstance(denominator, int):
        denominator = pl.int_range(pl.len(), dtype=pl.Int64) * 0 + denominator
    return pl.when(denominator > 0).then(numerator / denominator).otherwise(None)
