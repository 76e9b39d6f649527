"""Options that several commands share, so that they mean the same everywhere."""

from __future__ import annotations

import inspect
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from kvreplay.errors import ConfigError
from kvreplay.specs import key_values, split_outside, tier_spec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kvreplay.calls import ProgressHook
    from kvreplay.cost.modelspec import ModelSpec
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
        "admission, fill, touch, closure, chunk_blocks, link.",
        metavar="NAME=CAPACITY[,KEY=VALUE...]",
    ),
]
KvBytes = Annotated[
    int | None,
    typer.Option(
        "--kv-bytes-per-token", help="Bytes of KV per token; needed for sizes in bytes.", metavar="N"
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        help="A model of kvreplay list models, or the path of a config.json: bytes of KV, and times.",
        metavar="NAME|FILE",
    ),
]
KvDtype = Annotated[
    str | None,
    typer.Option("--kv-dtype", help="Type of the model's KV: bf16, fp8, nvfp4, ...", metavar="TYPE"),
]
Ranks = Annotated[
    int | None, typer.Option("--tp", help="Ranks of tensor parallelism. [default: 1]", metavar="N")
]
HostCopies = Annotated[
    int | None,
    typer.Option("--host-copies", help="Copies of the KV a host tier keeps. [default: 1]", metavar="N"),
]
EngineBlock = Annotated[
    int | None,
    typer.Option("--engine-block", help="Tokens of an engine block: prefixes are rounded down.", metavar="N"),
]
Hardware = Annotated[
    str | None, typer.Option("--hardware", help="A GPU of kvreplay list hardware.", metavar="NAME")
]
CostFile = Annotated[
    str | None,
    typer.Option("--cost", help="A cost model that kvreplay calibrate wrote.", metavar="FILE"),
]
Price = Annotated[
    list[str] | None,
    typer.Option(
        "--price",
        help="A price or life in place of the catalogue's (kvreplay list prices): gpu_hour_usd=2.1, "
        "dram_gb_usd, ssd_gb_usd, ssd_dwpd, ssd_waf, dram_years, ssd_years. Repeatable.",
        metavar="NAME=VALUE",
    ),
]
Admissions = Annotated[
    list[str] | None,
    typer.Option(
        "--admission",
        help="Compare this admission filter with others in front of every tier below the first. Repeatable.",
        metavar="SPEC",
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


# Every command that times hits has these, by `times_hits`. Names are those of `worth_of` below.
WORTH: dict[str, Any] = {
    "model": Model,
    "kv_bytes_per_token": KvBytes,
    "kv_dtype": KvDtype,
    "tp": Ranks,
    "host_copies": HostCopies,
    "engine_block": EngineBlock,
    "hardware": Hardware,
    "cost": CostFile,
    "price": Price,
}


# Every command that replays one set of tiers by a profile has these, by `follows_profiles`.
PROFILE: dict[str, Any] = {"profile": Profile, "profile_option": ProfileOptions, "from_vllm": FromVllm}


def reads_traces(command: Callable[..., R]) -> Callable[..., R]:
    """Give a command the options of reading; it gets their values as a dict in its argument ``reading``."""
    return _with_options(command, "reading", READING)


def times_hits(command: Callable[..., R]) -> Callable[..., R]:
    """Give a command the options of times; it gets their values as a dict in its argument ``worth``."""
    return _with_options(command, "worth", WORTH)


def follows_profiles(command: Callable[..., R]) -> Callable[..., R]:
    """Give a command the options of engine profiles, as a dict in its argument ``engine``."""
    return _with_options(command, "engine", PROFILE)


def _with_options(command: Callable[..., R], argument: str, group: Mapping[str, Any]) -> Callable[..., R]:
    @wraps(command)
    def with_group(**arguments: Any) -> R:
        values = {name: arguments.pop(name) for name in group}
        return command(**arguments, **{argument: values})

    signature = inspect.signature(command, eval_str=True)
    own = [parameter for name, parameter in signature.parameters.items() if name != argument]
    options = [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=annotation)
        for name, annotation in group.items()
    ]
    # A second group's argument stays last: it is keyword-only.
    split = next((at for at, one in enumerate(own) if one.kind is one.KEYWORD_ONLY), len(own))
    parameters = [*own[:split], *options, *own[split:]]
    # typer looks at both; the wrapped command would show it the group's argument.
    del with_group.__wrapped__
    with_group.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    with_group.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return with_group


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


def chosen_model(
    model: str | None,
    kv_bytes_per_token: int | None = None,
    *,
    kv_dtype: str | None = None,
    tp: int | None = None,
    host_copies: int | None = None,
    engine_block: int | None = None,
) -> ModelSpec | int | None:
    """What ``--model``, or ``--kv-bytes-per-token`` in its place, says; ``None`` without either.

    Raises
    ------
    ConfigError
        For both at once, for options of a model without one, or a model that cannot be used.
    """
    about = {"--kv-dtype": kv_dtype, "--tp": tp, "--host-copies": host_copies, "--engine-block": engine_block}
    if model is None:
        given = [name for name, value in about.items() if value is not None]
        if given:
            raise ConfigError(f"{given[0]} is about a model, and there is none", hint="give --model NAME")
        return kv_bytes_per_token
    if kv_bytes_per_token is not None:
        raise ConfigError(
            "--model and --kv-bytes-per-token both say how large a token is", hint="give one of them"
        )
    from kvreplay.cost.catalogue import model as find_model

    return find_model(
        model,
        kv_dtype=kv_dtype,
        tp=1 if tp is None else tp,
        host_copies=1 if host_copies is None else host_copies,
        block_tokens=engine_block,
    )


def worth_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """The options of :data:`WORTH` as arguments ``model``, ``hardware``, ``cost`` and ``prices``.

    Raises
    ------
    ConfigError
        For a model, cost file or price that cannot be used.
    """
    options = {key: values[key] for key in ("kv_dtype", "tp", "host_copies", "engine_block")}
    model = chosen_model(values["model"], values["kv_bytes_per_token"], **options)
    cost = None
    if values["cost"] is not None:
        from kvreplay.cost.files import read_cost

        cost = read_cost(values["cost"])
    return {"model": model, "hardware": values["hardware"], "cost": cost, "prices": _prices(values["price"])}


def _prices(texts: Sequence[str] | None) -> dict[str, float]:
    parts = [part for text in texts or [] for part in split_outside(text, ",")]
    out = {}
    for name, value in key_values(parts, what="--price").items():
        try:
            out[name] = float(value)
        except ValueError:
            raise ConfigError(f"price {name} is {value!r}", hint="for example gpu_hour_usd=2.10") from None
    return out


def the_model(model: str | None, **options: Any) -> ModelSpec:
    """The model of a command that cannot do without.

    Raises
    ------
    ConfigError
        As :func:`chosen_model`, and without a model.
    """
    from kvreplay.cost.modelspec import ModelSpec

    found = chosen_model(model, **options)
    if not isinstance(found, ModelSpec):
        raise ConfigError("no model is given", hint="give --model NAME; see kvreplay list models")
    return found


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
