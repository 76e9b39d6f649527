"""Numbers for people: few digits, always with their unit. Used by the screen, the page and the verdict."""

from __future__ import annotations

from kvreplay.units import BYTE_UNITS

_PREFIXES = ((10**12, "T"), (10**9, "G"), (10**6, "M"))


def count(value: int | None) -> str:
    """``1,234,567``, or ``-`` for an absent value."""
    return "-" if value is None else f"{value:,}"


def many(value: int, noun: str) -> str:
    """``1 request``, ``2,000 requests``: a count and what is counted."""
    return f"{value:,} {noun}" if value == 1 else f"{value:,} {noun}s"


def tokens(value: int | None) -> str:
    """``144.8 M``: tokens with three or four digits.

    Examples
    --------
    >>> from kvreplay import display
    >>> display.tokens(144793823), display.tokens(9999), display.tokens(None)
    ('144.8 M', '9,999', '-')
    """
    if value is None:
        return "-"
    for factor, prefix in _PREFIXES:
        if value >= factor:
            return f"{value / factor:.{2 if value < 10 * factor else 1}f} {prefix}"
    return f"{value:,}"


def size(value: int | None) -> str:
    """``1.50 GiB``: bytes by powers of 1024.

    Examples
    --------
    >>> from kvreplay import display
    >>> display.size(3 * 2**29), display.size(100)
    ('1.50 GiB', '100 B')
    """
    if value is None:
        return "-"
    for unit in ("PiB", "TiB", "GiB", "MiB", "KiB"):
        factor = BYTE_UNITS[unit]
        if value >= factor:
            return f"{value / factor:,.{2 if value < 10 * factor else 1}f} {unit}"
    return f"{value} B"


def percent(value: float | None) -> str:
    """``37.36 %`` of a ratio, or ``-``."""
    return "-" if value is None else f"{100 * value:.2f} %"


def points(value: float) -> str:
    """A difference of two ratios in percentage points: ``3.4 points``."""
    return f"{100 * value:.2f} points"


def span(value_us: int | None) -> str:
    """``58.9 min``: a duration in the largest unit it reaches.

    Examples
    --------
    >>> from kvreplay import display
    >>> display.span(3_534_000_000), display.span(90_000_000), display.span(250_000), display.span(5)
    ('58.9 min', '90.0 s', '250.0 ms', '5 us')
    """
    if value_us is None:
        return "-"
    for factor, limit, unit in (
        (86_400_000_000, 2, "d"),
        (3_600_000_000, 2, "h"),
        (60_000_000, 2, "min"),
        (1_000_000, 1, "s"),
        (1_000, 1, "ms"),
    ):
        if value_us >= limit * factor:
            return f"{value_us / factor:.1f} {unit}"
    return f"{value_us} us"


def signed_span(value_us: int | None) -> str:
    """A duration that may be negative.

    Examples
    --------
    >>> from kvreplay import display
    >>> display.signed_span(-90_000_000)
    '-90.0 s'
    """
    return f"-{span(-value_us)}" if value_us is not None and value_us < 0 else span(value_us)


def years(value: float | None) -> str:
    """A life: ``3.2 years``, in days below one.

    Examples
    --------
    >>> from kvreplay import display
    >>> display.years(3.24), display.years(0.0604), display.years(0.0032), display.years(None)
    ('3.2 years', '22 days', '1.2 days', '-')
    """
    if value is None:
        return "-"
    if value >= 1:
        return f"{value:,.1f} years"
    days = 365 * value
    return f"{days:.1f} days" if days < 10 else f"{days:.0f} days"  # noqa: PLR2004 - two digits say enough
