"""From which length on loading pays, how fast a link must be, and where to split a prefix between both."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvreplay.cost.coefficients import CostModel
    from kvreplay.cost.modelspec import ModelSpec
    from kvreplay.cost.transfer import Link

# A prefix that pays only beyond this is said not to pay: no model takes a longer one.
LONGEST_TOKENS = 2**20


@dataclass(frozen=True)
class Comparison:
    """Loading a prefix over a link against computing it.

    Parameters
    ----------
    spec, cost, link
        The model, its cost on the GPU and the way to the tier.
    resident_tokens
        Tokens before the prefix that the GPU holds.
    remainder_tokens
        Tokens behind it that are computed either way. ``None``: enough to pass the floor, so that floor and
        step are common to both sides and cancel.
    """

    spec: ModelSpec
    cost: CostModel
    link: Link
    resident_tokens: int = 0
    remainder_tokens: int | None = None

    def loaded_tokens(self, tokens: int) -> int:
        """Tokens of a prefix that a tier holds: whole blocks."""
        return self.spec.stored_tokens(tokens)

    def load_us(self, tokens: int) -> float:
        """Time to load the stored tokens of a prefix."""
        stored = self.loaded_tokens(tokens)
        return self.link.load_us(stored, self.spec.rank_loaded_bytes(stored))

    def recompute_us(self, tokens: int) -> float:
        """Time of computing that a hit of the stored tokens avoids."""
        stored, resident = self.loaded_tokens(tokens), self.resident_tokens
        if self.remainder_tokens is None:
            return self.cost.work_us(stored, resident)
        whole = self.cost.recompute_us(stored + self.remainder_tokens, resident)
        return whole - self.cost.recompute_us(self.remainder_tokens, resident + stored)

    def saved_us(self, tokens: int) -> float:
        """Time saved by a hit; negative where the hit is harmful."""
        if self.remainder_tokens is None:
            return self.recompute_us(tokens) - self.load_us(tokens)
        stored = self.loaded_tokens(tokens)
        rest = self.cost.recompute_us(self.remainder_tokens, self.resident_tokens + stored)
        hit = self.link.hit_us(self.load_us(tokens), rest, layers=self.spec.layers)
        return self.recompute_us(tokens) + rest - hit

    def break_even_tokens(self) -> int | None:
        """The shortest prefix of whole blocks from which on loading is not slower; ``None``: never.

        Loading is a fixed time and a concave, computing a convex function of the length, so what is saved
        changes its sign once: a search by halves is exact. :func:`closed_form` gives the same for links
        without windows and states.
        """
        step = self.spec.block_tokens or 1
        blocks = _first(lambda count: self.saved_us(count * step) >= 0, LONGEST_TOKENS // step)
        return None if blocks is None else blocks * step

    def break_even_bandwidth_gb_s(self, tokens: int) -> float | None:
        """Bandwidth at which loading a prefix takes as long as computing it, fixed times left out."""
        time = self.recompute_us(tokens)
        if time <= 0:
            return None
        return self.spec.rank_loaded_bytes(self.loaded_tokens(tokens)) / time / 1e3

    def split(self, tokens: int) -> tuple[int, float]:
        """Compute the front and load the back at the same time (Cake, 2025): the best split.

        Returns
        -------
        computed_tokens
            Tokens to compute from the front, where they are cheapest.
        time_us
            The time until both meet: a bound of what a smarter engine could reach. It keeps the GPU busy.
        """
        stored = self.loaded_tokens(tokens)
        step = self.spec.block_tokens or 1

        def both(blocks: int) -> tuple[float, float]:
            computed = blocks * step
            back = self.spec.rank_loaded_bytes(stored) - self.spec.rank_loaded_bytes(computed)
            return (
                self.cost.work_us(computed, self.resident_tokens),
                self.link.load_us(stored - computed, back),
            )

        most = stored // step
        meet = _first(lambda blocks: both(blocks)[0] >= both(blocks)[1], most, start=0)
        meet = most if meet is None else meet
        best = min({meet, max(0, meet - 1)}, key=lambda blocks: (max(both(blocks)), blocks))
        return best * step, max(both(best))


def _first(holds: Callable[[int], bool], most: int, *, start: int = 1) -> int | None:
    """The least number from `start` to `most` for which a condition that stays true holds."""
    if start > most or not holds(most):
        return None
    low, high = start, most
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def closed_form(
    cost: CostModel, *, fixed_us: float, load_us_per_token: float, resident_tokens: int = 0
) -> float:
    """Break-even length without rounding, in tokens; infinity where loading never pays.

    The root of ``a m^2 + (b + 2 a p - s) m - t = 0`` for a load of ``t + s m``.

    Examples
    --------
    >>> import kvreplay as kv
    >>> from kvreplay.cost.lengths import closed_form
    >>> cost = kv.CostModel(c0_us=0, floor_us=0, linear_us_per_token=21.94, quadratic_us_per_token2=4.724e-4)
    >>> round(closed_form(cost, fixed_us=9800, load_us_per_token=131072 / 43900))
    511
    """
    a = cost.quadratic_us_per_token2
    gain = cost.linear_us_per_token + 2 * a * resident_tokens - load_us_per_token
    if a == 0:
        return fixed_us / gain if gain > 0 else inf
    root = sqrt(gain * gain + 4 * a * fixed_us)
    # The usual form loses all digits where gain is large and positive.
    return 2 * fixed_us / (gain + root) if gain > 0 else (root - gain) / (2 * a)
