"""The catalogues: TOML files of this package, read once, every entry with its source and date."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from kvreplay.errors import unknown

if TYPE_CHECKING:
    from collections.abc import Mapping


CONFIG_PARTS = ("size", "attention", "pattern", "state", "experts")


@cache
def catalogue(name: str) -> dict[str, dict[str, Any]]:
    """The entries of ``NAME.toml`` by name, in the order of the file."""
    text = resources.files("kvreplay.cost").joinpath(f"{name}.toml").read_text("utf-8")
    return tomllib.loads(text)


def canonical(name: str, *, of: str, what: str) -> str:
    """The name an entry has in its catalogue, found by name or alias, whatever the case.

    Raises
    ------
    ConfigError
        When there is none, with the nearest name and all known ones.
    """
    found = _names(of).get(name.strip().lower())
    if found is None:
        raise unknown(what, name, list(catalogue(of)))
    return found


def config_of(model: str) -> dict[str, Any]:
    """The fields of a model's ``config.json``, which its entry keeps in several tables."""
    entry = catalogue("models")[model]
    return {name: value for part in CONFIG_PARTS for name, value in entry.get(part, {}).items()}


@cache
def _names(of: str) -> Mapping[str, str]:
    names: dict[str, str] = {}
    for name, values in catalogue(of).items():
        for alias in (name, *values.get("aliases", [])):
            names[alias.lower()] = name
    return names
