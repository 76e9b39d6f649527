"""What a replay recorded, as DataFrames with fixed columns."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from kvreplay.errors import ConfigError, unknown
from kvreplay.frames import frame
from kvreplay.splits import SESSION, SESSION_COLUMNS, Split, groups, requests_to_split, windows
from kvreplay.tier_warnings import tier_warnings

if TYPE_CHECKING:
    from kvreplay import _core, units
    from kvreplay.trace import Trace

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
    ) -> None:
        self._core = core
        self._trace = trace
        self._scale = scale
        self._warm = warm
        self._per_request = per_request
        self._events = events
        self._mode = mode
        self._split = split or Split()

    def __repr__(self) -> str:
        shares = ", ".join(f"{row['tier']} {row['tier_share']}" for row in self.tiers.iter_rows(named=True))
        return f"<ReplayResult {len(self._trace):,} requests, tier shares: {shares}>"

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
        out = core
        if block_bytes is not None:
            out = out.with_columns(
                capacity_bytes=pl.col("capacity_blocks") * block_bytes,
                written_bytes=pl.col("inserted_blocks") * block_bytes,
                read_bytes=pl.col("read_blocks") * block_bytes,
            )
        schema = TIERS_SCHEMA | (
            {"usable_hit_blocks": pl.Int64} if "usable_hit_blocks" in core.columns else {}
        )
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
        ones sum to the input tokens.
        """
        if not self._per_request:
            raise ConfigError("requests were not recorded", hint="replay with per_request=True")
        return self._all_requests

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
        """Tiers smaller than a request or larger than the trace, as a list of ``{code, text}``."""
        capacities = self.tiers["capacity_blocks"].to_list()
        return tier_warnings(self._trace, self.tier_names, capacities)

    @cached_property
    def ratios(self) -> pl.DataFrame:
        """Every named hit ratio of the tiers together (:func:`kvreplay.ratios`)."""
        return frame(self._core.ratios())

    @property
    def summary(self) -> dict[str, Any]:
        """The tiers together.

        ``engine`` (what computed the replay: ``stack``, ``blocks``, ``future`` or ``sequences``),
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
