"""What to know of tiers before their numbers are trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvreplay import display

if TYPE_CHECKING:
    from kvreplay.trace import Trace


def tier_warnings(trace: Trace, names: list[str], capacities: list[int]) -> list[dict[str, str]]:
    """Tiers that are smaller than a request or larger than the trace, as ``{code, text}``.

    Parameters
    ----------
    trace
        The trace.
    names
        Names of the tiers.
    capacities
        Their capacities in blocks.
    """
    blocks = trace.requests()["blocks"]
    unique = trace.core.unique_blocks()
    out = []
    for name, capacity in zip(names, capacities, strict=True):
        oversize = int((blocks > capacity).sum())
        if oversize:
            out.append(
                {
                    "code": "oversize_request",
                    "text": f"{display.many(oversize, 'request')} with more blocks than tier {name} holds "
                    f"({display.count(capacity)}): only the first blocks are kept there",
                }
            )
        if capacity >= unique:
            out.append(
                {
                    "code": "tier_larger_than_trace",
                    "text": f"tier {name} ({display.count(capacity)} blocks) holds all "
                    f"{display.count(unique)} blocks of the trace: it acts as an infinite "
                    "cache, and this trace cannot tell whether it could be smaller or should be larger",
                }
            )
    return out
