"""``kvreplay sweep``: many tiers against one trace, resumable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kvreplay import display
from kvreplay.cli import console, interrupt, options as o
from kvreplay.errors import ConfigError
from kvreplay.specs import key_values
from kvreplay.units import kv_bytes_per_token

if TYPE_CHECKING:
    import polars as pl

    from kvreplay.trace import Trace

SCHEMA = "sweep/1"


@o.reads_traces
@o.times_hits
def command(
    traces: o.Traces,
    policy: Annotated[
        list[str] | None,
        typer.Option(help="A policy of the grid. Repeatable. [default: lru]", metavar="SPEC"),
    ] = None,
    capacity: Annotated[
        list[str] | None,
        typer.Option(
            help='A capacity of the grid: "5000 blocks", "40GiB", "10%". Repeatable.', metavar="SIZE"
        ),
    ] = None,
    admission: Annotated[
        list[str] | None,
        typer.Option(help="An admission filter of the grid. Repeatable. [default: always]", metavar="SPEC"),
    ] = None,
    tier: Annotated[
        list[str] | None,
        typer.Option(
            help="Instead, a hierarchy with lists: every | separates values to try, as in "
            '"cpu=10%|20%,policy=lru|arc". Repeatable, fastest tier first.',
            metavar="NAME=SIZE[|SIZE...][,KEY=VALUE[|VALUE...]...]",
        ),
    ] = None,
    mode: Annotated[
        list[str] | None, typer.Option(help="prefix or object. Repeatable. [default: prefix]", metavar="MODE")
    ] = None,
    unit: Annotated[
        list[str] | None, typer.Option(help="block or request. Repeatable. [default: block]", metavar="UNIT")
    ] = None,
    profile: Annotated[
        list[str] | None,
        typer.Option(help="An engine profile of the grid. Repeatable.", metavar="NAME@VERSION"),
    ] = None,
    profile_option: o.ProfileOptions = None,
    last_token: o.LastToken = None,
    full_blocks_only: o.FullBlocksOnly = None,
    store: Annotated[
        str | None,
        typer.Option(help="Keep finished points here; a rerun computes only what is missing.", metavar="DIR"),
    ] = None,
    out: Annotated[str | None, typer.Option(help="Write the result as Parquet.", metavar="FILE")] = None,
    overwrite: o.Overwrite = None,
    json: o.Json = None,
    quiet: o.Quiet = None,
    *,
    worth: dict[str, Any],
    reading: dict[str, Any],
) -> None:
    """Replay a trace through every combination of the values given, on all processors.

    Equal points are computed once, LRU tiers share one pass. KVREPLAY_THREADS limits the threads.
    """
    given = dict(locals())
    from kvreplay.atomic import check_target
    from kvreplay.sweeping import sweep
    from kvreplay.sweeping.texts import grid_of

    interrupt.work_begins()
    arguments = o.worth_of(worth)
    if arguments.pop("prices"):
        raise ConfigError("a sweep has no money in it, and --price was given", hint="analyze has")
    given["kv_bytes_per_token"] = kv_bytes_per_token(arguments["model"])
    grid = grid_of(policies=policy, capacities=capacity, admissions=admission, tiers=tier)
    grid |= {
        "mode": mode or ["prefix"],
        "unit": unit or ["block"],
        "last_token": bool(last_token),
        "full_blocks_only": bool(full_blocks_only),
    }
    if profile:
        options = key_values(profile_option or [], what="--profile-option")
        grid |= {"profile": profile, "profile_options": options}
    if out is not None:
        check_target(out, overwrite=bool(overwrite), directory=False)
    progress = console.progress(quiet=bool(quiet))
    trace = o.read(traces, reading, progress)
    console.warn_of_quality(trace, quiet=bool(quiet))
    frame = sweep(trace, grid, store=store, progress=progress, **arguments)
    if out is not None:
        _write(frame, trace, given, out)
    if json:
        console.put_json({"schema": SCHEMA, "trace": trace.info, "points": frame.to_dicts()})
    elif not (quiet and out is not None):
        console.put(_text(frame, trace, console.width()))


def _write(frame: pl.DataFrame, trace: Trace, given: dict[str, Any], out: str) -> None:
    from kvreplay.atomic import new_file
    from kvreplay.tables import files

    keys = (
        "policy",
        "capacity",
        "admission",
        "tier",
        "profile",
        "profile_option",
        "mode",
        "unit",
        "kv_bytes_per_token",
        "last_token",
    )
    spec = {"command": "sweep"} | {key: given[key] for key in (*keys, "full_blocks_only")}
    spec |= {key: given["worth"][key] for key in ("model", "kv_dtype", "tp", "hardware")}
    with new_file(out, overwrite=bool(given["overwrite"])) as beside:
        files.write(frame, beside, schema=SCHEMA, spec=files.spec_text(spec), trace_sha256=trace.core.sha256)


def _text(frame: pl.DataFrame, trace: Trace, width: int) -> str:
    from kvreplay.report.text import heading, section

    timed = frame["saved_us"].null_count() < frame.height
    rows = [["tiers", "hit tokens", "served", *(["saves"] if timed else []), "stored", "dead"]]
    for _, point in frame.group_by("point", maintain_order=True):
        first = point.row(0, named=True)
        rules = [
            first[key]
            for key, default in (("profile", None), ("mode", "prefix"), ("unit", "block"))
            if first[key] != default
        ]
        rows.append(
            [
                " ".join([first["tiers"], *rules]),
                display.tokens(first["all_hit_tokens"]),
                display.percent(first["token_hit_ratio"]),
                *([display.signed_span(_saved(point["saved_us"]))] if timed else []),
                display.count(_sum(point["inserted_blocks"])),
                display.count(_sum(point["dead_on_arrival_blocks"])),
            ]
        )
    return f"{heading(trace.info, width)}\n\n{section('Sweep', rows, width)}"


def _saved(values: pl.Series) -> int | None:
    """What the tiers below the first save: what the GPU's own memory saves is no reason to have them."""
    return _sum(values[1:] if len(values) > 1 else values)


def _sum(values: pl.Series) -> int | None:
    return None if values.null_count() else int(values.sum())
