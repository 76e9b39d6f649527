"""Tables of what hits are worth: they add up, agree with replays, and leave open what is not known."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

import kvreplay as kv
from kvreplay.worth.gaps import reuse_gaps
from kvreplay.worth.percentiles import spread

GPU = kv.Tier("gpu", capacity="5%")
CPU = kv.Tier("cpu", capacity="20%", link="pcie5-x16")
SSD = kv.Tier("ssd", capacity="60%", link="nvme-gen4")
WORTH: dict[str, Any] = {"model": "llama-3.1-8b", "hardware": "h100-sxm"}


@pytest.fixture(scope="module")
def report(chats: kv.Trace) -> kv.Report:
    return kv.analyze(chats, [GPU, CPU, SSD], **WORTH)


def by_tier(report: kv.Report, name: str = "hit_quality") -> dict[str, dict[str, Any]]:
    return {row["tier"]: row for row in report.tables[name].iter_rows(named=True)}


def test_there_is_nothing_to_say_without_a_cost(chats: kv.Trace) -> None:
    plain = kv.analyze(chats, [GPU, CPU], model="llama-3.1-8b")
    assert {"hit_quality", "scenarios", "hits_by_length", "demand"} & set(plain.tables) == set()
    assert kv.analyze(chats, **WORTH).tables.keys() == kv.analyze(chats).tables.keys()


def test_time_saved_loaded_and_computed_add_up(report: kv.Report) -> None:
    rows = by_tier(report)
    scenarios = {row["scenario"]: row for row in report.tables["scenarios"].iter_rows(named=True)}
    for row in rows.values():
        assert row["gpu_saved_us"] == row["saved_us"] + row["load_us"] + row["store_us"]
        assert row["oracle_saved_us"] == row["saved_us"] + row["lost_us"]
        assert row["lost_us"] >= 0
    saved = sum(row["gpu_saved_us"] for row in rows.values())
    assert scenarios["no cache"]["compute_us"] - scenarios["all tiers"]["compute_us"] == saved


def test_scenarios_are_replays(chats: kv.Trace, report: kv.Report) -> None:
    rows = {row["scenario"]: row for row in report.tables["scenarios"].iter_rows(named=True)}
    assert list(rows) == ["all tiers", "without cpu", "without ssd", "gpu alone", "no cache"]
    for name, tiers in {
        "all tiers": [GPU, CPU, SSD],
        "without cpu": [GPU, SSD],
        "without ssd": [GPU, CPU],
        "gpu alone": [GPU],
    }.items():
        result = kv.replay(chats, tiers, per_request=True, **WORTH)
        row, times = rows[name], result.requests["service_ttft_us"].sort()
        assert row["hit_tokens"] == result.tiers["hit_tokens"].sum(), name
        assert row["mean_us"] == times.mean(), name
        assert row["p50_us"] == times[len(times) // 2 - 1], name
        assert row["p99_us"] == times[-(-99 * len(times) // 100) - 1], name
        assert row["compute_us"] == result.requests["recompute_us"].sum(), name
    cost = report.study.plan
    assert cost is not None
    assert cost.cost is not None
    want = [round(cost.cost.recompute_us(n)) for n in chats.requests()["input_tokens"]]
    assert rows["no cache"]["compute_us"] == sum(want)


@pytest.mark.parametrize("fill", ["write_through", "write_back", "victim"])
def test_the_value_of_a_tier_is_the_difference_it_makes(chats: kv.Trace, fill: str) -> None:
    tiers = [GPU, kv.Tier("cpu", capacity="20%", link="pcie5-x16", fill=fill), SSD]
    report = kv.analyze(chats, tiers, **WORTH)
    whole = kv.replay(chats, tiers, per_request=True, **WORTH)
    for at, name in ((1, "cpu"), (2, "ssd")):
        rest = kv.replay(chats, tiers[:at] + tiers[at + 1 :], per_request=True, **WORTH)
        row = by_tier(report)[name]
        hits = int(whole.tiers["hit_tokens"].sum()) - int(rest.tiers["hit_tokens"].sum())
        saved = (rest.requests["service_ttft_us"] - whole.requests["service_ttft_us"]).sum()
        assert (row["marginal_hit_tokens"], row["marginal_saved_us"]) == (hits, saved), name
    assert by_tier(report)["gpu"]["marginal_hit_tokens"] is None


def test_two_tiers_need_no_scenario_of_their_own(chats: kv.Trace) -> None:
    report = kv.analyze(chats, [GPU, CPU], **WORTH)
    assert report.tables["scenarios"]["scenario"].to_list() == ["all tiers", "gpu alone", "no cache"]
    assert by_tier(report)["cpu"]["marginal_saved_us"] == by_tier(report)["cpu"]["saved_us"]


def test_lengths_are_the_hits_by_length(report: kv.Report) -> None:
    rows = report.tables["hits_by_length"]
    assert report.study.result is not None
    requests = report.study.result.requests
    for name in ("cpu", "ssd"):
        mine = rows.filter(tier=name)
        quality = by_tier(report)[name]
        for what in ("hits", "harmful_hits", "hit_tokens", "saved_us", "lost_us"):
            assert mine[what].sum() == quality[what], (name, what)
        for row in mine.iter_rows(named=True):
            tokens = pl.col(f"hit_tokens_{name}")
            part = requests.filter(tokens >= row["lower_tokens"], tokens <= row["upper_tokens"])
            assert row["hits"] == part.height
            assert row["with_mean_us"] == pytest.approx(part["service_ttft_us"].mean())
            without = part["service_ttft_us"] + part[f"saved_us_{name}"]
            assert row["without_mean_us"] == pytest.approx(without.mean())
            assert row["load_mean_us"] == pytest.approx(part[f"load_us_{name}"].mean())


def test_money_by_hand(report: kv.Report) -> None:
    quality, tiers = by_tier(report), by_tier(report, "tiers")
    assert report.study.plan is not None
    own, span = report.study.plan.prices, report.study.facts.span_us  # type: ignore[union-attr]
    cpu, ssd = quality["cpu"], quality["ssd"]
    hours = 3 * 365.25 * 24
    rent = tiers["cpu"]["capacity_bytes"] / 1e9 * own.dram_gb_usd / hours
    assert cpu["tier_usd_per_hour"] == pytest.approx(rent)
    worth = own.gpu_hour_usd * cpu["gpu_saved_us"] / span
    assert cpu["gpu_usd_saved_per_hour"] == pytest.approx(worth)
    assert cpu["net_usd_per_hour"] == pytest.approx(worth - rent)
    assert cpu["usd_per_saved_gpu_hour"] == pytest.approx(rent * span / cpu["gpu_saved_us"])
    # The drive wears out before it is written off, so its hour costs more than its rent.
    life = ssd["lifetime_years"]
    assert life < own.ssd_years
    price = tiers["ssd"]["capacity_bytes"] / 1e9 * own.ssd_gb_usd
    assert ssd["tier_usd_per_hour"] == pytest.approx(price / (life * 365.25 * 24))
    assert quality["gpu"]["tier_usd_per_hour"] == 0.0
    day = tiers["ssd"]["written_bytes"] * 86_400_000_000 / span
    assert ssd["written_bytes_per_day"] == round(day)
    assert ssd["drive_writes_per_day"] == pytest.approx(day * own.ssd_waf / tiers["ssd"]["capacity_bytes"])


def test_what_is_not_known_is_null(chats: kv.Trace) -> None:
    report = kv.analyze(chats, [GPU, kv.Tier("far", capacity="20%"), SSD], **WORTH)
    far = by_tier(report)["far"]
    for name in ("saved_us", "load_us", "harmful_hits", "lost_us", "tier_usd_per_hour", "net_usd_per_hour"):
        assert far[name] is None, name
    assert far["gpu_saved_us"] > 0
    rows = {row["scenario"]: row for row in report.tables["scenarios"].iter_rows(named=True)}
    assert rows["all tiers"]["mean_us"] is None
    assert rows["gpu alone"]["mean_us"] is not None


def test_filters_are_replays(chats: kv.Trace) -> None:
    filters = ["always", "min_count(2)"]
    report = kv.analyze(chats, [GPU, CPU, SSD], admissions=filters, **WORTH)
    rows = report.tables["admissions"].to_dicts()
    assert [(row["tier"], row["admission"]) for row in rows] == [
        (tier, one) for tier in ("cpu", "ssd") for one in filters
    ]
    changed = [GPU, CPU, kv.Tier("ssd", capacity="60%", link="nvme-gen4", admission="min_count(2)")]
    ssd = kv.replay(chats, changed, **WORTH).tiers.row(2, named=True)
    for name in ("hit_tokens", "hits", "harmful_hits", "saved_us", "written_bytes", "lifetime_years"):
        assert rows[3][name] == ssd[name], name
    assert rows[2]["written_bytes"] > rows[3]["written_bytes"]


@settings(max_examples=40)
@given(values=st.lists(st.integers(0, 50), min_size=1, max_size=120))
def test_percentiles_are_nearest_ranks(values: list[int]) -> None:
    got = spread(pl.Series(values))
    for quantile in (50, 90, 95, 99):
        want = next(v for v in sorted(values) if 100 * sum(x <= v for x in values) >= quantile * len(values))
        assert got[f"p{quantile}_us"] == want
    assert got["mean_us"] == pytest.approx(sum(values) / len(values))
    assert spread(pl.Series([1, None]))["p50_us"] is None


@settings(max_examples=25)
@given(seed=st.integers(0, 500), small=st.integers(1, 30), large=st.integers(1, 90))
def test_reuse_gaps_are_those_of_the_blocks_served(seed: int, small: int, large: int) -> None:
    trace = kv.generate("multi_turn", requests=50, seed=seed)
    tiers = [kv.Tier("a", capacity=small), kv.Tier("b", capacity=small + large)]
    hits = kv.replay(trace, tiers, per_request=True).requests
    got = reuse_gaps(kv.reuse_runs(trace), hits, ["a", "b"], block_tokens=16)
    last: dict[int | str, int] = {}
    ages: dict[str, list[int]] = {"a": [], "b": []}
    arrivals = trace.requests()["arrival_us"].to_list()
    lengths = trace.requests()["input_tokens"].to_list()
    for request, now in enumerate(arrivals):
        first = hits["hit_tokens_a"][request]
        until = first + hits["hit_tokens_b"][request]
        for at, block in enumerate(trace.blocks(request)):
            if at * 16 < until:
                weight = min((at + 1) * 16, until, lengths[request]) - at * 16
                ages["a" if at * 16 < first else "b"] += [now - last[block]] * weight
            last[block] = now
    for name, found in ages.items():
        ordered = sorted(found)
        for column, quantile in (("reuse_gap_p50_us", 50), ("reuse_gap_p90_us", 90)):
            want = ordered[-(-quantile * len(ordered) // 100) - 1] if ordered else None
            assert got[name][column] == want


@settings(max_examples=40)
@given(
    rows=st.lists(
        st.tuples(st.one_of(st.integers(0, 30), st.integers(0, 2**62)), st.integers(1, 9)), min_size=1
    )
)
def test_reuse_gaps_are_nearest_ranks_at_every_scale(rows: list[tuple[int, int]]) -> None:
    ages, lengths = [age for age, _ in rows], [length for _, length in rows]
    requests = list(range(len(rows)))
    runs = pl.DataFrame({"request": requests, "start": 0, "length": lengths, "age_us": ages})
    hits = pl.DataFrame({"hit_tokens_a": [4 * length for length in lengths]})
    got = reuse_gaps(runs, hits, ["a"], block_tokens=4)["a"]
    ordered = sorted(age for age, length in rows for _ in range(length))
    for column, quantile in (("reuse_gap_p50_us", 50), ("reuse_gap_p90_us", 90)):
        assert got[column] == ordered[-(-quantile * len(ordered) // 100) - 1]
