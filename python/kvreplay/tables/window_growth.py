"""Table `window_growth`: whether a longer trace would say the same.

Reuse that is farther apart than the trace is long cannot be seen. Where the ceiling still climbs in the last
tenths, a trace of this span undervalues long retention.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from kvreplay.frames import ratio
from kvreplay.tables.schema import FLOAT, INT, TEXT, Column, Table

if TYPE_CHECKING:
    from kvreplay.tables.study import Study


def _build(study: Study) -> pl.DataFrame:
    growth = study.growth
    series: list[tuple[str, str | None, pl.Series]] = [("ceiling", None, growth["ceiling_hit_tokens"])]
    if study.result is not None:
        requests = study.result.requests
        ends = growth["requests"]
        for name in study.result.tier_names:
            series.append(("tier", name, cumulative_at(requests[f"hit_tokens_{name}"], ends)))
        together = sum((hits for _, _, hits in series[1:]), pl.zeros(len(growth), pl.Int64, eager=True))
        series.append(("tiers", None, together))
    return pl.concat([_one(growth, *one) for one in series], how="vertical")


def cumulative_at(values: pl.Series, ends: pl.Series) -> pl.Series:
    """Sum of the first ``ends[i]`` values, for each i."""
    sums = pl.concat([pl.Series([0], dtype=pl.Int64), values.cum_sum().cast(pl.Int64)])
    return sums.gather(ends)


def _one(growth: pl.DataFrame, scope: str, tier: str | None, hits: pl.Series) -> pl.DataFrame:
    """One series: the growth's twentieths in, tenths out."""
    half = pl.col("window") // 2
    rows = growth.with_columns(scope=pl.lit(scope), tier=pl.lit(tier, pl.String), hit_tokens=hits)
    return (
        rows.with_columns(
            token_hit_ratio=ratio(pl.col("hit_tokens"), pl.col("input_tokens")),
            last_half_token_hit_ratio=ratio(_since_half("hit_tokens"), _since_half("input_tokens")),
        )
        .filter(pl.col("window") % 2 == 0)
        .with_columns(window=half)
    )


def _since_half(column: str) -> pl.Expr:
    """What a cumulative column gained in the later half of the windows so far.

    Windows are numbered from 1 and sorted, so the first half of w windows ends in row w // 2 - 1.
    """
    row = pl.max_horizontal(pl.col("window") // 2 - 1, pl.lit(0))
    return pl.col(column) - pl.col(column).gather(row)


TABLE = Table(
    name="window_growth",
    version=1,
    doc="One row per cache and tenth of the time (of the requests without times); counts are from the start.",
    columns=(
        Column("scope", TEXT, "ceiling: an infinite cache; tier: one tier; tiers: all together"),
        Column("tier", TEXT, "name of the tier, null for the other scopes"),
        Column("window", INT, "number of the tenth, from 1"),
        Column("until_us", INT, "end of the window on the trace's clock in microseconds, null without times"),
        Column("requests", INT, "requests up to there"),
        Column("input_tokens", INT, "input tokens up to there"),
        Column("distinct_blocks", INT, "different blocks up to there"),
        Column("hit_tokens", INT, "hit tokens up to there"),
        Column("token_hit_ratio", FLOAT, "hit tokens / input tokens up to there (cold start counted)"),
        Column("last_half_token_hit_ratio", FLOAT, "the same over the later half of these windows"),
    ),
    sort=("scope", "tier", "window"),
    build=_build,
)
