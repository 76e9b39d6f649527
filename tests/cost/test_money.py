"""Prices, the five-minute rule, wear, and room for users."""

from __future__ import annotations

import math

import polars as pl
import pytest

import kvreplay as kv
from kvreplay.cost import data, wear
from kvreplay.cost.money import (
    HOUR_US,
    YEAR_US,
    price_list,
    prices,
    rent,
    residency_us,
    usd_per_million_tokens,
)
from kvreplay.cost.room import logged_bytes_per_token, room


class TestPrices:
    def test_catalogue_and_overrides(self) -> None:
        own = prices("h100", dram_gb_usd=5, ssd_dwpd=None)
        assert (own.gpu_hour_usd, own.dram_gb_usd, own.ssd_dwpd) == (2.95, 5, 1.0)
        assert own.used[0].startswith("gpu_hour_usd = 2.95 (USD per GPU-hour): median")
        assert own.used[1] == "dram_gb_usd = 5: given"
        assert own.gpu_us_usd * 3.6e9 == pytest.approx(2.95)

    def test_a_gpu_without_a_price(self) -> None:
        own = prices("h20")
        assert own.gpu_hour_usd is None
        with pytest.raises(kv.ConfigError, match="GPU-hour"):
            _ = own.gpu_us_usd
        assert prices("h20", gpu_hour_usd=1.1).gpu_hour_usd == 1.1

    @pytest.mark.parametrize(
        ("options", "told"),
        [
            ({"dram": 3}, "unknown price"),
            ({"dram_gb_usd": -1}, "dram_gb_usd"),
            ({"ssd_years": 0}, "ssd_years"),
            ({"gpu_hour_usd": math.nan}, "gpu_hour_usd"),
            ({"ssd_waf": "2"}, "ssd_waf"),
        ],
    )
    def test_prices_that_cannot_be(self, options: dict[str, float], told: str) -> None:
        with pytest.raises(kv.ConfigError, match=told):
            prices("h100-sxm", **options)

    def test_every_entry_is_whole(self) -> None:
        assert price_list().height == len(data.catalogue("prices"))
        for name, entry in data.catalogue("prices").items():
            assert entry["source"], name
            assert len(entry["date"]) == 10, name
            assert entry.get("low", entry["value"]) <= entry["value"] <= entry.get("high", entry["value"]), (
                name
            )

    def test_an_unknown_medium(self) -> None:
        with pytest.raises(kv.ConfigError, match="unknown medium"):
            prices().rent("tape")


class TestFiveMinutes:
    def test_the_rule(self) -> None:
        # A second of GPU at 3.6 USD/h is 0.001 USD; 1 GB at 10 USD over 10 years is 1 USD a year.
        kept = residency_us(1e6, 1e9, gpu_us_usd=3.6 / HOUR_US, rent_usd=rent(10, 10))
        assert kept == pytest.approx(YEAR_US / 1000)

    def test_nothing_saved_is_not_worth_keeping(self) -> None:
        assert residency_us(0, 1e9, gpu_us_usd=1, rent_usd=1) == 0
        assert residency_us(-5, 1e9, gpu_us_usd=1, rent_usd=1) == 0
        assert residency_us(5, 1e9, gpu_us_usd=1, rent_usd=0) == math.inf

    def test_in_the_table(self) -> None:
        cost = kv.CostModel(c0_us=0, floor_us=0, linear_us_per_token=21.94, quadratic_us_per_token2=4.724e-4)
        links = [
            kv.Link("dram", bandwidth="44 GB/s", fixed="0 us", medium="dram"),
            kv.Link("far", bandwidth="44 GB/s", fixed="0 us"),
            kv.Link("slow", bandwidth="0.1 GB/s", fixed="0 us", medium="ssd"),
        ]
        got = kv.break_even(
            model="llama-3.1-8b", cost=cost, links=links, lengths=[10_000],
            prices=prices("h100-sxm", dram_gb_usd=10),
        )  # fmt: skip
        keep = got["keep_async_us"].to_list()
        assert keep[0] / 60e6 == pytest.approx(26.3, abs=0.05)
        assert keep[1] is None
        assert got["keep_blocking_us"].to_list()[1:] == [None, 0.0]


class TestWear:
    def test_life(self) -> None:
        # 1 TB a day on a 1 TB drive of 1 DWPD and 5 years: 5 years; twice as much wears twice as fast.
        assert wear.lifetime_years(1e12, 1e12, dwpd=1, years=5, waf=1) == 5
        assert wear.lifetime_years(1e12, 1e12, dwpd=1, years=5, waf=2) == 2.5
        assert wear.lifetime_years(1e12, 0, dwpd=1, years=5, waf=2) == math.inf
        assert wear.drive_writes_per_day(1e12, 5e11, waf=2) == 1

    def test_columns_are_as_numbers(self) -> None:
        frame = pl.DataFrame({"c": [10**12, 10**13, 10**12], "w": [10**12, 10**11, 0]})
        got = frame.select(
            wear.lifetime_years_expr(pl.col("c"), pl.col("w"), dwpd=3, years=5, waf=1.5)
        ).to_series()
        one = [wear.lifetime_years(c, w, dwpd=3, years=5, waf=1.5) for c, w in frame.rows()]
        assert got.to_list() == [pytest.approx(one[0]), pytest.approx(one[1]), None]

    def test_money(self) -> None:
        byte = wear.usd_per_byte_written(0.2, dwpd=1, years=5, waf=2)
        assert byte * 1e9 == pytest.approx(2 * 0.2 / 1825)
        assert wear.reuses_to_pay(1e9, 0, gpu_us_usd=1, usd_per_byte_written=byte) == math.inf
        assert usd_per_million_tokens(22.0, gpu_us_usd=2.95 / HOUR_US) == pytest.approx(0.018, abs=1e-4)


class TestRoom:
    def test_llama_70b_on_four_a100(self) -> None:
        found = room(kv.model("llama-3.1-70b", tp=4), kv.hardware("a100-sxm"), tokens=4096)
        assert found.memory_bytes == 4 * 80 * 2**30
        assert found.weights_bytes == pytest.approx(141.1e9, rel=1e-3)
        assert found.kv_bytes / 2**30 == pytest.approx(156.6, abs=0.1)
        assert found.users == 125
        assert found.kv_tokens == found.kv_bytes // 327_680

    def test_weights_that_do_not_fit(self) -> None:
        found = room(kv.model("llama-3.1-70b"), kv.hardware("a100-sxm"), tokens=4096)
        assert found.kv_bytes < 0
        assert (found.users, found.kv_tokens) == (0, 0)

    def test_smaller_types_make_room(self) -> None:
        fp8 = kv.model("llama-3.1-70b", tp=4, kv_dtype="fp8")
        assert room(fp8, kv.hardware("a100-sxm"), tokens=4096).users == 250
        assert room(fp8, kv.hardware("a100-sxm"), tokens=4096, weight_dtype="fp8").users > 300

    def test_a_user_fills_whole_blocks_and_a_state(self) -> None:
        spec = kv.model("qwen3-next-80b-a3b", tp=4, block_tokens=256)
        found = room(spec, kv.hardware("h100-sxm"), tokens=1000)
        assert found.user_bytes == 1024 * spec.hbm_bytes_per_token + spec.state_bytes

    @pytest.mark.parametrize(
        "options", [{"tokens": 0}, {"tokens": 1, "utilization": 0}, {"tokens": 1, "utilization": 1.5}]
    )
    def test_what_cannot_be(self, options: dict[str, float]) -> None:
        with pytest.raises(kv.ConfigError):
            room(kv.model("llama-3.1-8b"), kv.hardware("a100-sxm"), **options)  # type: ignore[arg-type]

    def test_a_log(self) -> None:
        assert logged_bytes_per_token(21_520 * 28_672, 21_520) == 28_672
        with pytest.raises(kv.ConfigError):
            logged_bytes_per_token(0, 5)
