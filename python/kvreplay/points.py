"""Points of a hit curve as plain lists: what the command line prints without loading Polars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvreplay.units import Scale

DEFAULT_POINTS = 32


def log_spaced(last: int, points: int = DEFAULT_POINTS, *, decades: float | None = None) -> list[int]:
    """Distinct capacities up to `last`, evenly spaced on a log scale.

    Parameters
    ----------
    last
        The largest capacity; 0 (nothing is reused) gives no points.
    points
        How many; all capacities when there are not more.
    decades
        Start so many powers of ten below `last` rather than at 1.

    Examples
    --------
    >>> from kvreplay.points import log_spaced
    >>> log_spaced(1000, 7), log_spaced(3, 7), log_spaced(0)
    ([1, 3, 10, 32, 100, 316, 1000], [1, 2, 3], [])
    >>> log_spaced(10**6, 3, decades=2)
    [10000, 100000, 1000000]
    """
    if last <= points:
        return list(range(1, last + 1))
    first = 1.0 if decades is None else max(1.0, last / 10**decades)
    out: list[int] = []
    for i in range(points):
        value = round(first * (last / first) ** (i / (points - 1)))
        out.append(max(value, out[-1] + 1) if out else value)
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
