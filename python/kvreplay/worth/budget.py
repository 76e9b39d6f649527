"""Memory budget: whether the tiers fit the machine that the times were taken for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kvreplay import display
from kvreplay.cost.modelspec import ModelSpec

if TYPE_CHECKING:
    import polars as pl

    from kvreplay.worth.plan import Plan

# Weights in 16 bits, as the prior of the recompute time reads them.
_WEIGHT_BYTES = 2


def budget(tiers: pl.DataFrame, plan: Plan) -> dict[str, Any]:
    """Bytes that the tiers need and the machine has; ``None`` for what is not known.

    Parameters
    ----------
    tiers
        ``tier``, ``capacity_tokens`` and ``capacity_bytes``, fastest first.
    plan
        Model, GPU and links.

    Returns
    -------
    dict
        ``gpu_kv_bytes`` (the first tier, on all ranks together: MLA is on every one), ``gpu_weight_bytes``,
        ``gpu_bytes`` (memory of the GPUs), ``host_bytes`` (tiers in host memory, all copies).
    """
    out: dict[str, Any] = dict.fromkeys(("gpu_kv_bytes", "gpu_weight_bytes", "gpu_bytes", "host_bytes"))
    model = plan.model
    if model is None:
        return out
    rows = list(zip(tiers.iter_rows(named=True), plan.media, strict=True))
    if plan.resident_tiers and isinstance(model, ModelSpec):
        out["gpu_kv_bytes"] = rows[0][0]["capacity_tokens"] * model.hbm_bytes_per_token
    if isinstance(model, ModelSpec) and model.parameters is not None:
        out["gpu_weight_bytes"] = model.params_total * _WEIGHT_BYTES
    if plan.hardware is not None:
        out["gpu_bytes"] = plan.hardware.memory_bytes * model.tp
    out["host_bytes"] = sum(
        row["capacity_bytes"] * model.host_copies for row, medium in rows if medium == "dram"
    )
    return out


def budget_warnings(tiers: pl.DataFrame, plan: Plan) -> list[dict[str, str]]:
    """Say where the first tier and the weights do not fit the GPUs, as ``{code, text}``."""
    found = budget(tiers, plan)
    kv, weights, memory = found["gpu_kv_bytes"], found["gpu_weight_bytes"] or 0, found["gpu_bytes"]
    if kv is None or memory is None or plan.model is None or kv + weights <= memory:
        return []
    name = plan.hardware.name if plan.hardware is not None else ""
    return [
        {
            "code": "gpu_memory",
            "text": f"tier {plan.tiers[0]} takes {display.size(kv)} and the weights {display.size(weights)} "
            f"(16 bits): more than the {display.size(memory)} of {plan.model.tp} x {name}, so its hits are "
            "those of several engines and its times those of one",
        }
    ]
