"""The page of a report: one file, no script, nothing loaded. Every text from outside is escaped."""

from __future__ import annotations

from html import escape
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import polars as pl

from kvreplay import _core, display
from kvreplay.report import svg, worth_rows
from kvreplay.report.text import heading, tier_rows

if TYPE_CHECKING:
    from kvreplay.report.analysis import Report

# Long tables are for the files; the page shows their head and says so.
_MOST_ROWS = 64
_STYLE = """
:root { color-scheme: light dark; --line: #0b63a5; --soft: #8884; --mark: #b3541e; }
@media (prefers-color-scheme: dark) { :root { --line: #6db8f2; --mark: #f0a070; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; }
th, td { padding: .2rem .7rem; border-bottom: 1px solid var(--soft); text-align: right; white-space: nowrap; }
th:first-child, td:first-child, .text { text-align: left; }
td.text { white-space: normal; }
svg { width: 100%; height: auto; } svg text { font-size: 11px; fill: currentColor; }
.grid { stroke: var(--soft); } .curve { fill: none; stroke: var(--line); stroke-width: 2; }
.ceiling { stroke: var(--line); stroke-dasharray: 5 4; } .mark { stroke: var(--mark); }
.warning { border-left: 4px solid var(--mark); padding-left: .7rem; } .note { color: #777; }
@media print { body { max-width: none; margin: 0; } }
"""


def page(report: Report) -> str:
    """The whole page."""
    title = "kvreplay report"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
        f"{fragment(report)}\n{_details(report)}\n{_footer(report)}\n</body>\n</html>\n"
    )


def fragment(report: Report) -> str:
    """The first screen: facts, verdict, warnings, tiers and the curve."""
    parts = [f"<p>{escape(heading(report.info, 10_000))}</p>"]
    parts += [f'<p class="warning">{escape(w["code"])}: {escape(w["text"])}</p>' for w in report.warnings]
    parts.append("<ul>" + "".join(f"<li>{escape(line['text'])}</li>" for line in report.verdict) + "</ul>")
    if "tiers" in report.tables:
        parts.append("<h2>Tiers</h2>" + _plain_table(tier_rows(report)))
    parts += _worth(report)
    parts.append(f"<h2>One LRU cache by capacity</h2>{_curve(report)}")
    parts.append(_table("Hit ratios by definition", report.tables["ratios"]))
    return "\n".join(parts)


def _worth(report: Report) -> list[str]:
    """The sections of what hits are worth; none without a cost model."""
    if "hit_quality" not in report.tables:
        return []
    tables = report.tables
    overloaded = any(line["code"] == "overload" for line in report.verdict)
    parts = [
        "<h2>What hits are worth</h2>",
        _plain_table(worth_rows.quality_rows(tables["hit_quality"].to_dicts())),
        "<h2>With and without tiers (service times, no queueing)</h2>",
        _plain_table(worth_rows.scenario_rows(tables["scenarios"].to_dicts(), percentiles=not overloaded)),
    ]
    if "demand" in tables:
        parts += ["<h2>Demand</h2>", _plain_table(worth_rows.demand_rows(tables["demand"].to_dicts()))]
    used = [str(text) for text in (report.spec["assumptions"] or {}).get("prices", [])]
    parts.append("<h2>Prices used</h2><ul>" + "".join(f"<li>{escape(text)}</li>" for text in used) + "</ul>")
    return parts


def _curve(report: Report) -> str:
    table = report.tables["hit_curve"].filter(policy="lru")
    points = [
        (c, v) for c, v in table.select("capacity_blocks", "token_hit_ratio").iter_rows() if v is not None
    ]
    ceiling = report.study.ceiling("token_hit_ratio")
    if not points or not ceiling:
        return "<p>Nothing is reused: there is no curve.</p>"
    marks: list[tuple[str, int]] = []
    if "tiers" in report.tables:
        names = report.tables["tiers"]["tier"].to_list()
        marks = list(zip(names, accumulate(report.study.tier_capacities), strict=True))
    note = (
        '<p class="note">Dashed: the ceiling. Vertical lines: the tiers, capacities summed from the top.</p>'
    )
    return svg.hit_curve(points, ceiling=ceiling, marks=marks) + note


def _details(report: Report) -> str:
    shown = {"ratios", "requests"}
    return "\n".join(
        _table(f"Table {name}", _computed(frame), note=report.schemas[name].doc)
        for name, frame in report.tables.items()
        if name not in shown
    )


def _computed(frame: pl.DataFrame) -> pl.DataFrame:
    """The columns that hold anything: what this version does not compute is null in the file."""
    return frame.select(name for name in frame.columns if frame[name].null_count() < max(frame.height, 1))


def _plain_table(rows: list[list[str]]) -> str:
    head, *body = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    lines = [head.replace("td>", "th>"), *body]
    return '<div class="wide"><table>' + "".join(f"<tr>{line}</tr>" for line in lines) + "</table></div>"


def _table(title: str, frame: pl.DataFrame, *, note: str = "") -> str:
    head = "".join(
        f'<th class="text">{escape(name)}</th>'
        if frame[name].dtype == pl.String
        else f"<th>{escape(name)}</th>"
        for name in frame.columns
    )
    rows = "".join(
        "<tr>" + "".join(_cell(name, value) for name, value in zip(frame.columns, row, strict=True)) + "</tr>"
        for row in frame.head(_MOST_ROWS).iter_rows()
    )
    notes = [note] if note else []
    if frame.height > _MOST_ROWS:
        notes.append(f"The first {_MOST_ROWS} of {display.count(frame.height)} rows; the file holds all.")
    text = f'<p class="note">{escape(" ".join(notes))}</p>' if notes else ""
    return f'<h2>{escape(title)}</h2>{text}<div class="wide"><table><tr>{head}</tr>{rows}</table></div>'


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "<td>-</td>"
    if isinstance(value, str):
        return f'<td class="text">{escape(value)}</td>'
    if isinstance(value, float):
        is_share = name.endswith(("ratio", "share", "value", "probability"))
        return f"<td>{display.percent(value) if is_share else f'{value:.4g}'}</td>"
    return f"<td>{display.count(value)}</td>"


def _footer(report: Report) -> str:
    return (
        f'<p class="note">kvreplay {escape(_core.__version__)}, trace {escape(report.info["sha256"])}. '
        "The tables beside this page, in Parquet, are the result; this page is a view of them.</p>"
    )
