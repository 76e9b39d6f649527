"""The odds of another use against counting block by block."""

from __future__ import annotations

from collections import defaultdict

import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

import kvreplay as kv
from kvreplay.odds import MOST_USES, Odds

S = 1_000_000


def trace_of(rows: list[tuple[int | None, list[int]]]) -> kv.Trace:
    """A trace of (time in seconds, path) rows with blocks of one token."""
    frame = pl.DataFrame(
        {
            "time": [time for time, _ in rows],
            "input_tokens": [len(path) for _, path in rows],
            "hash_ids": [path for _, path in rows],
        },
        schema={"time": pl.Int64, "input_tokens": pl.Int64, "hash_ids": pl.List(pl.Int64)},
    )
    if rows and rows[0][0] is None:
        frame = frame.drop("time")
    return kv.read_trace(frame, block_tokens=1, time_unit="s", columns=None)


def slow_odds(rows: list[tuple[int, list[int]]], ages_us: list[int]) -> list[tuple[int, int, int, int]]:
    """Walk every access of every block."""
    times: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for time, path in rows:
        for end in range(1, len(path) + 1):
            times[tuple(path[:end])].append(time * S)
    last = max(time for time, _ in rows) * S
    out = []
    for uses in range(1, MOST_USES + 1):
        for age in ages_us:
            blocks = reused = 0
            for seen in times.values():
                for at, time in enumerate(seen, start=1):
                    if min(at, MOST_USES) != uses:
                        continue
                    gap = seen[at] - time if at < len(seen) else None
                    if last - time >= age and (gap is None or gap >= age):
                        blocks += 1
                        reused += gap is not None
            out.append((uses, age, blocks, reused))
    return out


paths = st.lists(st.lists(st.integers(1, 3), max_size=5), min_size=1, max_size=25)


@settings(max_examples=60, deadline=None)
@given(paths, st.lists(st.integers(0, 4), min_size=25, max_size=25))
def test_counting_block_by_block_gives_the_same(prefixes: list[list[int]], steps: list[int]) -> None:
    # An id names its whole prefix: number the prefixes.
    ids: dict[tuple[int, ...], int] = {}
    rows, now = [], 0
    for prefix, step in zip(prefixes, steps, strict=False):
        now += step
        path = [ids.setdefault(tuple(prefix[:end]), len(ids) + 1) for end in range(1, len(prefix) + 1)]
        rows.append((now, path))
    ages = [0, S, 3 * S, 10 * S]
    odds = kv.reuse_odds(trace_of(list(rows)), ages_us=ages)
    assert odds.select("uses", "age_us", "blocks", "reused_blocks").rows() == slow_odds(rows, ages)


def test_probabilities_and_depths() -> None:
    trace = trace_of([(0, [1, 2, 3]), (1, [1, 2, 4]), (5, [1, 2, 3]), (9, [9])])
    odds = kv.reuse_odds(trace, ages_us=[0, 2 * S])
    first, aged = odds.filter(uses=1).rows(named=True)
    assert (first["blocks"], first["reused_blocks"], first["probability"]) == (5, 3, 0.6)
    # Blocks 1 and 2 are used again after 1 s; 3 after 5 s; 4 never; 9 is new when the trace ends.
    assert (aged["blocks"], aged["reused_blocks"]) == (2, 1)
    found = Odds(trace)
    assert [found.of_depth(at) for at in (0, 1, 2, 3)] == [0.5, 1.0, 0.5, None]
    assert [found.within(age) for age in (0, S, 4 * S, 9 * S)] == [0, 0.4, 0.8, 1]


def test_without_times_only_age_zero() -> None:
    odds = kv.reuse_odds(trace_of([(None, [1, 2]), (None, [1, 2]), (None, [1])]))
    assert odds["age_us"].unique().to_list() == [0]
    assert odds.rows()[0] == (1, 0, 2, 2, 1.0)
    assert Odds(trace_of([(None, [1]), (None, [1])])).within(5) is None


def test_nothing_is_reused() -> None:
    odds = kv.reuse_odds(trace_of([(0, [1]), (1, [2])]), ages_us=[0])
    assert odds["probability"].to_list() == [0.0, None, None, None, None]


@pytest.mark.parametrize("age", [-1, 1.5, "1s", True])
def test_ages_that_cannot_be(age: object) -> None:
    with pytest.raises(kv.ConfigError, match="an age of"):
        kv.reuse_odds(trace_of([(0, [1])]), ages_us=[age])  # type: ignore[list-item]
