"""Table `reuse_time`: how long before its use a block was used last."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from kvreplay.curve import reuse_time
from kvreplay.tables.schema import INT, Column, Table

if TYPE_CHECKING:
    from kvreplay.tables.study import Study

_LONGEST_AGE_BITS = 63


def _build(study: Study) -> pl.DataFrame:
    if study.plan is None or study.trace.info["arrival_first_us"] is None:
        return reuse_time(study.trace, progress=study.progress)
    # What hits are worth takes the runs: with them at hand, another pass over the trace is not needed.
    return of_runs(study.reuse_runs, study.requests, block_tokens=study.trace.info["block_tokens"])


def of_runs(runs: pl.DataFrame, requests: pl.DataFrame, *, block_tokens: int) -> pl.DataFrame:
    """:func:`kvreplay.reuse_time` of a trace with times, from its runs.

    Parameters
    ----------
    runs
        :func:`kvreplay.reuse_runs` of the trace, in any order.
    requests
        Its ``requests()``.
    block_tokens
        Tokens of a block where `requests` does not say.
    """
    size = pl.lit(block_tokens)
    if "block_tokens" in requests.columns:
        size = pl.lit(requests["block_tokens"]).gather("request")
    prompt = pl.lit(requests["input_tokens"]).gather("request")

    def covered(blocks: pl.Expr) -> pl.Expr:
        return pl.min_horizontal(blocks * size, prompt)

    bits = _LONGEST_AGE_BITS + 1 - pl.col("age_us").bitwise_leading_zeros().cast(pl.Int64)
    start = pl.col("start")
    parts = runs.lazy().select(
        bits=bits, accesses="length", tokens=covered(start + pl.col("length")) - covered(start)
    )
    sums = parts.group_by("bits").agg(pl.all().sum()).collect(engine="streaming")
    span = sums.select(low=pl.col("bits").min(), high=pl.col("bits").max()).row(0)
    every = pl.DataFrame({"bits": range(span[0], span[1] + 1) if sums.height else []}, {"bits": pl.Int64})
    bounds = {
        "lower": [0 if bit == 0 else 1 << (bit - 1) for bit in every["bits"]],
        "upper": [min(1 << bit, 2**63 - 1) for bit in every["bits"]],
    }
    return every.join(sums, on="bits", how="left", maintain_order="left").select(
        *(pl.Series(name, values, pl.Int64) for name, values in bounds.items()),
        *(pl.col(name).fill_null(0) for name in ("accesses", "tokens")),
    )


TABLE = Table(
    name="reuse_time",
    version=1,
    doc="Histogram of the time since a block's previous use; empty for a trace without times.",
    columns=(
        Column("lower", INT, "lower bound in microseconds"),
        Column("upper", INT, "upper bound in microseconds"),
        Column("accesses", INT, "block uses in the bin"),
        Column("tokens", INT, "their tokens"),
    ),
    sort=("lower",),
    build=_build,
)
