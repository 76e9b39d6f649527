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
    plan = facts.plan
    at, row, span = plan.tiers.index(tier), facts.rows[tier], facts.span_us
    gpu, rent = gpu_us_usd(plan), tier_us_usd(facts, tier)
    gained = facts.compute_us[at] - facts.compute_us[at + 1]
    if (
        plan.media[at] != "dram"
        or gpu is None
        or rent is None
        or not span
        or not row["hit_tokens"]
        or at == 0
    ):
        return None
    value = gained / row["hit_tokens"] * gpu / span * HOUR_US  # USD per hour and token
    price = rent / row["capacity_blocks"] * HOUR_US  # USD per hour and block
    above = sum(study.tier_capacities[:at])
    last = study.curve.last_capacity_blocks
    sizes = [size for size in log_spaced(last, _POINTS) if row["fill"] == "victim" or size > above]
    now = row["capacity_blocks"]
    covers = {size: size + above if row["fill"] == "victim" else max(size, above) for size in [*sizes, now]}
    wanted = sorted({above, *covers.values()} - {0})
    hits = dict(zip(wanted, study.curve.at(wanted).to_pydict()["hit_tokens"], strict=True)) | {0: 0}

    def net(size: int) -> Size:
        return Size(size, value * (hits[covers[size]] - hits[above]) - price * size)

    best = max(
        (net(size) for size in [*sizes, now]), key=lambda one: (one.net_usd_per_hour, -one.capacity_blocks)
    )
    return {"tier": tier, "now": asdict(net(now)), "best": asdict(best)}


def size_text(study: Study, found: dict[str, Any]) -> str:
    """One sentence about the size that nets most."""
    best, now = found["best"], found["now"]
    name, usd = found["tier"], best["net_usd_per_hour"]
    if usd <= 0:
        return f"In money no size of {name} pays on this traffic."
    blocks = best["capacity_blocks"]
    size = display.size(study.scale.bytes(blocks))
    text = f"In money {name} is best at about {display.count(blocks)} blocks = {size}"
    if blocks == now["capacity_blocks"]:
        return f"{text}, as it is."
    return f"{text}: {dollars(usd)} an hour net of its rent, against {dollars(now['net_usd_per_hour'])} now."


def dollars(value: float) -> str:
    """``$1.42`` or ``-$0.30``."""
    return f"{'-' if value < 0 else ''}${abs(value):.2f}"
