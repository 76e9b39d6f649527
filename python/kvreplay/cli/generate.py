"""``kvreplay generate``: a deterministic trace of a known kind."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from kvreplay.cli import console, interrupt, options as o
from kvreplay.cli.convert import format_of
from kvreplay.errors import ConfigError
from kvreplay.specs import key_values


def command(
    kind: Annotated[str, typer.Argument(help="A kind of kvreplay list generators.")],
    requests: Annotated[int, typer.Option(help="Number of requests.", metavar="N")],
    seed: Annotated[int, typer.Option(help="Equal seeds give equal traces.", metavar="N")] = 0,
    block_tokens: Annotated[int, typer.Option(help="Tokens per block.", metavar="N")] = 16,
    parameter: Annotated[
        list[str] | None,
        typer.Option("--param", help="A parameter of the kind. Repeatable.", metavar="NAME=NUMBER"),
    ] = None,
    out: Annotated[
        str,
        typer.Option(
            help="X.parquet (native) or X.jsonl[.gz] (Mooncake); - is standard output.", metavar="FILE"
        ),
    ] = "-",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace --out if it exists.")] = False,
    quiet: o.Quiet = None,
) -> None:
    """Generate a trace and write it as Mooncake JSONL or as a native file."""
    from kvreplay.synthetic import generate

    written = None if out == "-" else format_of(out)
    interrupt.work_begins()
    trace = generate(
        kind, requests=requests, seed=seed, block_tokens=block_tokens, **_numbers(parameter or [])
    )
    if written is None:
        console.put_trace(trace)
    else:
        trace.write(out, format=written, overwrite=overwrite)
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
