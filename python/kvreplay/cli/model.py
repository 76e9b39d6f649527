"""``kvreplay model show`` and ``model fit``: what a model stores per token, and how many users fit."""

from __future__ import annotations

import textwrap
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kvreplay import display
from kvreplay.cli import console, options as o
from kvreplay.errors import ConfigError

if TYPE_CHECKING:
    from kvreplay.cost.modelspec import ModelSpec
    from kvreplay.cost.room import Room

SHOW_SCHEMA = "model/1"
FIT_SCHEMA = "model_fit/1"
# Engines keep a little of the memory that they log as the pool's for tables and rounding.
_CLOSE = 0.02
_WEIGHTS = (
    "Offloading KV keeps finished prefixes elsewhere; it makes no room for weights. Offloading weights "
    "(vLLM --cpu-offload-gb) does, and slows every step."
)

group = typer.Typer(
    help="Show what a model stores per token, and who fits a GPU.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Name = Annotated[
    str, typer.Argument(help="A model of kvreplay list models, or its config.json.", metavar="NAME|FILE")
]


@group.callback()
def _main() -> None:
    pass


@group.command("show")
def show(
    name: Name,
    kv_dtype: o.KvDtype = None,
    tp: o.Ranks = None,
    host_copies: o.HostCopies = None,
    tokens: Annotated[
        int | None, typer.Option(help="Also the bytes of a prefix of this length.", metavar="N")
    ] = None,
    logged_tokens: Annotated[
        int | None,
        typer.Option(help='Check against a log: N of "GPU KV cache size: N tokens".', metavar="N"),
    ] = None,
    logged_memory: Annotated[
        str | None,
        typer.Option(help='With it, SIZE of "Available KV cache memory: SIZE" per GPU.', metavar="SIZE"),
    ] = None,
    json: o.Json = None,
) -> None:
    """Print how many bytes a token takes, with the derivation, and check it against an engine's log."""
    spec = o.the_model(name, kv_dtype=kv_dtype, tp=tp, host_copies=host_copies)
    document = {
        "schema": SHOW_SCHEMA,
        "name": spec.name,
        "kv_bytes_per_token": spec.kv_bytes_per_token,
        "hbm_bytes_per_token": spec.hbm_bytes_per_token,
        "rank_bytes_per_token": spec.rank_bytes_per_token,
        "host_bytes_per_token": spec.host_bytes_per_token,
        "state_bytes": spec.state_bytes,
        "kv_dtype": spec.dtype.name,
        "tp": spec.tp,
        "layers": spec.layers,
        "params_total": None if spec.parameters is None else spec.parameters.total,
        "params_active": None if spec.parameters is None else spec.parameters.body,
        "max_context_tokens": spec.max_context_tokens,
        "derivation": spec.derivation(),
        "prefix": _prefix(spec, tokens),
        "log": _log(spec, logged_tokens, logged_memory),
        "source": spec.source,
        "date": spec.date or None,
    }
    if json:
        console.put_json(document)
    else:
        console.put(_show_text(document, console.width()))


def _prefix(spec: ModelSpec, tokens: int | None) -> dict[str, int] | None:
    if tokens is None:
        return None
    if tokens < 1:
        raise ConfigError(f"a prefix of {tokens} tokens", hint="give a number of tokens from 1")
    return {
        "tokens": tokens,
        "stored_bytes": tokens * spec.kv_bytes_per_token + spec.state_bytes,
        "loaded_bytes": spec.loaded_bytes(tokens),
    }


def _log(spec: ModelSpec, tokens: int | None, memory: str | None) -> dict[str, Any] | None:
    """What a log says of a token, beside what the model says."""
    if tokens is None and memory is None:
        return None
    if tokens is None or memory is None:
        raise ConfigError(
            "a log is checked with both of --logged-tokens and --logged-memory",
            hint='vLLM writes "Available KV cache memory: 12.3 GiB" and "GPU KV cache size: 98,765 tokens"',
        )
    from kvreplay.cost.room import logged_bytes_per_token
    from kvreplay.units import size_bytes

    logged = logged_bytes_per_token(size_bytes(memory, what="--logged-memory"), tokens)
    expected = spec.rank_bytes_per_token
    return {
        "logged_bytes_per_token": logged,
        "expected_bytes_per_token": expected,
        "factor": logged / expected,
        "agrees": abs(logged / expected - 1) <= _CLOSE,
    }


def _show_text(document: dict[str, Any], width: int) -> str:
    lines = [f"{document['name']}: {document['kv_bytes_per_token']:,} bytes of KV per token"]
    for line in document["derivation"]:
        lines += textwrap.wrap(line, width, initial_indent="* ", subsequent_indent="  ")
    prefix = document["prefix"]
    if prefix is not None:
        lines += textwrap.wrap(
            f"a prefix of {prefix['tokens']:,} tokens: {_both(prefix['stored_bytes'])} stored, "
            f"{_both(prefix['loaded_bytes'])} loaded by a hit",
            width,
            initial_indent="* ",
            subsequent_indent="  ",
        )
    log = document["log"]
    if log is not None:
        lines += textwrap.wrap(_log_text(log, document), width, initial_indent="* ", subsequent_indent="  ")
    date = f", {document['date']}" if document["date"] else ""
    lines += textwrap.wrap(f"source: {document['source']}{date}", width)
    return "\n".join(lines)


def _both(size: int) -> str:
    """Decimal and binary: the two differ by 7 % at a gigabyte, and people mix them up."""
    return f"{size / 1e9:,.3f} GB ({display.size(size)})"


def _log_text(log: dict[str, Any], document: dict[str, Any]) -> str:
    text = (
        f"the log means {log['logged_bytes_per_token']:,.0f} B per token and GPU, "
        f"this model {log['expected_bytes_per_token']:,} B"
    )
    if log["agrees"]:
        return f"{text}: they agree"
    return (
        f"{text}: {log['factor']:.3g} times as much; is it {document['kv_dtype']} on "
        f"{document['tp']} ranks, with no other layers (drafts, windows in a pool of their own)?"
    )


@group.command("fit")
def fit(
    name: Name,
    hardware: o.Hardware = None,
    gpus: Annotated[int, typer.Option(help="GPUs that hold one copy of the model.", metavar="N")] = 1,
    tokens: Annotated[
        int | None,
        typer.Option(help="Context of a user. [default: the longest the model takes]", metavar="N"),
    ] = None,
    kv_dtype: o.KvDtype = None,
    weight_dtype: Annotated[str, typer.Option(help="Type of the weights.", metavar="TYPE")] = "bf16",
    utilization: Annotated[
        float, typer.Option(help="Share of the memory the engine takes.", metavar="F")
    ] = 0.9,
    json: o.Json = None,
) -> None:
    """Say how many users of a length fit some GPUs after the weights, in memory alone."""
    from kvreplay.cost.devices import hardware as find_hardware
    from kvreplay.cost.room import room

    if hardware is None:
        raise ConfigError("no GPU is given", hint="give --hardware NAME; see kvreplay list hardware")
    device = find_hardware(hardware)
    spec = o.the_model(name, kv_dtype=kv_dtype, tp=gpus)
    length = tokens if tokens is not None else spec.max_context_tokens
    if length is None:
        raise ConfigError(f"{spec.name} does not say its longest context", hint="give --tokens N")
    found = room(spec, device, tokens=length, utilization=utilization, weight_dtype=weight_dtype)
    document = {
        "schema": FIT_SCHEMA,
        "name": spec.name,
        "hardware": device.name,
        "gpus": gpus,
        "tokens": length,
        "utilization": utilization,
        "weight_dtype": weight_dtype,
        "kv_dtype": spec.dtype.name,
        **asdict(found),
    }
    if json:
        console.put_json(document)
    else:
        console.put(_fit_text(found, document, console.width()))


def _fit_text(found: Room, document: dict[str, Any], width: int) -> str:
    from kvreplay.report.text import section

    cards = f"{document['gpus']} x {document['hardware']}"
    users = display.many(found.users, "user")
    head = f"{users} of {document['tokens']:,} tokens fit {cards} with {document['name']}"
    if found.kv_bytes < 0:
        head = f"the weights of {document['name']} do not fit {cards}"
    rows = [
        ["memory", "bytes", "binary"],
        ["of the GPUs", f"{found.memory_bytes:,}", display.size(found.memory_bytes)],
        [f"taken ({document['utilization']:g})", f"{found.usable_bytes:,}", display.size(found.usable_bytes)],
        [
            f"weights ({document['weight_dtype']})",
            f"{found.weights_bytes:,}",
            display.size(found.weights_bytes),
        ],
        ["left for KV", f"{found.kv_bytes:,}", display.size(max(0, found.kv_bytes))],
        [f"one user ({document['kv_dtype']})", f"{found.user_bytes:,}", display.size(found.user_bytes)],
    ]
    counted = (
        f"Tokens that fit: {found.kv_tokens:,}. Activations are not counted: the engine's log has the exact "
        "number (GPU KV cache size)."
    )
    wrapped = ["\n".join(textwrap.wrap(note, width)) for note in (counted, _WEIGHTS)]
    return "\n\n".join(["\n".join(textwrap.wrap(head, width)), section("Room", rows, width), *wrapped])
