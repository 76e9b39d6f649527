"""Points of a hit curve as plain lists: what the command line prints without loading Polars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvreplay.units import Scale

DEFAULT_POINTS = 32


def log_spaced(last: int, points: int = DEFAULT_POINTS) -> list[int]:
    """Distinct capacities from 1 to `last`, evenly spaced on a log scale.

    All capacities when there are not more than `points`; empty when `last` is 0 (nothing is reused).

    Examples
    --------
    >>> from kvreplay.points import log_spaced
    >>> log_spaced(1000, 7), log_spaced(3, 7), log_spaced(0)
    ([1, 3, 10, 32, 100, 316, 1000], [1, 2, 3], [])
    """
    if last <= points:
        return list(range(1, last + 1))
    out: list[int] = []
    for i in range(points):
        value = round(last ** (i / (points - 1)))
        out.append(max(value, out[-1] + 1) if out else 1)
    out[-1] = last
    return out


def ratio(numerator: int | None, denominator: int) -> float | None:
    """A ratio, ``None`` where its denominator is zero or a part is missing."""
    return None if numerator is None or denominator == 0 else numerator / denominator


def curve_rows(
    policy: str,
    scale: Scale,
    *,
    totals: Mapping[str, int],
    table: Mapping[str, list[Any]],
    warm_tokens: int | None = None,
) -> list[dict[str, Any]]:
    """Rows with the columns of :func:`kvreplay.hit_curve` from the core's counts.

    Parameters
    ----------
    policy
        Name of the policy.
    scale
        Factors between blocks, tokens and bytes.
    totals
        The trace's ``block_refs`` and ``input_tokens``.
    table
        ``capacity_blocks``, ``hit_blocks``, ``hit_tokens`` and perhaps ``warm_hit_tokens``.
    warm_tokens
        Input tokens of the requests after the warm-up; ``None`` without one.
    """
    rows = []
    for at, capacity in enumerate(table["capacity_blocks"]):
        blocks, tokens = table["hit_blocks"][at], table["hit_tokens"][at]
        row = {
            "policy": policy,
            "capacity_blocks": capacity,
            "capacity_tokens": scale.tokens(capacity),
            "capacity_bytes": scale.bytes(capacity),
            "hit_blocks": blocks,
            "hit_tokens": tokens,
            "block_hit_ratio": ratio(blocks, totals["block_refs"]),
            "token_hit_ratio": ratio(tokens, totals["input_tokens"]),
        }
        if warm_tokens is not None:
            warm = table["warm_hit_tokens"][at]
            row |= {"warm_hit_tokens": warm, "warm_token_hit_ratio": ratio(warm, warm_tokens)}
        rows.append(row)
    return rows
