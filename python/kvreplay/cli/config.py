"""``kvreplay config show``: the settings that would hold, and where each comes from."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from kvreplay.cli import console, options as o
from kvreplay.config import effective

SCHEMA = "config/1"

group = typer.Typer(help="Show the settings of an analysis.", no_args_is_help=True, rich_markup_mode=None)


@group.callback()
def _main() -> None:
    pass


@group.command("show")
def show(
    config: Annotated[
        str | None, typer.Option(help="TOML file with [analyze] and [[tier]].", metavar="FILE")
    ] = None,
    json: o.Json = None,
) -> None:
    """Print every setting with its value and its origin: environment, file or default."""
    settings = effective({}, [], path=config, environ=os.environ)
    tiers = [tier.__dict__ for tier in o.make_tiers(settings.tiers)]
    if json:
        options = {name: {"value": s.value, "origin": s.origin} for name, s in settings.options.items()}
        console.put_json(
            {"schema": SCHEMA, "analyze": options, "tier": tiers, "tier_origin": settings.tiers_origin}
        )
        return
    from kvreplay.report.text import section

    rows = [["setting", "value", "origin"]]
    rows += [[name, str(s.value), s.origin] for name, s in settings.options.items()]
    parts = [section("Settings", rows, console.width())]
    if tiers:
        keys = ["name", "capacity", "policy", "admission", "fill"]
        parts.append(
            section(
                f"Tiers ({settings.tiers_origin})",
                [keys, *([str(t[k]) for k in keys] for t in tiers)],
                console.width(),
            )
        )
    console.put("\n\n".join(parts))
