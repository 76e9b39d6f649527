"""``kvreplay profile show``: the rules of an engine's release, one by one."""

from __future__ import annotations

import textwrap
from typing import Annotated, Any

import typer

from kvreplay.cli import console, options as o

SCHEMA = "profile/1"

group = typer.Typer(help="Show the rules of an engine profile.", no_args_is_help=True, rich_markup_mode=None)


@group.callback()
def _main() -> None:
    pass


@group.command("show")
def show(
    name: Annotated[str, typer.Argument(help="For example vllm@0.33; see kvreplay list profiles.")],
    json: o.Json = None,
) -> None:
    """Print what a release of an engine does: its tiers, options and rules with their sources."""
    document = describe(name)
    if json:
        console.put_json({"schema": SCHEMA, **document})
    else:
        console.put(_text(document, console.width()))


def describe(name: str) -> dict[str, Any]:
    """A profile as plain values: ``profile``, ``doc``, ``releases``, ``tiers``, ``options``, ``rules``."""
    from kvreplay import _core
    from kvreplay.errors import translated

    with translated():
        resolved, rules = _core.profile_rules(name)
        options = console.rows_of(_core.profile_options(name))
    key = "+".join(part.partition("@")[0] for part in resolved.split("+"))
    info = next(row for row in console.rows_of(_core.profiles()) if row["name"] == key)
    return {
        "profile": resolved,
        "doc": info["doc"],
        "releases": info["releases"],
        "tiers": info["tiers"].splitlines(),
        "options": options,
        "rules": console.rows_of(rules),
        "source": info["source"],
    }


def _text(document: dict[str, Any], width: int) -> str:
    def wrapped(text: str, first: str = "", rest: str = "  ") -> list[str]:
        return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=rest)

    lines = [document["profile"], *wrapped(document["doc"], "  ")]
    lines += [*wrapped(f"Known releases: {document['releases']}", "  "), "", "Tiers"]
    for tier in document["tiers"]:
        lines += wrapped(tier, "  ", "    ")
    lines += ["", "Options"]
    for option in document["options"]:
        default = f" [{option['default']}]" if option["default"] else ""
        lines += wrapped(f"{option['name']}{default}: {option['doc']}", "  ", "    ")
    lines += ["", "Rules"]
    for rule in document["rules"]:
        since = f" (since {rule['since']})" if rule["since"] else ""
        lines += wrapped(f"{rule['topic']}{since}: {rule['rule']} [{rule['source']}]", "  ", "    ")
    lines += ["", *wrapped(f"Source: {document['source']}")]
    return "\n".join(lines)
