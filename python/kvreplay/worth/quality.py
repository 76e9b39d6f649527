"""Hit quality: what the hits of each tier are worth, and at which lengths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from kvreplay.worth.money import tier_money, tier_wear, usd_per_million_tokens
from kvreplay.worth.percentiles import TIME_COLUMNS, spread
from kvreplay.worth.totals import total

if TYPE_CHECKING:
    from kvreplay.worth.facts import Facts

QUALITY_SCHEMA: dict[str, Any] = {
    "tier": pl.String,
    "link": pl.String,
    "hits": pl.Int64,
    "hit_tokens": pl.Int64,
    "load_us": pl.Int64,
    "store_us": pl.Int64,
    "saved_us": pl.Int64,
    "gpu_saved_us": pl.Int64,
    "harmful_hits": pl.Int64,
    "harmful_tokens": pl.Int64,
    "lost_us": pl.Int64,
    "oracle_saved_us": pl.Int64,
    "marginal_hit_tokens": pl.Int64,
    "marginal_saved_us": pl.Int64,
    "read_bytes": pl.Int64,
    "written_bytes": pl.Int64,
    "moved_bytes_per_saved_s": pl.Float64,
    "promoted_blocks": pl.Int64,
    "stores_per_load": pl.Float64,
    "never_read_share": pl.Float64,
    "stranded_bytes": pl.Int64,
    "superseded_bytes": pl.Int64,
    "residence_us": pl.Int64,
    "reuse_gap_p50_us": pl.Int64,
    "reuse_gap_p90_us": pl.Int64,
    "tier_usd_per_hour": pl.Float64,
    "gpu_usd_saved_per_hour": pl.Float64,
    "net_usd_per_hour": pl.Float64,
    "usd_per_saved_gpu_hour": pl.Float64,
    "written_bytes_per_day": pl.Int64,
    "drive_writes_per_day": pl.Float64,
    "lifetime_years": pl.Float64,
}
SCENARIOS_SCHEMA: dict[str, Any] = {
    "scenario": pl.String,
    "hit_tokens": pl.Int64,
    **TIME_COLUMNS,
    "compute_us": pl.Int64,
    "gpu_usd_per_million_tokens": pl.Float64,
    "tiers_usd_per_million_tokens": pl.Float64,
}
LENGTHS_SCHEMA: dict[str, Any] = {
    "tier": pl.String,
    "lower_tokens": pl.Int64,
    "upper_tokens": pl.Int64,
    "hits": pl.Int64,
    "harmful_hits": pl.Int64,
    "hit_tokens": pl.Int64,
    "saved_us": pl.Int64,
    "lost_us": pl.Int64,
    "load_mean_us": pl.Float64,
    "with_mean_us": pl.Float64,
    "with_p50_us": pl.Float64,
    "without_mean_us": pl.Float64,
    "without_p50_us": pl.Float64,
}


def hit_quality(facts: Facts) -> pl.DataFrame:
    """One row per tier: what its hits save, move, cost and wear. Null where something is not known."""
    rows = [_quality(facts, name) for name in facts.plan.tiers]
    return pl.DataFrame(rows, QUALITY_SCHEMA, strict=True)


def _quality(facts: Facts, tier: str) -> dict[str, Any]:
    at, row, requests = facts.plan.tiers.index(tier), facts.rows[tier], facts.requests
    link = facts.plan.links[at]
    gpu_saved = facts.compute_us[at] - facts.compute_us[at + 1]
    harmful = requests.filter(pl.col(f"harmful_{tier}"))
    known = row["saved_us"] is not None
    gains = harmful.select(pl.col(f"saved_us_{tier}") + pl.col(f"store_us_{tier}")).to_series()
    lost = -int(gains.sum()) if known else None
    return {
        "tier": tier,
        "link": None if link is None else link.name,
        **{key: row[key] for key in ("hits", "hit_tokens", "saved_us", "harmful_hits")},
        "load_us": total(requests[f"load_us_{tier}"]),
        "store_us": total(requests[f"store_us_{tier}"]),
        "gpu_saved_us": gpu_saved,
        "harmful_tokens": int(harmful[f"hit_tokens_{tier}"].sum()) if known else None,
        "lost_us": lost,
        "oracle_saved_us": row["saved_us"] + lost if known else None,
        **_marginal(facts, tier),
        **_moved(facts, tier),
        **facts.gaps.get(tier, {}),
        **tier_money(facts, tier, gpu_saved),
        **tier_wear(facts, tier),
    }


def _marginal(facts: Facts, tier: str) -> dict[str, Any]:
    """What all tiers together lose without this one: the other tiers may serve a part of its hits."""
    other = facts.without.get(tier)
    if other is None:
        return {}
    hit_tokens = int(facts.tiers["hit_tokens"].sum()) - other.hit_tokens
    mine = total(facts.ttft_us)
    without = None if other.ttft_us is None else total(other.ttft_us)
    known = mine is not None and without is not None
    return {
        "marginal_hit_tokens": hit_tokens,
        "marginal_saved_us": without - mine if known else None,  # type: ignore[operator]
    }


def _moved(facts: Facts, tier: str) -> dict[str, Any]:
    """Blocks and bytes through a tier, and how long they stay."""
    row = facts.rows[tier]
    capacity, capacity_bytes = row["capacity_blocks"], row["capacity_bytes"]
    block_bytes = capacity_bytes // capacity if capacity and capacity_bytes is not None else None
    moved = None if row["written_bytes"] is None else row["written_bytes"] + row["read_bytes"]
    saved, stored = row["saved_us"], row["inserted_blocks"]
    never = row["dead_on_arrival_blocks"]
    if never is not None and row["unread_at_end_blocks"] is not None:
        never += row["unread_at_end_blocks"]

    def size(blocks: int | None) -> int | None:
        return None if blocks is None or block_bytes is None else blocks * block_bytes

    return {
        "read_bytes": row["read_bytes"],
        "written_bytes": row["written_bytes"],
        "moved_bytes_per_saved_s": moved / saved * 1e6 if moved is not None and (saved or 0) > 0 else None,
        "promoted_blocks": row["hit_blocks"] if tier != facts.plan.tiers[0] else 0,
        "stores_per_load": stored / row["hit_blocks"] if stored is not None and row["hit_blocks"] else None,
        "never_read_share": never / stored if never is not None and stored else None,
        "stranded_bytes": size(row["stranded_blocks"]),
        "superseded_bytes": size(row["superseded_blocks"]),
        "residence_us": residence_us(row, facts.span_us),
    }


def residence_us(row: dict[str, Any], span_us: int | None) -> int | None:
    """Mean time a block stays, by Little's law: blocks held / blocks stored per time.

    Taken with the most the tier held: an upper bound, close where it was full for most of the trace.
    """
    stored, held = row["inserted_blocks"], row.get("peak_blocks")
    if span_us is None or not stored or held is None:
        return None
    share: float = min(held / stored, 1.0)
    return round(share * span_us)


def scenarios(facts: Facts) -> pl.DataFrame:
    """Service times and money with all tiers, with the first alone, without each lower one, and with none."""
    names, first = list(facts.plan.tiers), facts.plan.resident_tiers
    hits = facts.tiers["hit_tokens"].to_list()
    rows = [_scenario(facts, "all tiers", names, sum(hits), facts.ttft_us, facts.compute_us[-1])]
    # Without the only lower tier there is the first alone.
    apart = facts.without if len(facts.lower) > 1 or not first else {}
    for name, other in apart.items():
        rest = [one for one in names if one != name]
        rows.append(
            _scenario(facts, f"without {name}", rest, other.hit_tokens, other.ttft_us, other.compute_us)
        )
    if first:
        rows.append(
            _scenario(
                facts, f"{names[0]} alone", names[:1], hits[0], facts.first_only_us, facts.compute_us[1]
            )
        )
    none = facts.first_only_us
    for name in names[:first]:
        none = none + facts.saved(name)
    rows.append(_scenario(facts, "no cache", [], 0, none, facts.compute_us[0]))
    return pl.DataFrame(rows, SCENARIOS_SCHEMA, strict=True)


def _scenario(  # noqa: PLR0917 - the columns of one row, in order
    facts: Facts, name: str, tiers: list[str], hit_tokens: int, ttft: pl.Series | None, compute_us: int
) -> dict[str, Any]:
    gpu, kept = usd_per_million_tokens(facts, tiers, compute_us)
    unknown = pl.Series([None] * facts.requests.height, dtype=pl.Int64)
    return {
        "scenario": name,
        "hit_tokens": hit_tokens,
        **spread(unknown if ttft is None else ttft),
        "compute_us": compute_us,
        "gpu_usd_per_million_tokens": gpu,
        "tiers_usd_per_million_tokens": kept,
    }


def hits_by_length(facts: Facts) -> pl.DataFrame:
    """Hits of each timed tier by loaded tokens (powers of two), against the same requests without them.

    The requests of a row are compared with themselves: the only difference is that the run of this tier is
    loaded in one case and computed in the other.
    """
    parts = [_by_length(facts, name) for name in facts.lower if facts.rows[name]["saved_us"] is not None]
    empty = pl.DataFrame(schema=LENGTHS_SCHEMA)
    return pl.concat([empty, *parts], how="vertical")


def _by_length(facts: Facts, tier: str) -> pl.DataFrame:
    tokens, gain = pl.col(f"hit_tokens_{tier}"), pl.col(f"saved_us_{tier}") + pl.col(f"store_us_{tier}")
    ttft = pl.lit(facts.ttft_us).alias("with_us")
    power = (tokens.cast(pl.Float64).log(2) + 1e-9).floor().cast(pl.Int64)
    rows = facts.requests.lazy().with_columns(ttft).filter(tokens > 0)
    rows = rows.with_columns(without_us=pl.col("with_us") + gain, lower_tokens=pl.lit(2).pow(power))
    return (
        rows.group_by("lower_tokens")
        .agg(
            tier=pl.lit(tier),
            hits=pl.len(),
            harmful_hits=pl.col(f"harmful_{tier}").sum(),
            hit_tokens=tokens.sum(),
            saved_us=gain.sum(),
            lost_us=-gain.filter(gain < 0).sum(),
            load_mean_us=pl.col(f"load_us_{tier}").mean(),
            with_mean_us=pl.col("with_us").mean(),
            with_p50_us=pl.col("with_us").median(),
            without_mean_us=pl.col("without_us").mean(),
            without_p50_us=pl.col("without_us").median(),
        )
        .with_columns(upper_tokens=pl.col("lower_tokens") * 2 - 1)
        .select(pl.col(name).cast(dtype) for name, dtype in LENGTHS_SCHEMA.items())
        .sort("lower_tokens")
        .collect()
    )
