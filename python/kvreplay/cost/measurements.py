"""Measured times as rows from outside: checked, with repeated ones merged to their median."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, TypeVar

from kvreplay.cost import rates
from kvreplay.errors import ConfigError, unknown
from kvreplay.units import is_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

GPU = "gpu"
_REQUEST_FIELDS = [
    "input_tokens", "ttft_ms", "hit_tokens", "gpu_hit_tokens", "tier", "stored_tokens", "concurrency",
]  # fmt: skip
_LINK_FIELDS = ["tier", "block_bytes", "count", "load_ms"]
_MOST_ROWS = 100_000
_MOST_TIERS = 16
_MOST_FITTED = 256
_LEAST_OF_A_KIND = 8
_MOST_TOKENS = 2**30
_LEAST_MS, _MOST_MS = 1e-6, 3.6e6
_HINT = "a row has input_tokens and ttft_ms; where a hit was measured also hit_tokens and tier"


@dataclass(frozen=True)
class Timed:
    """Time to the first token of requests of one kind.

    Parameters
    ----------
    computed
        Tokens computed.
    resident
        Tokens before them that were on the GPU or were loaded.
    tier
        Tier that was loaded from or stored to, empty for none.
    loaded, stored
        Tokens loaded from it, and written to it before the first token.
    ttft_us
        Time to the first token, median of the rows.
    """

    computed: int
    resident: int
    tier: str
    loaded: int
    stored: int
    ttft_us: float


@dataclass(frozen=True)
class Copied:
    """A bare transfer: `count` blocks of `block_bytes` bytes from a tier in `load_us`."""

    tier: str
    block_bytes: int
    count: int
    load_us: float


T = TypeVar("T", Timed, Copied)


def read_rows(rows: Iterable[Mapping[str, Any]] | Any) -> tuple[list[Timed], list[Copied]]:
    """Check measurements and merge repeated ones.

    Raises
    ------
    ConfigError
        For no rows, too many, an unknown column, a value that is missing, negative, zero or not finite, hits
        longer than the input, or rows under concurrency (their times hold queueing, which is not modelled).
    """
    if hasattr(rows, "iter_rows"):
        rows = rows.iter_rows(named=True)
    if isinstance(rows, str | bytes) or not hasattr(rows, "__iter__"):
        raise ConfigError(f"measurements must be rows, not {rows!r}", hint=_HINT)
    timed: dict[tuple[int, int, str, int, int], list[float]] = {}
    copied: list[Copied] = []
    number = 0
    for number, row in enumerate(rows, start=1):
        if number > _MOST_ROWS:
            raise ConfigError(f"more than {_MOST_ROWS:,} measurements", hint="a few per length are enough")
        values = _present(row, number)
        if "block_bytes" in values:
            copied.append(_copied(values, number))
        else:
            key, time = _timed(values, number)
            timed.setdefault(key, []).append(time)
    if not timed and not copied:
        raise ConfigError("there are no measurements", hint=_HINT)
    merged = [Timed(*key, ttft_us=median(times)) for key, times in sorted(timed.items())]
    tiers = {row.tier for row in merged} | {row.tier for row in copied}
    if len(tiers) > _MOST_TIERS:
        raise ConfigError(
            f"measurements of {len(tiers)} tiers", hint=f"at most {_MOST_TIERS} are fitted at once"
        )
    ordered = sorted(copied, key=lambda row: (row.tier, row.block_bytes, row.count, row.load_us))
    return _thinned(merged), _thinned(ordered)


def _thinned(rows: list[T]) -> list[T]:
    """At most a few hundred rows, evenly over each kind: more do not make a fit better, only slower."""
    kinds: dict[tuple[str, bool, bool], list[T]] = {}
    for row in rows:
        loaded, stored = getattr(row, "loaded", 0), getattr(row, "stored", 0)
        kinds.setdefault((row.tier, bool(loaded), bool(stored)), []).append(row)
    out: list[T] = []
    for kind in kinds.values():
        most = max(_LEAST_OF_A_KIND, _MOST_FITTED // len(kinds))
        last = len(kind) - 1
        out += kind if len(kind) <= most else [kind[i * last // (most - 1)] for i in range(most)]
    return out


def _present(row: Any, number: int) -> dict[str, Any]:
    if not hasattr(row, "items"):
        raise ConfigError(f"measurement {number} is {row!r}", hint=_HINT)
    values = {str(name): value for name, value in row.items() if value is not None and value != ""}
    known = list(dict.fromkeys([*_REQUEST_FIELDS, *_LINK_FIELDS]))
    for name in values:
        if name not in known:
            raise unknown(f"column of measurement {number}:", name, known)
    return values


def _whole(values: dict[str, Any], name: str, number: int, *, least: int, default: int | None = None) -> int:
    value = values.get(name, default)
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        value = int(value)
    if not is_whole(value, least, _MOST_TOKENS):
        what = "is missing" if value is None else f"is {value!r}"
        raise ConfigError(f"{name} of measurement {number} {what}", hint=f"give a number from {least}")
    return int(value)  # type: ignore[arg-type]


def _time_us(values: dict[str, Any], name: str, number: int) -> float:
    if name not in values:
        raise ConfigError(f"{name} of measurement {number} is missing", hint=_HINT)
    what, hint = f"{name} of measurement {number}", "a measured time is positive, in milliseconds"
    return 1e3 * rates.finite(values[name], what=what, hint=hint, least=_LEAST_MS, most=_MOST_MS)


def _timed(values: dict[str, Any], number: int) -> tuple[tuple[int, int, str, int, int], float]:
    tokens = _whole(values, "input_tokens", number, least=1)
    hit = _whole(values, "hit_tokens", number, least=0, default=0)
    gpu = _whole(values, "gpu_hit_tokens", number, least=0, default=0)
    stored = _whole(values, "stored_tokens", number, least=0, default=0)
    tier = str(values.get("tier", "")).strip()
    if _whole(values, "concurrency", number, least=1, default=1) > 1:
        raise ConfigError(
            f"measurement {number} was taken under concurrency",
            hint="send one request at a time: waiting is not part of this model",
        )
    if tier.lower() == GPU or not tier:
        gpu, hit, tier = gpu + hit, 0, "" if not stored else tier
    if stored and tier.lower() in ("", GPU):
        raise ConfigError(f"measurement {number} stores to no tier", hint="name it in the column tier")
    if gpu + hit >= tokens:
        raise ConfigError(
            f"measurement {number} hits {gpu + hit} of {tokens} tokens",
            hint="an engine computes at least the last token: give what it computed besides the hit",
        )
    key = (tokens - gpu - hit, gpu + hit, tier, hit, stored)
    return key, _time_us(values, "ttft_ms", number)


def _copied(values: dict[str, Any], number: int) -> Copied:
    tier = str(values.get("tier", "")).strip()
    if not tier:
        raise ConfigError(f"measurement {number} names no tier", hint="give it in the column tier")
    return Copied(
        tier=tier,
        block_bytes=_whole(values, "block_bytes", number, least=1),
        count=_whole(values, "count", number, least=1),
        load_us=_time_us(values, "load_ms", number),
    )
