"""Calibration: what is measured is found, what is not stays a prior, what cannot be is refused."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import kvreplay as kv
from kvreplay.cost.files import read_cost, to_toml
from kvreplay.cost.nnls import Normal

if TYPE_CHECKING:
    from collections.abc import Iterable


TRUTH = kv.CostModel(c0_us=12_000, floor_us=9_000, linear_us_per_token=24.0, quadratic_us_per_token2=5.5e-4)
WHOLE = "[cost]\nc0_us = 1\nfloor_us = 0\nlinear_us_per_token = 1\nquadratic_us_per_token2 = 0\n"
LLAMA = {"model": "llama-3.1-8b", "hardware": "h100-sxm"}


def measured(lengths: Iterable[int], *, noise: float = 0.0) -> list[dict[str, float]]:
    draw = random.Random(7)  # noqa: S311 - a seed, not a secret
    return [
        {"input_tokens": n, "ttft_ms": TRUTH.recompute_us(n) / 1e3 * (1 + draw.uniform(-noise, noise))}
        for n in lengths
    ]


def fit(rows: object, **options: Any) -> kv.CostModel:
    return kv.calibrate(rows, **{**LLAMA, **options})


def test_many_lengths_give_every_coefficient() -> None:
    cost = fit(measured([16, 64, 128, 512, 1024, 4096, 16_384, 65_536, 131_072]))
    assert cost.c0_us == pytest.approx(12_000, rel=0.02)
    assert cost.floor_us == pytest.approx(9_000, rel=0.03)
    assert cost.linear_us_per_token == pytest.approx(24.0, rel=0.005)
    assert cost.quadratic_us_per_token2 == pytest.approx(5.5e-4, rel=0.005)
    assert (cost.origin, cost.longest_tokens, cost.warnings) == ("fitted", 131_072, ())


def test_noise_is_averaged_and_its_size_is_told() -> None:
    cost = fit(measured([1000, 2000, 4000, 8000, 16_000, 32_000, 64_000] * 5, noise=0.05))
    for n in (3000, 50_000):
        assert cost.recompute_us(n) == pytest.approx(TRUTH.recompute_us(n), rel=0.03)
    assert "fitted to 7 points" in cost.error
    low, high = cost.intervals["break_even_bandwidth_gb_s"]
    true = 8192 * 131_072 / TRUTH.work_us(8192) / 1e3
    assert low * 0.97 <= true <= high * 1.03
    assert cost.low is not None
    assert cost.high is not None
    assert cost.low.recompute_us(8000) < cost.recompute_us(8000) < cost.high.recompute_us(8000)


def test_one_point_that_is_far_off_counts_little() -> None:
    rows = measured([1000, 2000, 4000, 8000, 16_000, 32_000, 64_000])
    rows[3]["ttft_ms"] *= 3
    cost = fit(rows)
    assert cost.recompute_us(16_000) == pytest.approx(TRUTH.recompute_us(16_000), rel=0.05)


def test_one_length_fixes_the_scale_and_says_so() -> None:
    """The share of attention is the model's, 1.15 x L H D / N of the work of the matrices."""
    cost = fit([{"input_tokens": 20_000, "ttft_ms": 640}])
    assert cost.recompute_us(20_000) == pytest.approx(640_000, rel=0.005)
    ratio = cost.quadratic_us_per_token2 / cost.linear_us_per_token
    assert ratio == pytest.approx(1.15 * 32 * 4096 / 6_979_321_856)
    assert any("one length only" in text for text in cost.warnings)
    assert "assumed" in cost.error


def test_the_laboratory() -> None:
    """Qwen2.5-1.5B: a miss, a GPU hit, a CPU hit, a first pass that stores, and the load alone.

    From the LMCache laboratory; see reference figures in the docs. Every row comes back within 1 %.
    """
    rows = [
        {"input_tokens": 5011, "ttft_ms": 575.5},
        {"input_tokens": 5011, "ttft_ms": 597.8, "stored_tokens": 4864, "tier": "cpu"},
        {"input_tokens": 5011, "ttft_ms": 30, "hit_tokens": 5008, "tier": "gpu"},
        {"input_tokens": 5011, "ttft_ms": 47.5, "hit_tokens": 4864, "tier": "cpu"},
        {"tier": "cpu", "block_bytes": 256 * 28_672, "count": 19, "load_ms": 8.5},
    ]
    cost = kv.calibrate(rows, model="qwen2.5-1.5b", hardware="l4")
    link, size = cost.links["cpu"], 4864 * 28_672
    assert link.block_tokens == 256
    assert cost.recompute_us(5011) == pytest.approx(575_500, rel=0.01)
    assert cost.recompute_us(3, 5008) == pytest.approx(30_000, rel=0.01)
    load = link.load_us(4864, size)
    assert load - link.fixed_us == pytest.approx(8500, rel=0.01)
    assert cost.recompute_us(147, 4864) + load == pytest.approx(47_500, rel=0.01)
    assert cost.recompute_us(5011) + size / link.write_bytes_per_us == pytest.approx(597_800, rel=0.01)
    assert link.store == "blocking"
    assert size / link.write_bytes_per_us / 575_500 == pytest.approx(0.039, abs=0.002)  # the store's 3.9 %


def test_links_of_several_tiers() -> None:
    cpu = kv.Link("cpu", bandwidth="40 GB/s", fixed="3 ms")
    disk = kv.Link("disk", bandwidth="5 GB/s", fixed="6 ms")
    rows: list[dict[str, Any]] = list(measured([1000, 4000, 16_000, 64_000]))
    for link in (cpu, disk):
        for n in (2000, 8000, 32_000):
            load = link.load_us(n - 500, (n - 500) * 131_072)
            time = TRUTH.recompute_us(500, n - 500) + load
            rows.append({"input_tokens": n, "hit_tokens": n - 500, "tier": link.name, "ttft_ms": time / 1e3})
    cost = fit(rows)
    for link in (cpu, disk):
        got = cost.links[link.name]
        assert got.bytes_per_us == pytest.approx(link.bytes_per_us, rel=0.02)
        assert got.fixed_us == pytest.approx(link.fixed_us, rel=0.2)
        assert f"break_even_tokens:{link.name}" in cost.intervals


def test_bare_transfers_alone_leave_computing_a_prior() -> None:
    sizes = [2**20, 4 * 2**20]
    rows = [{"tier": "ssd", "block_bytes": b, "count": 1, "load_ms": 0.4 + b / 7e6} for b in sizes]
    cost = fit(rows)
    assert (cost.origin, cost.calibrated) == ("prior", False)
    assert cost.links["ssd"].copy_us == pytest.approx(400, rel=0.02)
    assert cost.links["ssd"].bytes_per_us == pytest.approx(7000, rel=0.02)


class TestSanity:
    def test_faster_than_the_gpu(self) -> None:
        cost = fit([{"input_tokens": n, "ttft_ms": n * 0.001} for n in (1000, 4000, 16_000, 64_000)])
        assert any("MFU" in text for text in cost.warnings)

    def test_seconds_taken_for_milliseconds(self) -> None:
        cost = fit([{"input_tokens": n, "ttft_ms": n * 22.0} for n in (1000, 4000, 16_000, 64_000)])
        assert any("another unit" in text for text in cost.warnings)

    def test_a_link_faster_than_its_bus(self) -> None:
        rows: list[dict[str, Any]] = list(measured([1000, 4000, 16_000, 64_000]))
        rows += [
            {"input_tokens": n, "hit_tokens": n - 16, "tier": "cpu", "ttft_ms": 30 + n * 1e-4}
            for n in (8000, 64_000)
        ]
        assert any("more than pcie5-x16 carries" in text for text in fit(rows).warnings)


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([], "no measurements"),
        ([{}], "input_tokens of measurement 1 is missing"),
        ([{"input_tokens": 10}], "ttft_ms of measurement 1 is missing"),
        ([{"input_tokens": 10, "ttft_ms": math.nan}], "ttft_ms of measurement 1 is nan"),
        ([{"input_tokens": 10, "ttft_ms": math.inf}], "is inf"),
        ([{"input_tokens": 10, "ttft_ms": -4}], "is -4"),
        ([{"input_tokens": 10, "ttft_ms": 0}], "is 0"),
        ([{"input_tokens": 10, "ttft_ms": 1e-300}], "is 1e-300"),
        ([{"input_tokens": 10, "ttft_ms": "4"}], "is '4'"),
        ([{"input_tokens": 10, "ttft_ms": True}], "is True"),
        ([{"input_tokens": 0, "ttft_ms": 4}], "input_tokens of measurement 1 is 0"),
        ([{"input_tokens": 1.5, "ttft_ms": 4}], "is 1.5"),
        ([{"input_tokens": 10, "ttft_ms": 4, "hit_tokens": 10, "tier": "cpu"}], "hits 10 of 10"),
        ([{"input_tokens": 10, "ttft_ms": 4, "hit_tokens": -1}], "hit_tokens"),
        ([{"input_tokens": 10, "ttft_ms": 4, "concurrency": 8}], "under concurrency"),
        ([{"input_tokens": 10, "ttft_s": 4}], "unknown column"),
        ([{"input_tokens": 10, "ttft_ms": 4, "stored_tokens": 5}], "stores to no tier"),
        ([{"input_tokens": 100, "ttft_ms": 4, "hit_tokens": 50, "tier": "cpu"}], "are hits"),
        ([{"block_bytes": 10, "count": 1, "load_ms": 1}], "names no tier"),
        ([3], "measurement 1 is 3"),
        ("rows", "must be rows"),
        (5, "must be rows"),
    ],
)
def test_measurements_that_cannot_be(rows: object, told: str) -> None:
    with pytest.raises(kv.ConfigError, match=told):
        fit(rows)


def test_a_good_row_does_not_save_a_bad_one() -> None:
    with pytest.raises(kv.ConfigError, match="measurement 2"):
        fit([{"input_tokens": 10_000, "ttft_ms": 260}, {"input_tokens": 100, "ttft_ms": -4}])


def test_rows_may_be_a_frame_and_repeat() -> None:
    rows = measured([1000, 4000, 16_000, 64_000])
    again = [rows[0] | {"ttft_ms": rows[0]["ttft_ms"] * factor} for factor in (0.9, 1.0, 1.3)]
    assert fit(pl.DataFrame(again + rows[1:])) == fit(rows)


def test_the_fit_does_not_depend_on_the_order_of_rows() -> None:
    rows = measured([500, 1000, 4000, 16_000, 64_000], noise=0.05)
    assert to_toml(fit(rows)) == to_toml(fit(rows[::-1]))


class TestFiles:
    def test_what_is_written_is_read(self, tmp_path: Path) -> None:
        rows: list[dict[str, Any]] = list(measured([1000, 4000, 16_000, 64_000], noise=0.02))
        rows.append({"input_tokens": 9000, "hit_tokens": 8000, "tier": 'c"pu', "ttft_ms": 60})
        cost = fit(rows)
        path = tmp_path / "cost.toml"
        path.write_text(to_toml(cost, about="one\ntwo"), encoding="utf-8")
        again = read_cost(path)
        assert again == cost or (again.low, again.high) != (cost.low, cost.high)
        assert to_toml(again, about="one\ntwo") == path.read_text(encoding="utf-8")
        assert again.links == cost.links
        assert again.recompute_us(12_345, 678) == cost.recompute_us(12_345, 678)

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("", "no table"),
            ("[cost]\nc0_us = 1", "has no floor_us"),
            ("[costs]", "unknown table"),
            ("cost = 3", "not a table"),
            ("[cost", "not TOML"),
            ("[cost]\nspeed = 1", "unknown key"),
            (
                "[cost]\nc0_us = -1\nfloor_us = 0\nlinear_us_per_token = 1\nquadratic_us_per_token2 = 0",
                "c0_us",
            ),
            (
                f"{WHOLE}[links.x]\nbandwidth = '1 GB/s'",
                "has no fixed",
            ),
            (
                f"{WHOLE}[cost.intervals]\nx = 3",
                "interval",
            ),
        ],
    )
    def test_files_that_cannot_be(self, tmp_path: Path, text: str, told: str) -> None:
        path = tmp_path / "cost.toml"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(kv.ConfigError, match=told):
            read_cost(path)


class TestNonNegativeLeastSquares:
    @pytest.mark.parametrize("seed", range(20))
    def test_no_other_point_is_better(self, seed: int) -> None:
        """The conditions of Karush, Kuhn and Tucker: no gradient upwards, none at all where free."""
        draw = random.Random(seed)  # noqa: S311 - a seed, not a secret
        unknowns = draw.randint(1, 6)
        normal = Normal(unknowns)
        for _ in range(unknowns + draw.randint(0, 10)):
            normal.add([draw.gauss(0, 1) for _ in range(unknowns)], draw.gauss(0, 1), draw.uniform(0.1, 2))
        x = normal.solve()
        slope = [
            r - sum(a * b for a, b in zip(line, x, strict=True))
            for line, r in zip(normal.matrix, normal.right, strict=True)
        ]
        assert min(x) >= 0
        for value, gradient in zip(x, slope, strict=True):
            assert gradient <= 1e-8
            assert value == 0 or abs(gradient) <= 1e-8

    def test_equal_columns_have_a_solution(self) -> None:
        normal = Normal(2)
        normal.add([1, 1], 2, 1)
        assert sum(normal.solve()) == pytest.approx(2)


class TestManyRows:
    def test_thousands_of_lengths_are_thinned_evenly(self) -> None:
        cost = fit(measured(range(100, 60_000, 7), noise=0.02))
        assert cost.longest_tokens == 59_999
        assert cost.recompute_us(30_000) == pytest.approx(TRUTH.recompute_us(30_000), rel=0.02)
        assert "fitted to 256 points" in cost.error

    def test_no_miss_among_many_hits_is_lost(self) -> None:
        rows: list[dict[str, Any]] = list(measured([64_000]))
        rows += [
            {"input_tokens": n, "hit_tokens": n - 16, "tier": "cpu", "ttft_ms": 30 + n * 0.004}
            for n in range(1000, 9000)
        ]
        assert fit(rows).recompute_us(64_000) == pytest.approx(TRUTH.recompute_us(64_000), rel=0.02)

    def test_too_many_tiers(self) -> None:
        rows = [{"tier": f"t{n}", "block_bytes": 9, "count": 1, "load_ms": 1} for n in range(17)]
        with pytest.raises(kv.ConfigError, match="17 tiers"):
            fit(rows)

    def test_too_many_rows(self) -> None:
        with pytest.raises(kv.ConfigError, match="more than 100,000"):
            fit({"input_tokens": 1, "ttft_ms": 1} for _ in range(100_001))


def test_the_file_in_the_documentation_is_one(tmp_path: Path) -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "cost" / "calibration.md"
    text = page.read_text(encoding="utf-8").split("```toml\n")[1].split("```")[0]
    path = tmp_path / "cost.toml"
    path.write_text(text, encoding="utf-8")
    cost = read_cost(path)
    assert (cost.linear_us_per_token, cost.links["cpu"].bandwidth) == (21.97, "43.9 GB/s")
