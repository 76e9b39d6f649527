"""The commands: one file each, loaded when they are asked for."""

from __future__ import annotations

import importlib
from typing import Annotated

import typer

from kvreplay import _core

# Command: module below kvreplay.cli with a function `command` (or a `group` of commands), and what the list
# of commands says of it (one line at 80 columns).
COMMANDS = {
    "analyze": ("analyze", "Say what a cache and given tiers would serve of a trace."),
    "inspect": ("inspect", "Say what is in a trace, and what is wrong with it."),
    "curve": ("curve", "Print hits against capacity, exact for LRU."),
    "replay": ("replay", "Replay a trace through tiers and print their counters."),
    "validate": ("validate", "Compare replayed hits with those an engine logged."),
    "compare": ("compare", "Compare two engine profiles on a trace, or two reports."),
    "breakeven": ("breakeven", "Say from which length on loading beats recomputing."),
    "calibrate": ("calibrate", "Fit the cost model to measured times."),
    "model": ("model", "Show what a model stores per token, and who fits a GPU."),
    "sweep": ("sweep", "Replay every combination of policies, sizes and filters."),
    "convert": ("convert", "Write a trace in another format, whole or in part."),
    "generate": ("generate", "Generate a trace of a kind of traffic."),
    "profile": ("profile", "Show the rules of an engine's release."),
    "list": ("listing", "List formats, writers, policies and other choices."),
    "config": ("config", "Show the settings of an analysis."),
}
_EPILOG = (
    "Exit codes: 0 done, 1 internal error or failed output, 2 usage, 3 trace unreadable, "
    "4 configuration invalid, 5 a --fail-if held, 130 interrupted."
)


def build(arguments: list[str]) -> typer.Typer:
    """Put the application together with the command that `arguments` name, or with all of them.

    Describing a command's options to typer takes milliseconds; most runs need one command only.
    """
    app = typer.Typer(
        name="kvreplay",
        help="Trace replay for LLM KV caches: what a cache tier would serve of a trace.",
        epilog=_EPILOG,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["--help", "-h"]},
    )
    app.callback()(_main)
    named = arguments[0] if arguments and arguments[0] in COMMANDS else None
    for name, (home, summary) in COMMANDS.items():
        if named in (None, name):
            module = importlib.import_module(f"kvreplay.cli.{home}")
            if hasattr(module, "group"):
                app.add_typer(module.group, name=name, short_help=summary)
            else:
                app.command(name, epilog=_EPILOG, short_help=summary)(module.command)
    return app


def _show_version(value: bool) -> None:
    if value:
        typer.echo(_core.__version__)
        raise typer.Exit


def _main(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and leave.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    pass
