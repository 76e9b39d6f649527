"""The warm-up: how many requests from the start are left out of the warm columns."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from kvreplay.errors import ConfigError
from kvreplay.units import duration_us

if TYPE_CHECKING:
    from kvreplay.trace import Trace

_HINT = 'give a fraction from 0 to below 1 (0.5 leaves out the first half) or a duration ("5m")'


def warmup_requests(trace: Trace, warmup: float | str | None) -> int | None:
    """Number of requests of the warm-up, ``None`` without one.

    A fraction ``f`` counts requests: the first ``floor(f * n)``. A duration counts time: the requests that
    arrive less than that after the first one.

    Raises
    ------
    ConfigError
        When it is neither, or a duration is given for a trace without times.
    """
    if warmup is None:
        return None
    fraction: object = warmup
    if isinstance(warmup, str):
        try:
            fraction = float(warmup)
        except ValueError:
            return _by_time(trace, duration_us(warmup, what="warmup"))
    if not isinstance(fraction, int | float) or isinstance(fraction, bool) or not 0 <= fraction < 1:
        raise ConfigError(f"warmup {warmup!r} is not a fraction below 1", hint=_HINT)
    return math.floor(fraction * len(trace))


def _by_time(trace: Trace, span_us: int) -> int:
    first = trace.info["arrival_first_us"]
    if first is None:
        raise ConfigError("a warm-up by time needs a trace with times", hint=_HINT)
    arrivals = trace.requests()["arrival_us"]
    return int((arrivals < first + span_us).sum())
