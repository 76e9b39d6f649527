"""Running a sweep: what is stored is read, what is missing is handed to an executor, nothing runs twice."""

from __future__ import annotations

import threading
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from kvreplay import _core, memory
from kvreplay.engines import Profiled, profiled
from kvreplay.errors import ConfigError
from kvreplay.points import ratio
from kvreplay.sweeping import grid as grids, work
from kvreplay.sweeping.store import Store, key_of
from kvreplay.sweeping.timed import plan_of_point
from kvreplay.threads import threads
from kvreplay.worth.plan import resolve_model

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from kvreplay import units
    from kvreplay.calls import ProgressHook
    from kvreplay.cost import CostModel, Hardware
    from kvreplay.trace import Trace

SWEEP_SCHEMA: dict[str, Any] = {
    "point": pl.Int64,
    "tiers": pl.String,
    "mode": pl.String,
    "unit": pl.String,
    "profile": pl.String,
    "engine": pl.String,
    "tier": pl.String,
    "policy": pl.String,
    "admission": pl.String,
    "fill": pl.String,
    "touch": pl.String,
    "closure": pl.String,
    "chunk_blocks": pl.Int64,
    "link": pl.String,
    "capacity_blocks": pl.Int64,
    "capacity_tokens": pl.Int64,
    "capacity_bytes": pl.Int64,
    "asked_blocks": pl.Int64,
    "hit_blocks": pl.Int64,
    "usable_hit_blocks": pl.Int64,
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
    "hits": pl.Int64,
    "harmful_hits": pl.Int64,
    "saved_us": pl.Int64,
    "written_bytes": pl.Int64,
    "read_bytes": pl.Int64,
    "all_hit_blocks": pl.Int64,
    "all_hit_tokens": pl.Int64,
    "token_hit_ratio": pl.Float64,
}
_LOOK_EVERY_S = 0.1


def sweep(
    trace: Trace,
    grid: Any,
    *,
    executor: Executor | None = None,
    store: str | os.PathLike[str] | None = None,
    on_result: Callable[[pl.DataFrame], None] | None = None,
    model: object = None,
    hardware: str | Hardware | None = None,
    cost: CostModel | None = None,
    progress: ProgressHook | None = None,
) -> pl.DataFrame:
    """Replay a trace through every point of a grid of tiers.

    Equal points are computed once. Points of a single LRU tier share one pass over the trace, points of
    ``opt`` one collection of the next uses. The result depends on trace and grid alone, not on the executor,
    the number of threads or the store.

    Parameters
    ----------
    trace
        The trace; threads share it, other executors get a copy.
    grid
        A dict of lists, of which every combination is a point: ``{"capacity": ["1%", "10%"], "policy":
        ["lru", "arc"]}``. Keys are those of :class:`kvreplay.Tier`, and ``mode``, ``unit``, ``last_token``,
        ``full_blocks_only``, ``profile``, ``profile_options``. With ``tiers`` (a list of tier lists),
        ``NAME.KEY`` varies one tier. Or a list of points: tiers, lists of tiers, or dicts.
    executor
        Any ``concurrent.futures`` executor; by default threads (``KVREPLAY_THREADS``, else the processors).
    store
        A directory that keeps finished points. A later sweep with the same store computes only what is
        missing, also after an interruption.
    on_result
        Called in the calling thread with the rows of every finished point, in the order in which they finish.
    model, hardware, cost
        As in :func:`kvreplay.replay`: points whose tiers have links are timed. To try many links over the
        same hits, :meth:`ReplayResult.retime_grid` needs one replay instead of one per link.
    progress
        Called with ``("sweeping", done, total)`` in distinct points.

    Returns
    -------
    polars.DataFrame
        One row per point and tier, sorted by point (its place in the grid) and tier (fastest first). The
        columns of ``result.tiers`` are those of one tier; ``all_hit_blocks``, ``all_hit_tokens`` and
        ``token_hit_ratio`` (of all input tokens) are those of the point. ``engine`` says what computed it.
        ``harmful_hits`` and ``saved_us`` are there where a point is timed. Absent values are null: what
        ``opt`` writes, bytes without a model, usable hits in prefix mode.

    Raises
    ------
    ConfigError
        For an unusable grid (before any work is done) or store.
    KeyboardInterrupt
        When interrupted; finished points are in the store by then.

    Examples
    --------
    >>> import kvreplay as kv
    >>> trace = kv.generate("multi_turn", requests=200, seed=1)
    >>> out = kv.sweep(trace, {"capacity": [100, 1000], "policy": ["lru", "fifo"]})
    >>> out.select("capacity_blocks", "policy").rows()
    [(100, 'lru'), (100, 'fifo'), (1000, 'lru'), (1000, 'fifo')]
    """
    model = resolve_model(model)
    worth = {"model": model, "hardware": hardware, "cost": cost}
    scale = trace.scale(model)
    profiles = _Profiles(trace)
    every = grids.expand(grid)
    plans_of_points = [plan_of_point(trace, point.tiers, point.mode, worth) for point in every]
    specs = [
        point.resolved(scale, profiles, model) | ({} if plan is None else {"worth": plan.assumptions})
        for point, plan in zip(every, plans_of_points, strict=True)
    ]
    trace_sha256 = trace.core.sha256
    keys = [key_of(spec, trace_sha256) for spec in specs]
    distinct = dict(zip(keys, specs, strict=True))
    plans = dict(zip(keys, plans_of_points, strict=True))
    work.check(_kinds(distinct))
    points = {key: at for at, key in reversed(list(enumerate(keys)))}
    done = _Done(trace, scale, distinct, points, store=store, on_result=on_result)
    missing = {key: spec for key, spec in distinct.items() if not done.load(key)}
    _check_memory(trace, missing, executor)
    tell = progress or (lambda *_: None)

    def count() -> None:
        tell("sweeping", len(done), len(distinct))

    try:
        _run(trace, work.tasks_of(missing, plans), executor, done=done, tell=count)
    finally:
        tell("sweeping", -1, 0)
    rows = [row for point, key in enumerate(keys) for row in done.rows(key, point)]
    return pl.DataFrame(rows, SWEEP_SCHEMA, strict=True)


def _kinds(distinct: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """One point of each kind, whatever its capacities: the core accepts all of a kind or none."""
    seen: dict[str, dict[str, Any]] = {}
    for spec in distinct.values():
        tiers = [{k: v for k, v in tier.items() if k != "capacity_blocks"} for tier in spec["tiers"]]
        seen.setdefault(repr({**spec, "tiers": tiers}), spec)
    return list(seen.values())


def _check_memory(trace: Trace, specs: dict[str, dict[str, Any]], executor: Executor | None) -> None:
    workers = threads() if executor is None else 1
    tiers = max((len(spec["tiers"]) for spec in specs.values()), default=0)
    memory.check_replays(trace.core.unique_blocks(), tiers=tiers, workers=min(workers, len(specs)))


class _Profiles:
    """The trace in the blocks of profiles, each made once; only their sizes are kept."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._known: dict[tuple[str, tuple[tuple[str, str], ...]], Profiled] = {}

    def __call__(self, profile: str, options: list[tuple[str, str]]) -> Profiled:
        key = (profile, tuple(options))
        if key not in self._known:
            self._known[key] = profiled(self._trace, profile, dict(options))
        return self._known[key]


class _Done:
    """Finished points: kept, stored and told of."""

    def __init__(
        self,
        trace: Trace,
        scale: units.Scale,
        specs: dict[str, dict[str, Any]],
        points: dict[str, int],
        *,
        store: str | os.PathLike[str] | None,
        on_result: Callable[[pl.DataFrame], None] | None,
    ) -> None:
        self._scale = scale
        self._specs = specs
        self._points = points
        self._input_tokens = trace.core.totals()["input_tokens"]
        self._trace_sha256 = trace.core.sha256
        self._store = None if store is None else Store(store)
        self._on_result = on_result
        self._results: dict[str, dict[str, Any]] = {}

    def __len__(self) -> int:
        return len(self._results)

    def has(self, task: work.Task) -> bool:
        """Whether a task's points are kept already."""
        return all(key in self._results for key in task.keys)

    def load(self, key: str) -> bool:
        """Take a point from the store, if it is there."""
        stored = None if self._store is None else self._store.get(key)
        if stored is not None:
            self._results[key] = stored
            self._tell(key)
        return stored is not None

    def add(self, task: work.Task, results: list[dict[str, Any]]) -> None:
        """Keep the points of a task, in the store before anybody is told."""
        pairs = list(zip(task.keys, results, strict=True))
        for key, result in pairs:
            if self._store is not None:
                self._store.put(key, self._specs[key], self._trace_sha256, result)
            self._results[key] = result
        for key, _ in pairs:
            self._tell(key)

    def _tell(self, key: str) -> None:
        if self._on_result is not None:
            self._on_result(pl.DataFrame(self.rows(key, self._points[key]), SWEEP_SCHEMA, strict=True))

    def rows(self, key: str, point: int) -> list[dict[str, Any]]:
        """The rows of a point, with every column of the schema."""
        spec, result = self._specs[key], self._results[key]
        hit_blocks = sum(row["hit_blocks"] for row in result["tiers"])
        hit_tokens = sum(row["hit_tokens"] for row in result["tiers"])
        point_values = {
            "point": point,
            "tiers": text_of(spec),
            "mode": spec["mode"],
            "unit": spec["unit"],
            "profile": spec["profile"],
            "engine": result["engine"],
            "all_hit_blocks": hit_blocks,
            "all_hit_tokens": hit_tokens,
            "token_hit_ratio": ratio(hit_tokens, self._input_tokens),
        }
        rows = []
        scale = replace(self._scale, block_tokens=spec["block_tokens"])
        links = spec.get("worth", {}).get("link_names", {})
        for tier, counters in zip(spec["tiers"], result["tiers"], strict=True):
            values = {**point_values, **tier, **counters, "tier": tier["name"]}
            values["link"] = links.get(tier["name"])
            values |= {
                "capacity_tokens": scale.tokens(values["capacity_blocks"]),
                "capacity_bytes": scale.bytes(values["capacity_blocks"]),
                "written_bytes": _bytes(scale, counters.get("inserted_blocks")),
                "read_bytes": _bytes(scale, counters.get("read_blocks")),
            }
            rows.append({name: values.get(name) for name in SWEEP_SCHEMA})
        return rows


def _bytes(scale: units.Scale, blocks: int | None) -> int | None:
    return None if blocks is None else scale.bytes(blocks)


def text_of(spec: dict[str, Any]) -> str:
    """The tiers of a point in the grammar of ``--tier``, with what differs from the defaults."""
    defaults = {
        "policy": "lru",
        "admission": "always",
        "fill": "write_through",
        "touch": "path",
        "closure": "leaf",
        "chunk_blocks": 1,
    }
    texts = []
    links = spec.get("worth", {}).get("link_names", {})
    for tier in spec["tiers"]:
        more = [f"{key}={tier[key]}" for key, default in defaults.items() if tier[key] != default]
        if links.get(tier["name"]) is not None:
            more.append(f"link={links[tier['name']]}")
        texts.append(",".join([f"{tier['name']}={tier['capacity_blocks']} blocks", *more]))
    return "; ".join(texts)


class _Cancel:
    """Progress of the running tasks: what a thread needs to be stopped."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[_core.Progress] = set()
        self._cancelled = False

    @contextmanager
    def progress(self) -> Iterator[_core.Progress]:
        one = _core.Progress()
        with self._lock:
            self._running.add(one)
            if self._cancelled:
                one.cancel()
        try:
            yield one
        finally:
            with self._lock:
                self._running.discard(one)

    def cancel(self) -> None:
        with self._lock:
            self._cancelled = True
            for one in self._running:
                one.cancel()


def _watched(cancel: _Cancel, trace: Trace, task: work.Task) -> list[dict[str, Any]]:
    with cancel.progress() as progress:
        return work.run(trace, task, progress)


def _run(
    trace: Trace,
    tasks: list[work.Task],
    executor: Executor | None,
    *,
    done: _Done,
    tell: Callable[[], None],
) -> None:
    """Hand every task to the executor and take the results as they come."""
    if not tasks:
        return
    if executor is not None and not hasattr(executor, "submit"):
        raise ConfigError(f"{executor!r} is no executor", hint="give one of concurrent.futures")
    own = ThreadPoolExecutor(min(threads(), len(tasks))) if executor is None else None
    pool = own or executor
    assert pool is not None  # noqa: S101 - one of the two is
    cancel = _Cancel()
    futures: dict[Future[list[dict[str, Any]]], work.Task] = {}
    try:
        for task in tasks:
            shares = isinstance(pool, ThreadPoolExecutor)  # other executors cannot be reached from here
            future = (
                pool.submit(_watched, cancel, trace, task) if shares else pool.submit(work.run, trace, task)
            )
            futures[future] = task
        pending = set(futures)
        while pending:
            finished, pending = wait(pending, timeout=_LOOK_EVERY_S, return_when=FIRST_COMPLETED)
            for future in [one for one in futures if one in finished]:
                done.add(futures[future], future.result())
            tell()
    except BaseException:
        _stop(futures, cancel, done)
        raise
    finally:
        if own is not None:
            own.shutdown(cancel_futures=True)


def _stop(futures: dict[Future[list[dict[str, Any]]], work.Task], cancel: _Cancel, done: _Done) -> None:
    """End what runs, start nothing more, and keep what had finished by then."""
    for future in futures:
        future.cancel()
    cancel.cancel()
    wait([one for one in futures if not one.cancelled()])
    for future, task in futures.items():
        if not future.cancelled() and future.exception() is None and not done.has(task):
            done.add(task, future.result())
