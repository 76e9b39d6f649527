"""``kvreplay breakeven``: from which prefix length on loading beats recomputing, per link."""

from __future__ import annotations

import textwrap
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kvreplay import display
from kvreplay.cli import console, options as o
from kvreplay.errors import ConfigError

if TYPE_CHECKING:
    import polars as pl

    from kvreplay.cost.coefficients import CostModel
    from kvreplay.cost.modelspec import ModelSpec
    from kvreplay.cost.transfer import Link

SCHEMA = "breakeven/1"
_HEADLINE_TOKENS = 8192
# What rents are made of; wear is a matter of writes, which a trace has.
_PRICES = ("gpu_hour_usd", "dram_gb_usd", "dram_years", "ssd_gb_usd", "ssd_years")


def command(
    model: o.Model = None,
    hardware: o.Hardware = None,
    cost: o.CostFile = None,
    link: Annotated[
        list[str] | None,
        typer.Option(
            help="A link of kvreplay list links or of the cost file, or one of your own: "
            '"mine(bandwidth=22 GB/s, fixed=5 ms)". Repeatable. [default: the GPU\'s own, NVMe, RDMA, object '
            "store]",
            metavar="LINK",
        ),
    ] = None,
    length: Annotated[
        list[int] | None,
        typer.Option(help="A prefix length in tokens. Repeatable. [default: 256 to 131072]", metavar="N"),
    ] = None,
    resident: Annotated[
        int, typer.Option(help="Tokens before the prefix that the GPU holds.", metavar="N")
    ] = 0,
    remainder: Annotated[
        int | None,
        typer.Option(
            help="Tokens behind it, computed either way. [default: enough to hide the weights]", metavar="N"
        ),
    ] = None,
    kv_dtype: o.KvDtype = None,
    tp: o.Ranks = None,
    host_copies: o.HostCopies = None,
    engine_block: o.EngineBlock = None,
    gpu_hour_usd: Annotated[
        float | None, typer.Option(help="Price of a GPU-hour. [default: kvreplay list prices]", metavar="USD")
    ] = None,
    dram_gb_usd: Annotated[float | None, typer.Option(help="Price of a GB of memory.", metavar="USD")] = None,
    ssd_gb_usd: Annotated[float | None, typer.Option(help="Price of a GB of drive.", metavar="USD")] = None,
    json: o.Json = None,
) -> None:
    """Say from which prefix length on loading beats recomputing, over every link.

    The headline is the break-even bandwidth: what a link must carry before loading can win at all.
    """
    from kvreplay.cost.breaking_even import break_even, links_of
    from kvreplay.cost.coefficients import CostModel
    from kvreplay.cost.devices import hardware as find_hardware
    from kvreplay.cost.files import read_cost
    from kvreplay.cost.money import prices

    spec = o.the_model(model, kv_dtype=kv_dtype, tp=tp, host_copies=host_copies, engine_block=engine_block)
    device = None if hardware is None else find_hardware(hardware)
    fitted = None if cost is None else read_cost(cost)
    if fitted is None:
        if device is None:
            raise ConfigError(
                "neither --hardware nor --cost is given", hint="for example --hardware h100-sxm"
            )
        fitted = CostModel.prior(spec, device)
    own = prices(hardware, gpu_hour_usd=gpu_hour_usd, dram_gb_usd=dram_gb_usd, ssd_gb_usd=ssd_gb_usd)
    links = links_of(_chosen(link, fitted), device)
    asked = None if not length else sorted(set(length))
    compare = partial(
        break_even,
        model=spec,
        cost=fitted,
        resident_tokens=resident,
        remainder_tokens=remainder,
        prices=own,
    )
    rows = compare(links=links, lengths=asked)
    headline = compare(links=links[:1], lengths=[_HEADLINE_TOKENS])
    document = _document(rows, headline, spec, fitted) | {
        "hardware": hardware,
        "prices": [text for text in own.used if text.startswith(_PRICES)],
    }
    document["links"] = [asdict(one) for one in links]
    if json:
        console.put_json(document)
    else:
        console.put(_text(document, links, console.width()))


def _chosen(names: list[str] | None, cost: CostModel) -> list[str | Link] | None:
    """The links that were asked for; without any, those that were fitted."""
    if not names:
        return list(cost.links.values()) or None
    return [cost.links.get(name, name) for name in names]


def _document(rows: pl.DataFrame, headline: pl.DataFrame, spec: ModelSpec, cost: CostModel) -> dict[str, Any]:
    first = headline.row(0, named=True)
    size = first["loaded_bytes"]
    resident = first["resident_tokens"]

    def gb_s(one: CostModel | None) -> float | None:
        work = None if one is None else one.work_us(first["loaded_tokens"], resident)
        return size / work / 1e3 if work else None

    return {
        "schema": SCHEMA,
        "model": spec.name,
        "kv_bytes_per_token": spec.kv_bytes_per_token,
        "break_even_bandwidth_gb_s": first["break_even_bandwidth_gb_s"],
        "break_even_bandwidth_low_gb_s": gb_s(cost.high),
        "break_even_bandwidth_high_gb_s": gb_s(cost.low),
        "at_tokens": _HEADLINE_TOKENS,
        "cost": {
            "origin": cost.origin,
            "error": cost.error,
            "c0_us": cost.c0_us,
            "floor_us": cost.floor_us,
            "linear_us_per_token": cost.linear_us_per_token,
            "quadratic_us_per_token2": cost.quadratic_us_per_token2,
        },
        "rows": rows.to_dicts(),
    }


def _text(document: dict[str, Any], links: list[Link], width: int) -> str:
    from kvreplay.report.text import section

    parts = [_headline(document, width)]
    parts.append(section("From which length loading pays", _lengths(document["rows"]), width))
    parts.append(section("Saved by a hit", _saved(document["rows"]), width))
    keep = _keep(document["rows"])
    if len(keep) > 1:
        parts.append(section("How long a prefix is worth its room, for one use", keep, width))
    notes = [f"Recompute: {document['cost']['error']}."]
    notes += [f"Link {one.name}: {one.source}{', ' + one.date if one.date else ''}." for one in links]
    notes += [f"Price {text}." for text in document["prices"]]
    notes.append(
        "Times are of a request alone: no waiting for the GPU or the link. Undecided: the answer differs "
        "between the ends of what GPU and link may be; calibrate to settle it."
    )
    parts.append("\n".join(line for note in notes for line in textwrap.wrap(note, width)))
    return "\n\n".join(parts)


def _headline(document: dict[str, Any], width: int) -> str:
    low, high = document["break_even_bandwidth_low_gb_s"], document["break_even_bandwidth_high_gb_s"]
    between = "" if low is None or high is None else f" (between {low:.3g} and {high:.3g})"
    need = document["break_even_bandwidth_gb_s"]
    speed = "at no bandwidth" if need is None else f"over a link of more than {need:.3g} GB/s{between}"
    where = f" on {document['hardware']}" if document["hardware"] else ""
    text = (
        f"{document['model']}{where}: loading {document['at_tokens']:,} tokens pays {speed}, "
        f"fixed times apart; a token is {document['kv_bytes_per_token']:,} B."
    )
    return "\n".join(textwrap.wrap(text, width))


def _lengths(rows: list[dict[str, Any]]) -> list[list[str]]:
    out = [["link", "tokens", "at best", "at worst", "matrices alone"]]
    seen: set[str] = set()
    for row in rows:
        if row["link"] not in seen:
            seen.add(row["link"])
            keys = [f"break_even_{end}tokens" for end in ("", "low_", "high_", "linear_")]
            out.append([row["link"], *("never" if row[key] is None else f"{row[key]:,}" for key in keys)])
    return out


def _saved(rows: list[dict[str, Any]]) -> list[list[str]]:
    out = [["link", "prefix", "load", "recompute", "saved", "verdict", "split", "GB/s needed"]]
    for row in rows:
        need = row["break_even_bandwidth_gb_s"]
        out.append(
            [
                row["link"],
                f"{row['prefix_tokens']:,}",
                _ms(row["load_us"]),
                _ms(row["recompute_us"]),
                _ms(row["saved_us"]),
                row["verdict"],
                _ms(row["split_us"]),
                "-" if need is None else f"{need:.2f}",
            ]
        )
    return out


def _keep(rows: list[dict[str, Any]]) -> list[list[str]]:
    out = [["link", "prefix", "load hidden", "GPU waits"]]
    for row in rows:
        if row["keep_async_us"] is not None:
            cells = [display.span(round(row[key])) for key in ("keep_async_us", "keep_blocking_us")]
            out.append([row["link"], f"{row['prefix_tokens']:,}", *cells])
    return out


def _ms(value_us: float) -> str:
    return f"{value_us / 1e3:,.1f} ms"
