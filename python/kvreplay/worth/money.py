"""What tiers cost by the hour, and what the GPU time they save is worth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kvreplay.cost import wear
from kvreplay.cost.money import HOUR_US
from kvreplay.worth.totals import per_day

if TYPE_CHECKING:
    from kvreplay.worth.facts import Facts
    from kvreplay.worth.plan import Plan


def gpus(plan: Plan) -> int:
    """GPUs that compute one prompt: the model's ranks."""
    return int(getattr(plan.model, "tp", 1))


def gpu_us_usd(plan: Plan) -> float | None:
    """USD per microsecond of all GPUs that compute a prompt, ``None`` where no price is known."""
    if plan.prices.gpu_hour_usd is None:
        return None
    return plan.prices.gpu_us_usd * gpus(plan)


def tier_us_usd(facts: Facts, tier: str) -> float | None:
    """USD per microsecond that a tier costs; ``None`` where nobody knows what it is made of.

    Memory is written off over its years. A drive is used up by time or by writing, whichever is faster. The
    GPU's own memory comes with the GPU: 0.
    """
    plan = facts.plan
    at = plan.tiers.index(tier)
    if at < plan.resident_tiers:
        return 0.0
    medium, row = plan.media[at], facts.rows[tier]
    capacity = row["capacity_bytes"]
    if medium is None or capacity is None:
        return None
    copies = int(getattr(plan.model, "host_copies", 1))
    usd: float = capacity * copies * plan.prices.rent(medium)
    life = row["lifetime_years"]
    if medium == "ssd" and life is not None and life < plan.prices.ssd_years:
        usd *= plan.prices.ssd_years / life
    return usd


def tier_money(facts: Facts, tier: str, gpu_saved_us: int) -> dict[str, Any]:
    """Money columns of a tier in table ``hit_quality``; nulls where a price or the length is not known."""
    rent, gpu, span = tier_us_usd(facts, tier), gpu_us_usd(facts.plan), facts.span_us
    cost = None if rent is None else rent * HOUR_US
    saved = None if gpu is None or not span else gpu * gpu_saved_us / span * HOUR_US
    known = cost is not None and saved is not None
    saved_gpu_hours = None if not span else gpu_saved_us * gpus(facts.plan) / span
    return {
        "tier_usd_per_hour": cost,
        "gpu_usd_saved_per_hour": saved,
        "net_usd_per_hour": saved - cost if known else None,  # type: ignore[operator]
        "usd_per_saved_gpu_hour": cost / saved_gpu_hours if cost is not None and saved_gpu_hours else None,
    }


def tier_wear(facts: Facts, tier: str) -> dict[str, Any]:
    """Wear columns of a tier; null for what is no drive."""
    row, plan = facts.rows[tier], facts.plan
    daily = per_day(row["written_bytes"], facts.span_us)
    drive = plan.media[plan.tiers.index(tier)] == "ssd" and daily is not None and row["capacity_bytes"]
    return {
        "written_bytes_per_day": None if daily is None else round(daily),
        "drive_writes_per_day": wear.drive_writes_per_day(
            row["capacity_bytes"], daily or 0.0, waf=plan.prices.ssd_waf
        )
        if drive
        else None,
        "lifetime_years": row["lifetime_years"],
    }


def usd_per_million_tokens(
    facts: Facts, tiers: list[str], compute_us: int
) -> tuple[float | None, float | None]:
    """USD of GPU time and of some tiers per million input tokens; ``None`` where a price is not known."""
    gpu, tokens = gpu_us_usd(facts.plan), facts.input_tokens
    rents = [tier_us_usd(facts, name) for name in tiers]
    if not tokens:
        return None, None
    kept = None
    if facts.span_us and all(rent is not None for rent in rents):
        kept = sum(rent or 0.0 for rent in rents) * facts.span_us / tokens * 1e6
    return (None if gpu is None else gpu * compute_us / tokens * 1e6), kept
