"""Options that several commands share, so that they mean the same everywhere."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from kvreplay.cli import console
from kvreplay.errors import ConfigError
from kvreplay.specs import key_values, split_outside, tier_spec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kvreplay.calls import ProgressHook
    from kvreplay.replaying import Tier
    from kvreplay.trace import Trace

R = TypeVar("R")

Traces = Annotated[
    list[str],
    typer.Argument(
        help="Files in the order to read them; - is standard input.", metavar="TRACE...", show_default=False
    ),
]
Format = Annotated[str | None, typer.Option(help="Format; see kvreplay list formats. [default: auto]")]
BlockTokens = Annotated[int | None, typer.Option(help="Tokens per block. [default: inferred]", metavar="N")]
Tail = Annotated[str | None, typer.Option(help="auto, ceil (partial last blocks are listed) or floor.")]
TimeUnit = Annotated[str | None, typer.Option(help="auto, s, ms, us or ns.")]
Scope = Annotated[
    str | None, typer.Option(help="Are ids of different sessions comparable: auto, local or global.")
]
Namespace = Annotated[
    list[str] | None,
    typer.Option(help="auto, none, or a column: requests that differ in it share no blocks. Repeatable."),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        "--column",
        help="Our names and the file's: time=ts,session=chat_id. Repeatable.",
        metavar="OURS=THEIRS[,...]",
    ),
]
SessionRows = Annotated[
    str | None,
    typer.Option(help="Rows of a session hold: auto, cumulative (all so far) or delta (what is new)."),
]
SharedPrefix = Annotated[
    str | None,
    typer.Option(help="Blocks that sessions with local ids share: none or tool+system.", metavar="PREFIX"),
]
SessionStarts = Annotated[
    str | None,
    typer.Option(
        help="When sessions without a clock begin: together, every(30s) or uniform(8h).", metavar="RULE"
    ),
]
Concurrency = Annotated[
    int | None, typer.Option(help="At most this many such sessions at once.", metavar="N")
]
SessionSeed = Annotated[int | None, typer.Option(help="Seed of uniform session starts.", metavar="N")]
SpreadTies = Annotated[
    bool | None,
    typer.Option("--spread-ties", help="Spread equal times evenly up to the next one (for timed work)."),
]
Strict = Annotated[
    bool | None, typer.Option("--strict", help="Stop at the first row that would be rejected or repaired.")
]
Json = Annotated[bool | None, typer.Option("--json", help="Print one JSON document instead of text.")]
Quiet = Annotated[
    bool | None, typer.Option("--quiet", "-q", help="No progress and no warnings; with --out no screen.")
]
Overwrite = Annotated[bool | None, typer.Option("--overwrite", help="Replace what --out names if it exists.")]
Tiers = Annotated[
    list[str] | None,
    typer.Option(
        "--tier",
        help='A tier, fastest first: "cpu=512GiB,policy=arc,fill=victim". Repeatable. Keys: policy, '
        "admission, fill, touch, closure, chunk_blocks.",
        metavar="NAME=CAPACITY[,KEY=VALUE...]",
    ),
]
KvBytes = Annotated[
    int | None,
    typer.Option(
        "--kv-bytes-per-token", help="Bytes of KV per token; needed for sizes in bytes.", metavar="N"
    ),
]
Warmup = Annotated[
    str | None,
    typer.Option(
        help="Add columns over what follows a warm-up: a fraction of the requests (0.5) or a time (5m)."
    ),
]
Compared = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        help="Compare this policy with others in one cache of each tier's capacity. Repeatable.",
        metavar="SPEC",
    ),
]
GroupBy = Annotated[
    list[str] | None,
    typer.Option(help="Split the hits by a column of the trace. Repeatable.", metavar="COLUMN"),
]
Window = Annotated[
    str | None, typer.Option(help='Split the hits by windows of time ("5m").', metavar="DURATION")
]
Profile = Annotated[
    str | None,
    typer.Option(
        help="Replay by the rules of an engine's release: vllm@0.33; see kvreplay list profiles.",
        metavar="NAME@VERSION",
    ),
]
ProfileOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--profile-option",
        help="An option of the profile: block_size=32; see kvreplay profile show. Repeatable.",
        metavar="KEY=VALUE",
    ),
]
FromVllm = Annotated[
    str | None,
    typer.Option(
        "--from-vllm",
        help='Take tiers and options from a vLLM command ("vllm serve ..."), a kv-transfer-config JSON or '
        "a file of either; --tier adds to them.",
        metavar="TEXT",
    ),
]
LastToken = Annotated[
    bool | None, typer.Option("--last-token", help="A hit never covers the last input token.")
]
FullBlocksOnly = Annotated[
    bool | None, typer.Option("--full-blocks-only", help="Partial last blocks neither hit nor stay.")
]


# Every command that reads a trace has these, by `reads_traces`. Names are those of `read` below.
READING: dict[str, Any] = {
    "strict": Strict,
    "format": Format,
    "block_tokens": BlockTokens,
    "tail": Tail,
    "time_unit": TimeUnit,
    "scope": Scope,
    "namespace": Namespace,
    "column": Columns,
    "session_rows": SessionRows,
    "shared_prefix": SharedPrefix,
    "session_starts": SessionStarts,
    "concurrency": Concurrency,
    "session_seed": SessionSeed,
    "spread_ties": SpreadTies,
}


def reads_traces(command: Callable[..., R]) -> Callable[..., R]:
    """Give a command the options of reading; it gets their values as a dict in its argument ``reading``."""

    @wraps(command)
    def with_reading(**arguments: Any) -> R:
        reading = {name: arguments.pop(name) for name in READING}
        return command(**arguments, reading=reading)

    signature = inspect.signature(command, eval_str=True)
    own = [parameter for name, parameter in signature.parameters.items() if name != "reading"]
    options = [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=annotation)
        for name, annotation in READING.items()
    ]
    # typer looks at both; the wrapped command would show it the argument `reading`.
    del with_reading.__wrapped__
    with_reading.__signature__ = signature.replace(parameters=own + options)  # type: ignore[attr-defined]
    with_reading.__annotations__ = {parameter.name: parameter.annotation for parameter in own + options}
    return with_reading


def read(traces: Sequence[str], options: Mapping[str, Any], progress: ProgressHook | None) -> Trace:
    """Read the traces of a command line with the options above (``None`` = default).

    Raises
    ------
    TraceError, ConfigError
        As :func:`kvreplay.read_trace`.
    """
    from kvreplay.trace import read_trace

    namespaces = [name for text in options.get("namespace") or [] for name in text.split(",")]
    single = len(namespaces) == 1 and namespaces[0] in ("auto", "none")
    pairs = [pair for text in options.get("column") or [] for pair in split_outside(text, ",")]
    trace = read_trace(
        traces[0] if len(traces) == 1 else list(traces),
        format=options.get("format") or "auto",
        block_tokens=options.get("block_tokens"),
        tail=options.get("tail") or "auto",
        time_unit=options.get("time_unit") or "auto",
        scope=options.get("scope") or "auto",
        namespace=namespaces[0] if single else namespaces or "auto",
        strict=bool(options.get("strict")),
        columns=key_values(pairs, what="--columns"),
        session_rows=options.get("session_rows") or "auto",
        shared_prefix=options.get("shared_prefix") or "none",
        session_starts=options.get("session_starts") or "together",
        concurrency=options.get("concurrency"),
        seed=options.get("session_seed") or 0,
        progress=progress,
    )
    return trace.spread_ties() if options.get("spread_ties") else trace


@dataclass(frozen=True)
class ProfileChoice:
    """The profile of a command line and the tiers that go with it.

    Parameters
    ----------
    tiers
        The tiers, fastest first.
    profile
        ``NAME@VERSION``, ``None`` for the generic rules.
    options
        Options of the profile.
    taken
        What was taken from a vLLM command line, line by line.
    """

    tiers: list[Tier]
    profile: str | None = None
    options: dict[str, str] = field(default_factory=dict)
    taken: list[str] = field(default_factory=list)

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of :func:`kvreplay.replay`."""
        return {"profile": self.profile, "profile_options": self.options or None}


def choose_profile(
    profile: str | None,
    options: Sequence[str] | None,
    from_vllm: str | None,
    tiers: list[Tier],
) -> ProfileChoice:
    """Settle profile, options and tiers; what is given directly beats what a vLLM command line says.

    Raises
    ------
    ConfigError
        When an option is not ``KEY=VALUE``, or the vLLM command line cannot be used.
    """
    given = key_values(list(options or []), what="--profile-option")
    if from_vllm is None:
        return ProfileChoice(tiers, profile, given)
    from kvreplay.vllm_config import from_vllm as read_config

    found = read_config(from_vllm)
    return ProfileChoice(found.merged(tiers), profile or found.profile, found.options | given, found.lines())


def tell_taken(choice: ProfileChoice, *, quiet: bool) -> None:
    """Say on stderr what was taken from a vLLM command line."""
    if not quiet:
        for line in choice.taken:
            console.say(f"from vllm: {line}")


def parse_tiers(texts: Sequence[str] | None) -> list[dict[str, str]]:
    """Read the ``--tier`` options into dicts of texts.

    Raises
    ------
    ConfigError
        When one does not follow the grammar.
    """
    return [tier_spec(text) for text in texts or []]


def make_tiers(specs: Sequence[dict[str, Any]]) -> list[Tier]:
    """Make tiers of dicts of a command line or a configuration file.

    Raises
    ------
    ConfigError
        For an unknown key, or a tier without name or capacity.
    """
    from kvreplay.replaying import Tier

    for spec in specs:
        for key in ("name", "capacity"):
            if key not in spec:
                raise ConfigError(
                    f"a tier has no {key}", hint='[[tier]] needs name = "gpu" and capacity = "..."'
                )
    return [Tier.from_texts(spec) for spec in specs]
