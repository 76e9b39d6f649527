"""What a timed replay asks of the GPU and of every link: the amounts of table ``demand``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from kvreplay.worth.demand import Amount, demand
from kvreplay.worth.timing import RECOMPUTE, WITHOUT, loaded_bytes

if TYPE_CHECKING:
    from kvreplay.worth.facts import Facts

PREFILL = "prefill"
_US = 1_000_000


def demand_of(facts: Facts) -> pl.DataFrame:
    """Table ``demand`` of a replay whose trace has times; see :func:`kvreplay.worth.demand.demand`."""
    parts = pl.concat([facts.requests, facts.writes], how="horizontal")
    return demand(parts, [*_prefill(), *_links(facts)])


def _prefill() -> list[Amount]:
    """Seconds of prefill per second: of one engine, all its GPUs together, so its capacity is 1."""
    return [
        Amount(PREFILL, "with_tiers", "engine_s", pl.col(RECOMPUTE), 1.0, _US),
        # With nothing to load, service is computing.
        Amount(PREFILL, "without_tiers", "engine_s", pl.col(WITHOUT), 1.0, _US),
    ]


def _links(facts: Facts) -> list[Amount]:
    """Bytes over every link, both ways, one rank's share: what a rank's link has to carry.

    Loads of a tier that goes through another's link are asked of that one too. Writes are asked of the
    tier's own link: what goes down to a drive comes from memory, not from the GPU.
    """
    plan = facts.plan
    out = []
    for name in facts.lower:
        at = plan.tiers.index(name)
        link = plan.links[at]
        read = _whole(loaded_bytes(plan, at))
        for below in range(at + 1, len(plan.tiers)):
            other = plan.links[below]
            if link is not None and other is not None and other.next == link:
                read = read + _whole(loaded_bytes(plan, below))
        assert plan.model is not None  # noqa: S101 - a timed plan has a model
        write = pl.col(f"written_tokens_{name}") * plan.model.rank_bytes_per_token
        speeds = (None, None) if link is None else (link.bytes_per_us * 1e6, link.write_bytes_per_us * 1e6)
        out.append(Amount(name, "read", "bytes", read, speeds[0]))
        out.append(Amount(name, "write", "bytes", write, speeds[1]))
        behind = None if link is None else link.next
        if behind is not None and behind not in plan.links:
            passing = Amount(behind.name, "read", "bytes", read, behind.bytes_per_us * 1e6)
            out.append(passing)
    return out


def _whole(size: pl.Expr) -> pl.Expr:
    return size.round(0).cast(pl.Int64)
