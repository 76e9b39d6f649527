"""Other models, GPUs and links over the hits of one replay, without replaying.

Hits do not depend on time, so a replay is timed anew by arithmetic alone. Requests with the same hits and the
same rest take the same time: they are counted once and weighed. What no lower tier served costs the same with
and without it and is left out, unless storing blocks.
"""

from __future__ import annotations

from itertools import groupby, product
from typing import TYPE_CHECKING, Any

import polars as pl

from kvreplay.cost.transfer import link as find_link
from kvreplay.errors import ConfigError, unknown
from kvreplay.worth.plan import Plan, make_plan, with_links
from kvreplay.worth.timing import computes, gain, loads, stores

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from kvreplay.cost import CostModel

GRID_SCHEMA: dict[str, Any] = {
    "model": pl.String,
    "hardware": pl.String,
    "tier": pl.String,
    "link": pl.String,
    "hits": pl.Int64,
    "harmful_hits": pl.Int64,
    "saved_us": pl.Int64,
    "lost_us": pl.Int64,
    "oracle_saved_us": pl.Int64,
    "gpu_saved_us": pl.Int64,
}
MAX_COMBINATIONS = 100_000
# Links that are timed in one pass over the hits: enough to share the pass, few enough for memory.
_BATCH = 32
_COUNT = "requests_alike"


def distinct_hits(requests: pl.DataFrame, plan: Plan, *, every: bool = False) -> pl.DataFrame:
    """Requests by what their times depend on, each kind once with how many there are.

    Parameters
    ----------
    requests
        ``hit_tokens_<tier>``, ``computed_tokens`` and, with `every`, ``written_tokens_<tier>``.
    plan
        Names of the tiers.
    every
        Whether requests that no timed tier served count too: where storing blocks, these wait as well.
    """
    keys = [name for name in requests.columns if name.startswith(("hit_tokens_", "written_tokens_"))]
    keys.append("computed_tokens")
    timed = [pl.col(f"hit_tokens_{name}") > 0 for name in plan.tiers[plan.resident_tiers :]]
    rows = requests.lazy()
    kept = rows if every else rows.filter(pl.any_horizontal(timed or [pl.lit(value=False)]))
    kinds = kept.select(keys).group_by(keys).agg(pl.len().cast(pl.Int64).alias(_COUNT))
    return kinds.sort(keys).collect()


def totals(distinct: pl.DataFrame, plans: Sequence[Plan]) -> list[dict[str, Any]]:
    """What each timed tier saves under plans of one model and cost, as rows of :func:`grid`."""
    first = plans[0]
    names = first.tiers[first.resident_tiers :]
    hits = [pl.col(f"hit_tokens_{name}") for name in names]
    tags = [str(at) for at in range(len(plans))]
    computed = computes(first)[first.resident_tiers :]  # what is computed is the same for all links
    tagged = list(zip(plans, tags, strict=True))
    each = [one for plan, tag in tagged for one in (*loads(plan, tag), *stores(plan, tag))]
    parts = distinct.select(*computed, *each, *hits, _COUNT)
    wanted = [one for plan, tag in tagged for one in _sums(plan, names, tag)]
    hit = [pl.col(_COUNT).filter(pl.col(f"hit_tokens_{name}") > 0).sum().alias(name) for name in names]
    sums = parts.select(*wanted, *hit).row(0, named=True) if names else {}
    return [_row(plan, name, sums, tag) for plan, tag in tagged for name in names]


def _sums(plan: Plan, names: Sequence[str], tag: str) -> Iterator[pl.Expr]:
    count = pl.col(_COUNT)
    for name in names:
        gained = gain(plan, plan.tiers.index(name), tag)
        saved = (gained - pl.col(f"store{tag}_{name}")) if plan.stores_block else gained
        lost = pl.min_horizontal(gained, pl.lit(0, pl.Int64))
        at = plan.tiers.index(name)
        avoided = pl.col(f"compute_{at}") - pl.col(f"compute_{at + 1}")
        yield (avoided * count).sum().alias(f"gpu_saved_us{tag}_{name}")
        yield (count * (gained < 0)).sum().alias(f"harmful_hits{tag}_{name}")
        yield (saved * count).sum().alias(f"saved_us{tag}_{name}")
        yield (-(lost * count).sum()).alias(f"lost_us{tag}_{name}")


def _row(plan: Plan, name: str, sums: Mapping[str, Any], tag: str) -> dict[str, Any]:
    link = plan.links[plan.tiers.index(name)]
    row: dict[str, Any] = dict.fromkeys(GRID_SCHEMA)
    row |= {
        "model": None if plan.model is None else plan.model.name,
        "hardware": None if plan.hardware is None else plan.hardware.name,
        "tier": name,
        "hits": sums[name],
        "gpu_saved_us": sums[f"gpu_saved_us{tag}_{name}"],
    }
    if link is None:  # sums of nulls are 0 in Polars; what is not known stays null
        return row
    row |= {what: sums[f"{what}{tag}_{name}"] for what in ("harmful_hits", "saved_us", "lost_us")}
    return row | {"link": link.name, "oracle_saved_us": row["saved_us"] + row["lost_us"]}


def grid(requests: pl.DataFrame, plans: Iterable[Plan]) -> pl.DataFrame:
    """Time saved by every tier under every plan, one row per plan and timed tier, in their order.

    Parameters
    ----------
    requests
        As for :func:`distinct_hits`.
    plans
        Plans for the same tiers.

    Returns
    -------
    polars.DataFrame
        ``model``, ``hardware``, ``tier``, ``link``, ``hits``, ``harmful_hits``, ``saved_us`` (negative where
        loads take longer than they save), ``lost_us`` (by the harmful hits) and ``oracle_saved_us``: what an
        engine would save that loads only where it helps (saved + lost; exact where the floor of the cost
        model does not bind); ``gpu_saved_us`` is the computing saved, loads not counted.
    """
    rows: list[dict[str, Any]] = []
    kinds: dict[tuple[int, bool], pl.DataFrame] = {}
    for _, group in groupby(plans, key=lambda plan: (id(plan.model), id(plan.cost), plan.resident_tiers)):
        alike = list(group)
        for batch in (alike[at : at + _BATCH] for at in range(0, len(alike), _BATCH)):
            first, every = batch[0], any(plan.stores_block for plan in batch)
            key = (first.resident_tiers, every)
            if key not in kinds:
                kinds[key] = distinct_hits(requests, first, every=every)
            rows += totals(kinds[key], batch)
    return pl.DataFrame(rows, GRID_SCHEMA, strict=True)


def plans_of(
    plan: Plan,
    *,
    models: Sequence[Any] | None = None,
    hardware: Sequence[Any] | None = None,
    costs: Sequence[CostModel] | None = None,
    links: Mapping[str, Sequence[Any]] | None = None,
) -> list[Plan]:
    """Every combination of the values given; what is not given stays as it was.

    A cost is kept where model and hardware are; otherwise the prior of the new pair takes its place.

    Raises
    ------
    ConfigError
        For a tier that is not there, too many combinations, no time to be had, or what
        :func:`kvreplay.worth.plan.make_plan` refuses.
    """
    for name in links or {}:
        if name not in plan.tiers:
            raise unknown("tier", str(name), list(plan.tiers))
    choices = [(links or {}).get(name, [link]) for name, link in zip(plan.tiers, plan.given, strict=True)]
    kept = None if models or hardware else plan.cost
    lists: list[Sequence[Any]] = [models or [plan.model], hardware or [plan.hardware], costs or [kept]]
    count = 1
    for values in (*lists, *choices):
        count *= len(values)
    if count > MAX_COMBINATIONS:
        raise ConfigError(
            f"{count:,} combinations to time", hint=f"the most is {MAX_COMBINATIONS:,}: try fewer values"
        )
    found = [[None if link is None else find_link(link) for link in values] for values in choices]
    out = []
    for model, device, cost in product(*lists):
        base = make_plan(
            dict.fromkeys(plan.tiers),
            model=model,
            hardware=device,
            cost=cost,
            prices=dict(plan.price_overrides),
        )
        if base.cost is None:
            raise ConfigError("there is no cost to time with", hint='give hardware="h100-sxm" or cost=...')
        out += [with_links(base, chosen) for chosen in product(*found)]
    return out
