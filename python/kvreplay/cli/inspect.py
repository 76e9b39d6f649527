"""``kvreplay inspect``: what is in a trace and what is wrong with it."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from kvreplay.cli import console, interrupt, options as o

if TYPE_CHECKING:
    from kvreplay.trace import Trace

SCHEMA = "inspect/1"
_QUANTILES = (0.0, 0.5, 0.9, 0.99, 1.0)
_COLUMNS = ("input_tokens", "output_tokens", "blocks")
_SEVERITIES = ("error", "warning", "info")


@o.reads_traces
def command(
    traces: o.Traces,
    json: o.Json = None,
    quiet: o.Quiet = None,
    *,
    reading: dict[str, Any],
) -> None:
    """Say what is in a trace: sizes, lengths, and everything that was odd about its rows."""
    import kvreplay.frames  # noqa: F401 - loaded before the work: Ctrl-C then ends it cleanly

    interrupt.work_begins()
    trace = o.read(traces, reading, console.progress(quiet=bool(quiet)))
    document = describe(trace)
    if json:
        console.put_json(document)
    else:
        console.put(_text(document, console.width()))


def describe(trace: Trace) -> dict[str, Any]:
    """The document of ``inspect --json``: facts, quantiles of the lengths, quality."""
    requests = trace.requests()
    lengths = {
        name: {f"p{100 * q:g}": requests[name].quantile(q, interpolation="nearest") for q in _QUANTILES}
        for name in _COLUMNS
    }
    lengths = {
        name: {q: None if v is None else int(v) for q, v in values.items()}
        for name, values in lengths.items()
    }
    groups = {
        name: int(requests[name].n_unique())
        for name in requests.columns
        if name not in ("request", "arrival_us", *_COLUMNS)
    }
    return {
        "schema": SCHEMA,
        "trace": trace.info,
        "lengths": lengths,
        "columns": groups,
        "quality": trace.quality.to_dicts(),
    }


def _text(document: dict[str, Any], width: int) -> str:
    from kvreplay import display
    from kvreplay.report.text import heading, section

    info = document["trace"]
    lines = [heading(info, width)]
    facts = [["fact", "value"]] + [[name, _value(name, value)] for name, value in info.items()]
    lines.append(section("Trace", facts, width))
    rows = [["per request", *document["lengths"]["blocks"]]]
    for name, values in document["lengths"].items():
        rows.append([name, *(display.count(value) for value in values.values())])
    lines.append(section("Lengths", rows, width))
    if document["columns"]:
        columns = [["column", "values"]] + [
            [name, display.count(n)] for name, n in document["columns"].items()
        ]
        lines.append(section("Columns", columns, width))
    lines.append(_quality(document["quality"], width))
    return "\n\n".join(lines)


def _value(name: str, value: object) -> str:
    if name == "sha256" and isinstance(value, str):
        return value[:16] + "..."
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}" if not name.endswith("_us") else str(value)
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "-"
    return "-" if value is None else str(value)


def _quality(rows: list[dict[str, Any]], width: int) -> str:
    from kvreplay.report.warnings import quality_line

    if not rows:
        return "Quality\nnothing odd was found"
    lines = ["Quality"]
    for severity in _SEVERITIES:
        for row in rows:
            if row["severity"] == severity:
                text = f"{severity}: {row['code']}: {quality_line(row)}"
                lines += textwrap.wrap(text, width, subsequent_indent="  ")
                if row["first_value"]:
                    lines += textwrap.wrap(
                        f"first value: {row['first_value']}",
                        width,
                        initial_indent="  ",
                        subsequent_indent="  ",
                    )
    return "\n".join(lines)
