"""A timed replay as the tables of this package see it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from kvreplay.worth.timing import RECOMPUTE, WITH, WITHOUT, computes

if TYPE_CHECKING:
    from kvreplay.worth.plan import Plan


@dataclass(frozen=True)
class Without:
    """A hierarchy without one of its tiers.

    Parameters
    ----------
    hit_tokens
        Tokens that the other tiers serve together.
    ttft_us
        Service times of all requests, ``None`` where they are not known.
    compute_us
        Time of computing, all requests together.
    """

    hit_tokens: int
    ttft_us: pl.Series | None
    compute_us: int


@dataclass(frozen=True)
class Facts:
    """What a timed replay recorded, and what the tables make of it.

    Parameters
    ----------
    tiers
        ``result.tiers``.
    requests
        ``result.requests`` with its times, and ``arrival_us``.
    writes
        ``written_tokens_<tier>`` of each request.
    plan
        Model, cost and links.
    span_us
        Length of the trace, ``None`` without times.
    gaps
        By tier, the time since the previous use of what it served (:mod:`kvreplay.worth.gaps`).
    without
        The hierarchy without each lower tier, where it is known.
    """

    tiers: pl.DataFrame
    requests: pl.DataFrame
    writes: pl.DataFrame
    plan: Plan
    span_us: int | None
    gaps: dict[str, dict[str, int | None]] = field(default_factory=dict)
    without: dict[str, Without] = field(default_factory=dict)

    @cached_property
    def compute_us(self) -> list[int]:
        """Time of computing with no tier, with the first, with the first two, ...: all requests together."""
        if self.plan.untimed or self.plan.overlaps:
            return [int(value) for value in self.requests.select(computes(self.plan)).sum().row(0)]
        # Where loads and computing take turns, what a tier does not save of a compute is load and store.
        sums = self.requests.select(pl.exclude(pl.Boolean)).sum().row(0, named=True)
        out = [int(sums[RECOMPUTE])]
        for name in reversed(self.plan.tiers):
            gained = sum(int(sums[f"{what}_us_{name}"]) for what in ("saved", "load", "store"))
            out.append(out[-1] + gained)
        return out[::-1]

    @cached_property
    def input_tokens(self) -> int:
        """Input tokens of all requests."""
        return int(self.tiers["hit_tokens"].sum()) + int(self.requests["computed_tokens"].sum())

    @property
    def lower(self) -> list[str]:
        """Tiers that hits are loaded from."""
        return list(self.plan.tiers[self.plan.resident_tiers :])

    @cached_property
    def rows(self) -> dict[str, dict[str, Any]]:
        """The rows of ``result.tiers`` by tier."""
        return {row["tier"]: row for row in self.tiers.iter_rows(named=True)}

    @property
    def ttft_us(self) -> pl.Series:
        """Service times with all tiers."""
        return self.requests[WITH]

    @property
    def first_only_us(self) -> pl.Series:
        """Service times with what the GPU holds alone."""
        return self.requests[WITHOUT]

    def saved(self, tier: str) -> pl.Series:
        """What a tier saves each request."""
        return self.requests[f"saved_us_{tier}"]
