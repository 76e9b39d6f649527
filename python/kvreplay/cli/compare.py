"""``kvreplay compare``: two engine profiles on one trace, or two reports."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kvreplay import display
from kvreplay.cli import console, interrupt, options as o
from kvreplay.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvreplay.replaying import Tier
    from kvreplay.report.difference import Side
    from kvreplay.results import ReplayResult

GENERIC = "generic"
_SIDES = 2
# Counters worth a line on the screen; the document holds them all.
_SHOWN = ("hit_tokens", "tier_share", "inserted_blocks", "evicted_blocks", "capacity_tokens", "saved_us")


@o.reads_traces
def command(
    inputs: Annotated[
        list[str],
        typer.Argument(
            help="Two directories of kvreplay analyze --out, or with --profile the files of a trace.",
            metavar="A B | TRACE...",
            show_default=False,
        ),
    ],
    profile: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Twice: the profiles to compare ({GENERIC} = the rules of the tiers alone).",
            metavar="NAME@VERSION",
        ),
    ] = None,
    profile_option: Annotated[
        list[str] | None,
        typer.Option(
            "--profile-option",
            help="An option of both profiles, or of one: vllm@0.33:offload_decode=true. Repeatable.",
            metavar="[NAME@VERSION:]KEY=VALUE",
        ),
    ] = None,
    tier: o.Tiers = None,
    model: o.Model = None,
    kv_bytes_per_token: o.KvBytes = None,
    json: o.Json = None,
    quiet: o.Quiet = None,
    *,
    reading: dict[str, Any],
) -> None:
    """Say what differs between two engine profiles on one trace, or between two reports."""
    from kvreplay.report.difference import Side, difference, requests_apart

    interrupt.work_begins()
    if not profile:
        if tier or profile_option or len(inputs) != _SIDES or not all(Path(i).is_dir() for i in inputs):
            raise ConfigError(
                "there are no two sides to compare",
                hint="give two directories of reports, or a trace, --tier and two --profile",
            )
        a, b = (Side.of_report(directory) for directory in inputs)
        document = difference(a, b)
    else:
        if len(profile) != _SIDES:
            raise ConfigError(f"{len(profile)} --profile given", hint="a comparison takes two")
        progress = console.progress(quiet=bool(quiet))
        trace = o.read(inputs, reading, progress)
        console.warn_of_quality(trace, quiet=bool(quiet))
        tiers = o.make_tiers(o.parse_tiers(tier))
        asked = {"model": o.chosen_model(model, kv_bytes_per_token), "progress": progress}
        results = [
            _replay(trace, tiers, name, _options(name, profile_option or []), asked) for name in profile
        ]
        sides = [
            _side(name, result, trace.core.sha256) for name, result in zip(profile, results, strict=True)
        ]
        document = difference(*sides) | {"requests": requests_apart(*results)}
    console.warn(document["warnings"], quiet=bool(quiet))
    if json:
        console.put_json(document)
    else:
        console.put(_text(document, console.width()))


def _options(profile: str, texts: Sequence[str]) -> dict[str, str]:
    """The options that hold for a profile: those for both, and those with its name in front."""
    from kvreplay.specs import key_values

    mine = []
    for text in texts:
        owner, colon, rest = text.partition(":")
        if not colon or "=" in owner:
            mine.append(text)
        elif owner == profile:
            mine.append(rest)
    return key_values(mine, what="--profile-option")


def _replay(
    trace: Any, tiers: list[Tier], profile: str, options: dict[str, str], asked: dict[str, Any]
) -> ReplayResult:
    from kvreplay.replaying import replay

    if profile == GENERIC:
        return replay(trace, tiers, per_request=True, **asked)
    return replay(trace, tiers, profile=profile, profile_options=options, per_request=True, **asked)


def _side(name: str, result: ReplayResult, sha256: str) -> Side:
    from kvreplay.report.difference import Side

    return Side.of_result(result.summary.get("profile", name), result, sha256)


def _text(document: dict[str, Any], width: int) -> str:
    from kvreplay.report.text import section

    parts = [f"a: {document['a']['name']}\nb: {document['b']['name']}"]
    rows = [["ratio", "a", "b", "b - a"]]
    rows += [
        [
            row["name"],
            display.percent(row["a"]),
            display.percent(row["b"]),
            "-" if row["difference"] is None else display.points(row["difference"]),
        ]
        for row in document["ratios"]
    ]
    parts.append(section("Ratios", rows, width))
    rows = [["tier", "counter", "a", "b", "b - a"]]
    rows += [
        [row["tier"], row["column"], *(_value(row["column"], row[key]) for key in ("a", "b", "difference"))]
        for row in document["tiers"]
        if row["column"] in _SHOWN
    ]
    if len(rows) > 1:
        parts.append(section("Tiers", rows, width))
    if "requests" in document:
        apart = document["requests"]
        parts.append(
            f"{display.many(apart['requests'], 'request')} served differently; only a hits "
            f"{display.tokens(apart['only_a_tokens'])} tokens,\n"
            f"only b {display.tokens(apart['only_b_tokens'])}"
            + ("" if apart["first"] is None else f"; the first is request {apart['first']}")
        )
    return "\n\n".join(parts)


def _value(column: str, value: object) -> str:
    if isinstance(value, float) and column.endswith(("_share", "_ratio")):
        return display.percent(value)
    if isinstance(value, int):
        return display.count(value)
    return "-" if value is None else str(value)
