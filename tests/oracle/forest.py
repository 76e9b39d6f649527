"""Random small prefix traces: paths that share prefixes, as hypothesis strategies and as rows of a file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

if TYPE_CHECKING:
    from pathlib import Path

Paths = list[list[int]]


@st.composite
def forests(draw: st.DrawFn, *, max_requests: int = 40, max_new_blocks: int = 6) -> Paths:
    """Paths of a few requests; every block id fixes its whole prefix."""
    paths: Paths = []
    new = 1
    for _ in range(draw(st.integers(1, max_requests))):
        shares = bool(paths) and draw(st.booleans())
        whole: list[int] = draw(st.sampled_from(paths[-8:])) if shares else []
        base = whole[: draw(st.integers(0, len(whole)))]
        length = draw(st.integers(0 if base else 1, max_new_blocks))
        paths.append(base + list(range(new, new + length)))
        new += length
    return paths


def rows_of(paths: Paths, *, block_tokens: int = 16) -> list[dict[str, Any]]:
    """Rows in Mooncake's form; the last block is partial on every other request."""
    rows = []
    for at, path in enumerate(paths):
        cut = (at * 7) % block_tokens if path else 0
        rows.append(
            {
                "timestamp": 250 * at,
                "input_length": len(path) * block_tokens - cut,
                "output_length": 1 + at % 9,
                "hash_ids": path,
            }
        )
    return rows


def write_jsonl(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def hit_tokens(hit_blocks: int, row: dict[str, Any], *, block_tokens: int = 16) -> int:
    """Tokens that the first blocks of a request cover."""
    return min(hit_blocks * block_tokens, int(row["input_length"]))
