"""What hits are worth as rows of text: for the screen and the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kvreplay import display
from kvreplay.worth.links_demand import PREFILL

if TYPE_CHECKING:
    from collections.abc import Sequence

_MINUTE_S = 60
_GIGA = 1e9


def quality_rows(rows: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Table ``hit_quality`` in short, a heading first; what is not known is a dash."""
    out = [["tier", "hits", "harmful", "saves", "lost", "GPU time", "$/h", "net $/h", "life", "link"]]
    out += [
        [
            row["tier"],
            display.count(row["hits"]),
            display.count(row["harmful_hits"]),
            display.signed_span(row["saved_us"]),
            display.span(row["lost_us"]),
            display.span(row["gpu_saved_us"]),
            dollars(row["tier_usd_per_hour"]),
            dollars(row["net_usd_per_hour"]),
            display.years(row["lifetime_years"]),
            row["link"] or "-",
        ]
        for row in rows
    ]
    return out


def scenario_rows(rows: Sequence[dict[str, Any]], *, percentiles: bool) -> list[list[str]]:
    """Table ``scenarios`` in short, a heading first.

    Parameters
    ----------
    rows
        The table.
    percentiles
        Whether to show percentiles of service times; not where requests wait.
    """
    head = ["scenario", "computing", "$/M tokens"]
    if percentiles:
        head += ["mean", "p50", "p90", "p99"]
    out = [head]
    for row in rows:
        parts = [row["gpu_usd_per_million_tokens"], row["tiers_usd_per_million_tokens"]]
        price = None if None in parts else sum(parts)
        cells = [row["scenario"], display.span(row["compute_us"]), "-" if price is None else f"{price:.4f}"]
        if percentiles:
            mean = None if row["mean_us"] is None else round(row["mean_us"])
            cells += [display.span(value) for value in (mean, row["p50_us"], row["p90_us"], row["p99_us"])]
        out.append(cells)
    return out


def demand_rows(rows: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Table ``demand`` over windows of a minute, a heading first."""
    out = [["by minutes", "mean", "p99", "max", "can do", "p99 share"]]
    for row in rows:
        if row["window_s"] != _MINUTE_S:
            continue
        is_prefill = row["resource"] == PREFILL
        scale, unit = (1.0, "engines") if is_prefill else (_GIGA, "GB/s")
        values = [row["mean"], row["p99"], row["max"], row["capacity"]]
        cells = ["-" if value is None else f"{value / scale:.2f}" for value in values]
        name = f"{row['resource']} {row['direction'].replace('_', ' ')}, {unit}"
        out.append([name, *cells, display.percent(row["p99_share"])])
    return out


def dollars(value: float | None) -> str:
    """``1.42``, ``-0.30``, or a dash."""
    return "-" if value is None else f"{value:.2f}"


def admission_rows(rows: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Table ``admissions`` in short, a heading first."""
    out = [["tier and filter", "hit tokens", "stored", "saves", "all save", "writes/day", "life"]]
    out += [
        [
            f"{row['tier']} {row['admission']}",
            display.tokens(row["hit_tokens"]),
            display.count(row["inserted_blocks"]),
            display.signed_span(row["saved_us"]),
            display.signed_span(row["all_saved_us"]),
            display.size(row["written_bytes_per_day"]),
            display.years(row["lifetime_years"]),
        ]
        for row in rows
    ]
    return out
