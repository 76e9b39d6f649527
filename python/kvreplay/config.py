"""Settings of an analysis and where each came from: flag, environment, file or default.

The file is TOML: ``[analyze]`` holds the options by their long names (``-`` written ``_``), every
``[[tier]]`` the arguments of :class:`kvreplay.Tier`. A flag beats ``KVREPLAY_NAME``, which beats the file,
which beats the default; any ``--tier`` replaces the file's list.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvreplay.errors import ConfigError, unknown

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

_TRUE, _FALSE = {"1", "true", "yes", "on"}, {"0", "false", "no", "off"}


@dataclass(frozen=True)
class Option:
    """An option: the type of its values and its default."""

    kind: str
    default: Any = None


OPTIONS: dict[str, Option] = {
    "format": Option("text", "auto"),
    "block_tokens": Option("int"),
    "tail": Option("text", "auto"),
    "time_unit": Option("text", "auto"),
    "scope": Option("text", "auto"),
    "namespace": Option("texts", []),
    "column": Option("texts", []),
    "session_rows": Option("text", "auto"),
    "shared_prefix": Option("text", "none"),
    "session_starts": Option("text", "together"),
    "concurrency": Option("int"),
    "session_seed": Option("int", 0),
    "spread_ties": Option("flag", default=False),
    "strict": Option("flag", default=False),
    "profile": Option("text"),
    "profile_option": Option("texts", []),
    "from_vllm": Option("text"),
    "model": Option("text"),
    "kv_bytes_per_token": Option("int"),
    "kv_dtype": Option("text"),
    "tp": Option("int"),
    "host_copies": Option("int"),
    "engine_block": Option("int"),
    "hardware": Option("text"),
    "cost": Option("text"),
    "price": Option("texts", []),
    "warmup": Option("fraction"),
    "last_token": Option("flag", default=False),
    "full_blocks_only": Option("flag", default=False),
    "policy": Option("texts", []),
    "admission": Option("texts", []),
    "group_by": Option("texts", []),
    "window": Option("text"),
    "per_request": Option("flag", default=False),
    "fail_if": Option("texts", []),
    "out": Option("text"),
    "overwrite": Option("flag", default=False),
    "json": Option("flag", default=False),
    "quiet": Option("flag", default=False),
}
_ACCEPTS: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "int": (int,),
    "flag": (bool,),
    "fraction": (str, float, int),
    "texts": (list,),
}


@dataclass(frozen=True)
class Setting:
    """A value and where it came from."""

    value: Any
    origin: str


@dataclass(frozen=True)
class Settings:
    """Everything that holds for one run."""

    options: dict[str, Setting]
    tiers: list[dict[str, Any]]
    tiers_origin: str

    def __getitem__(self, name: str) -> Any:
        return self.options[name].value


def effective(
    flags: Mapping[str, Any],
    tiers: list[dict[str, Any]],
    *,
    path: str | os.PathLike[str] | None,
    environ: Mapping[str, str],
) -> Settings:
    """Settle every option.

    Parameters
    ----------
    flags
        What the command line gave; ``None`` where it gave nothing.
    tiers
        The tiers of the command line.
    path
        The configuration file, ``None`` without one.
    environ
        The environment.

    Raises
    ------
    ConfigError
        When the file cannot be read, or a name or value in it is unknown.
    """
    file, file_tiers = ({}, []) if path is None else load(path)
    options = {
        name: _settle(name, option, flag=flags.get(name), environ=environ, file=file, path=path)
        for name, option in OPTIONS.items()
    }
    if tiers or path is None:
        return Settings(options, tiers, "flag" if tiers else "default")
    return Settings(options, file_tiers, f"file {path}" if file_tiers else "default")


def _settle(
    name: str,
    option: Option,
    *,
    flag: Any,
    environ: Mapping[str, str],
    file: Mapping[str, Any],
    path: str | os.PathLike[str] | None,
) -> Setting:
    if flag is not None and flag != []:
        return Setting(flag, "flag")
    variable = f"KVREPLAY_{name.upper()}"
    if environ.get(variable):
        return Setting(_from_text(variable, option, environ[variable]), f"environment {variable}")
    if name in file:
        return Setting(file[name], f"file {path}")
    return Setting(option.default, "default")


def _from_text(variable: str, option: Option, text: str) -> Any:
    if option.kind == "int":
        try:
            return int(text)
        except ValueError:
            raise ConfigError(
                f"{variable}={text!r} is not a whole number", hint=f"unset {variable}"
            ) from None
    if option.kind == "flag":
        if text.lower() not in _TRUE | _FALSE:
            raise ConfigError(f"{variable}={text!r} is neither true nor false", hint=f"unset {variable}")
        return text.lower() in _TRUE
    return text.split(",") if option.kind == "texts" else text


def load(path: str | os.PathLike[str]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Read a configuration file: the options of ``[analyze]`` and the list of tiers.

    Raises
    ------
    ConfigError
        When it cannot be read, is not TOML, or holds an unknown table, key or type.
    """
    try:
        document = tomllib.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}", hint="give the path of a TOML file") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text", hint="give the path of a TOML file") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: {error}", hint="the file is TOML: [analyze] and [[tier]]") from error
    for name in document:
        if name not in ("analyze", "tier"):
            raise _at(path, unknown("table", name, ["analyze", "tier"]))
    options, tiers = document.get("analyze", {}), document.get("tier", [])
    if not isinstance(options, dict):
        raise ConfigError(f"{path}: analyze is not a table", hint="write [analyze]")
    for name, value in options.items():
        _check(path, name, value)
    if not isinstance(tiers, list) or not all(isinstance(tier, dict) for tier in tiers):
        raise ConfigError(f"{path}: tier is not a list of tables", hint="write [[tier]] once per tier")
    return options, tiers


def _check(path: str | os.PathLike[str], name: str, value: Any) -> None:
    if name not in OPTIONS:
        raise _at(path, unknown("key of [analyze]", name, list(OPTIONS)))
    kind = OPTIONS[name].kind
    good = isinstance(value, _ACCEPTS[kind]) and (kind == "flag" or not isinstance(value, bool))
    if kind == "texts":
        good = good and all(isinstance(text, str) for text in value)
    if not good:
        wanted = {"texts": "a list of texts", "flag": "true or false", "int": "a whole number"}.get(
            kind, kind
        )
        raise ConfigError(f"{path}: {name} = {value!r} is of the wrong type", hint=f"{name} takes {wanted}")


def _at(path: str | os.PathLike[str], error: ConfigError) -> ConfigError:
    return ConfigError(f"{path}: {error}", hint=error.hint)
