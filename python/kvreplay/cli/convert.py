"""``kvreplay convert``: any format to another, whole or in part, with or without names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kvreplay.cli import console, interrupt, options as o
from kvreplay.errors import ConfigError

if TYPE_CHECKING:
    from kvreplay.trace import Trace

_BY_SUFFIX = {".parquet": "native", ".jsonl": "mooncake", ".bin": "oracle_general"}
_PACKED = (".gz", ".zst")
# Formats whose files are packed by other means or not at all.
_PARQUET = ("native", "parquet")


def format_of(path: str, to: str | None = None) -> str:
    """Output format: the one named, else by the end of a file's name.

    Raises
    ------
    ConfigError
        When the name is unknown, the end says nothing, or Parquet is to be packed once more.
    """
    from kvreplay.trace import writer_named

    packed = next((end for end in _PACKED if path.endswith(end)), "")
    inner = path.removesuffix(packed)
    found = writer_named(to) if to else next((f for end, f in _BY_SUFFIX.items() if inner.endswith(end)), "")
    if not found:
        raise ConfigError(
            f"cannot tell the format of {path!r}",
            hint=f"end the name in one of {', '.join(_BY_SUFFIX)}, or name it with --to",
        )
    if packed and found in _PARQUET:
        raise ConfigError(f"{path}: Parquet is packed inside", hint=f"leave {packed} out of the name")
    return found


@o.reads_traces
def command(
    source: Annotated[
        str, typer.Argument(help="The trace; - is standard input.", metavar="TRACE", show_default=False)
    ],
    target: Annotated[
        str,
        typer.Argument(
            help="The file to write. X.parquet: native; X.jsonl[.gz|.zst]: mooncake; else name it by --to.",
            metavar="FILE",
            show_default=False,
        ),
    ],
    to: Annotated[
        str | None,
        typer.Option(help="Format to write; see kvreplay list writers. [default: by the name]"),
    ] = None,
    select: Annotated[
        str | None,
        typer.Option(
            help="Keep requests for which this SQL expression over their columns holds: "
            "\"input_tokens < 8192 and model = 'a'\".",
            metavar="EXPR",
        ),
    ] = None,
    whole_sessions: Annotated[
        bool, typer.Option("--whole-sessions", help="With --select: keep sessions whole.")
    ] = False,
    sample_sessions: Annotated[
        float | None, typer.Option(help="Keep about this part of the sessions, 0.1 = a tenth.", metavar="F")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of --sample-sessions.", metavar="N")] = 0,
    anonymize: Annotated[
        bool, typer.Option("--anonymize", help="Number ids anew, code names, drop request ids.")
    ] = False,
    shift_times: Annotated[
        bool, typer.Option("--shift-times", help="With --anonymize: move the first arrival to 0.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace FILE if it exists.")] = False,
    quiet: o.Quiet = None,
    *,
    reading: dict[str, Any],
) -> None:
    """Write a trace in another format, whole or not at all."""
    written = format_of(target, to)
    if shift_times and not anonymize:
        raise ConfigError("--shift-times without --anonymize", hint="give both")
    if whole_sessions and select is None:
        raise ConfigError("--whole-sessions without --select", hint="give both")
    if written in _PARQUET:
        import kvreplay.parquet
    if select is not None or sample_sessions is not None:
        import kvreplay.frames  # noqa: F401 - same
    from kvreplay.atomic import check_file

    check_file(target, overwrite=overwrite)
    interrupt.work_begins()
    progress = console.progress(quiet=bool(quiet))
    trace = o.read([source], reading, progress)
    console.warn_of_quality(trace, quiet=bool(quiet))
    if select is not None:
        trace = _selected(trace, select, whole_sessions=whole_sessions)
    if sample_sessions is not None:
        trace = trace.sample_sessions(sample_sessions, seed=seed)
    if anonymize:
        trace = trace.anonymize(shift_times=shift_times)
    trace.write(target, format=written, overwrite=overwrite, progress=progress)
    if not quiet:
        for cut in trace.cuts:
            console.say(str(cut))


def _selected(trace: Trace, text: str, *, whole_sessions: bool) -> Trace:
    import polars as pl

    try:
        expression = pl.sql_expr(text)
    except pl.exceptions.PolarsError as error:
        raise ConfigError(
            f"--select {text!r} is no SQL expression: {str(error).splitlines()[0]}",
            hint="for example \"input_tokens < 8192 and model = 'a'\"",
        ) from error
    return trace.select(expression, whole_sessions=whole_sessions)
