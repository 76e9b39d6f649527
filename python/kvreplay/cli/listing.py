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

    import polars as pl

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
_CATALOGUES = ["models", "hardware", "links", "prices"]
NAMES = [*_REGISTRIES, *_CATALOGUES, "tables"]


def command(
    what: Annotated[str, typer.Argument(help=f"One of {', '.join(NAMES)}.", metavar="WHAT")],
    json: o.Json = None,
) -> None:
    """List what there is to choose from: formats, policies and the like, models, hardware, links, prices."""
    what = what.replace("_", "-")
    if what == "tables":
        rows = _tables()
    elif what in _CATALOGUES:
        rows = _catalogue(what)
    elif what in _REGISTRIES:
        registry: Callable[[], _core.Table] = getattr(_core, what.replace("-", "_"))
        rows = console.rows_of(registry())
    else:
        raise unknown("list", what, NAMES)
    if json:
        console.put_json(rows)
    else:
        console.put(_text(rows, console.width()))


def _catalogue(what: str) -> list[dict[str, Any]]:
    from kvreplay.cost.catalogue import models
    from kvreplay.cost.devices import hardware
    from kvreplay.cost.money import price_list
    from kvreplay.cost.transfer import links

    makers: dict[str, Callable[[], pl.DataFrame]] = {
        "models": models,
        "hardware": hardware,
        "links": links,
        "prices": price_list,
    }
    return makers[what]().to_dicts()


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
            if value not in (None, ""):
                shown = f"{value:,}" if isinstance(value, int | float) else value
                text = shown if key in ("doc", "message") else f"{key}: {shown}"
                lines += textwrap.wrap(text, width, initial_indent="    ", subsequent_indent="    ")
    return "\n".join(lines)
