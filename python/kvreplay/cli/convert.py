"""``kvreplay convert``: any format to the native file, or to Mooncake JSONL."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from kvreplay.cli import console, interrupt, options as o
from kvreplay.errors import ConfigError

_FORMATS: dict[str, Literal["native", "mooncake"]] = {
    ".parquet": "native",
    ".jsonl": "mooncake",
    ".jsonl.gz": "mooncake",
}


def format_of(path: str) -> Literal["native", "mooncake"]:
    """Output format by the end of a file's name.

    Raises
    ------
    ConfigError
        When the end says nothing.
    """
    for end, name in _FORMATS.items():
        if path.endswith(end):
            return name
    raise ConfigError(
        f"cannot tell the format of {path!r}", hint=f"end the name in one of {', '.join(_FORMATS)}"
    )


def command(
    source: Annotated[str, typer.Argument(help="The trace; - is standard input.", metavar="TRACE")],
    target: Annotated[
        str,
        typer.Argument(
            help="X.parquet: native, read several times faster; X.jsonl[.gz]: Mooncake.", metavar="FILE"
        ),
    ],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace FILE if it exists.")] = False,
    quiet: o.Quiet = None,
    strict: o.Strict = None,
    format: o.Format = None,
    block_tokens: o.BlockTokens = None,
    tail: o.Tail = None,
    time_unit: o.TimeUnit = None,
    scope: o.Scope = None,
    namespace: o.Namespace = None,
    column: o.Columns = None,
) -> None:
    """Write a trace in another format, whole or not at all."""
    given = dict(locals())
    written = format_of(target)
    if written == "native":
        import kvreplay.parquet  # noqa: F401 - loaded before the work: Ctrl-C then ends it cleanly
    interrupt.work_begins()
    trace = o.read([source], given, console.progress(quiet=bool(quiet)))
    trace.write(target, format=written, overwrite=overwrite)
    console.warn_of_quality(trace, quiet=bool(quiet))
