"""``kvreplay list``: what there is to choose from, read from the registries."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kvreplay import _core
from kvreplay.cli import console, options as o
from kvreplay.errors import unknown

if TYPE_CHECKING:
    from collections.abc import Callable

_REGISTRIES = [
    "formats",
    "writers",
    "generators",
    "policies",
    "admissions",
    "fill-rules",
    "profiles",
    "quality-codes",
]
NAMES = [*_REGISTRIES, "tables"]


def command(
    what: Annotated[str, typer.Argument(help=f"One of {', '.join(NAMES)}.", metavar="WHAT")],
    json: o.Json = None,
) -> None:
    """List formats, writers, generators, policies, filters, fill rules, profiles, quality codes or tables."""
    what = what.replace("_", "-")
    if what == "tables":
        rows = _tables()
    elif what in _REGISTRIES:
        registry: Callable[[], _core.Table] = getattr(_core, what.replace("-", "_"))
        rows = console.rows_of(registry())
    else:
        raise unknown("list", what, NAMES)
    if json:
        console.put_json(rows)
    else:
        console.put(_text(rows, console.width()))


def _tables() -> list[dict[str, Any]]:
    from kvreplay.tables import TABLES, optional

    return [
        {
            "name": table.name,
            "doc": table.doc,
            "parameters": ", ".join(column.name for column in table.columns),
            "source": table.schema_name,
        }
        for table in (*TABLES, *optional())
    ]


def _text(rows: list[dict[str, Any]], width: int) -> str:
    lines: list[str] = []
    for row in rows:
        (_, name), *facts = row.items()
        lines.append(name)
        for key, value in facts:
            if value:
                text = value if key in ("doc", "message") else f"{key}: {value}"
                lines += textwrap.wrap(text, width, initial_indent="    ", subsequent_indent="    ")
    return "\n".join(lines)
