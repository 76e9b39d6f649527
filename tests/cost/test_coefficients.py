"""The recompute model: form, priors, columns."""

from __future__ import annotations

import math

import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

import kvreplay as kv

COST = kv.CostModel(c0_us=20_000, floor_us=10_000, linear_us_per_token=95.3, quadratic_us_per_token2=3.12e-3)


def test_the_form() -> None:
    assert COST.recompute_us(1) == 30_000  # on the floor
    assert COST.recompute_us(5011) == 20_000 + 95.3 * 5011 + 3.12e-3 * 5011**2
    assert COST.recompute_us(147, 4864) == pytest.approx(
        20_000 + 95.3 * 147 + 3.12e-3 * (2 * 4864 * 147 + 147**2)
    )
    assert COST.work_us(0) == 0


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_chunks_add_up(first: int, second: int, resident: int) -> None:
    """The work of a prompt is that of its chunks, each after the ones before."""
    parts = COST.work_us(first, resident) + COST.work_us(second, resident + first)
    assert COST.work_us(first + second, resident) == pytest.approx(parts, rel=1e-12)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10**7), st.integers(0, 10**7)), min_size=1, max_size=10))
def test_columns_are_as_numbers(pairs: list[tuple[int, int]]) -> None:
    frame = pl.DataFrame(pairs, schema={"m": pl.Int64, "p": pl.Int64}, orient="row")
    got = frame.select(
        time=COST.recompute_expr(pl.col("m"), pl.col("p")), work=COST.work_expr(pl.col("m"), pl.col("p"))
    )
    assert got["time"].to_list() == [COST.recompute_us(m, p) for m, p in pairs]
    assert got["work"].to_list() == [COST.work_us(m, p) for m, p in pairs]
    assert got.dtypes == [pl.Float64, pl.Float64]


@pytest.mark.parametrize("bad", [-1, math.nan, math.inf, "3", None, True])
def test_coefficients_that_cannot_be(bad: object) -> None:
    with pytest.raises(kv.ConfigError, match="floor_us"):
        kv.CostModel(c0_us=0, floor_us=bad, linear_us_per_token=1, quadratic_us_per_token2=0)  # type: ignore[arg-type]


class TestPrior:
    def test_llama_on_h100(self) -> None:
        cost = kv.CostModel.prior("llama-3.1-8b", "h100-sxm")
        # 2 x 6.979e9 at half of 989e12 per second
        assert cost.linear_us_per_token == pytest.approx(2 * 6_979_321_856 / 494.5e6)
        assert cost.quadratic_us_per_token2 == pytest.approx(1.15 * 2 * 32 * 4096 / 494.5e6)
        # 16.06 GB of weights at 80 % of 3,350 GB/s
        assert cost.floor_us == pytest.approx(16.06e9 / 2.68e12 * 1e6, rel=1e-3)
        assert not cost.calibrated
        assert "not measured" in cost.error

    def test_ends(self) -> None:
        cost = kv.CostModel.prior("llama-3.1-8b", "h100-sxm")
        assert cost.low is not None
        assert cost.high is not None
        assert cost.low.linear_us_per_token == pytest.approx(cost.linear_us_per_token * 0.5 / 0.65)
        assert cost.high.linear_us_per_token == pytest.approx(cost.linear_us_per_token * 0.5 / 0.35)

    def test_the_published_curve_lies_between_the_ends_beyond_the_step(self) -> None:
        """vLLM's blog, figure 1, H100: 0.64 of the peak, so near the fast end."""
        cost = kv.CostModel.prior("llama-3.1-8b", "h100-sxm")
        assert cost.low is not None
        for tokens, ms in ((20_000, 640), (50_000, 2290), (100_000, 6850)):
            assert cost.low.recompute_us(tokens) <= ms * 1e3 * 1.03
            assert cost.recompute_us(tokens) >= ms * 1e3

    def test_small_models_and_starved_gpus_have_priors_of_their_own(self) -> None:
        assert (
            "MFU 0.35 of the dense peak, between 0.2 and 0.65" in kv.CostModel.prior("qwen3-0.6b", "l4").error
        )
        assert (
            "MFU 0.85 of the dense peak, between 0.6 and 0.95" in kv.CostModel.prior("qwen3-8b", "h20").error
        )

    def test_a_known_mfu_has_no_ends(self) -> None:
        cost = kv.CostModel.prior("llama-3.1-8b", "h100-sxm", mfu=0.64)
        assert (cost.low, cost.high) == (None, None)
        assert cost.linear_us_per_token == pytest.approx(22.05, abs=0.01)

    def test_ranks_share_the_work(self) -> None:
        one = kv.CostModel.prior("llama-3.1-70b", "h100-sxm")
        four = kv.CostModel.prior(kv.model("llama-3.1-70b", tp=4), "h100-sxm")
        assert four.linear_us_per_token == pytest.approx(one.linear_us_per_token / 4)
        assert four.floor_us == pytest.approx(one.floor_us / 4)

    @pytest.mark.parametrize("mfu", [0, -1, 1.5, math.nan])
    def test_an_mfu_that_cannot_be(self, mfu: float) -> None:
        with pytest.raises(kv.ConfigError, match="mfu"):
            kv.CostModel.prior("llama-3.1-8b", "h100-sxm", mfu=mfu)

    def test_a_model_of_unknown_size_has_none(self) -> None:
        with pytest.raises(kv.ConfigError, match="number of parameters"):
            kv.CostModel.prior("deepseek-v4-flash", "h100-sxm")


class TestWork:
    def test_sparse_attention_grows_with_its_index_only(self) -> None:
        spec = kv.model("deepseek-v3.2")
        assert spec.attention_flops_coefficient == 61 * 64 * 128
        assert spec.window_flops_per_token == 2 * 61 * 128 * (192 + 128) * 2048

    def test_latent_attention_uses_whole_heads_in_prefill(self) -> None:
        assert kv.model("deepseek-v3").attention_flops_coefficient == 61 * 128 * (192 + 128)

    def test_chunks_are_half_full_on_average(self) -> None:
        spec = kv.model("llama-4-scout")
        assert spec.attention_flops_coefficient == 12 * 40 * 2 * 128
        assert spec.window_flops_per_token == 2 * 36 * 40 * 2 * 128 * 4096

    @settings(max_examples=30, deadline=None)
    @given(
        st.sampled_from(["llama-3.1-8b", "gemma-3-27b", "kimi-k3", "deepseek-v4-pro"]),
        st.sampled_from([1, 8]),
        st.lists(st.integers(0, 2_000_000), min_size=1, max_size=6),
    )
    def test_loaded_bytes_of_columns_are_as_numbers(self, name: str, tp: int, tokens: list[int]) -> None:
        spec = kv.model(name, tp=tp, kv_dtype="nvfp4")
        frame = pl.DataFrame({"t": tokens}, schema={"t": pl.Int64})
        got = frame.select(
            whole=spec.loaded_bytes_expr(pl.col("t")), rank=spec.rank_loaded_bytes_expr(pl.col("t"))
        )
        assert got["whole"].to_list() == [float(spec.loaded_bytes(t)) for t in tokens]
        ours = [float(spec.rank_loaded_bytes(t)) for t in tokens]
        assert got["rank"].to_list() == pytest.approx(ours, rel=1e-12, abs=1)
