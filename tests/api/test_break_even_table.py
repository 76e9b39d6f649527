"""Table `break_even`: the rows of every tier with a link, and what the trace says of reuse."""

from __future__ import annotations

import kvreplay as kv
from kvreplay.cost.lengths import Comparison
from kvreplay.cost.money import prices
from kvreplay.odds import Odds
from kvreplay.tables import break_even
from kvreplay.tables.study import Study

COST = kv.CostModel(c0_us=0, floor_us=0, linear_us_per_token=21.94, quadratic_us_per_token2=4.724e-4)
LLAMA = kv.model("llama-3.1-8b")


def comparisons() -> dict[str, Comparison]:
    fast = kv.Link("fast", bandwidth="44 GB/s", fixed="1 ms", medium="dram")
    slow = kv.Link("slow", bandwidth="0.1 GB/s", fixed="1 ms")
    return {"cpu": Comparison(LLAMA, COST, fast), "far": Comparison(LLAMA, COST, slow)}


def test_lengths_are_those_the_trace_reaches() -> None:
    assert break_even.lengths_up_to(5011) == [256, 1024, 4096, 5011]
    assert break_even.lengths_up_to(256) == [256]
    assert break_even.lengths_up_to(0) == [1]


def test_rows() -> None:
    scan = kv.generate("cyclic_scan", requests=30, documents=10, document_tokens=1600)
    rows = break_even.build_rows(
        comparisons(),
        prices=prices("h100-sxm", dram_gb_usd=10),
        odds=Odds(scan),
        lengths=[1024, 1600, 1601],
        block_tokens=16,
    )
    frame = break_even.TABLE.conform(rows)
    assert frame.columns == [column.name for column in break_even.TABLE.columns]
    assert frame.select("tier", "link", "prefix_tokens", "verdict").rows() == [
        ("cpu", "fast", 1024, "load"),
        ("cpu", "fast", 1600, "load"),
        ("cpu", "fast", 1601, "load"),
        ("far", "slow", 1024, "recompute"),
        ("far", "slow", 1600, "recompute"),
        ("far", "slow", 1601, "recompute"),
    ]
    # Every document comes three times; no prompt has a 101st block.
    assert frame["reuse_probability"].to_list() == [1.0, 1.0, None, 1.0, 1.0, None]
    cpu, far = frame.row(0, named=True), frame.row(3, named=True)
    assert cpu["expected_saved_us"] == cpu["saved_us"]
    assert (far["expected_saved_us"], far["keep_async_us"], far["reuses_within_keep_async"]) == (
        0,
        None,
        None,
    )
    gap = kv.reuse_runs(scan)["age_us"].max()
    assert isinstance(gap, int)
    assert cpu["keep_async_us"] > gap
    assert cpu["reuses_within_keep_async"] == 1.0


def test_a_study_without_a_cost_model_has_no_such_table() -> None:
    trace = kv.generate("multi_turn", requests=20, seed=1)
    study = Study(trace=trace, tiers=[], scale=trace.scale())
    assert break_even.TABLE.build(study) is None
    study.comparisons = comparisons()
    frame = break_even.TABLE.build(study)
    assert frame is not None
    assert frame["tier"].unique(maintain_order=True).to_list() == ["cpu", "far"]
    assert frame["prefix_tokens"].max() == trace.requests()["input_tokens"].max()


def test_a_model_by_name_gives_sizes_in_bytes() -> None:
    trace = kv.generate("multi_turn", requests=20, seed=1)
    result = kv.replay(trace, [kv.Tier("gpu", capacity="1GiB")], model="llama-3.1-8b")
    assert result.tiers["capacity_blocks"].to_list() == [512]
    assert trace.scale(LLAMA).kv_bytes_per_token == 131_072
