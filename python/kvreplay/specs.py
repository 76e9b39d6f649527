"""The grammar of specs on the command line: ``name=capacity,key=value`` and ``name(arg, key=value)``."""

from __future__ import annotations

import re

from kvreplay.errors import ConfigError

_PAIRS = {"(": ")", "[": "]"}
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?:,\d{3})*\s*tokens)")


def split_outside(text: str, separator: str) -> list[str]:
    """Split at a separator that stands outside parentheses and quotes.

    Raises
    ------
    ConfigError
        When a parenthesis or quote is never closed, or closed without being opened.

    Examples
    --------
    >>> from kvreplay.specs import split_outside
    >>> split_outside('gpu=5000 blocks,policy=wtinylfu(window=0.01, door="a,b"),fill=victim', ",")
    ['gpu=5000 blocks', 'policy=wtinylfu(window=0.01, door="a,b")', 'fill=victim']
    """
    parts, start = [], 0
    open_brackets: list[str] = []
    quote = ""
    for at, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in _PAIRS:
            open_brackets.append(_PAIRS[char])
        elif char in _PAIRS.values():
            if not open_brackets or open_brackets.pop() != char:
                raise ConfigError(f"{text!r} closes a {char!r} it did not open", hint="check the brackets")
        elif char == separator and not open_brackets:
            parts.append(text[start:at])
            start = at + 1
    if quote or open_brackets:
        missing = quote or open_brackets[-1]
        raise ConfigError(f"{text!r} lacks a closing {missing!r}", hint="check the brackets and quotes")
    return [*parts, text[start:]]


def unquote(text: str) -> str:
    """Strip spaces and one pair of quotes around a value."""
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return text


def key_values(parts: list[str], *, what: str) -> dict[str, str]:
    """Read ``key=value`` parts into a dict.

    Raises
    ------
    ConfigError
        When a part has no ``=``, or a key comes twice.
    """
    out: dict[str, str] = {}
    for part in parts:
        key, sign, value = part.partition("=")
        key = key.strip()
        if not sign or not key or not value.strip():
            raise ConfigError(f"{part.strip()!r} in {what} is not key=value", hint="separate keys by commas")
        if key in out:
            raise ConfigError(f"{key!r} comes twice in {what}", hint="give it once")
        out[key] = unquote(value)
    return out


def tier_spec(text: str) -> dict[str, str]:
    """Read ``NAME=CAPACITY[,key=value...]`` into the arguments of :class:`kvreplay.Tier`.

    Raises
    ------
    ConfigError
        When the text does not follow the grammar.

    Examples
    --------
    >>> from kvreplay.specs import tier_spec
    >>> tier_spec("cpu=512GiB,policy=arc,admission=min_count(2)")
    {'name': 'cpu', 'capacity': '512GiB', 'policy': 'arc', 'admission': 'min_count(2)'}
    """
    # A size as an engine prints it, "21,520 tokens", has commas of its own.
    first, *rest = split_outside(_THOUSANDS.sub("", text), ",")
    name, sign, capacity = first.partition("=")
    if not sign or not name.strip() or not capacity.strip():
        raise ConfigError(
            f"tier {text!r} is not NAME=CAPACITY[,key=value...]",
            hint='for example --tier "gpu=5000 blocks" --tier "cpu=512GiB,policy=arc,fill=victim"',
        )
    values = key_values(rest, what=f"tier {text!r}")
    for taken in ("name", "capacity"):
        if taken in values:
            raise ConfigError(
                f"{taken!r} comes twice in tier {text!r}", hint="it stands before the first comma"
            )
    return {"name": unquote(name), "capacity": unquote(capacity), **values}
