"""Wear: what writing to a drive costs, and how long the drive lasts.

A drive with a warranty of `years` and DWPD drive writes per day may be written
``capacity * DWPD * 365 * years`` bytes; WAF bytes reach the flash per byte written. Vendors test with small
random writes: large sequential ones, as KV blocks are, wear less, so a WAF near 1 is right for them.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

DAYS_PER_YEAR = 365


def endurance_bytes(capacity_bytes: float, *, dwpd: float, years: float) -> float:
    """Bytes that the warranty lets reach the flash."""
    return capacity_bytes * dwpd * DAYS_PER_YEAR * years


def usd_per_byte_written(usd_per_gb: float, *, dwpd: float, years: float, waf: float) -> float:
    """USD of drive that one written byte uses up.

    Examples
    --------
    >>> from kvreplay.cost.wear import usd_per_byte_written
    >>> round(usd_per_byte_written(0.20, dwpd=1, years=5, waf=1) * 1e9, 6)  # USD per GB
    0.00011
    """
    return usd_per_gb / 1e9 * waf / (dwpd * DAYS_PER_YEAR * years)


def lifetime_years(
    capacity_bytes: float, bytes_per_day: float, *, dwpd: float, years: float, waf: float
) -> float:
    """Years until the endurance is used up, infinite without writes.

    Examples
    --------
    >>> from kvreplay.cost.wear import lifetime_years
    >>> round(365 * lifetime_years(8 * 7.68e12, 1.81e15, dwpd=1, years=5, waf=1))  # days
    62
    """
    written = bytes_per_day * waf * DAYS_PER_YEAR
    return endurance_bytes(capacity_bytes, dwpd=dwpd, years=years) / written if written > 0 else inf


def lifetime_years_expr(
    capacity_bytes: pl.Expr, bytes_per_day: pl.Expr, *, dwpd: float, years: float, waf: float
) -> pl.Expr:
    """:func:`lifetime_years` of columns, Float64; null without writes."""
    import polars as pl

    endurance = capacity_bytes.cast(pl.Float64) * (dwpd * DAYS_PER_YEAR * years)
    written = bytes_per_day.cast(pl.Float64) * (waf * DAYS_PER_YEAR)
    return pl.when(written > 0).then(endurance / written).otherwise(None)


def drive_writes_per_day(capacity_bytes: float, bytes_per_day: float, *, waf: float) -> float:
    """Drive writes per day that this amount is."""
    return bytes_per_day * waf / capacity_bytes


def reuses_to_pay(
    size_bytes: float, saved_us: float, *, gpu_us_usd: float, usd_per_byte_written: float
) -> float:
    """Uses that a write must get before the GPU time they save pays for the wear of writing it.

    Examples
    --------
    >>> from kvreplay.cost import wear
    >>> from kvreplay.cost.money import prices
    >>> own = prices("h100-sxm")
    >>> byte = wear.usd_per_byte_written(0.20, dwpd=1, years=5, waf=1)
    >>> size = 10_000 * 131072
    >>> round(
    ...     wear.reuses_to_pay(size, 266_640, gpu_us_usd=own.gpu_us_usd, usd_per_byte_written=byte), 2
    ... )
    0.66
    """
    worth = saved_us * gpu_us_usd
    return size_bytes * usd_per_byte_written / worth if worth > 0 else inf
