"""How large a tier should be in money: where the GPU time it saves is worth most over what it costs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from kvreplay import display
from kvreplay.cost.money import HOUR_US
from kvreplay.points import log_spaced
from kvreplay.worth.money import gpu_us_usd, tier_us_usd

if TYPE_CHECKING:
    from kvreplay.tables.study import Study
    from kvreplay.worth.facts import Facts

_POINTS = 64
# Share of the best that is as good: the curve is an estimate in money.
_NEAR = 0.95


@dataclass(frozen=True)
class Size:
    """A capacity of a tier and what it would net.

    Parameters
    ----------
    capacity_blocks
        The capacity.
    net_usd_per_hour
        GPU time saved less rent.
    """

    capacity_blocks: int
    net_usd_per_hour: float


def best_size(study: Study, facts: Facts, tier: str) -> dict[str, Any] | None:
    """The size of a memory tier that nets most, from the LRU curve.

    A token is valued at what the tier's hits save on average, so this is an estimate: deep tokens are worth
    more, policies other than LRU have other curves, and tiers below are left out. A ``victim`` tier adds its
    room to the tiers above; any other holds what they hold too. Only for memory: what a drive costs depends
    on what is written.

    Returns
    -------
    dict or None
        ``tier``, ``now`` and ``best`` (:class:`Size` as dicts); ``None`` where a price, a time or a hit is
        missing.
    """
    rates = _rates(study, facts, tier)
    if rates is None:
        return None
    at, victim = facts.plan.tiers.index(tier), facts.rows[tier]["fill"] == "victim"
    now, above = study.tier_capacities[at], sum(study.tier_capacities[:at])
    sizes = [size for size in log_spaced(study.curve.last_capacity_blocks, _POINTS) if victim or size > above]
    covers = {size: size + above if victim else max(size, above) for size in [*sizes, now]}
    wanted = sorted({above, *covers.values()})
    hits = dict(zip(wanted, study.curve.at(wanted).to_pydict()["hit_tokens"], strict=True))

    def net(size: int) -> Size:
        return Size(size, rates[0] * (hits[covers[size]] - hits[above]) - rates[1] * size)

    every = [net(size) for size in [*sizes, now]]
    best = max(every, key=lambda one: (one.net_usd_per_hour, -one.capacity_blocks))
    return {"tier": tier, "now": asdict(net(now)), "best": asdict(best)}


def _rates(study: Study, facts: Facts, tier: str) -> tuple[float, float] | None:
    """USD per hour that a token served saves and that a block costs; ``None`` where they are not known."""
    plan, row, span = facts.plan, facts.rows[tier], facts.span_us
    at = plan.tiers.index(tier)
    gpu, rent = gpu_us_usd(plan), tier_us_usd(facts, tier)
    blocks = study.tier_capacities[at]  # of the trace, as the curve's are
    if at == 0 or plan.media[at] != "dram" or not span or not row["hit_tokens"] or not blocks:
        return None
    if gpu is None or rent is None:
        return None
    gained = facts.compute_us[at] - facts.compute_us[at + 1]
    return gained / row["hit_tokens"] * gpu / span * HOUR_US, rent / blocks * HOUR_US


def size_text(study: Study, found: dict[str, Any]) -> str:
    """One sentence about the size that nets most."""
    best, now = found["best"], found["now"]
    name, usd = found["tier"], best["net_usd_per_hour"]
    if usd <= 0:
        return f"In money no size of {name} pays on this traffic."
    blocks = best["capacity_blocks"]
    size = display.size(study.scale.bytes(blocks))
    text = f"In money {name} is best at about {display.count(blocks)} blocks = {size}"
    if now["net_usd_per_hour"] >= _NEAR * usd:
        return f"{text}; as it is, it nets nearly the same."
    return f"{text}: {dollars(usd)} an hour net of its rent, against {dollars(now['net_usd_per_hour'])} now."


def dollars(value: float) -> str:
    """``$1.42`` or ``-$0.30``."""
    return f"{'-' if value < 0 else ''}${abs(value):.2f}"
