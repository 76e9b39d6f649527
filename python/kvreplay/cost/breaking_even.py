"""Break-even tables: loading against recomputing, per link and prefix length."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING, Any

from kvreplay.cost.catalogue import model as find_model
from kvreplay.cost.coefficients import CostModel, check_cost
from kvreplay.cost.devices import hardware as find_hardware
from kvreplay.cost.lengths import LONGEST_TOKENS, Comparison
from kvreplay.cost.money import prices as find_prices, residency_us
from kvreplay.cost.transfer import link as find_link
from kvreplay.errors import ConfigError
from kvreplay.units import is_whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from kvreplay.cost.devices import Hardware
    from kvreplay.cost.modelspec import ModelSpec
    from kvreplay.cost.money import Prices
    from kvreplay.cost.transfer import Link

DEFAULT_LENGTHS = [256, 1024, 4096, 16_384, 65_536, 131_072]
DEFAULT_LINKS = ["nvme-gen4", "rdma-200g", "object-node"]


def columns() -> dict[str, Any]:
    """Columns of :func:`break_even` with their types."""
    import polars as pl

    return {
        "link": pl.String,
        "prefix_tokens": pl.Int64,
        "resident_tokens": pl.Int64,
        "loaded_tokens": pl.Int64,
        "loaded_bytes": pl.Int64,
        "load_us": pl.Float64,
        "recompute_us": pl.Float64,
        "saved_us": pl.Float64,
        "saved_low_us": pl.Float64,
        "saved_high_us": pl.Float64,
        "verdict": pl.String,
        "break_even_tokens": pl.Int64,
        "break_even_low_tokens": pl.Int64,
        "break_even_high_tokens": pl.Int64,
        "break_even_linear_tokens": pl.Int64,
        "break_even_bandwidth_gb_s": pl.Float64,
        "attention_share": pl.Float64,
        "split_computed_tokens": pl.Int64,
        "split_us": pl.Float64,
        "keep_async_us": pl.Float64,
        "keep_blocking_us": pl.Float64,
        "extrapolated": pl.Boolean,
    }


def break_even(
    *,
    model: str | ModelSpec,
    hardware: str | Hardware | None = None,
    links: Sequence[str | Link] | None = None,
    lengths: Sequence[int] | None = None,
    resident_tokens: int = 0,
    cost: CostModel | None = None,
    remainder_tokens: int | None = None,
    prices: Prices | None = None,
) -> pl.DataFrame:
    """Compare loading a prefix with computing it, for every link and length.

    Parameters
    ----------
    model
        A name, a path of a ``config.json``, or a :class:`ModelSpec` (with its blocks, types and ranks).
    hardware
        The GPU; needed unless `cost` is given.
    links
        Links of the catalogue or your own. Default: the GPU's own link to its host, an NVMe drive, RDMA and
        an object store.
    lengths
        Prefix lengths in tokens.
    resident_tokens
        Tokens before the prefix that the GPU holds already: computing after them costs more attention.
    cost
        A calibrated model; without it the prior of model and hardware.
    remainder_tokens
        Tokens behind the prefix, computed either way. Default: enough of them that reading the weights is
        paid anyway; a small number makes short hits worth less, and lets the link's overlap count.
    prices
        Of :func:`kvreplay.cost.money.prices`; default the catalogue's for `hardware`.

    Returns
    -------
    pl.DataFrame
        One row per link (in the order given) and length: ``load_us``, ``recompute_us`` (what a hit avoids),
        ``saved_us`` and its ends ``saved_low_us``, ``saved_high_us``; ``verdict`` (``load``, ``recompute``,
        or ``undecided`` where the ends differ in sign); ``break_even_tokens`` (null: never up to 2^20) and
        its ends, and ``break_even_linear_tokens``, what it were without the square of attention;
        ``break_even_bandwidth_gb_s`` (GB/s that make both equal, fixed times left out);
        ``attention_share`` of the work; the best split between computing and loading; how long the prefix is
        worth keeping for one use (five-minute rule), where loads hide behind other work (``keep_async_us``)
        and where the GPU waits for them (``keep_blocking_us``); null without prices or a medium.

    Raises
    ------
    ConfigError
        For unknown names, a length that is no number of tokens, or neither `hardware` nor `cost`.

    Examples
    --------
    >>> import kvreplay as kv
    >>> cost = kv.CostModel(c0_us=0, floor_us=0, linear_us_per_token=21.94, quadratic_us_per_token2=4.724e-4)
    >>> link = kv.Link("pcie", bandwidth="43.9 GB/s", fixed="9.8 ms")
    >>> kv.break_even(model="llama-3.1-8b", cost=cost, links=[link])["break_even_tokens"][0]
    511
    """
    import polars as pl

    spec = find_model(model)
    device = None if hardware is None else find_hardware(hardware)
    if cost is None:
        if device is None:
            raise ConfigError("neither hardware nor cost is given", hint='for example hardware="h100-sxm"')
        cost = CostModel.prior(spec, device)
    check_cost(cost)
    _check_whole("resident_tokens", resident_tokens, least=0)
    if remainder_tokens is not None:
        _check_whole("remainder_tokens", remainder_tokens, least=1)
    asked = DEFAULT_LENGTHS if lengths is None else list(lengths)
    for length in asked:
        _check_whole("a length", length, least=1)
    if prices is None:
        prices = find_prices(None if device is None else device.name)
    comparisons = [
        Comparison(spec, cost, link, resident_tokens, remainder_tokens) for link in links_of(links, device)
    ]
    rows = [row for one in comparisons for row in rows_of(one, asked, prices)]
    return pl.DataFrame(rows, schema=columns(), orient="row")


def _check_whole(what: str, value: object, *, least: int) -> None:
    if not is_whole(value, least, LONGEST_TOKENS * 16):
        raise ConfigError(f"{what} is {value!r}", hint=f"give a number of tokens from {least}")


def links_of(links: Sequence[str | Link] | None, device: Hardware | None) -> list[Link]:
    """The links to compare, each in its host, with different names.

    Raises
    ------
    ConfigError
        For an unknown name, or two links of one name.
    """
    if links is None:
        if device is None:
            raise ConfigError("no link is given", hint='for example links=["pcie5-x16", "nvme-gen4"]')
        links = [device.host_link, *DEFAULT_LINKS]
    found = [find_link(one).of(device) for one in links]
    names = [one.name for one in found]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"two links are named {name}", hint="give each link a name of its own")
    return found


def rows_of(middle: Comparison, lengths: Sequence[int], prices: Prices) -> list[dict[str, Any]]:
    """Rows of :func:`break_even` for one link."""
    worst, best = both_ends(middle)
    flat = replace(middle, cost=replace(middle.cost, quadratic_us_per_token2=0.0))
    break_evens = [one.break_even_tokens() for one in (middle, best, worst, flat)]
    rows = [_row(middle, (worst, best), length, break_evens) for length in lengths]
    return [row | _keep(middle, row, prices) for row in rows]


def _keep(middle: Comparison, row: dict[str, Any], prices: Prices) -> dict[str, float | None]:
    """How long the prefix is worth its room for one use, with the GPU free or waiting during the load."""
    medium, spec = middle.link.medium, middle.spec
    if medium is None or prices.gpu_hour_usd is None:
        return {"keep_async_us": None, "keep_blocking_us": None}
    size = row["loaded_tokens"] * spec.host_bytes_per_token + spec.state_bytes

    def keep(saved: float) -> float | None:
        time = residency_us(saved, size, gpu_us_usd=prices.gpu_us_usd * spec.tp, rent_usd=prices.rent(medium))
        return time if isfinite(time) else None

    return {"keep_async_us": keep(row["recompute_us"]), "keep_blocking_us": keep(row["saved_us"])}


def both_ends(middle: Comparison) -> tuple[Comparison, Comparison]:
    """The comparison least and most in favour of loading, of what GPU and link may be.

    Least: a GPU near its peak and a slow link. Most: the other way round. Both are `middle` itself where
    coefficients and bandwidth are given as they are.
    """
    slow, fast = middle.link.ends()
    worst = replace(middle, cost=middle.cost.low or middle.cost, link=slow)
    return worst, replace(middle, cost=middle.cost.high or middle.cost, link=fast)


def _row(
    middle: Comparison, ends: tuple[Comparison, Comparison], length: int, break_evens: list[int | None]
) -> dict[str, Any]:
    stored = middle.loaded_tokens(length)
    computed, split_us = middle.split(length)
    low, high = (end.saved_us(length) for end in ends)
    work = middle.cost.work_us(stored, middle.resident_tokens)
    linear = middle.cost.linear_us_per_token * stored
    return {
        "link": middle.link.name,
        "prefix_tokens": length,
        "resident_tokens": middle.resident_tokens,
        "loaded_tokens": stored,
        "loaded_bytes": middle.spec.rank_loaded_bytes(stored),
        "load_us": middle.load_us(length),
        "recompute_us": middle.recompute_us(length),
        "saved_us": middle.saved_us(length),
        "saved_low_us": low,
        "saved_high_us": high,
        "verdict": verdict(low, high),
        "break_even_tokens": break_evens[0],
        "break_even_low_tokens": break_evens[1],
        "break_even_high_tokens": break_evens[2],
        "break_even_linear_tokens": break_evens[3],
        "break_even_bandwidth_gb_s": middle.break_even_bandwidth_gb_s(length),
        "attention_share": (work - linear) / work if work > 0 else None,
        "split_computed_tokens": computed,
        "split_us": split_us,
        "extrapolated": middle.cost.extrapolates(length + middle.resident_tokens),
    }


def verdict(saved_low_us: float, saved_high_us: float) -> str:
    """``load``, ``recompute``, or ``undecided`` where the two ends differ in sign."""
    if saved_low_us > 0 and saved_high_us > 0:
        return "load"
    return "recompute" if saved_low_us <= 0 and saved_high_us <= 0 else "undecided"
