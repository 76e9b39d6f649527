"""Service times of a replay's requests: what loading costs, what recomputing would have cost.

A request of `n` input tokens is served runs of `h1, h2, ...` tokens by the tiers, fastest first, and computes
the rest. With the tiers down to `k` alone its time is

    T_k = C(n - P_k, P_k) + load_1 + ... + load_k,    P_k = h1 + ... + hk,

where `C(m, p)` recomputes `m` tokens behind `p` resident ones (:class:`kvreplay.CostModel`). Tier `k` saves
`T_(k-1) - T_k`: the recompute of its run with everything before it resident, less the load. Every `C` and
every load is rounded to microseconds once, so the savings of the tiers sum to `T_0 - T_K` exactly. A load
that hides behind computing does so behind all the request does besides (`overlap` of its link).

A tier whose link has ``store = "blocking"`` also delays the request by what it writes there; that is
taken off what the tier saves, on misses too. A hit is harmful by its load alone.

Loads are those of one rank's link; a model of windowed layers loads their last tokens only, a recurrent one
its state once, with the deepest run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvreplay.cost.transfer import Link
    from kvreplay.worth.plan import Plan

WITH, WITHOUT = "service_ttft_us", "service_ttft_without_tiers_us"
RECOMPUTE = "recompute_us"
PER_TIER: dict[str, Any] = {
    "load_us": pl.Int64,
    "store_us": pl.Int64,
    "saved_us": pl.Int64,
    "harmful": pl.Boolean,
}
_UNKNOWN = pl.lit(None, pl.Int64)


def timed_schema(tiers: Sequence[str]) -> dict[str, Any]:
    """Columns that :func:`timed` makes, in order, with their types."""
    each = {f"{what}_{name}": dtype for name in tiers for what, dtype in PER_TIER.items()}
    return {**each, RECOMPUTE: pl.Int64, WITH: pl.Int64, WITHOUT: pl.Int64}


def timed(hits: pl.DataFrame, plan: Plan) -> pl.DataFrame:
    """Times of a replay's requests.

    Parameters
    ----------
    hits
        ``hit_tokens_<tier>`` and ``computed_tokens``, one row per request; ``written_tokens_<tier>`` too
        for tiers whose link blocks while storing.
    plan
        The cost model and the links.

    Returns
    -------
    polars.DataFrame
        Per tier ``load_us_<tier>``, ``store_us_<tier>`` (0 where storing does not delay the request),
        ``saved_us_<tier>`` and ``harmful_<tier>``, then ``recompute_us`` (of the tokens no tier served),
        ``service_ttft_us`` and ``service_ttft_without_tiers_us`` (the first tier alone, or none where that
        has a link too). Times are Int64 microseconds without any queueing. What a tier without a link would
        take is null, and so is the service time of a replay with such a tier.
    """
    # Collected at once, what several columns are made of is made once.
    parts = hits.lazy().select(*computes(plan), *loads(plan), *stores(plan))
    return parts.select(outcomes(plan)).collect()


def computes(plan: Plan) -> list[pl.Expr]:
    """``compute_0 .. compute_K``: the time of computing what the tiers down to `k` do not serve."""
    assert plan.cost is not None  # noqa: S101 - callers ask for times only where there are some
    out = []
    for k in range(len(plan.tiers) + 1):
        resident = sum_of(plan.tiers[:k])
        rest = sum_of(plan.tiers[k:]) + pl.col("computed_tokens")
        out.append(microseconds(plan.cost.recompute_expr(rest, resident)).alias(f"compute_{k}"))
    return out


def loads(plan: Plan, tag: str = "") -> list[pl.Expr]:
    """``load<tag>_<tier>``: the time of loading the tier's run; 0 for no run, null where it is not known."""
    out = []
    for at, (name, link) in enumerate(zip(plan.tiers, plan.links, strict=True)):
        if link is not None:
            time = microseconds(link.load_expr(pl.col(f"hit_tokens_{name}"), loaded_bytes(plan, at)))
        else:
            time = pl.lit(0, pl.Int64) if at < plan.resident_tiers else _UNKNOWN
        out.append(time.alias(f"load{tag}_{name}"))
    return out


def stores(plan: Plan, tag: str = "") -> list[pl.Expr]:
    """``store<tag>_<tier>``: how long writing to the tier delays the request; 0 where it does not block."""
    out = []
    for name, link in zip(plan.tiers, plan.links, strict=True):
        time = pl.lit(0, pl.Int64)
        if link is not None and link.store == "blocking":
            time = microseconds(_store(link, pl.col(f"written_tokens_{name}"), plan))
        out.append(time.alias(f"store{tag}_{name}"))
    return out


def _store(link: Link, tokens: pl.Expr, plan: Plan) -> pl.Expr:
    assert plan.model is not None  # noqa: S101 - there are no times without a model
    return link.store_expr(tokens, tokens * plan.model.rank_bytes_per_token)


def loaded_bytes(plan: Plan, at: int) -> pl.Expr:
    """Bytes that cross one rank's link for the run of tier `at`, Float64.

    A run that is followed by deeper ones is what the whole loads less what they load: windowed layers need
    the tokens before the end of the hit only, wherever these lie.
    """
    assert plan.model is not None  # noqa: S101 - bytes were asked for, so there is a model
    until = sum_of(plan.tiers[at:])
    if at + 1 == len(plan.tiers):
        return plan.model.rank_loaded_bytes_expr(until)
    after = plan.model.rank_loaded_bytes_expr(sum_of(plan.tiers[at + 1 :]))
    return plan.model.rank_loaded_bytes_expr(until) - after


def outcomes(plan: Plan) -> list[pl.Expr]:
    """The columns of :func:`timed` from those of :func:`computes`, :func:`loads` and :func:`stores`."""
    out: list[pl.Expr] = []
    for at, name in enumerate(plan.tiers):
        gained, store = gain(plan, at), pl.col(f"store_{name}")
        out.append(pl.col(f"load_{name}").alias(f"load_us_{name}"))
        out.append(store.alias(f"store_us_{name}"))
        out.append((gained - store).alias(f"saved_us_{name}"))
        out.append((gained < 0).alias(f"harmful_{name}"))
    out.append(pl.col(f"compute_{len(plan.tiers)}").alias(RECOMPUTE))
    out.append((service(plan, len(plan.tiers)) + _stored(plan.tiers)).alias(WITH))
    first = plan.resident_tiers
    out.append((service(plan, first) + _stored(plan.tiers[:first])).alias(WITHOUT))
    return out


def _stored(tiers: Sequence[str]) -> pl.Expr:
    total = pl.lit(0, pl.Int64)
    for name in tiers:
        total = total + pl.col(f"store_{name}")
    return total


def gain(plan: Plan, at: int, tag: str = "") -> pl.Expr:
    """What the hits of tier `at` save by themselves, stores not counted; null where its load is not known."""
    if plan.links[at] is None and at >= plan.resident_tiers:
        return _UNKNOWN
    # Loads that nobody knows stand on both sides of the difference: they do not matter to this tier.
    return service(plan, at, tag, skip=True) - service(plan, at + 1, tag, skip=True)


def service(plan: Plan, count: int, tag: str = "", *, skip: bool = False) -> pl.Expr:
    """Time with the first `count` tiers alone; `skip` leaves out the loads that are not known."""
    time = pl.col(f"compute_{count}")
    for at in range(count):
        link = plan.links[at]
        load = pl.col(f"load{tag}_{plan.tiers[at]}")
        if link is not None:
            time = _behind(link, load, time, plan)
        elif at >= plan.resident_tiers and not skip:
            time = time + load
    return time


def _behind(link: Link, load: pl.Expr, time: pl.Expr, plan: Plan) -> pl.Expr:
    if link.overlap == "none":
        return load + time  # integers stay integers
    layers = 1 if plan.model is None else plan.model.layers
    return microseconds(link.hit_expr(load, time, layers=layers))


def microseconds(time: pl.Expr) -> pl.Expr:
    """Whole microseconds, half to even."""
    return time.round(0, mode="half_to_even").cast(pl.Int64)


def sum_of(tiers: Sequence[str]) -> pl.Expr:
    """Sum of the hit tokens of some tiers, 0 of none."""
    total = pl.lit(0, pl.Int64)
    for name in tiers:
        total = total + pl.col(f"hit_tokens_{name}")
    return total
