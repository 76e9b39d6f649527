"""What a replay recorded, as DataFrames with fixed columns."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from kvreplay.errors import ConfigError, unknown
from kvreplay.frames import frame
from kvreplay.splits import SESSION, SESSION_COLUMNS, Split, groups, requests_to_split, windows
from kvreplay.tier_warnings import tier_warnings
from kvreplay.units import kv_bytes_per_token
from kvreplay.worth.bounds import check_times
from kvreplay.worth.budget import budget_warnings
from kvreplay.worth.retiming import grid, plans_of
from kvreplay.worth.timing import timed
from kvreplay.worth.totals import tier_totals, untimed_warnings
from kvreplay.worth.writes import weights_by_events, weights_by_offers, written_tokens

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kvreplay import _core, units
    from kvreplay.cost import CostModel
    from kvreplay.trace import Trace
    from kvreplay.worth.plan import Plan

TIERS_SCHEMA: dict[str, Any] = {
    "tier": pl.String,
    "policy": pl.String,
    "admission": pl.String,
    "fill": pl.String,
    "capacity_blocks": pl.Int64,
    "capacity_tokens": pl.Int64,
    "capacity_bytes": pl.Int64,
    "asked_blocks": pl.Int64,
    "hit_blocks": pl.Int64,
    "hit_tokens": pl.Int64,
    "tier_conditional_hit_ratio": pl.Float64,
    "tier_share": pl.Float64,
    "inserted_blocks": pl.Int64,
    "evicted_blocks": pl.Int64,
    "rejected_blocks": pl.Int64,
    "moved_blocks": pl.Int64,
    "dead_on_arrival_blocks": pl.Int64,
    "unread_at_end_blocks": pl.Int64,
    "no_room_blocks": pl.Int64,
    "stranded_blocks": pl.Int64,
    "resident_blocks": pl.Int64,
    "written_bytes": pl.Int64,
    "read_bytes": pl.Int64,
    "hits": pl.Int64,
    "harmful_hits": pl.Int64,
    "saved_us": pl.Int64,
    "lifetime_years": pl.Float64,
    "inserted_compute_blocks": pl.Int64,
    "inserted_promotion_blocks": pl.Int64,
    "inserted_demotion_blocks": pl.Int64,
    "moved_up_blocks": pl.Int64,
    "superseded_blocks": pl.Int64,
    "peak_blocks": pl.Int64,
}


# What is made anew when the same hits are timed differently.
_TIMED = {"tiers", "times", "warnings"}


class ReplayResult:
    """What one replay recorded; made by :func:`kvreplay.replay`."""

    def __init__(
        self,
        core: _core.Replay,
        *,
        trace: Trace,
        scale: units.Scale,
        warm: int | None,
        per_request: bool,
        events: bool,
        mode: str = "prefix",
        split: Split | None = None,
        profile: str | None = None,
        plan: Plan | None = None,
    ) -> None:
        self._core = core
        self._trace = trace
        self._scale = scale
        self._warm = warm
        self._per_request = per_request
        self._events = events
        self._mode = mode
        self._split = split or Split()
        self._profile = profile
        self._plan = plan

    def __repr__(self) -> str:
        shares = ", ".join(f"{row['tier']} {row['tier_share']}" for row in self.tiers.iter_rows(named=True))
        return f"<ReplayResult {len(self._trace):,} requests, tier shares: {shares}>"

    @property
    def block_tokens(self) -> int:
        """Tokens per block of every count in this result (an engine profile has blocks of its own)."""
        return self._scale.block_tokens

    @cached_property
    def tier_names(self) -> list[str]:
        """Names of the tiers, fastest first."""
        return list(self._core.tiers().to_pydict()["tier"])

    @cached_property
    def tiers(self) -> pl.DataFrame:
        """One row per tier, fastest first, with every column of the interface; not computed ones are null.

        ``asked_blocks`` are the blocks no upper tier served; ``tier_conditional_hit_ratio`` is taken of the
        tokens asked, ``tier_share`` of all input tokens. ``stranded_blocks`` were resident behind a hole at
        look-up.
        """
        core = frame(self._core.tiers())
        block_bytes = self._scale.block_bytes
        out = core.with_columns(
            pl.lit(None, pl.Int64).alias(name)
            for name in ("capacity_bytes", "written_bytes")
            if block_bytes is None
        )
        if block_bytes is not None:
            out = out.with_columns(
                capacity_bytes=pl.col("capacity_blocks") * block_bytes,
                written_bytes=pl.col("inserted_blocks") * block_bytes,
                read_bytes=pl.col("read_blocks") * block_bytes,
            )
        schema = TIERS_SCHEMA | (
            {"usable_hit_blocks": pl.Int64} if "usable_hit_blocks" in core.columns else {}
        )
        if self._plan is not None:
            out = out.with_columns(tier_totals(out, self.times, self._plan, span_us=self.span_us))
        out = out.select(
            (pl.col(name) if name in out.columns else pl.lit(None)).cast(dtype).alias(name)
            for name, dtype in schema.items()
        )
        return out if self._warm is None else out.with_columns(self._warm_columns())

    def _warm_columns(self) -> list[pl.Series]:
        after = self._all_requests.slice(self._warm or 0)
        tokens = int(self._trace.requests()["input_tokens"].slice(self._warm or 0).sum())
        hits = [int(after[f"hit_tokens_{name}"].sum()) for name in self.tier_names]
        shares = [hit / tokens if tokens else None for hit in hits]
        return [
            pl.Series("warm_hit_tokens", hits, pl.Int64),
            pl.Series("warm_tier_share", shares, pl.Float64),
        ]

    @cached_property
    def _all_requests(self) -> pl.DataFrame:
        return frame(self._core.requests())

    @property
    def requests(self) -> pl.DataFrame:
        """What each request got (``per_request=True``), in replay order.

        ``request``, ``hit_blocks_<tier>`` and ``hit_tokens_<tier>`` per tier, ``computed_tokens``,
        ``stranded_blocks``; in object mode also ``usable_hit_blocks``. The tiers' tokens and the computed
        ones sum to the input tokens. With a cost model the columns of :attr:`times` follow.
        """
        if not self._per_request:
            raise ConfigError("requests were not recorded", hint="replay with per_request=True")
        if self.times is None:
            return self._all_requests
        return pl.concat([self._all_requests, self.times], how="horizontal")

    @property
    def plan(self) -> Plan | None:
        """Model, cost and links that the times stand on."""
        return self._plan

    @property
    def span_us(self) -> int | None:
        """Time between the first and the last arrival, ``None`` without times."""
        info = self._trace.info
        first, last = info["arrival_first_us"], info["arrival_last_us"]
        return None if first is None else last - first

    @cached_property
    def times(self) -> pl.DataFrame | None:
        """Service times of each request (:func:`kvreplay.worth.timing.timed`), ``None`` without a cost model.

        Per tier ``load_us_<tier>``, ``store_us_<tier>``, ``saved_us_<tier>`` and ``harmful_<tier>``; then
        ``recompute_us``, ``service_ttft_us`` and ``service_ttft_without_tiers_us``. No queueing is in them.
        """
        if self._plan is None or self._plan.cost is None:
            return None
        hits = self._all_requests
        if self._plan.stores_block:
            hits = pl.concat([hits, self.writes], how="horizontal")
        return timed(hits, self._plan)

    def retime(
        self,
        *,
        model: Any = None,
        hardware: Any = None,
        cost: CostModel | None = None,
        links: Mapping[str, Any] | None = None,
    ) -> ReplayResult:
        """Time the same hits anew, without replaying.

        Parameters
        ----------
        model, hardware, cost
            As in :func:`kvreplay.replay`; what is not given stays, but a cost does not outlast its model or
            GPU: then the prior of the new pair takes its place.
        links
            New links by tier.

        Returns
        -------
        ReplayResult
            As this one with other times. Capacities stay what they are in blocks.

        Raises
        ------
        ConfigError
            For unknown names, or when there is no cost to time with.
        """
        (plan,) = plans_of(
            self._need_plan(),
            models=None if model is None else [model],
            hardware=None if hardware is None else [hardware],
            costs=None if cost is None else [cost],
            links={name: [link] for name, link in (links or {}).items()},
        )
        check_times(plan, self._trace)
        out = copy(self)
        for name in _TIMED:
            vars(out).pop(name, None)
        # The blocks stay what they are: an engine profile has blocks of its own.
        scale = replace(self._scale, kv_bytes_per_token=kv_bytes_per_token(plan.model))
        vars(out).update(_plan=plan, _scale=scale)
        return out

    def retime_grid(
        self,
        *,
        models: Sequence[Any] | None = None,
        hardware: Sequence[Any] | None = None,
        costs: Sequence[CostModel] | None = None,
        links: Mapping[str, Sequence[Any]] | None = None,
    ) -> pl.DataFrame:
        """Time saved under every combination of models, GPUs and links, without replaying.

        Parameters
        ----------
        models, hardware, costs
            Values as in :meth:`retime`; what is not given stays.
        links
            Lists of links by tier.

        Returns
        -------
        polars.DataFrame
            As :func:`kvreplay.worth.retiming.grid`.

        Raises
        ------
        ConfigError
            As :meth:`retime`; for more than 100,000 combinations.
        """
        plans = plans_of(self._need_plan(), models=models, hardware=hardware, costs=costs, links=links)
        for plan in plans:
            check_times(plan, self._trace)
        requests = self._all_requests
        if any(plan.stores_block for plan in plans):
            requests = pl.concat([requests, self.writes], how="horizontal")
        return grid(requests, plans)

    def _need_plan(self) -> Plan:
        if self._plan is None or self._mode == "object":
            raise ConfigError("these hits have no times", hint="replay in prefix mode")
        return self._plan

    @cached_property
    def writes(self) -> pl.DataFrame:
        """Tokens that each request wrote to each tier (:mod:`kvreplay.worth.writes`), Float64."""
        core = frame(self._core.tiers())
        totals = (core["inserted_blocks"] * self._scale.block_tokens).to_list()
        if self._events:
            weights = weights_by_events(self.events, self.tier_names, len(self._trace))
        else:
            weights = weights_by_offers(self._all_requests, self.tier_names, core["fill"].to_list())
        return written_tokens(weights, self.tier_names, totals)

    @cached_property
    def events(self) -> pl.DataFrame:
        """Every event (``events=True``): ``request``, ``tier``, ``event``, ``block`` (id as given)."""
        if not self._events:
            raise ConfigError("events were not recorded", hint="replay with events=True")
        return frame(self._core.events())

    @cached_property
    def splittable(self) -> pl.DataFrame:
        """Requests with what windows and groups are sums of (:func:`kvreplay.splits.requests_to_split`)."""
        return requests_to_split(
            self._trace, self._all_requests, self.tier_names, prefixes=self._mode == "prefix"
        )

    @cached_property
    def windows(self) -> pl.DataFrame:
        """What each window of time got (``window="5m"``); windows without a request have no row.

        ``window`` (number from 0, of equal length from the first arrival), ``from_us``, ``until_us`` (on the
        trace's clock), then the columns of :attr:`groups` from ``requests`` on, then
        ``resident_blocks_<tier>`` per tier: the blocks it holds after the last request of the window.
        """
        if self._split.window_us is None:
            raise ConfigError("windows were not asked for", hint='replay with window="5m"')
        held = frame(self._core.occupancy())
        return windows(
            self.splittable.with_columns(held.get_columns()), self.tier_names, self._split.window_us
        )

    @cached_property
    def groups(self) -> pl.DataFrame:
        """What each group of requests got (``group_by="tenant"``), sorted by group, null last.

        The columns grouped by, ``requests``, ``input_tokens``, ``hit_tokens_<tier>`` per tier, ``hit_tokens``
        (all tiers), ``computed_tokens``, ``token_hit_ratio``, ``request_hit_ratio``,
        ``same_session_hit_tokens`` (hit tokens whose previous use was by the same session) and
        ``other_session_hit_tokens`` (by another one: shared prefixes). Both are null without a session column
        and in object mode; hits of requests without a session count as another's.
        """
        if not self._split.group_by:
            raise ConfigError("groups were not asked for", hint='replay with group_by="tenant"')
        return groups(self.splittable, self.tier_names, self._split.group_by)

    @cached_property
    def warnings(self) -> list[dict[str, str]]:
        """What to know of the tiers (too small or large, not timed, beyond memory), ``{code, text}`` each."""
        capacities = self.tiers["capacity_blocks"].to_list()
        out = tier_warnings(self._trace, self.tier_names, capacities)
        if self._plan is not None:
            out += untimed_warnings(self._plan) + budget_warnings(self.tiers, self._plan)
        return out

    @cached_property
    def ratios(self) -> pl.DataFrame:
        """Every named hit ratio of the tiers together (:func:`kvreplay.ratios`)."""
        return frame(self._core.ratios())

    @property
    def summary(self) -> dict[str, Any]:
        """The tiers together.

        ``engine`` (what computed the replay: ``stack``, ``blocks``, ``future``, ``sequences`` or ``profile``,
        then with the resolved ``profile`` and its ``block_tokens``),
        ``requests``, ``input_tokens``, ``hit_tokens``, ``computed_tokens``, ``same_session_hit_tokens`` and
        ``other_session_hit_tokens`` (see :attr:`groups`), and every ratio by name.
        """
        input_tokens = self._trace.core.totals()["input_tokens"]
        hit_tokens = int(self.tiers["hit_tokens"].sum())
        facts: dict[str, Any] = {
            "engine": self._core.engine,
            "requests": len(self._trace),
            "input_tokens": input_tokens,
            "hit_tokens": hit_tokens,
            "computed_tokens": input_tokens - hit_tokens,
        }
        if self._profile is not None:
            facts |= {"profile": self._profile, "block_tokens": self._scale.block_tokens}
        if SESSION in self._trace.requests().columns:
            facts |= {name: _sum(self.splittable[name]) for name in SESSION_COLUMNS}
        return facts | dict(zip(self.ratios["name"], self.ratios["value"], strict=True))

    @property
    def group_by(self) -> list[str]:
        """The columns of :attr:`groups`; empty when it was not asked for."""
        return list(self._split.group_by)

    @property
    def has_windows(self) -> bool:
        """Whether :attr:`windows` was asked for."""
        return self._split.window_us is not None

    def content(self, tier: str) -> list[int | str]:
        """Ids resident in a tier at the end, most recent first where its policy has an order.

        Raises
        ------
        ConfigError
            When there is no such tier.
        """
        if tier not in self.tier_names:
            raise unknown("tier", tier, self.tier_names)
        return self._core.content(self.tier_names.index(tier))


def _sum(values: pl.Series) -> int | None:
    return None if values.null_count() else int(values.sum())
