"""What turns a replay's hits into times: model, cost of recomputing, and the link of every tier, settled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from kvreplay.cost.catalogue import model as find_model
from kvreplay.cost.coefficients import CostModel, check_cost
from kvreplay.cost.devices import hardware as find_hardware
from kvreplay.cost.modelspec import ModelSpec
from kvreplay.cost.money import Prices, prices as find_prices
from kvreplay.cost.transfer import HOST, Link, link as find_link
from kvreplay.errors import ConfigError
from kvreplay.units import kv_bytes_per_token

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kvreplay.cost.devices import Hardware


@dataclass(frozen=True)
class PlainModel:
    """A model of which nothing is known but the bytes of KV per token."""

    kv_bytes_per_token: int
    name: str = "given bytes per token"
    layers: int = 1
    host_copies: int = 1
    tp: int = 1
    state_bytes: int = 0

    @property
    def host_bytes_per_token(self) -> int:
        """Bytes per token in a host tier."""
        return self.kv_bytes_per_token

    @property
    def rank_bytes_per_token(self) -> int:
        """Bytes per token that cross a link."""
        return self.kv_bytes_per_token

    @property
    def block_tokens(self) -> int | None:
        """Tokens of a block of the engine: not known."""
        return None

    def stored_tokens(self, tokens: int) -> int:
        """Tokens of a prefix that are stored: all of them."""
        return tokens

    def rank_loaded_bytes(self, tokens: int) -> int:
        """Bytes that a hit of `tokens` tokens loads."""
        return tokens * self.kv_bytes_per_token

    def rank_loaded_bytes_expr(self, tokens: pl.Expr) -> pl.Expr:
        """Bytes that a hit of `tokens` tokens loads, Float64."""
        return tokens.cast(pl.Float64) * float(self.kv_bytes_per_token)


@dataclass(frozen=True)
class Plan:
    """Model, cost and links of a hierarchy; made by :func:`make_plan`.

    Parameters
    ----------
    tiers
        Names of the tiers, fastest first.
    links
        Link of each tier, ``None`` where a hit needs no load (the first tier) or nobody said (a lower one).
    model
        The model, ``None`` where none was given.
    cost
        The cost of recomputing, ``None`` where there is no time to be had.
    hardware
        The GPU, ``None`` where the cost was given without one.
    given
        The links as they were given, before it was settled what they go through.
    price_overrides
        Prices in place of the catalogue's.
    """

    tiers: tuple[str, ...]
    links: tuple[Link | None, ...]
    model: ModelSpec | PlainModel | None
    cost: CostModel | None
    hardware: Hardware | None
    given: tuple[Link | None, ...]
    price_overrides: tuple[tuple[str, float], ...] = ()

    @property
    def media(self) -> list[str | None]:
        """Of each tier ``dram``, ``ssd`` or ``None``: what it is made of, as its link says."""
        return [None if link is None else link.medium for link in self.links]

    @cached_property
    def prices(self) -> Prices:
        """Prices of the GPU and of what the tiers are made of."""
        name = None if self.hardware is None else self.hardware.name
        return find_prices(name, **dict(self.price_overrides))

    @property
    def resident_tiers(self) -> int:
        """How many tiers from the top the GPU uses in place: 1, or 0 when the first has a link too."""
        return 0 if self.links[0] is not None else 1

    @property
    def untimed(self) -> list[str]:
        """Lower tiers without a link."""
        pairs = zip(self.tiers[1:], self.links[1:], strict=True)
        return [name for name, link in pairs if link is None]

    @property
    def stores_block(self) -> bool:
        """Whether writing to some tier delays the request."""
        return any(link is not None and link.store == "blocking" for link in self.links)

    @property
    def overlaps(self) -> bool:
        """Whether loads of some tier hide behind computing."""
        return any(link is not None and link.overlap != "none" for link in self.links)

    @property
    def calibrated(self) -> bool:
        """Whether the cost of recomputing stands on measurements."""
        return self.cost is not None and self.cost.calibrated

    def ends(self) -> list[Plan]:
        """The plan at both ends of what recomputing and loading may take.

        Up to four: a calibrated or given cost has no ends of its own, a given link may have none either.
        """
        assert self.cost is not None  # noqa: S101 - there is nothing to vary without times
        costs = [one for one in (self.cost.low, self.cost.high) if one is not None] or [self.cost]
        pairs = [(None, None) if link is None else link.ends() for link in self.links]
        sides = [tuple(pair[side] for pair in pairs) for side in (0, 1)]
        links = list(dict.fromkeys(sides))
        return [replace(self, cost=cost, links=side) for cost in costs for side in links]

    @property
    def assumptions(self) -> dict[str, Any]:
        """What the times stand on, for reports: names, values, sources, dates."""
        out: dict[str, Any] = {}
        if self.model is not None:
            out["model"] = self.model.name
            out["kv_bytes_per_token"] = self.model.kv_bytes_per_token
        if self.hardware is not None:
            out["hardware"] = self.hardware.name
        if self.cost is not None:
            names = ("c0_us", "floor_us", "linear_us_per_token", "quadratic_us_per_token2", "origin", "error")
            out["cost"] = {name: getattr(self.cost, name) for name in names}
        out["links"] = {name: describe(link) for name, link in zip(self.tiers, self.links, strict=True)}
        out["link_names"] = {
            name: None if link is None else link.name
            for name, link in zip(self.tiers, self.links, strict=True)
        }
        out["media"] = dict(zip(self.tiers, self.media, strict=True))
        out["prices"] = list(self.prices.used)
        return out


def describe(link: Link | None) -> str | None:
    """A link in one line, what it goes through after it; ``None`` for none."""
    if link is None:
        return None
    own = f"{link.name} ({link.bandwidth}, {link.source}{', ' if link.date else ''}{link.date})"
    return own if link.next is None else f"{own}, then {describe(link.next)}"


def resolve_model(model: object) -> Any:
    """What users pass as ``model=``: names and paths become a :class:`kvreplay.ModelSpec`, the rest stays.

    Raises
    ------
    ConfigError
        For an unknown name or an unusable file.
    """
    if model is None or hasattr(model, "kv_bytes_per_token") or isinstance(model, int):
        return model
    path: Any = model
    return find_model(path)


def make_plan(
    tiers: Mapping[str, Link | str | None],
    *,
    model: object,
    hardware: str | Hardware | None,
    cost: CostModel | None,
    prices: Mapping[str, float] | None = None,
) -> Plan:
    """Settle model, cost and links.

    Parameters
    ----------
    tiers
        Link (or its name) by tier, fastest first. A tier without one takes the link that was fitted for a
        tier of its name with `cost`, if there is one.
    model
        ``None``, bytes per token, a name, a path or a :class:`kvreplay.ModelSpec`.
    hardware
        ``None`` or a GPU of :func:`kvreplay.hardware`.
    cost
        ``None`` or a cost model, which takes the place of the GPU's prior.
    prices
        Prices in place of the catalogue's (:func:`kvreplay.cost.money.prices`).

    Raises
    ------
    ConfigError
        For unknown names, a cost that no bytes go with, or a GPU without a model whose work is known.
    """
    spec = resolve_model(model)
    device = None if hardware is None else find_hardware(hardware)
    if cost is not None:
        check_cost(cost)
    elif device is not None:
        cost = CostModel.prior(_with_work(spec), device)
    if cost is not None and spec is None:
        raise ConfigError(
            "a cost was given and no model: nobody can say how many bytes a hit loads",
            hint='give model="llama-3.1-8b" or the bytes of KV per token',
        )
    given = tuple(None if link is None else find_link(link) for link in tiers.values())
    known = spec if isinstance(spec, ModelSpec | PlainModel | None) else PlainModel(_bytes(spec))
    own = tuple(sorted((prices or {}).items()))
    find_prices(None, **dict(own))  # refuses unknown names and values now
    return with_links(Plan(tuple(tiers), (), known, cost, device, (), own), given)


def with_links(plan: Plan, given: tuple[Link | None, ...]) -> Plan:
    """A plan with these links by tier, or the fitted ones where none is given; all else as it was."""
    fitted = {} if plan.cost is None else plan.cost.links
    found = [link or fitted.get(name) for name, link in zip(plan.tiers, given, strict=True)]
    links = tuple(_in_place(found, at, plan.hardware) for at in range(len(found)))
    return replace(plan, links=links, given=given)


def _bytes(model: object) -> int:
    value = kv_bytes_per_token(model)
    assert value is not None  # noqa: S101 - None was taken out before
    return value


def _with_work(model: object) -> ModelSpec:
    if isinstance(model, ModelSpec):
        return model
    raise ConfigError(
        "a GPU was named, but "
        + ("no model" if model is None else "of the model only its bytes per token are known"),
        hint='give model="llama-3.1-8b" (see kvreplay list models), or cost=kv.CostModel(...)',
    )


def _in_place(links: Sequence[Link | None], at: int, hardware: Hardware | None) -> Link | None:
    """The link of tier `at` with what it goes through.

    A link ``through="host"`` brings its data into host memory first. From there it takes the way of the
    nearest tier above that has a link of its own and ends at the GPU, else the GPU's own host link.
    """
    link = links[at]
    if link is None or link.through != HOST:
        return None if link is None else link.of(hardware)
    for above in reversed(links[:at]):
        if above is not None and above.through is None:
            return replace(link, through=above)
    return link.of(hardware)
