"""Types of the KV cache's elements, with what their scales add."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from kvreplay.errors import ConfigError, unknown


@dataclass(frozen=True)
class KvDtype:
    """How an element of the KV cache is stored.

    Parameters
    ----------
    name
        As :func:`kv_dtype` takes it.
    element_bytes
        Bytes of an element, the scales of its group included.
    vector_bytes
        Bytes of scale per token and vector (a head's key or value, or a latent).
    doc
        Where the numbers come from.
    """

    name: str
    element_bytes: Fraction
    vector_bytes: int
    doc: str

    def bytes(self, elements: int, vectors: int) -> Fraction:
        """Bytes that `elements` in `vectors` vectors take."""
        return elements * self.element_bytes + vectors * self.vector_bytes


_KNOWN = {
    "fp32": KvDtype("fp32", Fraction(4), 0, "4 bytes"),
    "bf16": KvDtype("bf16", Fraction(2), 0, "2 bytes"),
    "fp16": KvDtype("fp16", Fraction(2), 0, "2 bytes"),
    "fp8": KvDtype("fp8", Fraction(1), 0, "1 byte, one scale per tensor"),
    "int8": KvDtype("int8", Fraction(1), 0, "1 byte, one scale per tensor"),
    "fp8_token_head": KvDtype("fp8_token_head", Fraction(1), 4, "1 byte, an fp32 scale per token and head"),
    "fp8_block128": KvDtype("fp8_block128", Fraction(33, 32), 0, "1 byte, an fp32 scale per 128 elements"),
    "fp4": KvDtype("fp4", Fraction(1, 2), 0, "half a byte, scales left out"),
    "nvfp4": KvDtype("nvfp4", Fraction(9, 16), 0, "half a byte, an fp8 scale per 16 elements"),
    "mxfp4": KvDtype("mxfp4", Fraction(17, 32), 0, "half a byte, an 8-bit scale per 32 elements"),
}
_ALIASES = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "float32": "fp32",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
    "fp8_per_token_head": "fp8_token_head",
}
_GROUPED = re.compile(r"int4_g([0-9]{1,4})")
NAMES = [*_KNOWN, "int4_gN"]


def kv_dtype(name: str) -> KvDtype:
    """Find a type of KV elements.

    Parameters
    ----------
    name
        One of ``NAMES``, or what engines call it (``bfloat16``, ``fp8_e4m3``); ``int4_g64`` has an fp16
        scale and zero point per group of 64 elements.

    Raises
    ------
    ConfigError
        For an unknown name.

    Examples
    --------
    >>> from kvreplay.cost.dtypes import kv_dtype
    >>> float(kv_dtype("nvfp4").element_bytes), float(kv_dtype("int4_g64").element_bytes)
    (0.5625, 0.5625)
    """
    text = str(name).strip().lower()
    text = _ALIASES.get(text, text)
    grouped = _GROUPED.fullmatch(text)
    if grouped:
        size = int(grouped[1])
        if size == 0:
            raise ConfigError(f"KV type {name!r} has groups of nothing", hint="for example int4_g64")
        scale = Fraction(1, 2) + Fraction(4, size)
        return KvDtype(text, scale, 0, f"half a byte, fp16 scale and zero point per {size} elements")
    if text not in _KNOWN:
        raise unknown("KV type", str(name), NAMES)
    return _KNOWN[text]
