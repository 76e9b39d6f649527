"""Sizes and durations with their units: text in, exact integers out.

A bare number as text is refused: nobody can tell blocks from tokens from gigabytes by looking at ``"5000"``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal

from kvreplay.errors import ConfigError

BYTE_UNITS = {
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "PB": 10**15,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
    "PiB": 2**50,
}
_BYTES = {unit.lower(): factor for unit, factor in BYTE_UNITS.items()}
_DURATIONS_US = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
_SIZE = re.compile(r"([0-9][0-9_]*(?:\.[0-9]+)?)\s*([A-Za-z%]*)")
# As vLLM logs it: "GPU KV cache size: 21,520 tokens".
_PRINTED = re.compile(r"(?:GPU KV cache size:\s*)?([0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)\s*tokens")
_SIZE_HINT = 'write a unit: "5000 blocks", "21520 tokens", "40GiB", "8TB" or "10%"'
_MAX_BLOCKS = 2**48
_MAX_BYTES = 2**63 - 1


@dataclass(frozen=True)
class Scale:
    """What a trace and a model say about a block: the factors between blocks, tokens and bytes.

    Parameters
    ----------
    block_tokens
        Tokens of a full block.
    unique_blocks
        Distinct blocks of the trace, what a percentage is taken of.
    kv_bytes_per_token
        Bytes of KV a token takes, ``None`` when no model was given.
    """

    block_tokens: int
    unique_blocks: int
    kv_bytes_per_token: int | None = None

    @property
    def block_bytes(self) -> int | None:
        """Bytes of a full block."""
        return None if self.kv_bytes_per_token is None else self.kv_bytes_per_token * self.block_tokens

    def tokens(self, blocks: int) -> int:
        """Tokens that `blocks` full blocks hold."""
        return blocks * self.block_tokens

    def bytes(self, blocks: int) -> int | None:
        """Bytes that `blocks` blocks take."""
        return None if self.block_bytes is None else blocks * self.block_bytes


def is_whole(value: object, least: int, most: int) -> bool:
    """Whether a value from outside is an integer in a range (``True`` is not the number 1)."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _number_and_unit(text: str, *, what: str) -> tuple[Decimal, str]:
    text = text.strip()
    if (printed := _PRINTED.fullmatch(text)) is not None:
        return Decimal(printed[1].replace(",", "")), "tokens"
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ConfigError(f"{what} {text!r} is not a size", hint=_SIZE_HINT)
    number, unit = match.groups()
    if not unit:
        raise ConfigError(f"{what} {text!r} has no unit", hint=_SIZE_HINT)
    return Decimal(number.replace("_", "")), unit


def check_capacity(capacity: object, *, what: str = "capacity") -> str | int:
    """Check what can be checked of a capacity before the trace is known.

    Raises
    ------
    ConfigError
        When it is no size, has no unit or an unknown one, or is not positive.
    """
    if isinstance(capacity, bool) or not isinstance(capacity, int | str):
        raise ConfigError(f"{what} must be a size or a number of blocks, not {capacity!r}", hint=_SIZE_HINT)
    if isinstance(capacity, int):
        number = Decimal(capacity)
    else:
        number, unit = _number_and_unit(capacity, what=what)
        if unit.lower() not in {"block", "blocks", "token", "tokens", "%", *_BYTES}:
            raise ConfigError(f"{what} {capacity!r} has an unknown unit {unit!r}", hint=_SIZE_HINT)
    if number <= 0:
        raise ConfigError(f"{what} {capacity!r} holds nothing", hint="a tier holds at least one block")
    return capacity


def capacity_blocks(capacity: str | int, scale: Scale, *, what: str = "capacity") -> int:
    """Turn a capacity into whole blocks, rounded down.

    Parameters
    ----------
    capacity
        ``"5000 blocks"``, ``"21520 tokens"``, ``"GPU KV cache size: 21,520 tokens"`` (as vLLM logs it),
        ``"40GiB"``, ``"40GB"``, ``"10%"`` (of the trace's unique blocks) or an int (blocks).
    scale
        The trace's and the model's factors.
    what
        Name for the message.

    Returns
    -------
    int
        Blocks, at least 1.

    Raises
    ------
    ConfigError
        As :func:`check_capacity`; when bytes are given without bytes per token; when not one block fits.

    Examples
    --------
    >>> from kvreplay.units import Scale, capacity_blocks
    >>> scale = Scale(block_tokens=16, unique_blocks=1000, kv_bytes_per_token=131072)
    >>> [capacity_blocks(c, scale) for c in (7, "5000 blocks", "21520 tokens", "1GiB", "10%")]
    [7, 5000, 1345, 512, 100]
    """
    check_capacity(capacity, what=what)
    if isinstance(capacity, int):
        blocks = capacity
    else:
        number, unit = _number_and_unit(capacity, what=what)
        blocks = _floor(number * _blocks_per_unit(unit.lower(), scale, what=f"{what} {capacity!r}"))
    if blocks < 1:
        raise ConfigError(
            f"{what} {capacity!r} holds no whole block of {scale.block_tokens} tokens",
            hint="a tier holds at least one block",
        )
    if blocks > _MAX_BLOCKS or (scale.bytes(blocks) or 0) > _MAX_BYTES:
        raise ConfigError(
            f"{what} {capacity!r} is beyond all measure ({blocks} blocks)",
            hint=f"the largest tier is {_MAX_BLOCKS} blocks",
        )
    return blocks


def _blocks_per_unit(unit: str, scale: Scale, *, what: str) -> Decimal:
    if unit in {"block", "blocks"}:
        return Decimal(1)
    if unit in {"token", "tokens"}:
        return Decimal(1) / scale.block_tokens
    if unit == "%":
        return Decimal(scale.unique_blocks) / 100
    if scale.block_bytes is None:
        raise ConfigError(
            f"{what} is in bytes, and no model says how many bytes a token takes",
            hint="give --model NAME or --kv-bytes-per-token N (in Python model=), or blocks or tokens",
        )
    return Decimal(_BYTES[unit]) / scale.block_bytes


def _floor(value: Decimal) -> int:
    # A quotient such as 21520 / 16 may end one ulp below the whole number it stands for.
    nearest = value.quantize(Decimal(1)) if value < 10**20 else value
    if abs(value - nearest) < Decimal("1e-9"):
        return int(nearest)
    return int(value.to_integral_value(rounding=ROUND_FLOOR))


def size_bytes(text: str, *, what: str = "size") -> int:
    """Turn a size with a unit of bytes into bytes, rounded down.

    Raises
    ------
    ConfigError
        When it is no size in bytes, or not positive.

    Examples
    --------
    >>> from kvreplay.units import size_bytes
    >>> size_bytes("12.5 GiB"), size_bytes("8TB")
    (13421772800, 8000000000000)
    """
    number, unit = _number_and_unit(text, what=what)
    if unit.lower() not in _BYTES:
        raise ConfigError(f"{what} {text!r} is not in bytes", hint='for example "12.5 GiB" or "8TB"')
    value = _floor(number * _BYTES[unit.lower()])
    if not 0 < value <= _MAX_BYTES:
        raise ConfigError(f"{what} {text!r} cannot be", hint='for example "12.5 GiB" or "8TB"')
    return value


def duration_us(text: str, *, what: str = "duration") -> int:
    """Turn a duration into microseconds.

    Parameters
    ----------
    text
        A number and ``us``, ``ms``, ``s``, ``m`` (or ``min``), ``h`` or ``d``.
    what
        Name for the message.

    Raises
    ------
    ConfigError
        When it is no duration.

    Examples
    --------
    >>> from kvreplay.units import duration_us
    >>> duration_us("5m"), duration_us("1.5 s"), duration_us("250ms")
    (300000000, 1500000, 250000)
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None or match[2] not in _DURATIONS_US:
        raise ConfigError(f"{what} {text!r} is not a duration", hint='write "90s", "5m", "1.5h" or "2d"')
    value = Decimal(match[1].replace("_", "")) * _DURATIONS_US[match[2]]
    if value > 2**62:
        raise ConfigError(
            f"{what} {text!r} is longer than any trace", hint='write "90s", "5m", "1.5h" or "2d"'
        )
    return int(value)


def kv_bytes_per_token(model: object) -> int | None:
    """Read the bytes of KV per token out of what users pass as ``model=``.

    Parameters
    ----------
    model
        ``None``, a number of bytes, or an object with ``kv_bytes_per_token``.

    Raises
    ------
    ConfigError
        When it is something else or not positive.
    """
    if model is None:
        return None
    value = getattr(model, "kv_bytes_per_token", model)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ConfigError(
            f"model must be the bytes of KV per token (an int), not {value!r}",
            hint="for Llama 3.1 8B in 16 bits this is 131072: 2 x 32 layers x 8 heads x 128 x 2 bytes",
        )
    if not 0 < value <= 2**40:
        raise ConfigError(f"{value} bytes of KV per token cannot be", hint="give a positive number of bytes")
    return value
