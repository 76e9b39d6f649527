"""Service times against the formulas written out request by request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import kvreplay as kv
from kvreplay.worth.plan import make_plan
from kvreplay.worth.timing import timed

if TYPE_CHECKING:
    from collections.abc import Sequence

COST = kv.CostModel(c0_us=1500, floor_us=4000, linear_us_per_token=21.94, quadratic_us_per_token2=4.724e-4)
PCIE = kv.Link("pcie-x", bandwidth="43.9 GB/s", fixed="9.8 ms", copy="3.5 us")
SSD = kv.Link("nvme-x", bandwidth="6.5 GB/s", fixed="0.4 ms", through=PCIE)
LAYERWISE = kv.Link("pcie-lw", bandwidth="10 GB/s", fixed="1 ms", overlap="layerwise")
FULL = kv.Link("pcie-full", bandwidth="10 GB/s", fixed="1 ms", overlap="full")
BLOCKING = kv.Link(
    "pcie-blocking", bandwidth="16 GB/s", fixed="0 us", store="blocking", write_bandwidth="6 GB/s"
)


def hits(rows: Sequence[tuple[int, ...]], names: list[str]) -> pl.DataFrame:
    """A table of requests: hit tokens of each tier, then computed tokens."""
    columns = [*[f"hit_tokens_{name}" for name in names], "computed_tokens"]
    return pl.DataFrame(rows, dict.fromkeys(columns, pl.Int64), orient="row")


def half_even(value: float) -> int:
    return round(value)


def twin(
    row: dict[str, Any], names: list[str], links: Sequence[kv.Link | None], model: Any
) -> dict[str, Any]:
    """The times of one request, step by step, with the scalar forms of cost and link."""
    served = [row[f"hit_tokens_{name}"] for name in names]
    total = sum(served) + row["computed_tokens"]
    times, loads = [], []
    for k in range(len(names) + 1):
        resident = sum(served[:k])
        time = half_even(COST.recompute_us(total - resident, resident))
        for at in range(k):
            link = links[at]
            if link is None:
                continue
            deeper = sum(served[at + 1 :])
            size = model.rank_loaded_bytes(served[at] + deeper) - model.rank_loaded_bytes(deeper)
            load = half_even(link.load_us(served[at], size))
            time = half_even(link.hit_us(load, time, layers=model.layers))
            if k == len(names):
                loads.append(load)
        times.append(time)
    return {
        "times": times,
        "saved": [times[k] - times[k + 1] for k in range(len(names))],
        "loads": loads,
    }


ROWS = [
    (0, 0, 0, 4000),
    (512, 0, 0, 100),
    (0, 5120, 0, 1),
    (1024, 2048, 4096, 700),
    (0, 0, 60_000, 333),
    (16, 16, 16, 0),
    (0, 64, 128, 90_000),
    (0, 0, 0, 0),
]


@pytest.mark.parametrize("middle", [PCIE, LAYERWISE, FULL], ids=lambda link: link.name)
@pytest.mark.parametrize("name", ["llama-3.1-8b", "gpt-oss-20b", "deepseek-v3"])
def test_times_are_those_of_the_formulas(middle: kv.Link, name: str) -> None:
    names, links = ["gpu", "cpu", "ssd"], [None, middle, SSD]
    model = kv.model(name)
    plan = make_plan(dict(zip(names, links, strict=True)), model=model, hardware=None, cost=COST)
    got = timed(hits(ROWS, names), plan)
    for at, row in enumerate(hits(ROWS, names).iter_rows(named=True)):
        want = twin(row, names, links, model)
        mine = got.row(at, named=True)
        assert [mine["load_us_cpu"], mine["load_us_ssd"]] == want["loads"], row
        assert [mine[f"saved_us_{one}"] for one in names] == want["saved"], row
        assert mine["service_ttft_us"] == want["times"][3], row
        assert mine["service_ttft_without_tiers_us"] == want["times"][1], row
        assert mine["harmful_ssd"] == (want["saved"][2] < 0), row
        assert mine["recompute_us"] == half_even(COST.recompute_us(row["computed_tokens"], sum(ROWS[at][:3])))


def test_a_load_that_takes_longer_than_computing_is_harmful() -> None:
    slow = kv.Link("slow", bandwidth="0.25 GB/s", fixed="100 ms")
    plan = make_plan({"gpu": None, "cpu": slow}, model=131072, hardware=None, cost=COST)
    got = timed(hits([(0, 10_000, 1000), (0, 0, 1000)], ["gpu", "cpu"]), plan)
    load = 100_000 + 10_000 * 131072 / 250
    saved = round(COST.recompute_us(11_000)) - round(COST.recompute_us(1000, 10_000)) - round(load)
    assert got["saved_us_cpu"].to_list() == [saved, 0]
    assert saved < 0
    assert got["harmful_cpu"].to_list() == [True, False]


def test_a_lower_tier_without_a_link_leaves_times_open_and_not_zero() -> None:
    plan = make_plan({"gpu": None, "cpu": None, "ssd": PCIE}, model=131072, hardware=None, cost=COST)
    got = timed(hits(ROWS, ["gpu", "cpu", "ssd"]), plan)
    for name in ("load_us_cpu", "saved_us_cpu", "harmful_cpu", "service_ttft_us"):
        assert got[name].null_count() == len(ROWS), name
    # The unknown load is on both sides of what the tier below saves.
    timed_too = make_plan({"gpu": None, "cpu": PCIE, "ssd": PCIE}, model=131072, hardware=None, cost=COST)
    other = timed(hits(ROWS, ["gpu", "cpu", "ssd"]), timed_too)
    assert got["saved_us_ssd"].to_list() == other["saved_us_ssd"].to_list()
    assert got["service_ttft_without_tiers_us"].null_count() == 0


def test_a_first_tier_with_a_link_is_loaded_too() -> None:
    plan = make_plan({"cpu": PCIE}, model=131072, hardware=None, cost=COST)
    got = timed(hits([(5120, 1000)], ["cpu"]), plan).row(0, named=True)
    assert got["service_ttft_without_tiers_us"] == round(COST.recompute_us(6120))
    assert got["service_ttft_us"] == got["service_ttft_without_tiers_us"] - got["saved_us_cpu"]


def test_storing_that_blocks_is_taken_off_and_is_not_harm() -> None:
    plan = make_plan({"gpu": None, "cpu": BLOCKING}, model=28672, hardware=None, cost=COST)
    table = hits([(0, 0, 5011), (0, 4864, 147)], ["gpu", "cpu"]).with_columns(
        pl.Series("written_tokens_cpu", [4864.0, 0.0])
    )
    got = timed(table, plan)
    store = round(4864 * 28672 / 6000)
    assert got["store_us_cpu"].to_list() == [store, 0]
    assert got["saved_us_cpu"][0] == -store
    assert got["harmful_cpu"].to_list() == [False, False]
    assert got["service_ttft_us"][0] == round(COST.recompute_us(5011)) + store
    gap = got["service_ttft_without_tiers_us"] - got["service_ttft_us"]
    assert gap.to_list() == (got["saved_us_gpu"] * 0 + got["saved_us_cpu"]).to_list()


def test_windowed_layers_load_their_last_tokens_once() -> None:
    model = kv.model("gpt-oss-20b")
    plan = make_plan({"gpu": None, "cpu": PCIE, "ssd": PCIE}, model=model, hardware=None, cost=COST)
    whole = make_plan({"gpu": None, "cpu": PCIE}, model=model, hardware=None, cost=COST)
    fixed = PCIE.fixed_us
    split = timed(hits([(0, 1600, 1600, 10)], ["gpu", "cpu", "ssd"]), plan)
    together = timed(hits([(0, 3200, 10)], ["gpu", "cpu"]), whole)
    total = split["load_us_cpu"][0] + split["load_us_ssd"][0] - fixed
    assert abs(total - together["load_us_cpu"][0]) <= 2
