"""``kvreplay replay``: what some tiers did, number by number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kvreplay import display
from kvreplay.cli import console, interrupt, options as o, profiles

if TYPE_CHECKING:
    from kvreplay.calls import ProgressHook
    from kvreplay.results import ReplayResult
    from kvreplay.trace import Trace

SCHEMA = "replay/1"


@o.reads_traces
@o.times_hits
@o.follows_profiles
def command(
    traces: o.Traces,
    tier: o.Tiers = None,
    mode: Annotated[
        str,
        typer.Option(help="prefix: hits are leading runs; object: every block is an access.", metavar="MODE"),
    ] = "prefix",
    unit: Annotated[
        str,
        typer.Option(
            help="block, or request: whole sequences are stored and evicted (one LRU tier, a comparison).",
            metavar="UNIT",
        ),
    ] = "block",
    policy: o.Compared = None,
    group_by: o.GroupBy = None,
    window: o.Window = None,
    warmup: o.Warmup = None,
    last_token: o.LastToken = None,
    full_blocks_only: o.FullBlocksOnly = None,
    requests_out: Annotated[
        str | None, typer.Option(help="Write what each request got as Parquet.", metavar="FILE")
    ] = None,
    events_out: Annotated[
        str | None,
        typer.Option(help="Write every hit, insert, evict, reject and move as Parquet.", metavar="FILE"),
    ] = None,
    overwrite: o.Overwrite = None,
    json: o.Json = None,
    quiet: o.Quiet = None,
    *,
    worth: dict[str, Any],
    engine: dict[str, Any],
    reading: dict[str, Any],
) -> None:
    """Replay a trace through tiers and print their counters."""
    given = dict(locals()) | engine
    from kvreplay.replaying import replay

    interrupt.work_begins()
    choice = profiles.choose(engine, o.make_tiers(o.parse_tiers(tier)))
    profiles.tell_taken(choice, quiet=bool(quiet))
    arguments = o.worth_of(worth)
    progress = console.progress(quiet=bool(quiet))
    trace = o.read(traces, reading, progress)
    result = replay(
        trace,
        choice.tiers,
        **choice.arguments,
        mode=mode,
        unit=unit,
        **arguments,
        warmup=warmup,
        last_token=bool(last_token),
        full_blocks_only=bool(full_blocks_only),
        per_request=requests_out is not None,
        events=events_out is not None,
        group_by=group_by,
        window=window,
        progress=progress,
    )
    bounds = _bounds(trace, choice, arguments["model"], progress)
    compared = _compared(result, trace, policy, given)
    for target, kind in ((requests_out, "requests"), (events_out, "events")):
        if target is not None:
            _write(result, trace, kind, target, given)
    console.warn_of_quality(trace, quiet=bool(quiet))
    console.warn(result.warnings, quiet=bool(quiet))
    document = {
        "schema": SCHEMA,
        "trace": trace.info,
        "tiers": result.tiers.to_dicts(),
        "policies": compared,
        "windows": result.windows.to_dicts() if window is not None else [],
        "groups": result.groups.to_dicts() if group_by else [],
        "summary": result.summary,
        "output_bounds": bounds,
        "warnings": result.warnings,
    }
    if json:
        console.put_json(document)
    else:
        console.put(_text(document, console.width()))


def _bounds(
    trace: Trace, choice: profiles.ProfileChoice, model: object, progress: ProgressHook | None
) -> list[dict[str, Any]]:
    """Hits with private and with listed output blocks, where a profile did not settle it."""
    if choice.profile is None or "outputs" in choice.options:
        return []
    from kvreplay.engines import output_bounds

    return output_bounds(
        trace, choice.tiers, profile=choice.profile, options=choice.options, model=model, progress=progress
    )


def _compared(
    result: ReplayResult, trace: Trace, policies: list[str] | None, given: dict[str, Any]
) -> list[dict[str, Any]]:
    if not policies:
        return []
    from kvreplay.comparing import compare_policies

    capacities = result.tiers["capacity_blocks"].to_list()
    frame = compare_policies(
        trace,
        policies,
        [*capacities, sum(capacities)],
        model=None if result.plan is None else result.plan.model,
        progress=console.progress(quiet=bool(given["quiet"])),
    )
    return frame.to_dicts()


def _write(result: ReplayResult, trace: Trace, kind: str, target: str, given: dict[str, Any]) -> None:
    from kvreplay.atomic import new_file
    from kvreplay.tables import files

    frame = result.requests if kind == "requests" else result.events
    keys = (
        "tier",
        "profile",
        "profile_option",
        "from_vllm",
        "mode",
        "unit",
        "last_token",
        "full_blocks_only",
    )
    plan = result.plan
    spec = {"command": "replay", "assumptions": None if plan is None else plan.assumptions}
    spec |= {key: given[key] for key in keys}
    with new_file(target, overwrite=bool(given["overwrite"])) as beside:
        files.write(
            frame, beside, schema=f"{kind}/1", spec=files.spec_text(spec), trace_sha256=trace.core.sha256
        )


def _text(document: dict[str, Any], width: int) -> str:
    from kvreplay.report.text import heading, policy_rows, section, split_section

    parts = [heading(document["trace"], width)]
    for row in document["tiers"]:
        rows = [[row["tier"], "value"]] + [
            [name, _value(name, value)] for name, value in row.items() if name != "tier" and value is not None
        ]
        parts.append(section("Tier", rows, width))
    rows = [["all tiers", "value"]] + [
        [name, _value(name, value)] for name, value in document["summary"].items()
    ]
    parts.append(section("Together", rows, width))
    if document["output_bounds"]:
        rows = [["decoded blocks", "hit tokens", "serves"]]
        rows += [
            [row["outputs"], display.tokens(row["hit_tokens"]), display.percent(row["token_hit_ratio"])]
            for row in document["output_bounds"]
        ]
        parts.append(section("Bounds: private (lower), listed (upper)", rows, width))
    if document["policies"]:
        parts.append(section("One cache by policy", policy_rows(document["policies"]), width))
    for name, title in (("groups", "By group"), ("windows", "By window of time")):
        if document[name]:
            parts += split_section(title, document[name], width)
    return "\n\n".join(parts)


def _value(name: str, value: object) -> str:
    if name.endswith("_years") and isinstance(value, float):
        return display.years(value)
    if isinstance(value, float):
        return display.percent(value)
    if isinstance(value, int) and name.endswith("_us"):
        return display.signed_span(value)
    if isinstance(value, int):
        return display.size(value) if name.endswith("_bytes") else display.count(value)
    return "-" if value is None else str(value)
