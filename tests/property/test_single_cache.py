"""The fast engines against the oracle, on random forests: one cache."""

from __future__ import annotations

from typing import Any

import polars as pl
from hypothesis import given, settings, strategies as st
from tests.oracle import single
from tests.oracle.forest import Paths, forests, hit_tokens, rows_of

import kvreplay as kv

SCHEMA: dict[str, Any] = {
    "timestamp": pl.Int64,
    "input_length": pl.Int64,
    "output_length": pl.Int64,
    "hash_ids": pl.List(pl.UInt64),
}


def trace_of(paths: Paths) -> kv.Trace:
    """A trace of the paths, without a file."""
    return kv.read_trace(
        pl.DataFrame(rows_of(paths), schema=SCHEMA), block_tokens=16, tail="ceil", time_unit="ms"
    )


def unique_blocks(paths: Paths) -> int:
    return len({block for path in paths for block in path})


@settings(max_examples=150)
@given(forests())
def test_lru_at_every_capacity(paths: Paths) -> None:
    trace, rows = trace_of(paths), rows_of(paths)
    capacities = range(1, unique_blocks(paths) + 2)
    curve = kv.hit_curve(trace, capacities=capacities)
    hits = [single.lru_hits(paths, capacity) for capacity in capacities]
    assert curve["hit_blocks"].to_list() == [sum(one) for one in hits]
    tokens = [sum(map(hit_tokens, one, rows)) for one in hits]
    assert curve["hit_tokens"].to_list() == tokens
    assert curve["hit_blocks"].is_sorted()


@settings(max_examples=60)
@given(forests())
def test_the_exact_curve_has_a_row_wherever_the_dense_one_rises(paths: Paths) -> None:
    trace = trace_of(paths)
    capacities = range(1, unique_blocks(paths) + 2)
    dense = (
        kv.hit_curve(trace, capacities=capacities)
        .select("capacity_blocks", "hit_blocks", "hit_tokens")
        .rows()
    )
    steps, before = [], (0, 0)
    for capacity, blocks, tokens in dense:
        if (blocks, tokens) != before:
            steps.append((capacity, blocks, tokens))
        before = (blocks, tokens)
    exact = kv.hit_curve(trace)
    assert exact.select("capacity_blocks", "hit_blocks", "hit_tokens").rows() == steps


@settings(max_examples=60)
@given(forests(max_requests=25), st.integers(1, 30))
def test_opt(paths: Paths, capacity: int) -> None:
    curve = kv.hit_curve(trace_of(paths), policy="opt", capacities=[capacity])
    assert curve["hit_blocks"].to_list() == [sum(single.opt_hits(paths, capacity))]


@settings(max_examples=100)
@given(forests())
def test_ceiling(paths: Paths) -> None:
    found = kv.ceiling(trace_of(paths))
    hits = single.ceiling_hits(paths)
    assert found["hit_blocks"].to_list() == hits
    assert found["hit_tokens"].to_list() == [
        hit_tokens(h, row) for h, row in zip(hits, rows_of(paths), strict=True)
    ]


@settings(max_examples=100)
@given(forests())
def test_reuse_runs_hold_every_stack_distance(paths: Paths) -> None:
    found: list[list[int | None]] = [[None] * len(path) for path in paths]
    for row in kv.reuse_runs(trace_of(paths)).iter_rows(named=True):
        for i in range(row["length"]):
            assert found[row["request"]][row["start"] + i] is None
            found[row["request"]][row["start"] + i] = row["distance_blocks"] + 1 + i
        assert row["age_us"] == 250_000 * (row["request"] - row["previous_request"])
    assert found == single.stack_distances(paths)


@settings(max_examples=100)
@given(forests(), st.integers(1, 40))
def test_a_replayed_tier(paths: Paths, capacity: int) -> None:
    trace, rows = trace_of(paths), rows_of(paths)
    result = kv.replay(trace, [kv.Tier("a", capacity=capacity)], per_request=True)
    hits = single.lru_hits(paths, capacity)
    assert result.requests["hit_blocks_a"].to_list() == hits
    tokens = [hit_tokens(h, row) for h, row in zip(hits, rows, strict=True)]
    assert result.requests["hit_tokens_a"].to_list() == tokens
    computed = [row["input_length"] - hit for row, hit in zip(rows, tokens, strict=True)]
    assert result.requests["computed_tokens"].to_list() == computed
    assert result.content("a") == single.lru_content(paths, capacity)
    assert result.tiers["resident_blocks"].to_list() == [len(single.lru_content(paths, capacity))]


@settings(max_examples=60)
@given(forests(), st.integers(1, 40))
def test_another_policy(paths: Paths, capacity: int) -> None:
    result = kv.replay(
        trace_of(paths), [kv.Tier("a", capacity=capacity, policy="fifo", closure="none")], per_request=True
    )
    assert result.requests["hit_blocks_a"].to_list() == single.fifo_hits(paths, capacity)


@settings(max_examples=40)
@given(forests(), st.integers(1, 40))
def test_events_tell_the_whole_story(paths: Paths, capacity: int) -> None:
    result = kv.replay(trace_of(paths), [kv.Tier("a", capacity=capacity)], events=True)
    resident: set[int] = set()
    for event in result.events.iter_rows(named=True):
        match event["event"]:
            case "insert":
                assert event["block"] not in resident
                resident.add(event["block"])
            case "evict":
                resident.remove(event["block"])
            case "hit":
                assert event["block"] in resident
        assert len(resident) <= capacity
    assert sorted(resident) == sorted(single.lru_content(paths, capacity))


@settings(max_examples=40)
@given(forests(), st.integers(0, 2**64 - 1))
def test_renaming_blocks_changes_nothing(paths: Paths, seed: int) -> None:
    renamed = [[(block * 0x9E3779B97F4A7C15 + seed) % 2**64 for block in path] for path in paths]
    one, other = trace_of(paths), trace_of(renamed)
    assert kv.hit_curve(one).equals(kv.hit_curve(other))
    assert kv.reuse_runs(one).equals(kv.reuse_runs(other))
    for policy in kv.policies().filter(pl.col("name") != "opt")["name"]:
        tiers = [kv.Tier("a", capacity=7, policy=policy)]
        assert kv.replay(one, tiers).tiers.equals(kv.replay(other, tiers).tiers)
