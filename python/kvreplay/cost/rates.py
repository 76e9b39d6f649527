"""Bandwidths and short times with their units: ``"43.9 GB/s"``, ``"400 Gbps"``, ``"9.8 ms"``."""

from __future__ import annotations

import math
import re
from numbers import Real

from kvreplay.errors import ConfigError

_NUMBER = re.compile(r"([0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z/]*)")
_AMBIGUOUS = re.compile(r"[kmgt]?i?b?(/s)?", re.IGNORECASE)
_BYTES = {"B/s": 1, "kB/s": 10**3, "KB/s": 10**3, "MB/s": 10**6, "GB/s": 10**9, "TB/s": 10**12}
_BINARY = {"KiB/s": 2**10, "MiB/s": 2**20, "GiB/s": 2**30, "TiB/s": 2**40}
_BITS = {
    f"{prefix}{form}": factor
    for prefix, factor in (("k", 125.0), ("K", 125.0), ("M", 125e3), ("G", 125e6), ("T", 125e9))
    for form in ("bps", "bit/s")
}
_RATES: dict[str, float] = {**_BYTES, **_BINARY, **_BITS}
_TIMES_US = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}
_RATE_HINT = 'write bytes per second ("43.9 GB/s", "32 GiB/s") or bits per second ("400 Gbps")'
_TIME_HINT = 'write a time with its unit: "3.5 us", "9.8 ms", "1 s"'
_LEAST_BYTES_PER_S, _MOST_BYTES_PER_S = 1.0, 1e15
_MOST_US = 3.6e9


def _parts(text: object, *, what: str, hint: str) -> tuple[float, str]:
    match = _NUMBER.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        raise ConfigError(f"{what} {text!r} is not a number with a unit", hint=hint)
    return float(match[1].replace("_", "")), match[2]


def bandwidth(text: object, *, what: str = "bandwidth") -> float:
    """Read a bandwidth.

    Parameters
    ----------
    text
        ``"43.9 GB/s"`` (powers of ten), ``"32 GiB/s"`` (powers of two) or ``"400 Gbps"`` (bits).
    what
        Name for the message.

    Returns
    -------
    float
        Bytes per second.

    Raises
    ------
    ConfigError
        Without a unit, with an unknown one, with one that may mean bits or bytes (``Gb``, ``gb/s``), or
        when the value is not positive or beyond any device.

    Examples
    --------
    >>> from kvreplay.cost.rates import bandwidth
    >>> bandwidth("43.9 GB/s"), bandwidth("400 Gbps"), bandwidth("1 GiB/s")
    (43900000000.0, 50000000000.0, 1073741824.0)
    """
    number, unit = _parts(text, what=what, hint=_RATE_HINT)
    if unit not in _RATES:
        why = "may mean bits or bytes, or no rate at all" if _AMBIGUOUS.fullmatch(unit) else "is unknown"
        raise ConfigError(f"the unit {unit!r} of {what} {text!r} {why}", hint=_RATE_HINT)
    value = number * _RATES[unit]
    if not _LEAST_BYTES_PER_S <= value <= _MOST_BYTES_PER_S:
        raise ConfigError(f"{what} {text!r} cannot be", hint=_RATE_HINT)
    return value


def time_us(text: object, *, what: str = "time") -> float:
    """Read a time of a link.

    Parameters
    ----------
    text
        ``"9.8 ms"``, with ``ns``, ``us``, ``ms`` or ``s``. Zero needs a unit too: ``"0 us"``.
    what
        Name for the message.

    Returns
    -------
    float
        Microseconds, at least 0.

    Raises
    ------
    ConfigError
        Without a unit, with an unknown one, or when it is longer than an hour.

    Examples
    --------
    >>> from kvreplay.cost.rates import time_us
    >>> time_us("9.8 ms"), time_us("0 us")
    (9800.0, 0.0)
    """
    number, unit = _parts(text, what=what, hint=_TIME_HINT)
    if unit not in _TIMES_US:
        raise ConfigError(f"{what} {text!r} has no known unit of time", hint=_TIME_HINT)
    value = number * _TIMES_US[unit]
    if value > _MOST_US:
        raise ConfigError(f"{what} {text!r} cannot be", hint=_TIME_HINT)
    return value


def finite(value: object, *, what: str, hint: str, least: float = 0.0, most: float = math.inf) -> float:
    """Check a number from outside: finite and in a range.

    Raises
    ------
    ConfigError
        When it is not.
    """
    good = isinstance(value, Real) and not isinstance(value, bool)
    if not good or not math.isfinite(float(value)) or not least <= float(value) <= most:  # type: ignore[arg-type]
        raise ConfigError(f"{what} is {value!r}", hint=hint)
    return float(value)  # type: ignore[arg-type]
