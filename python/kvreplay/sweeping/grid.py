"""The grid of a sweep: from lists of values to points, one point a replay."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import product
from typing import TYPE_CHECKING, Any

from kvreplay.engines import check_model, check_tiers, option_texts
from kvreplay.errors import ConfigError, unknown
from kvreplay.replaying import Tier, check_generic, check_rules, resolve_tiers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kvreplay import units
    from kvreplay.engines import Profiled

Grid = "Mapping[str, Any] | Sequence[Tier | Sequence[Tier] | Mapping[str, Any]]"
TIER_KEYS = [f.name for f in fields(Tier) if f.name not in ("name", "_")]
RULE_KEYS = ["mode", "unit", "last_token", "full_blocks_only", "profile", "profile_options"]
SINGLE_NAME = "cache"
MAX_POINTS = 100_000


@dataclass(frozen=True)
class Point:
    """One replay of a sweep: a list of tiers and the rules of :func:`kvreplay.replay`."""

    tiers: tuple[Tier, ...]
    mode: str = "prefix"
    unit: str = "block"
    last_token: bool = False
    full_blocks_only: bool = False
    profile: str | None = None
    profile_options: dict[str, object] | None = None

    @property
    def rules(self) -> dict[str, Any]:
        """The rules as arguments of :func:`kvreplay.replay`."""
        return {key: getattr(self, key) for key in RULE_KEYS}

    def resolved(
        self, scale: units.Scale, profiled: Callable[[str, list[tuple[str, str]]], Profiled], model: object
    ) -> dict[str, Any]:
        """The point as plain values, capacities in blocks: equal points have equal values.

        Parameters
        ----------
        scale
            Factors of the trace's blocks.
        profiled
            The trace in the blocks of a profile with these options.
        model
            As in :func:`kvreplay.replay`.

        Raises
        ------
        ConfigError
            As :func:`kvreplay.replay` for these tiers.
        """
        check_rules(self.mode, self.unit)
        rules = self.rules | {"profile_options": option_texts(self.profile_options)}
        if self.profile is not None:
            check_generic(
                self.profile,
                mode=self.mode,
                unit=self.unit,
                last_token=self.last_token,
                full_blocks_only=self.full_blocks_only,
            )
            engine = profiled(self.profile, rules["profile_options"])
            check_tiers(engine.name, self.tiers)
            check_model(engine.name, model)
            scale = engine.scale(model)
            rules["profile"] = engine.name
        elif self.profile_options:
            raise ConfigError("profile_options without a profile", hint='give "profile": "vllm@0.33" too')
        tiers = resolve_tiers(self.tiers, scale)
        tiers[0] |= {"fill": "write_through", "touch": "path"}  # without meaning for the first tier
        return {"tiers": tiers, "block_tokens": scale.block_tokens, **rules}


def expand(grid: Any) -> list[Point]:
    """List the points of a grid, in its order.

    Parameters
    ----------
    grid
        A dict of lists, of which every combination is a point (the last key runs fastest), or a list of
        points. Keys of the dict: those of :class:`kvreplay.Tier` for one tier (``capacity``, ``policy``,
        ``admission``, ...), or ``tiers`` (a list of tier lists) with ``NAME.KEY`` for a key of the tier NAME;
        and ``mode``, ``unit``, ``last_token``, ``full_blocks_only``, ``profile``,
        ``profile_options`` (a dict). A single value stands for a list of one.
        A point of a list is a tier, a list of tiers, or a dict of single values.

    Raises
    ------
    ConfigError
        For an unknown key, an unusable value, no points, or more than 100,000.
    """
    if hasattr(grid, "keys"):
        points = _combinations(dict(grid))
    elif isinstance(grid, str) or not hasattr(grid, "__iter__"):
        raise ConfigError(f"{grid!r} is not a grid", hint='{"capacity": ["1%", "10%"], "policy": ["lru"]}')
    else:
        points = [_one(item) for item in grid]
    if not points:
        raise ConfigError("the grid has no point", hint='{"capacity": ["1%", "10%"], "policy": ["lru"]}')
    return points


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple | range) else [value]


def _combinations(grid: dict[str, Any]) -> list[Point]:
    values = {key: _listed(value) for key, value in grid.items()}
    count = 1
    for key, choices in values.items():
        if not choices:
            raise ConfigError(f"{key} has no value to try", hint="give at least one")
        count *= len(choices)
    if count > MAX_POINTS:
        raise ConfigError(
            f"the grid has {count:,} points", hint=f"the most is {MAX_POINTS:,}: try fewer values"
        )
    if "tiers" in values and not all(isinstance(one, list | tuple) for one in values["tiers"]):
        values["tiers"] = [values["tiers"]]  # one list of tiers, not a list of them
    return [_point(dict(zip(values, one, strict=True))) for one in product(*values.values())]


def _one(item: Any) -> Point:
    if isinstance(item, Tier):
        return Point((item,))
    if hasattr(item, "keys"):
        return _point(dict(item))
    if isinstance(item, list | tuple):
        return Point(tuple(item))
    raise ConfigError(f"{item!r} is not a point of a sweep", hint="give a tier, a list of tiers or a dict")


def _point(values: dict[str, Any]) -> Point:
    rules = {key: values.pop(key) for key in RULE_KEYS if key in values}
    for key in ("last_token", "full_blocks_only"):
        if not isinstance(rules.get(key, False), bool):
            raise ConfigError(f"{key} is {rules[key]!r}", hint="give True or False")
    tiers = _tiers(values) if "tiers" in values else _single(values)
    return Point(tiers, **rules)


def _single(values: dict[str, Any]) -> tuple[Tier, ...]:
    name = values.pop("name", SINGLE_NAME)
    _refuse_unknown(values, TIER_KEYS + RULE_KEYS)
    if "capacity" not in values:
        raise ConfigError("the grid has no capacity", hint='{"capacity": ["1%", "10%"], "policy": ["lru"]}')
    return (Tier(name, **values),)


def _tiers(values: dict[str, Any]) -> tuple[Tier, ...]:
    tiers = list(values.pop("tiers"))
    for tier in tiers:
        if not isinstance(tier, Tier):
            raise ConfigError(f"{tier!r} is not a tier", hint='kv.Tier("gpu", capacity="5000 blocks")')
    known = [f"{tier.name}.{key}" for tier in tiers for key in TIER_KEYS]
    _refuse_unknown(values, known)
    for at, tier in enumerate(tiers):
        mine = {key: values[f"{tier.name}.{key}"] for key in TIER_KEYS if f"{tier.name}.{key}" in values}
        tiers[at] = replace(tier, **mine)
    return tuple(tiers)


def _refuse_unknown(values: Iterable[str], known: list[str]) -> None:
    for key in values:
        if key not in known:
            raise unknown("key of the grid:", str(key), known)
