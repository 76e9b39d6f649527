"""Cost models as TOML files: what ``kvreplay calibrate`` writes and ``--cost`` reads."""

from __future__ import annotations

import json
import tomllib
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvreplay.cost import data
from kvreplay.cost.coefficients import CostModel
from kvreplay.cost.transfer import Link, link as find_link
from kvreplay.errors import ConfigError, unknown

if TYPE_CHECKING:
    import os

_NUMBERS = ("c0_us", "floor_us", "linear_us_per_token", "quadratic_us_per_token2")
_ORIGINS = ["given", "prior", "fitted"]
_HINT = "kvreplay calibrate FILE --out cost.toml writes such a file"
_MOST_FILE_BYTES = 2**20


def to_toml(cost: CostModel, *, about: str = "") -> str:
    """Text of a cost model, with its error, interval and links; equal models give equal text."""
    lines = [f"# {line}" for line in about.splitlines()]
    lines += ["[cost]", *_numbers(cost)]
    lines += [f"origin = {_text(cost.origin)}", f"error = {_text(cost.error)}"]
    if cost.longest_tokens is not None:
        lines.append(f"longest_tokens = {cost.longest_tokens}")
    lines.append(f"warnings = [{', '.join(_text(one) for one in cost.warnings)}]")
    for name, one in (("low", cost.low), ("high", cost.high)):
        if one is not None:
            lines += ["", f"[cost.{name}]", *_numbers(one)]
    if cost.intervals:
        lines += ["", "[cost.intervals]"]
        lines += [f"{_text(name)} = [{low!r}, {high!r}]" for name, (low, high) in cost.intervals.items()]
    for name, link in cost.links.items():
        lines += ["", f"[links.{_text(name)}]", *_link(link)]
    return "\n".join(lines) + "\n"


def _numbers(cost: CostModel) -> list[str]:
    return [f"{name} = {getattr(cost, name)!r}" for name in _NUMBERS]


def _link(link: Link) -> list[str]:
    lines = []
    for field in fields(Link):
        value = getattr(link, field.name)
        if field.name == "name" or value == field.default:
            continue
        if isinstance(value, Link):
            value = _name_of(value)
        lines.append(f"{field.name} = {_text(value) if isinstance(value, str) else str(value).lower()}")
    return lines


def _name_of(behind: Link) -> str:
    """Name of a link behind another; a file has no place for one that only the program knows."""
    if data.catalogue("links").get(behind.name) is None or find_link(behind.name) != behind:
        raise ConfigError(
            f"link {behind.name} is not in the catalogue, and cannot be written", hint="name a known one"
        )
    return behind.name


def _text(value: str) -> str:
    # JSON's escapes are TOML's, DEL apart.
    return json.dumps(value).replace("\x7f", "\\u007f")


def read_cost(path: str | os.PathLike[str]) -> CostModel:
    """Read a cost model that :func:`to_toml` wrote, or that was written by hand.

    Raises
    ------
    ConfigError
        When the file cannot be read, is not TOML, or holds an unknown name or an unusable value.
    """
    file = Path(path)
    try:
        if file.stat().st_size > _MOST_FILE_BYTES:
            raise ConfigError(f"{file} is too large for a cost model", hint=_HINT)
        document = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}", hint=_HINT) from error
    except (ValueError, RecursionError) as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(f"{file}: not TOML ({error})", hint=_HINT) from error
    for name in document:
        if name not in {"cost", "links"}:
            raise _at(file, unknown("table", name, ["cost", "links"]))
    try:
        return _cost(document)
    except ConfigError as error:
        raise _at(file, error) from None


def _at(file: Path, error: ConfigError) -> ConfigError:
    return ConfigError(f"{file}: {error}", hint=error.hint)


def _table(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError(f"[{name}] is not a table", hint=_HINT)
    return value


def _cost(document: dict[str, Any]) -> CostModel:
    if "cost" not in document:
        raise ConfigError("there is no table [cost]", hint=_HINT)
    values = dict(_table(document["cost"], "cost"))
    known = [*_NUMBERS, "origin", "error", "longest_tokens", "warnings", "low", "high", "intervals"]
    for name in values:
        if name not in known:
            raise unknown("key of [cost]", name, known)
    origin = values.get("origin", "given")
    if origin not in _ORIGINS:
        raise unknown("origin", str(origin), _ORIGINS)
    cost = _coefficients(values, "cost")
    longest = values.get("longest_tokens")
    if longest is not None and (not isinstance(longest, int) or isinstance(longest, bool) or longest < 1):
        raise ConfigError(f"longest_tokens is {longest!r}", hint="a number of tokens")
    return replace(
        cost,
        origin=origin,
        error=str(values.get("error", cost.error)),
        longest_tokens=longest,
        warnings=tuple(str(one) for one in values.get("warnings", [])),
        intervals=_intervals(values.get("intervals", {})),
        links=_links(document.get("links", {})),
        low=_end(values, "low", origin),
        high=_end(values, "high", origin),
    )


def _end(values: dict[str, Any], name: str, origin: str) -> CostModel | None:
    if name not in values:
        return None
    where = f"cost.{name}"
    return replace(_coefficients(_table(values[name], where), where), origin=origin)


def _coefficients(values: dict[str, Any], name: str) -> CostModel:
    missing = [number for number in _NUMBERS if number not in values]
    if missing:
        raise ConfigError(f"[{name}] has no {missing[0]}", hint=_HINT)
    return CostModel(**{number: values[number] for number in _NUMBERS})


def _intervals(values: Any) -> dict[str, tuple[float, float]]:
    out = {}
    for name, pair in _table(values, "cost.intervals").items():
        if not isinstance(pair, list) or [isinstance(end, int | float) for end in pair] != [True, True]:
            raise ConfigError(f"the interval {name} is {pair!r}", hint="two numbers, [low, high]")
        out[name] = (float(pair[0]), float(pair[1]))
    return out


def _links(values: Any) -> dict[str, Link]:
    out = {}
    known = [field.name for field in fields(Link) if field.name != "name"]
    for name, one in _table(values, "links").items():
        for key in _table(one, f"links.{name}"):
            if key not in known:
                raise unknown(f"key of link {name}:", key, known)
        missing = [key for key in ("bandwidth", "fixed") if key not in one]
        if missing:
            raise ConfigError(f"link {name} has no {missing[0]}", hint='for example bandwidth = "26 GB/s"')
        out[name] = Link(name, **one)
    return out
