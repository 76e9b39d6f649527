"""Whether times fit what they are counted in: refused before they wrap."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from kvreplay import display
from kvreplay.errors import ConfigError

if TYPE_CHECKING:
    from kvreplay.trace import Trace
    from kvreplay.worth.plan import Plan

# Sums of microseconds are Int64, products with counts as well: 2^62 leaves a sign and a doubling.
_MOST_US = 2.0**62


def check_times(plan: Plan, trace: Trace) -> None:
    """Refuse a plan under which all requests of a trace together could take longer than can be counted.

    Raises
    ------
    ConfigError
        Naming the slowest part.
    """
    if plan.cost is None or plan.model is None or not len(trace):
        return
    longest = int(trace.requests().select(pl.col("input_tokens").max()).item())
    size = plan.model.rank_loaded_bytes(longest)
    parts = {"computing": plan.cost.recompute_us(longest)}
    for name, link in zip(plan.tiers, plan.links, strict=True):
        if link is not None:
            parts[f"loading from {name}"] = link.load_us(longest, size)
            parts[f"storing to {name}"] = link.store_us(longest, longest * plan.model.rank_bytes_per_token)
    if sum(parts.values()) * len(trace) < _MOST_US:
        return
    slowest = max(parts, key=lambda name: parts[name])
    raise ConfigError(
        f"{slowest} a prompt of {display.count(longest)} tokens would take "
        f"{display.span(round(min(parts[slowest], _MOST_US)))}: times of all requests cannot be counted",
        hint="check the units of the cost model and of the links",
    )
