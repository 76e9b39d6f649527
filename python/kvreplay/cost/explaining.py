"""The derivation of a model's bytes, line by line, for people who check it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvreplay import display

if TYPE_CHECKING:
    from kvreplay.cost.modelspec import ModelSpec


def derivation(spec: ModelSpec) -> list[str]:
    """One line per group of layers, per sum and per fact of parallelism."""
    lines = [_group(spec, at) for at in range(len(spec.groups))]
    lines.append(f"stored per token, one copy: {spec.kv_bytes_per_token:,} B")
    if spec.state_bytes:
        kept = [f"windows of {g.layers} layers" for g in spec.groups if not g.kept]
        lines.append(
            f"per checkpoint: {spec.state_bytes:,} B ({display.size(spec.state_bytes)}): "
            + ", ".join([text for text in (spec.state_formula, *kept) if text])
        )
    windows = [g for g in spec.groups if g.window_tokens is not None and g.kept]
    if windows:
        reach = max(g.window_tokens or 0 for g in windows)
        lines.append(
            f"loaded for a hit of n tokens: windows read their last tokens only, "
            f"{spec.loaded_bytes(reach):,} B at n = {reach:,}, "
            f"then {spec.loaded_bytes(reach + 1024) - spec.loaded_bytes(reach):,} B per 1,024 tokens"
        )
    lines += _parallel(spec)
    lines += _work(spec)
    return lines


def _group(spec: ModelSpec, at: int) -> str:
    group = spec.groups[at]
    dtype = spec.indexer_dtype if group.indexer else spec.dtype
    each = group.entry_bytes(dtype) / group.stride_tokens
    scale = f" + {dtype.vector_bytes} B per vector" if dtype.vector_bytes else ""
    where = "" if group.kept else ", kept per checkpoint, not per token"
    return (
        f"{group.layers} layers of {group.label}: {group.formula}, x {group.layers} x "
        f"{float(dtype.element_bytes):g} B ({dtype.name}){scale} = {float(each):,.6g} B per token{where}"
    )


def _parallel(spec: ModelSpec) -> list[str]:
    if spec.tp == 1 and spec.host_copies == 1:
        return []
    text = (
        f"on {spec.tp} ranks: {spec.hbm_bytes_per_token:,} B per token in all, "
        f"{spec.rank_bytes_per_token:,} B over each rank's link; "
        f"{spec.host_bytes_per_token:,} B in a host tier of {spec.host_copies} copies"
    )
    return [text]


def _work(spec: ModelSpec) -> list[str]:
    lines = []
    if spec.parameters is not None:
        lines.append(
            f"parameters: {spec.parameters.total / 1e9:,.2f} B in all, "
            f"{spec.parameters.body / 1e9:,.2f} B per prefilled token (no embedding, no head, active experts)"
        )
        lines.append(
            f"prefill work per token: {spec.linear_flops_per_token / 1e9:,.2f} GFLOP, "
            f"and {spec.attention_flops_coefficient:,.6g} x (2 p m + m^2) FLOP for m tokens after p "
            f"({spec.attention_formula})"
        )
    else:
        lines.append("parameters: unknown, so no prior for the time of recomputing")
    return lines
