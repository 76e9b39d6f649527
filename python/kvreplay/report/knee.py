"""Where the hit curve bends: two definitions that do not depend on how the curve is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvreplay.points import log_spaced

if TYPE_CHECKING:
    from kvreplay import _core

# Share of the ceiling's tokens that counts as all of it for sizing.
NEARLY_ALL = 0.95
_FAN = 64
_DOUBLING_POINTS = 256


@dataclass(frozen=True)
class Knee:
    """The two bends of an LRU curve.

    Parameters
    ----------
    nearly_all_blocks
        Smallest capacity that reaches 95 % of the tokens an infinite cache hits.
    nearly_all_tokens
        Hit tokens there.
    doubling_from_blocks
        The capacity whose doubling adds the most hit tokens (among 256 log-spaced ones; the smallest such).
    doubling_gain_tokens
        What it adds.
    """

    nearly_all_blocks: int
    nearly_all_tokens: int
    doubling_from_blocks: int
    doubling_gain_tokens: int


def find(curve: _core.Curve) -> Knee | None:
    """Find both bends; ``None`` when nothing is reused."""
    last = curve.last_capacity_blocks
    if last == 0:
        return None
    (most,) = _tokens(curve, [last])
    capacity, tokens = _smallest(curve, NEARLY_ALL * most, last)
    starts = log_spaced(last, _DOUBLING_POINTS)
    gains = [
        twice - once
        for once, twice in zip(
            _tokens(curve, starts), _tokens(curve, [2 * start for start in starts]), strict=True
        )
    ]
    best = max(gains)
    return Knee(capacity, tokens, starts[gains.index(best)], best)


def _tokens(curve: _core.Curve, capacities: list[int]) -> list[int]:
    return list(curve.at(capacities).to_pydict()["hit_tokens"])


def _smallest(curve: _core.Curve, target: float, last: int) -> tuple[int, int]:
    """Smallest capacity whose hit tokens reach the target, by 64 probes a round: the curve never falls."""
    low, high = 0, last  # low misses the target, high reaches it
    while high - low > 1:
        step = max(1, (high - low) // _FAN)
        probes = list(range(low + step, high, step))
        for probe, tokens in zip(probes, _tokens(curve, probes), strict=True):
            if tokens >= target:
                high = probe
                break
            low = probe
    return high, _tokens(curve, [high])[0]
