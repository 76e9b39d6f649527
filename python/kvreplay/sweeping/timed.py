"""Times of the points of a sweep: the same arithmetic over hits as in a replay, summed per tier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from kvreplay.frames import frame
from kvreplay.replaying import plan_of
from kvreplay.worth.bounds import check_times
from kvreplay.worth.timing import timed
from kvreplay.worth.totals import total
from kvreplay.worth.writes import weights_by_offers, written_tokens

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kvreplay import _core
    from kvreplay.replaying import Tier
    from kvreplay.trace import Trace
    from kvreplay.worth.plan import Plan

TIME_COLUMNS = ["harmful_hits", "saved_us"]


def plan_of_point(trace: Trace, tiers: Sequence[Tier], mode: str, worth: Mapping[str, Any]) -> Plan | None:
    """How a point is timed; ``None`` where there is no cost, or nothing is loaded.

    Raises
    ------
    ConfigError
        As :func:`kvreplay.replay` for these tiers, this model, GPU and cost.
    """
    plan = plan_of(tiers, **worth, mode=mode)
    check_times(plan, trace)
    return plan if plan.cost is not None and any(link is not None for link in plan.links) else None


def times_of(core: _core.Replay, plan: Plan, *, block_tokens: int) -> dict[str, list[int | None]]:
    """``harmful_hits`` and ``saved_us`` of each tier; ``None`` for what has no link.

    Parameters
    ----------
    core
        A replay that kept its requests.
    plan
        How it is timed.
    block_tokens
        Tokens of its blocks.
    """
    hits = frame(core.requests())
    if plan.stores_block:
        tiers = frame(core.tiers())
        stored = (tiers["inserted_blocks"] * block_tokens).to_list()
        weights = weights_by_offers(hits, plan.tiers, tiers["fill"].to_list())
        hits = pl.concat([hits, written_tokens(weights, plan.tiers, stored)], how="horizontal")
    times = timed(hits, plan)
    return {
        "harmful_hits": [total(times[f"harmful_{name}"]) for name in plan.tiers],
        "saved_us": [total(times[f"saved_us_{name}"]) for name in plan.tiers],
    }
