"""``kvreplay validate``: is the replay right about the hits an engine logged."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from kvreplay import display
from kvreplay.cli import console, gate, interrupt, options as o, profiles
from kvreplay.errors import ConfigError

SCHEMA = "validate/1"


@o.reads_traces
@o.follows_profiles
def command(
    traces: o.Traces,
    tier: o.Tiers = None,
    observed: Annotated[
        str,
        typer.Option(help="The field with the cached tokens of each request.", metavar="FIELD"),
    ] = "cached_tokens",
    tolerance: Annotated[
        float | None,
        typer.Option(
            help="Exit 5 when the mean absolute error is above this, in percentage points.", metavar="POINTS"
        ),
    ] = None,
    worst: Annotated[int, typer.Option(help="Requests to list that differ most.", min=0, metavar="N")] = 10,
    model: o.Model = None,
    kv_bytes_per_token: o.KvBytes = None,
    json: o.Json = None,
    quiet: o.Quiet = None,
    *,
    engine: dict[str, Any],
    reading: dict[str, Any],
) -> int:
    """Replay a trace and compare its hits with those that were observed.

    The error of a request is the difference of the two in percentage points of its input tokens.
    """
    from kvreplay.replaying import replay
    from kvreplay.validating import OBSERVED, validate

    if tolerance is not None and not tolerance >= 0:
        raise ConfigError(f"--tolerance {tolerance} is no number of points", hint="for example 0.5")
    interrupt.work_begins()
    choice = profiles.choose(engine, o.make_tiers(o.parse_tiers(tier)))
    profiles.tell_taken(choice, quiet=bool(quiet))
    progress = console.progress(quiet=bool(quiet))
    if observed != OBSERVED:
        reading = reading | {"column": [*(reading["column"] or []), f"{OBSERVED}={observed}"]}
    trace = o.read(traces, reading, progress)
    console.warn_of_quality(trace, quiet=bool(quiet))
    result = replay(
        trace,
        choice.tiers,
        **choice.arguments,
        model=o.chosen_model(model, kv_bytes_per_token),
        per_request=True,
        progress=progress,
    )
    console.warn(result.warnings, quiet=bool(quiet))
    validation = validate(result, trace.requests())
    summary = validation.summary
    document = {
        "schema": SCHEMA,
        "trace": trace.info,
        "profile": result.summary.get("profile"),
        "tiers": result.tiers.to_dicts(),
        "summary": summary,
        "worst": validation.worst(worst).to_dicts(),
    }
    if json:
        console.put_json(document)
    else:
        console.put(_text(document, console.width()))
    if tolerance is not None and summary["mean_absolute_error_points"] > tolerance:
        console.say(
            f"failed: mean absolute error {summary['mean_absolute_error_points']:.3f} points > {tolerance:g}"
        )
        return gate.EXIT_CODE
    return 0


def _text(document: dict[str, Any], width: int) -> str:
    import textwrap

    from kvreplay.report.text import heading, section

    summary = document["summary"]
    rows = [["", "observed", "replayed"]]
    rows.append(
        [
            "hit tokens",
            display.tokens(summary["observed_tokens"]),
            display.tokens(summary["predicted_tokens"]),
        ]
    )
    ratios = (summary["observed_ratio"], summary["predicted_ratio"])
    rows.append(["of input", *map(display.percent, ratios)])
    parts = [heading(document["trace"], width), section("Hits", rows, width)]
    error = f"{summary['mean_absolute_error_points']:.3f} percentage points"
    requests = display.many(summary["requests"], "request")
    facts = [
        f"Mean absolute error {error} over {requests}, {display.count(summary['exact_requests'])} exact.",
        f"Likely reason: {summary['likely_reason']}.",
    ]
    if summary["requests_without_observation"]:
        facts.append(f"Without an observation: {display.count(summary['requests_without_observation'])}.")
    parts.append("\n".join(line for fact in facts for line in textwrap.wrap(fact, width)))
    if document["worst"]:
        rows = [["request", "input", "observed", "replayed", "points"]]
        rows += [
            [
                str(row["request"]),
                display.count(row["input_tokens"]),
                display.count(row["observed_tokens"]),
                display.count(row["predicted_tokens"]),
                f"{row['error_points']:.2f}",
            ]
            for row in document["worst"]
        ]
        parts.append(section("Requests that differ most", rows, width))
    return "\n\n".join(parts)
