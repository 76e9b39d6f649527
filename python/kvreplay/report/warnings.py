"""What the reader of a report must know first: doubtful rows, and tiers that cannot be judged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kvreplay import display

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kvreplay.tables.study import Study


def of_quality(rows: Iterable[dict[str, Any]]) -> list[dict[str, str]]:
    """Warnings about rows that were rejected, repaired or doubtful, as ``{code, text}``."""
    return [{"code": row["code"], "text": quality_line(row)} for row in rows if row["severity"] != "info"]


def quality_line(row: dict[str, Any]) -> str:
    """One code as a sentence: how many, what, where first, what to do."""
    where = "" if row["first_line"] is None else f" (first at line {row['first_line']})"
    verdict = ", rejected" if row["severity"] == "error" else ""
    return f"{display.count(row['count'])} x {row['message']}{verdict}{where}; {row['hint']}"


def of_tiers(study: Study) -> list[dict[str, str]]:
    """Warnings about tiers that are too small for a request or larger than the trace."""
    if study.result is None:
        return []
    blocks = study.trace.requests()["blocks"]
    out = []
    for name, capacity in zip(study.result.tier_names, study.tier_capacities, strict=True):
        oversize = int((blocks > capacity).sum())
        if oversize:
            out.append(
                {
                    "code": "oversize_request",
                    "text": f"{display.many(oversize, 'request')} with more blocks than tier {name} holds "
                    f"({display.count(capacity)}): only the first blocks are kept there",
                }
            )
        if capacity >= study.scale.unique_blocks:
            out.append(
                {
                    "code": "tier_larger_than_trace",
                    "text": f"tier {name} ({display.count(capacity)} blocks) holds all "
                    f"{display.count(study.scale.unique_blocks)} blocks of the trace: it acts as an infinite "
                    "cache, and this trace cannot tell whether it could be smaller or should be larger",
                }
            )
    return out
