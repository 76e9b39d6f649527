"""The first screen: plain text, the answer first, as wide as the terminal and never wider."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from kvreplay import display
from kvreplay.points import log_spaced
from kvreplay.report import worth_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvreplay.report.analysis import Report

WORTH_TABLES = ("hit_quality", "scenarios", "demand", "admissions")
_CURVE_ROWS = 8
_CURVE_DECADES = 3
_SPLIT_ROWS = 20
_NAME_WIDTH = 32
_LEAST_WIDTH = 24
_LEAST_COLUMNS = 2


def screen(report: Report, *, width: int) -> str:
    """The first screen of an analysis.

    Parameters
    ----------
    report
        The analysis.
    width
        Columns of the terminal; no line is longer, except where a name is.
    """
    width = max(width, _LEAST_WIDTH)
    blocks = [heading(report.info, width), _verdict(report, width)]
    if "tiers" in report.tables:
        blocks.append(section("Tiers", tier_rows(report), width))
    blocks += worth_sections(report, width)
    if "policies" in report.tables:
        blocks.append(
            section("One cache by policy", policy_rows(report.tables["policies"].to_dicts()), width)
        )
    for name, title in (("groups", "By group"), ("windows", "By window of time")):
        if name in report.tables:
            blocks += split_section(title, report.tables[name].to_dicts(), width)
    if report.curve:
        blocks.append(section("One LRU cache by capacity", _curve(report), width))
    blocks.append(section("Hit ratios by definition", _ratios(report), width))
    return "\n\n".join(blocks) + "\n"


def worth_sections(report: Report, width: int) -> list[str]:
    """What the hits are worth; nothing without a cost model."""
    tables = {name: report.tables[name].to_dicts() for name in WORTH_TABLES if name in report.tables}
    out = []
    if "hit_quality" in tables:
        out.append(section("What hits are worth", worth_rows.quality_rows(tables["hit_quality"]), width))
        overloaded = any(line["code"] == "overload" for line in report.verdict)
        rows = worth_rows.scenario_rows(tables["scenarios"], percentiles=not overloaded)
        out.append(section("With and without tiers (service times, no queueing)", rows, width))
    if "demand" in tables:
        out.append(section("Demand", worth_rows.demand_rows(tables["demand"]), width))
    if "admissions" in tables:
        out.append(section("By admission filter", worth_rows.admission_rows(tables["admissions"]), width))
    return out


def heading(info: dict[str, Any], width: int) -> str:
    """Facts about the trace in two lines, a third when rows were rejected."""
    span = ""
    if info["arrival_first_us"] is not None:
        span = f" in {display.span(info['arrival_last_us'] - info['arrival_first_us'])}"
    references, blocks = display.many(info["block_refs"], "block reference"), info["unique_blocks"]
    facts = (
        f"{display.many(info['requests'], 'request')}{span}, "
        f"{display.tokens(info['input_tokens'])} input tokens, {references} to "
        f"{display.many(blocks, 'block')} of {info['block_tokens']} tokens ({info['tail']} tail)"
    )
    lines = textwrap.wrap(facts, width)
    if info["rejected_rows"]:
        rejected = display.many(info["rejected_rows"], "rejected row")
        lines += textwrap.wrap(
            f"WARNING: {rejected}, counted in none of the numbers; kvreplay inspect says why", width
        )
    return "\n".join(lines)


def _verdict(report: Report, width: int) -> str:
    lines: list[str] = []
    for line in report.verdict:
        lines += textwrap.wrap(line["text"], width, initial_indent="* ", subsequent_indent="  ")
    return "\n".join(lines)


def section(title: str, rows: Sequence[Sequence[str]], width: int) -> str:
    """A titled table: columns of equal width, the first to the left, the others to the right.

    Where it does not fit, the columns that stand last are left out: the files hold them all.
    """
    columns = len(rows[0])
    widths = [max(len(row[i]) for row in rows) for i in range(columns)]
    while columns > _LEAST_COLUMNS and sum(widths[:columns]) + 2 * (columns - 1) > width:
        columns -= 1
    lines = [title]
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(row[i].rjust(widths[i]) for i in range(1, columns))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def tier_rows(report: Report) -> list[list[str]]:
    """What each tier serves and how well it is used, a heading first, what is computed last."""
    rows = [["tier", "capacity", "tokens", "serves", "of asked", "stored", "never read", "bytes"]]
    for row in report.tables["tiers"].iter_rows(named=True):
        unread = row["dead_on_arrival_blocks"]
        if unread is not None and row["unread_at_end_blocks"] is not None:
            unread += row["unread_at_end_blocks"]
        rows.append(
            [
                row["tier"],
                f"{display.count(row['capacity_blocks'])} blk",
                display.tokens(row["capacity_tokens"]),
                display.percent(row["tier_share"]),
                display.percent(row["tier_conditional_hit_ratio"]),
                display.count(row["inserted_blocks"]),
                _share(unread, row["inserted_blocks"]),
                display.size(row["capacity_bytes"]),
            ]
        )
    computed = report.summary["computed_tokens"]
    total = report.summary["input_tokens"]
    rows.append(["(computed)", "", "", _share(computed, total), "", "", "", ""])
    return rows


def policy_rows(rows: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Policies side by side, a heading first."""
    out = [["policy", "blocks", "serves", "of OPT", "of ceiling", "stored", "usable", "bytes"]]
    out += [
        [
            row["policy"],
            display.count(row["capacity_blocks"]),
            display.percent(row["token_hit_ratio"]),
            _share(row["hit_blocks"], row["opt_hit_blocks"]),
            _share(row["hit_blocks"], row["ceiling_hit_blocks"]),
            display.count(row["inserted_blocks"]),
            display.percent(row["usable_share"]),
            display.size(row["capacity_bytes"]),
        ]
        for row in rows
    ]
    return out


def split_section(title: str, rows: Sequence[dict[str, Any]], width: int) -> list[str]:
    """Groups or windows: the first ones, and how many there are."""
    head = [
        "window" if "window" in rows[0] else "group",
        "requests",
        "tokens",
        "served",
        "same session",
        "other",
    ]
    out = [head]
    for row in rows[:_SPLIT_ROWS]:
        sessions = [
            _share(row[f"{whose}_session_hit_tokens"], row["hit_tokens"]) for whose in ("same", "other")
        ]
        out.append(
            [
                _split_name(row),
                display.count(row["requests"]),
                display.tokens(row["input_tokens"]),
                display.percent(row["token_hit_ratio"]),
                *sessions,
            ]
        )
    more = f" (the first {_SPLIT_ROWS} of {display.count(len(rows))})" if len(rows) > _SPLIT_ROWS else ""
    return [section(f"{title}{more}", out, width)]


def _split_name(row: dict[str, Any]) -> str:
    if "window" in row:
        return str(row["window"])
    keys = list(row)[: list(row).index("requests")]
    return ", ".join("(none)" if row[key] is None else str(row[key])[:_NAME_WIDTH] for key in keys)


def _share(part: int | None, whole: int | None) -> str:
    return "-" if part is None or not whole else display.percent(part / whole)


def _curve(report: Report) -> list[list[str]]:
    """Eight capacities over the last three decades; below, caches are too small to matter."""
    points = report.curve_at(
        log_spaced(report.curve[-1]["capacity_blocks"], _CURVE_ROWS, decades=_CURVE_DECADES)
    )
    ceiling = points[-1]["hit_tokens"]
    rows = [["blocks", "tokens", "serves", "of ceiling", "bytes"]]
    rows += [
        [
            display.count(point["capacity_blocks"]),
            display.tokens(point["capacity_tokens"]),
            display.percent(point["token_hit_ratio"]),
            _share(point["hit_tokens"], ceiling),
            display.size(point["capacity_bytes"]),
        ]
        for point in points
    ]
    return rows


def _ratios(report: Report) -> list[list[str]]:
    table = report.tables["ratios"]
    by_scope = {
        scope: dict(table.filter(scope=scope).select("name", "value").iter_rows())
        for scope in ("ceiling", "tiers")
    }
    columns = ["ceiling"] + (["tiers"] if by_scope["tiers"] else [])
    names = list(dict.fromkeys(table["name"]))
    return [["name", *columns]] + [
        [name, *(display.percent(by_scope[scope].get(name)) for scope in columns)] for name in names
    ]
