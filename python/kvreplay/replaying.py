"""Tiers and the replay of a trace through them."""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, asdict, dataclass
from typing import TYPE_CHECKING, Any

from kvreplay import _core, calls, engines, memory, units
from kvreplay.errors import ConfigError, unknown
from kvreplay.results import ReplayResult
from kvreplay.splits import Split
from kvreplay.warmup import warmup_requests
from kvreplay.worth.bounds import check_times
from kvreplay.worth.plan import Plan, make_plan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kvreplay.calls import ProgressHook
    from kvreplay.cost import CostModel, Hardware, Link
    from kvreplay.trace import Trace

MODES = ["prefix", "object"]
UNITS = ["block", "request"]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_CHOICES = {"touch": ["path", "served"], "closure": ["leaf", "none"]}
# A block reference can be a hit, or an insert and an eviction, in each tier; 32 bytes a row and the ids.
_BYTES_PER_EVENT = 40
_BYTES_PER_REQUEST_AND_TIER = 8
_MAX_CHUNK_BLOCKS = 2**20


@dataclass(frozen=True)
class Tier:
    """One tier of a cache hierarchy.

    Parameters
    ----------
    name
        Letters, digits, ``_``, ``.`` and ``-``; part of column names.
    capacity
        ``"5000 blocks"``, ``"21520 tokens"``, ``"40GiB"`` (needs ``model=``), ``"10%"`` of the trace's unique
        blocks, or an int (blocks).
    policy
        A name of :func:`kvreplay.policies` with optional parameters: ``"wtinylfu(window=0.01)"``.
    admission
        A name of :func:`kvreplay.admissions` with optional parameters: ``"min_count(2)"``.
    fill
        How a tier below the first is filled, a name of :func:`kvreplay.fill_rules`.
    touch
        What a hit moves up in a lower tier: ``path`` (every resident block of the request's path) or
        ``served``.
    closure
        ``leaf``: a block with a resident child is not evicted before it; ``none``: the policy alone decides.
    chunk_blocks
        Blocks that are stored, evicted and hit together.
    link
        How its blocks reach the GPU: a name of :func:`kvreplay.links` or a :class:`kvreplay.Link`. The first
        tier needs none: it is the GPU's own memory. A lower tier without one is not timed. Links change
        times only, never hits.

    Raises
    ------
    ConfigError
        For a size without a unit, an empty tier or an unusable name.

    Examples
    --------
    >>> import kvreplay as kv
    >>> kv.Tier("cpu", capacity="5000 blocks", fill="victim").capacity
    '5000 blocks'
    """

    name: str
    _: KW_ONLY
    capacity: str | int
    policy: str = "lru"
    admission: str = "always"
    fill: str = "write_through"
    touch: str = "path"
    closure: str = "leaf"
    chunk_blocks: int = 1
    link: Link | str | None = None

    def __post_init__(self) -> None:
        if _NAME.fullmatch(str(self.name)) is None:
            raise ConfigError(
                f"{self.name!r} is not a name for a tier",
                hint="use letters, digits, _ . and -, for example gpu",
            )
        units.check_capacity(self.capacity, what=f"capacity of tier {self.name}")
        for key in ("policy", "admission", "fill"):
            if not isinstance(getattr(self, key), str):
                raise ConfigError(f"{key} of tier {self.name} must be a text", hint="see kvreplay list")
        for key, known in _CHOICES.items():
            if getattr(self, key) not in known:
                raise unknown(f"{key} of tier {self.name}:", getattr(self, key), known)
        if not units.is_whole(self.chunk_blocks, 1, _MAX_CHUNK_BLOCKS):
            raise ConfigError(
                f"chunk_blocks of tier {self.name} is {self.chunk_blocks!r}",
                hint="give a number of blocks from 1",
            )
        if self.link is not None:
            from kvreplay.cost import link

            link(self.link)

    @classmethod
    def from_texts(cls, values: dict[str, str]) -> Tier:
        """Make a tier of the texts of a command line or a configuration file.

        Raises
        ------
        ConfigError
            For an unknown key or an unusable value.
        """
        known = list(cls.__dataclass_fields__)
        for key in values:
            if key not in known:
                raise unknown(f"key of tier {values.get('name', '')}:", key, known)
        arguments: dict[str, Any] = dict(values)
        name = arguments.pop("name")
        if isinstance(arguments.get("chunk_blocks"), str):
            try:
                arguments["chunk_blocks"] = int(arguments["chunk_blocks"])
            except ValueError:
                raise ConfigError(
                    f"chunk_blocks of tier {name} is {arguments['chunk_blocks']!r}",
                    hint="give a whole number",
                ) from None
        return cls(name, **arguments)

    def resolved(self, scale: units.Scale) -> dict[str, Any]:
        """The tier as the core takes it, its capacity in blocks (rounded down to whole chunks)."""
        blocks = units.capacity_blocks(self.capacity, scale, what=f"capacity of tier {self.name}")
        whole = blocks - blocks % self.chunk_blocks
        if whole == 0:
            raise ConfigError(
                f"tier {self.name} holds {blocks} blocks, less than a chunk of {self.chunk_blocks}",
                hint="give more room or smaller chunks",
            )
        values = asdict(self)
        del values["capacity"], values["link"]
        return values | {"capacity_blocks": whole}


def check_tiers(tiers: Sequence[Tier]) -> None:
    """Refuse a list without tiers, with something else in it, or with two of a name.

    Raises
    ------
    ConfigError
        Saying which.
    """
    if not tiers:
        raise ConfigError(
            "there is no tier to replay", hint='give one: kv.Tier("gpu", capacity="5000 blocks")'
        )
    for tier in tiers:
        if not isinstance(tier, Tier):
            raise ConfigError(
                f"{tier!r} is not a tier", hint='make one: kv.Tier("gpu", capacity="5000 blocks")'
            )
    names = [tier.name for tier in tiers]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"two tiers are named {name}", hint="give each tier a name of its own")


def resolve_tiers(tiers: Sequence[Tier], scale: units.Scale) -> list[dict[str, Any]]:
    """All tiers as the core takes them, fastest first.

    Raises
    ------
    ConfigError
        When there is none, two share a name, or one cannot be resolved.
    """
    check_tiers(tiers)
    first = tiers[0]
    if len(tiers) > 1 and first.admission.partition("(")[0].strip() != "always":
        # The blocks a request computes have to be somewhere: the first tier of several takes them all.
        raise ConfigError(
            f"tier {first.name} has the admission filter {first.admission}, and tiers below it",
            hint="give the filter to a lower tier, or replay the first tier alone",
        )
    return [tier.resolved(scale) for tier in tiers]


def check_rules(mode: object, unit: object) -> None:
    """Refuse a mode or a unit that does not exist.

    Raises
    ------
    ConfigError
        Naming the known ones.
    """
    if mode not in MODES:
        raise unknown("mode", str(mode), MODES)
    if unit not in UNITS:
        raise unknown("unit", str(unit), UNITS)


def replay(
    trace: Trace,
    tiers: Sequence[Tier],
    *,
    mode: str = "prefix",
    unit: str = "block",
    profile: str | None = None,
    profile_options: Mapping[str, object] | None = None,
    model: object = None,
    hardware: str | Hardware | None = None,
    cost: CostModel | None = None,
    prices: Mapping[str, float] | None = None,
    warmup: float | str | None = None,
    last_token: bool = False,
    full_blocks_only: bool = False,
    per_request: bool = False,
    events: bool = False,
    group_by: str | Sequence[str] | None = None,
    window: str | None = None,
    progress: ProgressHook | None = None,
) -> ReplayResult:
    """Replay a trace through a hierarchy of cache tiers.

    Parameters
    ----------
    trace
        The trace.
    tiers
        The tiers, fastest first.
    mode
        ``prefix``: a hit is the longest leading run of resident blocks. ``object``: every block is an access
        of its own, as in a general cache simulator.
    unit
        ``block``: blocks are shared and evicted one by one. ``request``: a comparison with systems without
        paging, one LRU tier that stores and evicts the whole sequence of a request, shared with nobody.
    profile
        ``NAME@VERSION`` of an engine (:func:`kvreplay.profiles`): its own rules replace the generic ones.
        Tiers then carry a name, a capacity in the engine's blocks, the engine's own policy name,
        ``chunk_blocks`` and admission; every count of blocks in the result is in engine blocks.
    profile_options
        Options of the profile by name, for example ``{"block_size": 16, "outputs": "listed"}``.
    model
        A name of :func:`kvreplay.models`, the path of a ``config.json``, a :class:`kvreplay.ModelSpec` or the
        bytes of KV per token: for sizes in bytes, and for times.
    hardware
        A GPU of :func:`kvreplay.hardware`: with it and a model the hits are timed, by the GPU's prior.
    cost
        A cost model, fitted (:func:`kvreplay.calibrate`) or made by hand: takes the place of the prior.
        Times never change a hit.
    prices
        Prices and lives in place of the catalogue's: ``{"gpu_hour_usd": 2.1, "ssd_dwpd": 3}``
        (``kvreplay list prices``).
    warmup
        A fraction of the requests or a duration: adds ``warm_`` columns over the requests after it.
    last_token
        A hit never covers the last input token (engines compute it to get the first output token).
    full_blocks_only
        The partial last block neither hits nor stays.
    per_request
        Keep what each request got in ``result.requests``.
    events
        Keep every hit, insert, evict, reject and move in ``result.events``, in order.
    group_by
        A column of the trace (``"tenant"``) or several: adds ``result.groups``.
    window
        A duration (``"5m"``): adds ``result.windows``, with each tier's occupancy over time.
    progress
        Called with ``(what, done, total)`` in requests.

    Returns
    -------
    ReplayResult
        Its tables hold Int64 counters and Float64 ratios; absent values are null. LRU tiers without filters
        are answered from owner runs where that gives every counter exactly (``result.summary["engine"]`` is
        ``stack``), everything else block by block; the numbers are the same.

    Raises
    ------
    ConfigError
        For an unusable tier or option, or tables that would not fit into memory.

    Examples
    --------
    >>> import kvreplay as kv
    >>> scan = kv.generate("cyclic_scan", requests=30, documents=10, document_tokens=5008)
    >>> result = kv.replay(scan, [kv.Tier("gpu", capacity=10 * 313)])
    >>> result.summary["hit_tokens"]
    100160
    """
    check_rules(mode, unit)
    plan = plan_of(tiers, model=model, hardware=hardware, cost=cost, prices=prices, mode=mode)
    check_times(plan, trace)
    engine = None
    if profile is not None:
        check_generic(profile, mode=mode, unit=unit, last_token=last_token, full_blocks_only=full_blocks_only)
        engine = engines.profiled(trace, profile, profile_options)
        engines.check_tiers(engine.name, tiers)
        trace = engine.trace
    elif profile_options:
        raise ConfigError("profile_options without a profile", hint='give profile="vllm@0.33" too')
    scale = trace.scale(plan.model) if engine is None else engine.scale(plan.model)
    resolved = resolve_tiers(tiers, scale)
    warm = warmup_requests(trace, warmup)
    split = Split.of(trace, group_by=group_by, window=window)
    _check_memory(trace, len(tiers), events=events)
    if engine is not None:
        core = engines.replay_core(
            engine, resolved, events=events, occupancy=window is not None, progress=progress
        )
    else:
        core = calls.run(
            lambda p: _core.replay(
                trace.core,
                resolved,
                mode=mode,
                unit=unit,
                last_token=last_token,
                full_blocks_only=full_blocks_only,
                per_request=True,  # ratios that are means over requests need the hits of each
                events=events,
                occupancy=window is not None,
                progress=p,
            ),
            what="replaying",
            hook=progress,
        )
    return ReplayResult(
        core,
        trace=trace,
        scale=scale,
        warm=warm,
        per_request=per_request,
        events=events,
        mode=mode,
        split=split,
        profile=None if engine is None else engine.name,
        plan=plan,
    )


def check_generic(profile: str, *, mode: str, unit: str, last_token: bool, full_blocks_only: bool) -> None:
    """Refuse rules of the generic replay that an engine decides itself.

    Raises
    ------
    ConfigError
        When one is given beside a profile.
    """
    given = {"mode": mode != "prefix", "unit": unit != "block"}
    given |= {"last_token": last_token, "full_blocks_only": full_blocks_only}
    for name, is_given in given.items():
        if is_given:
            raise ConfigError(
                f"{name} does not go with the profile {profile}",
                hint=f"the engine decides it: see kvreplay profile show {profile}",
            )


def plan_of(
    tiers: Sequence[Tier],
    *,
    model: object = None,
    hardware: Any = None,
    cost: Any = None,
    prices: Mapping[str, float] | None = None,
    mode: str = "prefix",
) -> Plan:
    """Settle model, cost and links of some tiers.

    Raises
    ------
    ConfigError
        As :func:`kvreplay.worth.plan.make_plan`; when there is no tier; for times in object mode.
    """
    check_tiers(tiers)
    if mode == "object" and (hardware is not None or cost is not None):
        raise ConfigError(
            "mode=object counts hits behind holes, which no engine can load: it has no times",
            hint="use mode=prefix, or leave hardware and cost out",
        )
    links = {tier.name: tier.link for tier in tiers}
    return make_plan(links, model=model, hardware=hardware, cost=cost, prices=prices)


def _check_memory(trace: Trace, tiers: int, *, events: bool) -> None:
    totals = trace.core.totals()
    memory.check_replays(trace.core.unique_blocks(), tiers=tiers, workers=1)
    memory.check(
        len(trace) * (tiers + 1) * _BYTES_PER_REQUEST_AND_TIER,
        what=f"the hits of {len(trace):,} requests",
        hint="select fewer requests",
    )
    if events:
        memory.check(
            totals["block_refs"] * 2 * tiers * _BYTES_PER_EVENT,
            what="the events of this replay",
            hint="leave events out, or select fewer requests",
        )
