"""What an analysis works on: a trace, the tiers in question, and the passes over them, each run once."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kvreplay import _core, calls
from kvreplay.comparing import compare_policies
from kvreplay.cost.lengths import Comparison
from kvreplay.curve import curve_frame, lru_curve, ratios
from kvreplay.frames import frame
from kvreplay.marginal import compare_admissions, without_each
from kvreplay.replaying import replay
from kvreplay.worth.facts import Facts
from kvreplay.worth.gaps import reuse_gaps
from kvreplay.worth.links_demand import demand_of
from kvreplay.worth.quality import hit_quality, scenarios

if TYPE_CHECKING:
    import polars as pl

    from kvreplay import units
    from kvreplay.calls import ProgressHook
    from kvreplay.cost.money import Prices
    from kvreplay.replaying import Tier
    from kvreplay.results import ReplayResult
    from kvreplay.trace import Trace
    from kvreplay.worth.plan import Plan

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
    worth
        ``model``, ``hardware``, ``cost`` and ``prices``, as given to :func:`kvreplay.replay`.
    compare
        Policies to compare at the tiers' capacities.
    admissions
        Admission filters to compare in front of the tiers below the first.
    progress
        The hook of :func:`kvreplay.replay`.
    """

    trace: Trace
    tiers: list[Tier]
    scale: units.Scale
    warm: int | None = None
    rules: dict[str, Any] = field(default_factory=dict)
    worth: dict[str, Any] = field(default_factory=dict)
    compare: list[str] = field(default_factory=list)
    admissions: list[str] = field(default_factory=list)
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
            per_request=True,
            progress=self.progress,
            **self.worth,
            **self.rules,
        )

    @cached_property
    def plan(self) -> Plan | None:
        """Model, cost and links of the replay, ``None`` without tiers or without a cost to time them with."""
        plan = None if self.result is None else self.result.plan
        return plan if plan is not None and plan.cost is not None else None

    @cached_property
    def reuse_runs(self) -> pl.DataFrame:
        """Every reuse of the trace by run (:func:`kvreplay.reuse_runs`), by age: what is asked of them."""
        table = calls.run(
            lambda p: _core.reuse_runs(self.trace.core, progress=p), what="reuse runs", hook=self.progress
        )
        return frame(table).sort("age_us")

    @cached_property
    def comparisons(self) -> dict[str, Comparison]:
        """Loading against recomputing by tier, for the tiers that have a link; empty without a cost model."""
        if self.plan is None:
            return {}
        assert self.plan.cost is not None  # noqa: S101 - a plan of a study has one
        pairs = zip(self.plan.tiers, self.plan.links, strict=True)
        model: Any = self.plan.model  # bytes per token alone serve as well
        return {name: Comparison(model, self.plan.cost, link) for name, link in pairs if link is not None}

    @property
    def prices(self) -> Prices | None:
        """Prices of the report, ``None`` without a cost model."""
        return None if self.plan is None else self.plan.prices

    @cached_property
    def facts(self) -> Facts | None:
        """The timed replay with what the tables of its worth need; ``None`` without a cost model."""
        if self.result is None or self.plan is None:
            return None
        requests = self.result.requests
        gaps = {}
        if self.result.span_us is not None:
            names = self.result.tier_names
            size = self.trace.info["block_tokens"]
            gaps = reuse_gaps(self.reuse_runs, requests, names, block_tokens=size)
        return Facts(
            tiers=self.result.tiers,
            requests=requests.with_columns(self.trace.requests()["arrival_us"]),
            writes=self.result.writes,
            plan=self.plan,
            span_us=self.result.span_us,
            gaps=gaps,
            without=without_each(
                self.trace, self.tiers, self.result, arguments=self._replayed_alike, progress=self.progress
            ),
        )

    @property
    def _replayed_alike(self) -> dict[str, Any]:
        """Arguments of a replay whose hits and times are compared with those of :attr:`result`."""
        apart = ("warmup", "group_by", "window")
        return {**self.worth, **{key: value for key, value in self.rules.items() if key not in apart}}

    @cached_property
    def demand(self) -> pl.DataFrame | None:
        """Demand on the GPU and the links; ``None`` without a cost model or without times."""
        if self.facts is None or self.facts.span_us is None:
            return None
        return demand_of(self.facts)

    @cached_property
    def compared_admissions(self) -> pl.DataFrame | None:
        """Admission filters side by side; ``None`` unless there are tiers and filters to compare."""
        if not self.tiers or not self.admissions:
            return None
        return compare_admissions(
            self.trace, self.tiers, self.admissions, arguments=self._replayed_alike, progress=self.progress
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

    def table(self, name: str) -> list[dict[str, Any]]:
        """Rows of one of the tables of what hits are worth: ``hit_quality`` or ``scenarios``."""
        return self._worth_tables[name].to_dicts()

    @cached_property
    def _worth_tables(self) -> dict[str, pl.DataFrame]:
        if self.facts is None:
            return {}
        return {"hit_quality": hit_quality(self.facts), "scenarios": scenarios(self.facts)}

    @property
    def hit_quality(self) -> pl.DataFrame | None:
        """Table ``hit_quality``, ``None`` without a cost model."""
        return self._worth_tables.get("hit_quality")

    @property
    def scenarios(self) -> pl.DataFrame | None:
        """Table ``scenarios``, ``None`` without a cost model."""
        return self._worth_tables.get("scenarios")

    def lru_at(self, capacities: list[int]) -> pl.DataFrame:
        """The LRU curve at some capacities, with the columns of :func:`kvreplay.hit_curve`."""
        return curve_frame(
            self.trace, "lru", self.curve.at(sorted(set(capacities))), scale=self.scale, warm=self.warm
        )

    def ceiling(self, name: str) -> float | None:
        """One of the ceiling's ratios by name; ``None`` where it has no value or does not exist."""
        values = self.ceiling_ratios.filter(name=name)["value"].to_list()
        return values[0] if values else None
