"""The grid of a command line: lists of policies and sizes, or tiers whose values are separated by ``|``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kvreplay.errors import ConfigError
from kvreplay.replaying import Tier
from kvreplay.specs import split_outside, tier_spec, unquote

if TYPE_CHECKING:
    from collections.abc import Sequence


def grid_of(
    *,
    policies: Sequence[str] | None,
    capacities: Sequence[str] | None,
    admissions: Sequence[str] | None,
    tiers: Sequence[str] | None,
) -> dict[str, Any]:
    """Make the dict of :func:`kvreplay.sweep` of the options of the command line.

    Raises
    ------
    ConfigError
        When both ways are mixed, nothing is given, or a text does not follow the grammar.

    Examples
    --------
    >>> from kvreplay.sweeping.texts import grid_of
    >>> grid = grid_of(policies=None, capacities=None, admissions=None, tiers=["gpu=9 blocks", "cpu=10%|20%"])
    >>> [tier.name for tier in grid["tiers"][0]], grid["cpu.capacity"]
    (['gpu', 'cpu'], ['10%', '20%'])
    """
    if tiers:
        if policies or capacities or admissions:
            raise ConfigError(
                "--tier and --policy, --capacity or --admission exclude one another",
                hint='write the lists into the tier: --tier "cpu=10%|20%,policy=lru|arc"',
            )
        return _tiers(tiers)
    if not capacities:
        raise ConfigError(
            "there is nothing to sweep",
            hint='give sizes: --capacity 1% --capacity 10%, or --tier "cpu=1%|10%"',
        )
    return {
        "policy": list(policies or ["lru"]),
        "admission": list(admissions or ["always"]),
        "capacity": list(capacities),
    }


def _tiers(texts: Sequence[str]) -> dict[str, Any]:
    first: list[Tier] = []
    grid: dict[str, Any] = {}
    for text in texts:
        values = {key: _choices(value, text) for key, value in tier_spec(text).items()}
        if len(values["name"]) > 1:
            raise ConfigError(f"tier {text!r} has several names", hint="separate sizes by |, not names")
        first.append(Tier.from_texts({key: choices[0] for key, choices in values.items()}))
        name = values.pop("name")[0]
        for key, choices in values.items():
            grid[f"{name}.{key}"] = [getattr(_with(name, values, key, one), key) for one in choices]
    return {"tiers": [first], **grid}


def _with(name: str, values: dict[str, list[str]], key: str, choice: str) -> Tier:
    """The tier with one of its choices, so that texts become the types of a tier."""
    return Tier.from_texts({"name": name, "capacity": values["capacity"][0], key: choice})


def _choices(value: str, text: str) -> list[str]:
    choices = [unquote(one) for one in split_outside(value, "|")]
    if not all(choices):
        raise ConfigError(f"tier {text!r} has an empty value beside |", hint='for example "cpu=10%|20%"')
    return choices
