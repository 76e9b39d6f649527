"""Hit curves, reuse distances and ceilings as DataFrames.

Everything here describes one cache in prefix mode; LRU is exact at every capacity from one pass over the runs
of the trace (Mattson et al. 1970 in the form for paths).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from kvreplay import _core, calls, memory, units
from kvreplay.errors import ConfigError, unknown
from kvreplay.frames import frame, ratio
from kvreplay.points import log_spaced
from kvreplay.results import ReplayResult
from kvreplay.threads import threads
from kvreplay.warmup import warmup_requests

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kvreplay.calls import ProgressHook
    from kvreplay.trace import Trace

CURVE_SCHEMA: dict[str, Any] = {
    "policy": pl.String,
    "capacity_blocks": pl.Int64,
    "capacity_tokens": pl.Int64,
    "capacity_bytes": pl.Int64,
    "hit_blocks": pl.Int64,
    "hit_tokens": pl.Int64,
    "block_hit_ratio": pl.Float64,
    "token_hit_ratio": pl.Float64,
}
_WARM_SCHEMA: dict[str, Any] = {"warm_hit_tokens": pl.Int64, "warm_token_hit_ratio": pl.Float64}
_BYTES_PER_STEP = 100


def lru_curve(
    trace: Trace, *, warmup: int | None = None, progress: ProgressHook | None = None
) -> _core.Curve:
    """Run the one pass over the trace that gives every LRU capacity at once."""
    return calls.run(
        lambda p: _core.lru_curve(trace.core, warmup_requests=warmup, progress=p),
        what="stack distances",
        hook=progress,
    )


def hit_curve(
    trace: Trace,
    *,
    policy: str = "lru",
    capacities: Iterable[int | str] | None = None,
    warmup: float | str | None = None,
    model: object = None,
    progress: ProgressHook | None = None,
) -> pl.DataFrame:
    """Hits of one cache against its capacity.

    Parameters
    ----------
    trace
        The trace.
    policy
        A name of :func:`kvreplay.policies` with optional parameters, or ``opt`` (request-granular Belady with
        bypass: the bound for every policy in hit blocks).
    capacities
        Blocks as ints, or sizes with units. Without any: for LRU every capacity at which the curve rises, for
        other policies 32 log-spaced ones up to the capacity at which LRU reaches the ceiling.
    warmup
        A fraction of the requests or a duration (``"5m"``): adds columns over the requests after it.
    model
        Bytes of KV per token (an int, or an object with ``kv_bytes_per_token``), for sizes in bytes.
    progress
        Called with ``(what, done, total)`` in requests.

    Returns
    -------
    polars.DataFrame
        ``policy``, ``capacity_blocks``, ``capacity_tokens``, ``capacity_bytes`` (null without a model),
        ``hit_blocks``, ``hit_tokens``, ``block_hit_ratio``, ``token_hit_ratio``; with `warmup` also
        ``warm_hit_tokens``, ``warm_token_hit_ratio``. Sorted by capacity.

    Raises
    ------
    ConfigError
        For an unknown policy or an unusable size.

    Examples
    --------
    >>> import kvreplay as kv
    >>> scan = kv.generate("cyclic_scan", requests=30, documents=10, document_tokens=5008)
    >>> kv.hit_curve(scan, capacities=[9 * 313, 10 * 313])["hit_blocks"].to_list()
    [0, 6260]
    """
    scale = trace.scale(model)
    warm = warmup_requests(trace, warmup)
    at = None if capacities is None else sorted({units.capacity_blocks(c, scale) for c in capacities})
    if policy == "lru":
        curve = lru_curve(trace, warmup=warm, progress=progress)
        if at is None:
            memory.check(
                curve.breakpoints * _BYTES_PER_STEP,
                what=f"the exact curve of {curve.breakpoints:,} steps",
                hint="give capacities",
            )
        table = curve.steps() if at is None else curve.at(at)
    else:
        chosen = (
            at if at is not None else log_spaced(lru_curve(trace, progress=progress).last_capacity_blocks)
        )
        workers = threads()
        memory.check_replays(trace.core.unique_blocks(), tiers=1, workers=min(workers, len(chosen)))
        table = calls.run(
            lambda p: _core.policy_curve(
                trace.core,
                policy=policy,
                capacities=chosen,
                warmup_requests=warm,
                threads=workers,
                progress=p,
            ),
            what=policy,
            hook=progress,
        )
    return curve_frame(trace, policy, table, scale=scale, warm=warm)


def curve_frame(
    trace: Trace, policy: str, table: _core.Table, *, scale: units.Scale, warm: int | None = None
) -> pl.DataFrame:
    """The core's counts with the columns of :func:`hit_curve`."""
    totals = trace.core.totals()
    capacity = pl.col("capacity_blocks")
    block_bytes = scale.block_bytes
    out = frame(table).with_columns(
        policy=pl.lit(policy, pl.String),
        capacity_tokens=capacity * scale.block_tokens,
        capacity_bytes=pl.lit(None, pl.Int64) if block_bytes is None else capacity * block_bytes,
        block_hit_ratio=ratio(pl.col("hit_blocks"), totals["block_refs"]),
        token_hit_ratio=ratio(pl.col("hit_tokens"), totals["input_tokens"]),
    )
    schema = CURVE_SCHEMA
    if warm is not None:
        schema = schema | _WARM_SCHEMA
        tokens = int(trace.requests()["input_tokens"].slice(warm).sum())
        out = out.with_columns(warm_token_hit_ratio=ratio(pl.col("warm_hit_tokens"), tokens))
    return out.select(pl.col(name).cast(dtype) for name, dtype in schema.items()).sort("capacity_blocks")


def reuse_runs(trace: Trace, *, progress: ProgressHook | None = None) -> pl.DataFrame:
    """Every reuse in the trace, one row per run of blocks last touched by the same request.

    Returns
    -------
    polars.DataFrame
        ``request``, ``start`` (position of the run's first block on the path), ``length`` (blocks),
        ``distance_blocks`` (distinct blocks above the first block in the LRU stack just before the request;
        the run's i-th block has stack distance ``distance_blocks + i``), ``previous_request`` (that touched
        the run last), ``age_us`` (since then; null without times). Sorted by ``request``, ``start``. First
        occurrences have no row.
    """
    table = calls.run(lambda p: _core.reuse_runs(trace.core, progress=p), what="reuse runs", hook=progress)
    return frame(table).sort("request", "start")


def reuse_distance(
    trace: Trace, *, unit: str = "blocks", bins: str = "log2", model: object = None
) -> pl.DataFrame:
    """Histogram of stack distances: how many distinct blocks came between two uses of a block.

    Parameters
    ----------
    trace
        The trace.
    unit
        ``blocks``, ``tokens`` or ``bytes`` (needs `model`): the unit of the bounds.
    bins
        ``log2``: powers of two of a block.
    model
        As in :func:`hit_curve`.

    Returns
    -------
    polars.DataFrame
        ``lower``, ``upper`` (bounds), ``accesses`` (block uses), ``tokens``. First occurrences are in no bin.
    """
    _check_bins(bins)
    scale = trace.scale(model)
    if unit not in ("blocks", "tokens", "bytes"):
        raise unknown("unit", unit, ["blocks", "tokens", "bytes"])
    factor: int | None = {"blocks": 1, "tokens": scale.block_tokens, "bytes": scale.block_bytes}[unit]
    if factor is None:
        raise ConfigError("distances in bytes need bytes per token", hint="give model=N")
    out = frame(lru_curve(trace).reuse_distance()).sort("lower")
    return out.with_columns(pl.col("lower", "upper") * factor)


def reuse_time(trace: Trace, *, bins: str = "log2", progress: ProgressHook | None = None) -> pl.DataFrame:
    """Histogram of reuse times: how long before its use a block was used last.

    Returns
    -------
    polars.DataFrame
        ``lower``, ``upper`` (microseconds, powers of two), ``accesses`` (block uses), ``tokens``. Empty for a
        trace without times.
    """
    _check_bins(bins)
    table = calls.run(lambda p: _core.reuse_time(trace.core, progress=p), what="reuse times", hook=progress)
    return frame(table).sort("lower")


def ceiling(trace: Trace) -> pl.DataFrame:
    """Hits of each request with an infinite cache: what no prefix cache can exceed.

    Returns
    -------
    polars.DataFrame
        ``request``, ``hit_blocks``, ``hit_tokens``, in replay order.
    """
    return frame(calls.run(lambda _: _core.ceiling(trace.core), what="ceiling"))  # in replay order


def ratios(source: Trace | ReplayResult) -> pl.DataFrame:
    """Every named hit ratio: of a trace with an infinite cache, or of a replay's tiers together.

    Returns
    -------
    polars.DataFrame
        ``name``, ``value`` (null where the denominator is zero), ``numerator``, ``denominator``,
        ``definition``.

    Examples
    --------
    >>> import kvreplay as kv
    >>> unique = kv.generate("unique", requests=20, seed=3)
    >>> kv.ratios(unique).filter(name="token_hit_ratio")["value"].to_list()
    [0.0]
    """
    if isinstance(source, ReplayResult):
        return source.ratios
    return frame(calls.run(lambda _: _core.ratios(source.core), what="ratios"))


def _check_bins(bins: str) -> None:
    if bins != "log2":
        raise unknown("bins", bins, ["log2"])
