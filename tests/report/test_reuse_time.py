"""Table `reuse_time` made of reuse runs, against the core's own pass."""

from __future__ import annotations

import io
import json

import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

import kvreplay as kv
from kvreplay.tables.reuse_time import of_runs


def from_runs(trace: kv.Trace, seed: int = 0) -> list[tuple[int, ...]]:
    runs = kv.reuse_runs(trace).sample(fraction=1.0, shuffle=True, seed=seed)
    return of_runs(runs, trace.requests(), block_tokens=trace.info["block_tokens"]).rows()


def read(rows: list[dict[str, object]]) -> kv.Trace:
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    return kv.read_trace(io.BytesIO(text.encode()), block_tokens=16, strict=False)


@settings(max_examples=25)
@given(seed=st.integers(0, 500), kind=st.sampled_from(["multi_turn", "shared_prefix", "agent", "unique"]))
def test_runs_give_the_table_of_a_pass_over_the_blocks(seed: int, kind: str) -> None:
    trace = kv.generate(kind, requests=60, seed=seed)
    assert from_runs(trace, seed) == kv.reuse_time(trace).rows()


@settings(max_examples=40)
@given(
    gaps=st.lists(st.sampled_from([0, 1, 2, 3, 1000, 2**20, 2**33]), min_size=2, max_size=12),
    lengths=st.lists(st.integers(1, 64), min_size=12, max_size=12),
)
def test_bins_without_uses_and_partial_tails(gaps: list[int], lengths: list[int]) -> None:
    now, rows = 0, []
    for gap, length in zip(gaps, lengths, strict=False):
        now += gap
        path = list(range(1, 1 + -(-length // 16)))
        rows.append({"timestamp": now, "input_length": length, "output_length": 1, "hash_ids": path})
    trace = read(rows)
    assert from_runs(trace) == kv.reuse_time(trace).rows()


def test_blocks_of_different_sizes() -> None:
    rows: list[dict[str, object]] = [
        {"timestamp": 10 * at, "input_length": tokens, "block_size": size, "hash_ids": path}
        for at, (tokens, size, path) in enumerate(
            [(40, 16, [1, 2, 3]), (100, 64, [1, 2]), (40, 16, [1, 2, 3]), (90, 64, [1, 2])]
        )
    ]
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    trace = kv.read_trace(io.BytesIO(text.encode()))
    assert trace.requests()["block_tokens"].to_list() == [16, 64, 16, 64]
    want = kv.reuse_time(trace)
    assert want["tokens"].sum() == 40 + 90
    assert from_runs(trace) == want.rows()


def test_the_longest_ages_end_where_whole_numbers_do() -> None:
    runs = pl.DataFrame({"request": [0, 0], "start": [0, 1], "length": [1, 1], "age_us": [2**62, 2**61]})
    table = of_runs(runs, pl.DataFrame({"input_tokens": [20]}), block_tokens=16)
    assert table.rows() == [(2**61, 2**62, 1, 4), (2**62, 2**63 - 1, 1, 16)]


@pytest.mark.parametrize("hardware", [None, "h100-sxm"])
def test_a_report_holds_the_same_table_with_a_cost_model_and_without(hardware: str | None) -> None:
    trace = kv.generate("multi_turn", requests=80, seed=3)
    tiers = [kv.Tier("gpu", capacity="10%"), kv.Tier("cpu", capacity="40%", link="pcie5-x16")]
    report = kv.analyze(trace, tiers, model="llama-3.1-8b", hardware=hardware)
    assert report.tables["reuse_time"].equals(kv.reuse_time(trace))
