"""The work of a sweep in tasks that any executor can run: what shares a pass is one task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kvreplay import _core
from kvreplay.errors import translated
from kvreplay.sweeping.timed import times_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kvreplay.trace import Trace
    from kvreplay.worth.plan import Plan

# Capacities of one LRU pass: a pass keeps 8 bytes per request and capacity.
_LRU_BATCH = 32
# Columns of the core's table of tiers that a sweep keeps.
COUNTERS = [
    "capacity_blocks",
    "asked_blocks",
    "hit_blocks",
    "hit_tokens",
    "tier_conditional_hit_ratio",
    "tier_share",
    "inserted_blocks",
    "evicted_blocks",
    "rejected_blocks",
    "moved_blocks",
    "dead_on_arrival_blocks",
    "unread_at_end_blocks",
    "no_room_blocks",
    "stranded_blocks",
    "resident_blocks",
    "read_blocks",
    "hits",
    "usable_hit_blocks",
]


@dataclass(frozen=True)
class Task:
    """Points that are computed together.

    Parameters
    ----------
    kind
        ``lru``, ``opt`` or ``replay``.
    keys
        Keys of the points.
    specs
        Their values (:meth:`kvreplay.sweeping.grid.Point.resolved`).
    plan
        How the hits of a single point are timed, ``None`` where they are not.
    """

    kind: str
    keys: tuple[str, ...]
    specs: tuple[dict[str, Any], ...]
    plan: Plan | None = None


def tasks_of(specs: dict[str, dict[str, Any]], plans: Mapping[str, Plan | None] | None = None) -> list[Task]:
    """Group points into tasks: LRU tiers share a pass, ``opt`` the next uses, others go alone."""
    plans = plans or {}
    kinds: dict[str, list[str]] = {"lru": [], "opt": [], "replay": []}
    for key, spec in specs.items():
        kinds["replay" if plans.get(key) is not None else _kind(spec)].append(key)
    groups = [("lru", kinds["lru"][at : at + _LRU_BATCH]) for at in range(0, len(kinds["lru"]), _LRU_BATCH)]
    groups += [("opt", kinds["opt"])] if kinds["opt"] else []
    # Large tiers take longest: first, so that no thread waits for the last of them.
    alone = sorted(kinds["replay"], key=lambda key: -len(specs[key]["tiers"]))
    groups += [("replay", [key]) for key in alone]
    return [
        Task(
            kind,
            tuple(keys),
            tuple(specs[key] for key in keys),
            plans.get(keys[0]) if kind == "replay" else None,
        )
        for kind, keys in groups
    ]


def _kind(spec: dict[str, Any]) -> str:
    """Which pass a point can share; one tier without filter in plain prefix mode."""
    plain = spec["profile"] is None and spec["mode"] == "prefix" and spec["unit"] == "block"
    plain = plain and not spec["last_token"] and not spec["full_blocks_only"]
    tier = spec["tiers"][0]
    if plain and len(spec["tiers"]) == 1 and tier["admission"] == "always" and tier["chunk_blocks"] == 1:
        return tier["policy"] if tier["policy"] in ("lru", "opt") else "replay"
    return "replay"


def check(specs: Iterable[dict[str, Any]]) -> None:
    """Refuse what the core would refuse, before any work is done.

    Raises
    ------
    ConfigError
        For an unknown policy, filter or rule, or a parameter out of range.
    """
    tiny = _core.generate("unique", requests=1, seed=0, block_tokens=16, parameters={})
    for spec in specs:
        with translated():
            _replay(tiny, spec, None, per_request=False)


def run(trace: Trace, task: Task, progress: _core.Progress | None = None) -> list[dict[str, Any]]:
    """Do a task; one result per point, ``engine`` and ``tiers`` (rows of counters).

    Raises
    ------
    ConfigError
        As the core says.
    KeyboardInterrupt
        When `progress` was cancelled.
    """
    with translated():
        if task.kind == "lru":
            capacities = [spec["tiers"][0]["capacity_blocks"] for spec in task.specs]
            rows = _rows(_core.lru_tiers(trace.core, capacities=capacities, progress=progress))
            return [{"engine": "stack", "tiers": [row]} for row in rows]
        if task.kind == "opt":
            return _opt(trace, task, progress)
        results = [
            _replay(trace.core, spec, progress, per_request=task.plan is not None) for spec in task.specs
        ]
        sizes = [spec["block_tokens"] for spec in task.specs]
        return [_timed(core, task.plan, size) for core, size in zip(results, sizes, strict=True)]


def _opt(trace: Trace, task: Task, progress: _core.Progress | None) -> list[dict[str, Any]]:
    """The bound has hits; what it writes has no meaning, since it may leave any block out."""
    capacities = [spec["tiers"][0]["capacity_blocks"] for spec in task.specs]
    table = _core.policy_curve(
        trace.core, policy="opt", capacities=capacities, warmup_requests=None, threads=1, progress=progress
    )
    totals = trace.core.totals()
    results = []
    for row in _rows(table):
        share = row["hit_tokens"] / totals["input_tokens"] if totals["input_tokens"] else None
        row |= {
            "asked_blocks": totals["block_refs"],
            "tier_share": share,
            "tier_conditional_hit_ratio": share,
        }
        results.append({"engine": "future", "tiers": [row]})
    return results


def _replay(
    core: _core.Trace, spec: dict[str, Any], progress: _core.Progress | None, *, per_request: bool
) -> _core.Replay:
    if spec["profile"] is not None:
        engine = _core.profile_trace(core, spec["profile"], spec["profile_options"])
        return _core.replay_profile(
            engine, spec["tiers"], per_request=per_request, events=False, progress=progress
        )
    return _core.replay(
        core,
        spec["tiers"],
        mode=spec["mode"],
        unit=spec["unit"],
        last_token=spec["last_token"],
        full_blocks_only=spec["full_blocks_only"],
        per_request=per_request,
        events=False,
        progress=progress,
    )


def _timed(core: _core.Replay, plan: Plan | None, block_tokens: int) -> dict[str, Any]:
    """The result of a point from its replay, with times where it has a plan."""
    rows = _rows(core.tiers())
    if plan is not None:
        times = times_of(core, plan, block_tokens=block_tokens)
        rows = [row | {name: times[name][at] for name in times} for at, row in enumerate(rows)]
    return {"engine": core.engine, "tiers": rows}


def _rows(table: _core.Table) -> list[dict[str, Any]]:
    columns = table.to_pydict()
    names = [name for name in COUNTERS if name in columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*(columns[n] for n in names), strict=True)]
