"""A replay's hits by window of time and by group of requests, and by who used the blocks before.

Everything here is a sum over requests, and over owner runs where it is asked who held a block last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from kvreplay import _core, calls, units
from kvreplay.errors import ConfigError, unknown
from kvreplay.frames import frame, ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvreplay.trace import Trace

SESSION = "session"
SESSION_COLUMNS = ["same_session_hit_tokens", "other_session_hit_tokens"]
# Columns of trace.requests() that are not groups.
_FACTS = {"request", "arrival_us", "input_tokens", "output_tokens", "blocks", "block_tokens"}


@dataclass(frozen=True)
class Split:
    """By what a result is to be split: columns, and a length of windows in microseconds."""

    group_by: tuple[str, ...] = ()
    window_us: int | None = None

    @classmethod
    def of(cls, trace: Trace, *, group_by: str | Sequence[str] | None, window: str | None) -> Split:
        """Check what was asked against the trace.

        Raises
        ------
        ConfigError
            For a column the trace does not have, or windows of a trace without times.
        """
        names = [group_by] if isinstance(group_by, str) else list(group_by or [])
        known = [name for name in trace.requests().columns if name not in _FACTS] if names else []
        for name in names:
            if not known:
                raise ConfigError(
                    f"the trace has no column to group by, and {name!r} was asked for",
                    hint='map one when reading: columns={"tenant": "user"}, --column tenant=user',
                )
            if name not in known:
                raise unknown("column to group by", str(name), known)
        if len(set(names)) < len(names):
            raise ConfigError(f"a column to group by comes twice: {', '.join(names)}", hint="give it once")
        return cls(tuple(names), None if window is None else _window_us(trace, window))


def _window_us(trace: Trace, window: str) -> int:
    if not isinstance(window, str):
        raise ConfigError(f"window {window!r} is not a duration", hint='write "90s", "5m", "1.5h" or "2d"')
    length = units.duration_us(window, what="window")
    if length < 1:
        raise ConfigError(f"window {window!r} is shorter than a microsecond", hint='write "90s" or "5m"')
    if trace.info["arrival_first_us"] is None:
        raise ConfigError("windows need a trace with times", hint="leave the window out")
    return length


def requests_to_split(trace: Trace, hits: pl.DataFrame, tiers: list[str], *, prefixes: bool) -> pl.DataFrame:
    """Requests with their groups, hits and the split of hits by session.

    Parameters
    ----------
    trace
        The trace.
    hits
        ``result.requests``.
    tiers
        Names of the tiers.
    prefixes
        Whether hits are leading runs (prefix mode); the split by session is null where they are not.
    """
    per_tier = [f"hit_tokens_{name}" for name in tiers]
    out = trace.requests().with_columns(
        *[hits[name] for name in per_tier],
        hits["computed_tokens"],
        hit_blocks=hits.select(pl.sum_horizontal([f"hit_blocks_{name}" for name in tiers])).to_series(),
        hit_tokens=hits.select(pl.sum_horizontal(per_tier)).to_series(),
    )
    if not prefixes or SESSION not in out.columns:
        return out.with_columns(pl.lit(None, pl.Int64).alias(name) for name in SESSION_COLUMNS)
    same = _same_session_tokens(trace, out)
    same = out.select("request").join(same, on="request", how="left", maintain_order="left")
    tokens = same["same_session_hit_tokens"].fill_null(0)
    return out.with_columns(tokens, (out["hit_tokens"] - tokens).alias("other_session_hit_tokens"))


def _same_session_tokens(trace: Trace, requests: pl.DataFrame) -> pl.DataFrame:
    """Hit tokens per request in blocks that the request's own session held last.

    The hit is the first blocks of the path, and the runs say of every known block of the path who held it
    last, so the hit part of a run is what lies before the end of the hit.
    """
    runs = frame(calls.run(lambda p: _core.reuse_runs(trace.core, progress=p), what="reuse runs"))
    size = (
        pl.col("block_tokens") if "block_tokens" in requests.columns else pl.lit(trace.info["block_tokens"])
    )
    facts = requests.select("request", SESSION, "input_tokens", "hit_blocks", size.alias("size"))
    before = requests.select(previous_request="request", previous_session=SESSION)
    end = pl.min_horizontal(pl.col("start") + pl.col("length"), "hit_blocks")

    def tokens(blocks: pl.Expr) -> pl.Expr:
        return pl.min_horizontal(blocks * pl.col("size"), "input_tokens")

    return (
        runs.join(facts, on="request", how="left", maintain_order="left")
        .join(before, on="previous_request", how="left", maintain_order="left")
        .filter(pl.col(SESSION) == pl.col("previous_session"), pl.col("start") < pl.col("hit_blocks"))
        .with_columns(same_session_hit_tokens=tokens(end) - tokens(pl.col("start")))
        .group_by("request")
        .agg(pl.col("same_session_hit_tokens").sum().cast(pl.Int64))
        .sort("request")
    )


def _sums(tiers: list[str]) -> list[pl.Expr]:
    summed = ["input_tokens", *[f"hit_tokens_{name}" for name in tiers], "hit_tokens", "computed_tokens"]
    # A sum of nulls is 0 in Polars; what is not known stays null.
    known = [
        pl.when(pl.col(name).null_count() == 0).then(pl.col(name).sum()).otherwise(None).alias(name)
        for name in SESSION_COLUMNS
    ]
    return [
        pl.len().cast(pl.Int64).alias("requests"),
        *[pl.col(name).sum().cast(pl.Int64) for name in summed],
        (pl.col("hit_blocks") > 0).sum().cast(pl.Int64).alias("hit_requests"),
        *known,
    ]


def _finish(out: pl.DataFrame, keys: list[str], tiers: list[str], more: Sequence[str] = ()) -> pl.DataFrame:
    return out.with_columns(
        token_hit_ratio=ratio(pl.col("hit_tokens"), pl.col("input_tokens")),
        request_hit_ratio=ratio(pl.col("hit_requests"), pl.col("requests")),
    ).select(*keys, *split_columns(tiers), *more)


def occupancy_columns(tiers: list[str]) -> list[str]:
    """Columns of windows that say what each tier holds."""
    return [f"resident_blocks_{name}" for name in tiers]


def split_columns(tiers: list[str]) -> list[str]:
    """Columns of windows and groups behind their keys."""
    return [
        "requests",
        "input_tokens",
        *[f"hit_tokens_{name}" for name in tiers],
        "hit_tokens",
        "computed_tokens",
        "token_hit_ratio",
        "request_hit_ratio",
        *SESSION_COLUMNS,
    ]


def groups(requests: pl.DataFrame, tiers: list[str], group_by: Sequence[str]) -> pl.DataFrame:
    """Sums per group, sorted by group (null last)."""
    keys = list(group_by)
    taken = sorted({*keys} & {*split_columns(tiers)})
    if taken:
        raise ConfigError(
            f"the column {taken[0]!r} has the name of a result",
            hint="map it to another name when reading: columns={...}, --column",
        )
    out = requests.group_by(keys).agg(_sums(tiers)).sort(keys, nulls_last=True)
    return _finish(out, keys, tiers)


def windows(requests: pl.DataFrame, tiers: list[str], window_us: int) -> pl.DataFrame:
    """Sums per window of time from the first arrival, sorted; windows without a request have no row.

    What the tiers hold is taken after the last request of the window, ``requests`` being in replay order.
    """
    first = requests["arrival_us"].min()
    number = ((pl.col("arrival_us") - first) // window_us).cast(pl.Int64)
    held = [pl.col(name).last().cast(pl.Int64) for name in occupancy_columns(tiers)]
    out = requests.group_by(number.alias("window")).agg(_sums(tiers) + held).sort("window")
    start = pl.lit(first, pl.Int64) + pl.col("window") * window_us
    out = out.with_columns(from_us=start, until_us=start + window_us)
    return _finish(out, ["window", "from_us", "until_us"], tiers, occupancy_columns(tiers))
