"""What an analysis works on: a trace, the tiers in question, and the passes over them, each run once."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kvreplay import _core, calls
from kvreplay.comparing import compare_policies
from kvreplay.curve import curve_frame, lru_curve, ratios
from kvreplay.frames import frame
from kvreplay.replaying import replay

if TYPE_CHECKING:
    import polars as pl

    from kvreplay import units
    from kvreplay.calls import ProgressHook
    from kvreplay.replaying import Tier
    from kvreplay.results import ReplayResult
    from kvreplay.trace import Trace

# Twice as many windows as the table shows (tenths): quarters fall on a border as well.
WINDOWS = 20


@dataclass
class Study:
    """A trace and the question asked of it.

    Parameters
    ----------
    trace
        The trace.
    tiers
        The tiers, fastest first; may be empty.
    scale
        Factors between blocks, tokens and bytes.
    warm
        Requests of the warm-up, ``None`` without one.
    rules
        ``warmup``, ``last_token``, ``full_blocks_only`` and the like, as given to :func:`kvreplay.replay`.
    compare
        Policies to compare at the tiers' capacities.
    progress
        The hook of :func:`kvreplay.replay`.
    """

    trace: Trace
    tiers: list[Tier]
    scale: units.Scale
    warm: int | None = None
    rules: dict[str, Any] = field(default_factory=dict)
    compare: list[str] = field(default_factory=list)
    progress: ProgressHook | None = None

    @cached_property
    def totals(self) -> dict[str, int]:
        """Sums over the trace."""
        return self.trace.core.totals()

    @cached_property
    def curve(self) -> _core.Curve:
        """Exact LRU hits at every capacity."""
        return lru_curve(self.trace, warmup=self.warm, progress=self.progress)

    @cached_property
    def result(self) -> ReplayResult | None:
        """The replay of the tiers, ``None`` without tiers."""
        if not self.tiers:
            return None
        return replay(
            self.trace,
            self.tiers,
            model=self.scale.kv_bytes_per_token,
            per_request=True,
            progress=self.progress,
            **self.rules,
        )

    @cached_property
    def ceiling_ratios(self) -> pl.DataFrame:
        """The named ratios with an infinite cache."""
        return ratios(self.trace)

    @cached_property
    def tier_capacities(self) -> list[int]:
        """Blocks of each tier, fastest first, in blocks of the trace (an engine's are of its own size)."""
        if self.result is None:
            return []
        if self.result.block_tokens == self.scale.block_tokens:
            return self.result.tiers["capacity_blocks"].to_list()
        tokens = self.result.tiers["capacity_tokens"].to_list()
        return [max(1, one // self.scale.block_tokens) for one in tokens]

    @property
    def hit_blocks(self) -> int:
        """Blocks all tiers served, in blocks of the trace; 0 without tiers."""
        if self.result is None:
            return 0
        if self.result.block_tokens == self.scale.block_tokens:
            return int(self.result.tiers["hit_blocks"].sum())
        return int(self.result.tiers["hit_tokens"].sum()) // self.scale.block_tokens

    @cached_property
    def growth(self) -> pl.DataFrame:
        """Requests, tokens, ceiling hits and distinct blocks up to the end of each twentieth of the time."""
        table = calls.run(
            lambda p: _core.window_growth(self.trace.core, capacities=[], windows=WINDOWS, progress=p),
            what="windows",
            hook=self.progress,
        )
        return frame(table).sort("window")

    @cached_property
    def opt(self) -> pl.DataFrame | None:
        """The bound of every policy at each tier's capacity and at all together; ``None`` without tiers."""
        if not self.tiers:
            return None
        capacities = sorted({*self.tier_capacities, sum(self.tier_capacities)})
        table = calls.run(
            lambda p: _core.policy_curve(
                self.trace.core,
                policy="opt",
                capacities=capacities,
                warmup_requests=self.warm,
                threads=1,
                progress=p,
            ),
            what="opt",
            hook=self.progress,
        )
        return curve_frame(self.trace, "opt", table, scale=self.scale, warm=self.warm)

    @cached_property
    def policies(self) -> pl.DataFrame | None:
        """Policies side by side in one cache of each tier's capacity and of all together.

        ``None`` unless there are tiers and policies to compare.
        """
        if not self.tiers or not self.compare:
            return None
        return compare_policies(
            self.trace,
            self.compare,
            [*self.tier_capacities, sum(self.tier_capacities)],
            model=self.scale.kv_bytes_per_token,
            progress=self.progress,
        )

    def lru_at(self, capacities: list[int]) -> pl.DataFrame:
        """The LRU curve at some capacities, with the columns of :func:`kvreplay.hit_curve`."""
        return curve_frame(
            self.trace, "lru", self.curve.at(sorted(set(capacities))), scale=self.scale, warm=self.warm
        )

    def ceiling(self, name: str) -> float | None:
        """One of the ceiling's ratios by name; ``None`` where it has no value or does not exist."""
        values = self.ceiling_ratios.filter(name=name)["value"].to_list()
        return values[0] if values else None
