"""``kvreplay analyze``: the main job."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from kvreplay.cli import console, gate, interrupt, options as o, profiles
from kvreplay.config import effective


@o.reads_traces
@o.times_hits
@o.follows_profiles
def command(
    traces: o.Traces,
    tier: o.Tiers = None,
    warmup: o.Warmup = None,
    last_token: o.LastToken = None,
    full_blocks_only: o.FullBlocksOnly = None,
    policy: o.Compared = None,
    admission: o.Admissions = None,
    group_by: o.GroupBy = None,
    window: o.Window = None,
    per_request: Annotated[
        bool | None, typer.Option("--per-request", help="Add the table requests to --out.")
    ] = None,
    config: Annotated[
        str | None, typer.Option(help="TOML file with [analyze] and [[tier]].", metavar="FILE")
    ] = None,
    out: Annotated[
        str | None, typer.Option(help="Directory for report.json, tables and page.", metavar="DIR")
    ] = None,
    overwrite: o.Overwrite = None,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            help="Exit 5 when this holds: 'token_hit_ratio < 0.3', 'ceiling.NAME < X', "
            "'tier.NAME.COLUMN > X'. Repeatable.",
            metavar="EXPR",
        ),
    ] = None,
    json: o.Json = None,
    quiet: o.Quiet = None,
    *,
    worth: dict[str, Any],
    engine: dict[str, Any],
    reading: dict[str, Any],
) -> int:
    """Say what a cache could serve of a trace, and what some tiers would.

    Reads and checks the trace, replays it, prints the answer and, with --out, writes the tables behind it.
    """
    apart = ("traces", "tier", "config", "reading", "worth", "engine")
    flags = {key: value for key, value in locals().items() if key not in apart}
    return _run(traces, flags | worth | engine | reading, o.parse_tiers(tier), config)


def _run(traces: list[str], flags: dict[str, object], specs: list[dict[str, str]], config: str | None) -> int:
    settings = effective(flags, list(specs), path=config, environ=os.environ)
    from kvreplay.atomic import check_target
    from kvreplay.report import analyze
    from kvreplay.report.text import screen

    if settings["out"] is not None:
        import kvreplay.report.bundle  # noqa: F401 - loaded before the work: Ctrl-C then ends it cleanly

    interrupt.work_begins()
    values = {key: setting.value for key, setting in settings.options.items()}
    choice = profiles.choose(values, o.make_tiers(settings.tiers))
    profiles.tell_taken(choice, quiet=settings["quiet"])
    worth = o.worth_of(values)
    gates = [gate.parse(text) for text in settings["fail_if"]]
    if settings["out"] is not None:
        check_target(settings["out"], overwrite=settings["overwrite"])
    progress = console.progress(quiet=settings["quiet"])
    trace = o.read(traces, values, progress)
    report = analyze(
        trace,
        choice.tiers,
        **choice.arguments,
        **worth,
        warmup=settings["warmup"],
        last_token=settings["last_token"],
        full_blocks_only=settings["full_blocks_only"],
        per_request=settings["per_request"],
        policies=settings["policy"],
        admissions=settings["admission"],
        group_by=settings["group_by"],
        window=settings["window"],
        progress=progress,
    )
    held = [one for one in gates if one.holds(report)]
    if settings["out"] is not None:
        report.write(settings["out"], overwrite=settings["overwrite"])
    console.warn(report.warnings, quiet=settings["quiet"])
    if settings["out"] is not None and not settings["quiet"]:
        console.say(f"report: {settings['out']}")
    if settings["json"]:
        console.put_json(report.to_dict())
    elif not (settings["quiet"] and settings["out"] is not None):
        console.put(screen(report, width=console.width()))
    for one in held:
        console.say(f"failed: {one.text}")
    return gate.EXIT_CODE if held else 0
