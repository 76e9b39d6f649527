"""How likely it is that a block is used again: by its uses so far, its age, and its depth.

The estimate that an admission filter makes, read off the trace itself. A reuse is an access of a block that
was accessed before; what happens behind the end of the trace is not seen, so the odds are lower bounds, most
so for ages near the length of the trace.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from kvreplay.curve import ceiling, reuse_runs
from kvreplay.errors import ConfigError
from kvreplay.units import is_whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvreplay.calls import ProgressHook
    from kvreplay.trace import Trace

_S = 1_000_000
AGES_US = [0, _S, 10 * _S, 60 * _S, 300 * _S, 1800 * _S, 7200 * _S, 86_400 * _S]
# Uses told apart; more than that are counted together.
MOST_USES = 5
_SCHEMA: dict[str, Any] = {
    "uses": pl.Int64,
    "age_us": pl.Int64,
    "blocks": pl.Int64,
    "reused_blocks": pl.Int64,
    "probability": pl.Float64,
}


class Odds:
    """Accesses of a trace as runs of blocks with equal histories.

    What a request's path held for the k-th time is held for the (k+1)-th time by the runs that were last
    touched by that request: a join and an intersection per k, made when it is asked for.

    Parameters
    ----------
    trace
        The trace.
    runs
        Its :func:`kvreplay.reuse_runs` in any order, where they are at hand; by age is fastest.
    progress
        The hook of :func:`kvreplay.replay`.
    """

    def __init__(
        self, trace: Trace, *, runs: pl.DataFrame | None = None, progress: ProgressHook | None = None
    ) -> None:
        # Requests are numbered by their row: what belongs to one is gathered, which joins need not find.
        new = ceiling(trace)["hit_blocks"]
        self._paths = trace.requests().select("request", "arrival_us", "blocks", new=new)
        runs = reuse_runs(trace, progress=progress) if runs is None else runs
        self._runs = runs.select(
            "request",
            "previous_request",
            "age_us",
            first="start",
            end=pl.col("start") + pl.col("length"),
            # From here on the previous request held its blocks for the first time.
            new_before=new.gather(runs["previous_request"]),
        )
        last = self._paths["arrival_us"].max()
        self._last_us = None if last is None else int(last)  # type: ignore[arg-type]
        self._levels: list[pl.DataFrame] = []

    @cached_property
    def _timed_runs(self) -> pl.DataFrame:
        """The runs with the arrival of their request."""
        arrivals = self._paths["arrival_us"].gather(self._runs["request"])
        return self._runs.with_columns(arrivals.alias("arrival_us"))

    def _accesses(self, uses: int) -> pl.DataFrame:
        """Accesses of blocks that are then used for the `uses`-th time: ``request``, ``first``, ``end``."""
        while len(self._levels) < uses:
            self._levels.append(self._following(self._levels[-1]) if self._levels else self._first())
        return self._levels[uses - 1]

    def _first(self) -> pl.DataFrame:
        """The part of every path that no request had before."""
        new = self._paths.filter(pl.col("blocks") > pl.col("new"))
        return new.select("request", "arrival_us", first="new", end="blocks")

    def _following(self, accesses: pl.DataFrame) -> pl.DataFrame:
        """The next accesses of the blocks of `accesses`, with ``age_us``, the time in between."""
        before = accesses.select("first", "end", previous_request="request")
        both = self._timed_runs.join(before, on="previous_request", suffix="_before").with_columns(
            first=pl.max_horizontal("first", "first_before"), end=pl.min_horizontal("end", "end_before")
        )
        some = both.filter(pl.col("end") > pl.col("first"))
        return some.select("request", "arrival_us", "first", "end", "age_us").sort("request", "first")

    def by_uses_and_age(self, ages_us: Sequence[int]) -> pl.DataFrame:
        """Odds by uses so far and age, see :func:`reuse_odds`."""
        ages = [0] if self._last_us is None else sorted({*ages_us})
        rows = [self._row(uses, age) for uses in range(1, MOST_USES + 1) for age in ages]
        return pl.DataFrame(rows, schema=_SCHEMA, orient="row")

    def _row(self, uses: int, age: int) -> dict[str, Any]:
        if uses < MOST_USES:
            at_risk, reused = self._counts(self._accesses(uses), self._accesses(uses + 1), age)
        else:  # all accesses but those of blocks with fewer uses
            whole = self._paths.select("arrival_us", first=pl.lit(0, pl.Int64), end="blocks")
            at_risk, reused = self._counts(whole, self._timed_runs, age)
            for fewer in range(1, MOST_USES):
                less = self._counts(self._accesses(fewer), self._accesses(fewer + 1), age)
                at_risk, reused = at_risk - less[0], reused - less[1]
        return {
            "uses": uses,
            "age_us": age,
            "blocks": at_risk,
            "reused_blocks": reused,
            "probability": reused / at_risk if at_risk else None,
        }

    def _counts(self, accesses: pl.DataFrame, reuses: pl.DataFrame, age: int) -> tuple[int, int]:
        """Blocks that reached an age without another use while the trace went on, and those used after it."""
        if self._last_us is None:
            return _blocks(accesses), _blocks(reuses)
        lasted = accesses.filter(self._last_us - pl.col("arrival_us") >= age)
        seen_so_long = self._last_us - (pl.col("arrival_us") - pl.col("age_us")) >= age
        early = reuses.filter((pl.col("age_us") < age) & seen_so_long)
        return _blocks(lasted) - _blocks(early), _blocks(reuses.filter(pl.col("age_us") >= age))

    def of_depth(self, block: int) -> float | None:
        """Share of the distinct prefixes of ``block + 1`` blocks used a second time; ``None`` without any."""
        at = (pl.col("first") <= block) & (block < pl.col("end"))
        new = (pl.col("new") <= block) & (block < pl.col("blocks"))
        prefixes = self._paths.select(new.sum()).item()
        again = self._runs.select((at & (pl.col("new_before") <= block)).sum()).item()
        return again / prefixes if prefixes else None

    def within(self, age_us: float) -> float | None:
        """Share of all reused blocks whose last use is at most `age_us` ago; ``None`` where there is none."""
        ages, blocks = self._by_age
        if self._last_us is None or not blocks.len():
            return None
        count = int(ages.search_sorted(age_us, side="right"))
        return int(blocks[count - 1]) / int(blocks[-1]) if count else 0.0

    @cached_property
    def _by_age(self) -> tuple[pl.Series, pl.Series]:
        """Ages of the runs, ascending, and the blocks of all runs up to each."""
        ordered = self._runs.select("age_us", blocks=pl.col("end") - pl.col("first")).sort("age_us")
        return ordered["age_us"], ordered["blocks"].cum_sum()


def _blocks(runs: pl.DataFrame) -> int:
    return int(runs.select((pl.col("end") - pl.col("first")).sum()).item())


def reuse_odds(
    trace: Trace, *, ages_us: Sequence[int] | None = None, progress: ProgressHook | None = None
) -> pl.DataFrame:
    """How likely a block is to be used again, given its uses so far and the time since the last one.

    Parameters
    ----------
    trace
        The trace.
    ages_us
        Ages in microseconds. Default: 0, 1 s, 10 s, 1 min, 5 min, 30 min, 2 h, 1 d.
    progress
        The hook of :func:`kvreplay.replay`.

    Returns
    -------
    polars.DataFrame
        ``uses`` (1 to 4, and 5 for five or more), ``age_us``, ``blocks`` (accesses with so many uses that
        reached this age while the trace went on, without another use), ``reused_blocks`` (of these, used
        again later), ``probability`` (null where there is none). Without times only age 0.

    Raises
    ------
    ConfigError
        For an age that is no time.

    Examples
    --------
    >>> import kvreplay as kv
    >>> scan = kv.generate("cyclic_scan", requests=30, documents=10, document_tokens=160)
    >>> odds = kv.reuse_odds(scan, ages_us=[0])
    >>> odds.select("uses", "blocks", "reused_blocks").rows()[:3]
    [(1, 100, 100), (2, 100, 100), (3, 100, 0)]
    """
    ages = AGES_US if ages_us is None else list(ages_us)
    for age in ages:
        if not is_whole(age, 0, 2**62):
            raise ConfigError(f"an age of {age!r}", hint="give whole microseconds from 0")
    return Odds(trace, progress=progress).by_uses_and_age(ages)
