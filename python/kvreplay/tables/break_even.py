"""Table `break_even`: loading against recomputing per tier and prefix length, with the trace's own odds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from kvreplay.cost.breaking_even import DEFAULT_LENGTHS, columns, rows_of
from kvreplay.cost.money import prices as find_prices
from kvreplay.odds import Odds
from kvreplay.tables.schema import FLOAT, INT, TEXT, Column, Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kvreplay.cost.lengths import Comparison
    from kvreplay.cost.money import Prices
    from kvreplay.tables.study import Study


def _build(study: Study) -> pl.DataFrame | None:
    if not study.comparisons:
        return None
    longest = int(study.requests["input_tokens"].max() or 0)  # type: ignore[arg-type]
    return build_rows(
        study.comparisons,
        prices=study.prices or find_prices(),
        odds=Odds(study.trace, requests=study.requests, runs=study.reuse_runs, progress=study.progress),
        lengths=lengths_up_to(longest),
        block_tokens=study.scale.block_tokens,
    )


def lengths_up_to(longest_tokens: int) -> list[int]:
    """The usual lengths that a trace's prompts reach, and the longest prompt itself."""
    return sorted(
        {length for length in DEFAULT_LENGTHS if length < longest_tokens} | {max(1, longest_tokens)}
    )


def build_rows(
    comparisons: Mapping[str, Comparison],
    *,
    prices: Prices,
    odds: Odds,
    lengths: Sequence[int],
    block_tokens: int,
) -> pl.DataFrame:
    """Rows of the table.

    Parameters
    ----------
    comparisons
        Model, cost and link by tier, fastest tier first.
    prices
        Prices for the five-minute rule.
    odds
        What the trace says of reuse.
    lengths
        Prefix lengths, tokens.
    block_tokens
        Tokens of the trace's blocks.
    """
    # The last block of a prefix is the one that is reused least.
    reuses = {length: odds.of_depth((length - 1) // block_tokens) for length in lengths}
    rows: list[dict[str, Any]] = []
    for tier, comparison in comparisons.items():
        for row in rows_of(comparison, lengths, prices):
            reuse = reuses[row["prefix_tokens"]]
            rows.append(
                {
                    "tier": tier,
                    **row,
                    "reuse_probability": reuse,
                    "expected_saved_us": None if reuse is None else reuse * max(0.0, row["saved_us"]),
                    "reuses_within_keep_async": _within(odds, row["keep_async_us"]),
                    "reuses_within_keep_blocking": _within(odds, row["keep_blocking_us"]),
                }
            )
    types = {"tier": pl.String, **columns(), **dict.fromkeys(_TRACE_COLUMNS, pl.Float64)}
    return pl.DataFrame(rows, schema=types, orient="row")


_TRACE_COLUMNS = [
    "reuse_probability",
    "expected_saved_us",
    "reuses_within_keep_async",
    "reuses_within_keep_blocking",
]


def _within(odds: Odds, keep_us: float | None) -> float | None:
    return None if keep_us is None else odds.within(keep_us)


TABLE = Table(
    name="break_even",
    version=1,
    doc="One row per tier with a link and prefix length: load or recompute, for a request alone.",
    columns=(
        Column("tier", TEXT, "name of the tier"),
        Column("link", TEXT, "name of its link"),
        Column("prefix_tokens", INT, "length of the prefix"),
        Column("resident_tokens", INT, "tokens before it that the GPU holds"),
        Column("loaded_tokens", INT, "of the prefix, in whole blocks"),
        Column("loaded_bytes", INT, "bytes over the link of one GPU"),
        Column("load_us", FLOAT, "time to load them"),
        Column("recompute_us", FLOAT, "time of computing that a hit avoids"),
        Column("saved_us", FLOAT, "the difference; negative: the hit is harmful"),
        Column("saved_low_us", FLOAT, "the same with a GPU near its peak and a slow link"),
        Column("saved_high_us", FLOAT, "the same with a slow GPU and a fast link"),
        Column("verdict", TEXT, "load, recompute, or undecided where the two differ in sign"),
        Column("break_even_tokens", INT, "shortest prefix worth loading; null: none up to 2^20 tokens"),
        Column("break_even_low_tokens", INT, "the same at the end that favours loading"),
        Column("break_even_high_tokens", INT, "the same at the other end"),
        Column("break_even_linear_tokens", INT, "the same without attention's square: where it decides"),
        Column("break_even_bandwidth_gb_s", FLOAT, "10^9 bytes/s that make both equal, fixed times apart"),
        Column("attention_share", FLOAT, "share of the avoided work that grows with the square"),
        Column("split_computed_tokens", INT, "tokens to compute from the front while the rest loads"),
        Column("split_us", FLOAT, "time of that split, a bound for smarter engines"),
        Column("keep_async_us", FLOAT, "how long it is worth its room for one use, loads hidden"),
        Column("keep_blocking_us", FLOAT, "the same when the GPU waits for loads"),
        Column("extrapolated", pl.Boolean, "whether the prefix is far longer than what was measured"),
        Column("reuse_probability", FLOAT, "share of the trace's prefixes of this length used again"),
        Column("expected_saved_us", FLOAT, "that times the time saved, 0 where loading is slower"),
        Column("reuses_within_keep_async", FLOAT, "share of the trace's reuses not older than keep_async_us"),
        Column("reuses_within_keep_blocking", FLOAT, "share not older than keep_blocking_us"),
    ),
    sort=(),
    build=_build,
)
