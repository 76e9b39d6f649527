"""``kvreplay generate``: a deterministic trace of a known kind."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from kvreplay.cli import console, interrupt, options as o
from kvreplay.cli.convert import format_of
from kvreplay.errors import ConfigError
from kvreplay.specs import key_values, split_outside


def command(
    kind: Annotated[str, typer.Argument(help="A kind of kvreplay list generators.", show_default=False)],
    requests: Annotated[
        int | None,
        typer.Option(help="Number of requests. [required, or all of --lengths-from]", metavar="N"),
    ] = None,
    seed: Annotated[int, typer.Option(help="Equal seeds give equal traces.", metavar="N")] = 0,
    block_tokens: Annotated[int, typer.Option(help="Tokens per block.", metavar="N")] = 16,
    parameter: Annotated[
        list[str] | None,
        typer.Option("--param", help="A parameter of the kind. Repeatable.", metavar="NAME=NUMBER"),
    ] = None,
    lengths_from: Annotated[
        str | None,
        typer.Option(
            help="Take arrivals and lengths from this file: Azure, BurstGPT, or any trace.", metavar="FILE"
        ),
    ] = None,
    column: o.Columns = None,
    out: Annotated[
        str,
        typer.Option(
            help="The file, as for convert: X.parquet or X.jsonl[.gz|.zst]; - is standard output.",
            metavar="FILE",
        ),
    ] = "-",
    to: Annotated[
        str | None, typer.Option(help="Format to write; see kvreplay list writers. [default: by the name]")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace --out if it exists.")] = False,
    quiet: o.Quiet = None,
) -> None:
    """Generate a trace and write it as Mooncake JSONL, as a native file, or in another format."""
    from kvreplay.synthetic import generate

    written = None if out == "-" else format_of(out, to)
    if out == "-" and to is not None:
        raise ConfigError("--to without --out", hint="standard output gets Mooncake JSON lines")
    pairs = [pair for text in column or [] for pair in split_outside(text, ",")]
    interrupt.work_begins()
    trace = generate(
        kind,
        requests=requests,
        seed=seed,
        block_tokens=block_tokens,
        lengths_from=lengths_from,
        lengths_columns=key_values(pairs, what="--columns"),
        **_numbers(parameter or []),
    )
    if written is None:
        console.put_trace(trace)
    else:
        trace.write(out, format=written, overwrite=overwrite, progress=console.progress(quiet=bool(quiet)))
    if not quiet and written is not None and sys.stderr.isatty():
        console.say(f"{out}: {len(trace):,} requests")


def _numbers(parameters: list[str]) -> dict[str, float]:
    out = {}
    for name, text in key_values(parameters, what="--param").items():
        try:
            out[name.replace("-", "_")] = float(text)
        except ValueError:
            raise ConfigError(
                f"--param {name}={text} is not a number", hint="see kvreplay list generators"
            ) from None
    return out
