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
    return [] if study.result is None else study.result.warnings
