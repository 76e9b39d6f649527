"""Break-even lengths, bandwidths and splits against slow twins and closed forms."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given, settings, strategies as st

import kvreplay as kv
from kvreplay.cost.lengths import LONGEST_TOKENS, Comparison, closed_form

LLAMA = kv.model("llama-3.1-8b")
WORKED = kv.CostModel(c0_us=0, floor_us=0, linear_us_per_token=21.94, quadratic_us_per_token2=4.724e-4)


def link(gb_s: float, fixed_ms: float, **options: object) -> kv.Link:
    return kv.Link("x", bandwidth=f"{gb_s} GB/s", fixed=f"{fixed_ms} ms", **options)  # type: ignore[arg-type]


def slow_break_even(comparison: Comparison, most: int) -> int | None:
    """Try every whole block, shortest first."""
    step = comparison.spec.block_tokens or 1
    for tokens in range(step, most + 1, step):
        if comparison.saved_us(tokens) >= 0:
            return tokens
    return None


@st.composite
def comparisons(draw: st.DrawFn) -> Comparison:
    names = ["llama-3.1-8b", "gemma-3-27b", "kimi-k3", "qwen2.5-1.5b"]
    spec = kv.model(draw(st.sampled_from(names)), block_tokens=draw(st.sampled_from([None, 16, 256])))
    cost = kv.CostModel(
        c0_us=2000, floor_us=6000, linear_us_per_token=21.94, quadratic_us_per_token2=4.724e-4
    )
    way = kv.Link(
        "y",
        bandwidth=f"{draw(st.floats(0.5, 60))} GB/s",
        fixed=f"{draw(st.floats(0, 20))} ms",
        through=link(20, 1, copy="3 us"),
        pipelined=draw(st.booleans()),
    )
    remainder = draw(st.sampled_from([None, 1, 100, 3000]))
    return Comparison(spec, cost, way, draw(st.integers(0, 50_000)), remainder)


@settings(max_examples=60, deadline=None)
@given(comparisons())
def test_the_search_finds_what_trying_all_finds(comparison: Comparison) -> None:
    found = comparison.break_even_tokens()
    assert slow_break_even(comparison, 6000) == (found if found is not None and found <= 6000 else None)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.3, 60), st.floats(0.1, 50), st.integers(0, 100_000))
def test_the_closed_form_is_the_search_without_rounding(gb_s: float, fixed_ms: float, resident: int) -> None:
    root = closed_form(
        WORKED,
        fixed_us=fixed_ms * 1e3,
        load_us_per_token=131_072 / (gb_s * 1e3),
        resident_tokens=resident,
    )
    assume(abs(root - LONGEST_TOKENS) > 1)
    found = Comparison(LLAMA, WORKED, link(gb_s, fixed_ms), resident).break_even_tokens()
    assert found == (math.ceil(root) if root <= LONGEST_TOKENS else None) or abs(root - round(root)) < 1e-6


def test_the_closed_form_without_attention() -> None:
    flat = kv.CostModel(c0_us=0, floor_us=0, linear_us_per_token=20, quadratic_us_per_token2=0)
    assert closed_form(flat, fixed_us=1000, load_us_per_token=10) == 100
    assert closed_form(flat, fixed_us=1000, load_us_per_token=20) == math.inf


def test_depth_makes_a_block_worth_more() -> None:
    """A suffix block at 64k is worth 3.8 times a block at 0 (8B on H100)."""
    here, deep = (Comparison(LLAMA, WORKED, link(44, 0), p).recompute_us(16) for p in (0, 64_000))
    assert deep / here == pytest.approx(3.8, abs=0.05)


def test_rounding_to_chunks() -> None:
    spec = kv.model("llama-3.1-8b", block_tokens=256)
    comparison = Comparison(spec, WORKED, link(43.9, 9.8))
    assert comparison.break_even_tokens() == 512
    assert comparison.loaded_tokens(5011) == 4864
    assert comparison.load_us(255) == 0
    assert comparison.saved_us(255) == 0


def test_a_short_remainder_makes_short_hits_worthless() -> None:
    """On the floor the weights are read anyway: nothing is saved by computing less."""
    cost = kv.CostModel(c0_us=0, floor_us=6000, linear_us_per_token=21.94, quadratic_us_per_token2=0)
    alone = Comparison(LLAMA, cost, link(44, 0), remainder_tokens=1)
    assert alone.recompute_us(200) == 0
    assert alone.recompute_us(1000) == pytest.approx(21.94 * 1001 - 6000)
    assert Comparison(LLAMA, cost, link(44, 0), remainder_tokens=1000).recompute_us(200) == pytest.approx(
        21.94 * 200
    )


def test_overlap_hides_the_load_behind_the_remainder() -> None:
    cost = kv.CostModel(c0_us=0, floor_us=0, linear_us_per_token=20, quadratic_us_per_token2=0)
    way = link(131_072 / 10_000, 0, overlap="full")  # 10 us per token
    comparison = Comparison(LLAMA, cost, way, remainder_tokens=1000)
    assert comparison.load_us(1000) == pytest.approx(10_000)
    assert comparison.saved_us(1000) == pytest.approx(20_000)  # the load takes less than the remainder


@settings(max_examples=40, deadline=None)
@given(st.floats(0.3, 60), st.floats(0, 50), st.integers(1, 300), st.integers(0, 10_000))
def test_the_best_split_of_all(gb_s: float, fixed_ms: float, blocks: int, resident: int) -> None:
    spec = kv.model("llama-3.1-8b", block_tokens=16)
    comparison = Comparison(spec, WORKED, link(gb_s, fixed_ms), resident)
    computed, time = comparison.split(blocks * 16)
    every = [
        max(
            WORKED.work_us(16 * x, resident),
            comparison.link.load_us(16 * (blocks - x), 131_072 * 16 * (blocks - x)),
        )
        for x in range(blocks + 1)
    ]
    assert time == pytest.approx(min(every), rel=1e-12)
    assert every[computed // 16] == pytest.approx(time, rel=1e-12)


class TestTable:
    def test_rows_and_verdicts(self) -> None:
        links = [link(43.9, 9.8), kv.Link("slow", bandwidth="0.25 GB/s", fixed="100 ms")]
        got = kv.break_even(model="llama-3.1-8b", cost=WORKED, links=links, lengths=[400, 600])
        assert got.select("link", "prefix_tokens", "verdict", "break_even_tokens").rows() == [
            ("x", 400, "recompute", 511),
            ("x", 600, "load", 511),
            ("slow", 400, "recompute", None),
            ("slow", 600, "recompute", None),
        ]
        assert got["saved_us"].to_list() == pytest.approx(
            [r - t for r, t in zip(got["recompute_us"], got["load_us"], strict=True)]
        )
        assert got["saved_us"].to_list() == got["saved_low_us"].to_list() == got["saved_high_us"].to_list()

    def test_a_prior_is_undecided_where_its_ends_differ(self) -> None:
        got = kv.break_even(
            model="llama-3.1-8b", hardware="h100-sxm", links=["nvme-gen4"], lengths=[1024, 131_072]
        )
        assert got["verdict"].to_list() == ["undecided", "load"]
        low, middle, high = (got[f"break_even_{end}tokens"][0] for end in ("low_", "", "high_"))
        assert low < middle < high

    def test_the_attention_share_of_the_published_curve(self) -> None:
        """15, 47 and 64 % of the work; a little more of the time, attention being slower per operation."""
        got = kv.break_even(
            model="llama-3.1-8b", cost=WORKED, links=[link(1, 0)], lengths=[10_000, 50_000, 100_000]
        )
        assert got["attention_share"].to_list() == pytest.approx([0.177, 0.518, 0.683], abs=0.002)

    def test_default_links_are_those_of_the_gpu(self) -> None:
        names = kv.break_even(model="llama-3.1-8b", hardware="gb200")["link"].unique(maintain_order=True)
        assert names.to_list() == ["nvlink-c2c", "nvme-gen4", "rdma-200g", "object-node"]

    @pytest.mark.parametrize(
        ("options", "told"),
        [
            ({}, "neither hardware nor cost"),
            ({"cost": WORKED}, "no link is given"),
            ({"cost": 3, "links": ["pcie5-x16"]}, "kv.CostModel"),
            ({"cost": WORKED, "links": ["pcie5-x16", "pcie5-x16"]}, "two links"),
            ({"cost": WORKED, "links": ["pcie5-x16"], "lengths": [0]}, "a length is 0"),
            ({"cost": WORKED, "links": ["pcie5-x16"], "lengths": [1.5]}, "a length is 1.5"),
            ({"cost": WORKED, "links": ["pcie5-x16"], "resident_tokens": -1}, "resident_tokens"),
            ({"cost": WORKED, "links": ["pcie5-x16"], "remainder_tokens": 0}, "remainder_tokens"),
            ({"hardware": "h1000"}, "unknown hardware"),
        ],
    )
    def test_unusable_questions(self, options: dict[str, object], told: str) -> None:
        with pytest.raises(kv.ConfigError, match=told):
            kv.break_even(model="llama-3.1-8b", **options)  # type: ignore[arg-type]

    def test_extrapolation_is_flagged(self) -> None:
        rows = [{"input_tokens": n, "ttft_ms": n * 0.022 + 20} for n in (1000, 2000, 4000, 8000)]
        cost = kv.calibrate(rows, model="llama-3.1-8b", hardware="h100-sxm")
        got = kv.break_even(model="llama-3.1-8b", cost=cost, links=[link(20, 1)], lengths=[12_000, 12_001])
        assert got["extrapolated"].to_list() == [False, True]
