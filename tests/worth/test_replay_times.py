"""Times in what a replay returns: they add up, never touch a hit, and can be had again for other hardware."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings, strategies as st

import kvreplay as kv
from kvreplay.worth.budget import budget

TIERS = [
    kv.Tier("gpu", capacity="5%"),
    kv.Tier("cpu", capacity="20%", link="pcie5-x16"),
    kv.Tier("ssd", capacity="50%", link="nvme-gen4"),
]
COST = kv.CostModel(c0_us=1500, floor_us=4000, linear_us_per_token=21.94, quadratic_us_per_token2=4.724e-4)
SSD = kv.Link("nvme-own", bandwidth="6.5 GB/s", fixed="0.4 ms", through="pcie5-x16", medium="ssd")
HITS = ["hit_blocks", "hit_tokens", "inserted_blocks", "evicted_blocks"]


@pytest.fixture(scope="module")
def timed(chats: kv.Trace) -> kv.ReplayResult:
    return kv.replay(chats, TIERS, model="llama-3.1-8b", hardware="h100-sxm", per_request=True)


def test_links_and_costs_change_no_hit(chats: kv.Trace, timed: kv.ReplayResult) -> None:
    plain = kv.replay(chats, [kv.Tier(t.name, capacity=t.capacity) for t in TIERS])
    assert timed.tiers.select(HITS).equals(plain.tiers.select(HITS))
    for name in ("harmful_hits", "saved_us", "lifetime_years", "written_bytes"):
        assert plain.tiers[name].null_count() == 3, name


def test_the_sums_of_the_tiers_are_those_of_the_requests(timed: kv.ReplayResult) -> None:
    rows, tiers = timed.requests, {row["tier"]: row for row in timed.tiers.iter_rows(named=True)}
    for name, row in tiers.items():
        assert row["saved_us"] == rows[f"saved_us_{name}"].sum()
        assert row["harmful_hits"] == rows[f"harmful_{name}"].sum()
        assert row["hits"] == (rows[f"hit_tokens_{name}"] > 0).sum()
    between = (rows["service_ttft_without_tiers_us"] - rows["service_ttft_us"]).sum()
    assert between == tiers["cpu"]["saved_us"] + tiers["ssd"]["saved_us"]
    assert timed.tiers.schema["saved_us"] == timed.tiers.schema["hits"]


def test_only_the_drive_wears(timed: kv.ReplayResult) -> None:
    rows = {row["tier"]: row for row in timed.tiers.iter_rows(named=True)}
    assert rows["gpu"]["lifetime_years"] is None
    assert rows["cpu"]["lifetime_years"] is None
    ssd = rows["ssd"]
    assert ssd["written_bytes"] == ssd["inserted_blocks"] * 16 * 131072
    assert timed.span_us is not None
    per_day = ssd["written_bytes"] * 86_400_000_000 / timed.span_us
    assert ssd["lifetime_years"] == pytest.approx(ssd["capacity_bytes"] * 5 / (per_day * 1.1))


def test_prices_can_be_given(chats: kv.Trace, timed: kv.ReplayResult) -> None:
    strong = kv.replay(chats, TIERS, model="llama-3.1-8b", prices={"ssd_dwpd": 3.0, "ssd_waf": 1.1})
    assert strong.tiers["lifetime_years"][2] == pytest.approx(3 * timed.tiers["lifetime_years"][2])
    with pytest.raises(kv.ConfigError, match="gpu_hour"):
        kv.replay(chats, TIERS, model="llama-3.1-8b", prices={"gpu_hours": 3.0})


def test_a_drive_goes_through_the_memory_tier_above_it(timed: kv.ReplayResult) -> None:
    assert timed.plan is not None
    ssd = timed.plan.links[2]
    assert ssd is not None
    assert ssd.next == timed.plan.links[1]
    own = kv.Link("pcie-own", bandwidth="20 GB/s", fixed="1 ms")
    other = timed.retime(links={"cpu": own})
    assert other.plan is not None
    assert other.plan.links[2] is not None
    assert other.plan.links[2].next == own


def test_a_tier_without_a_link_is_said_and_not_guessed(chats: kv.Trace) -> None:
    tiers = [TIERS[0], kv.Tier("cpu", capacity="20%")]
    result = kv.replay(chats, tiers, model="llama-3.1-8b", hardware="h100-sxm", per_request=True)
    assert result.tiers["saved_us"].to_list()[1] is None
    assert result.tiers["harmful_hits"].to_list()[1] is None
    assert result.requests["service_ttft_us"].null_count() == len(chats)
    assert [one["code"] for one in result.warnings if "link" in one["code"]] == ["tier_without_link"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"hardware": "h100-sxm"}, "no model"),
        ({"hardware": "h100-sxm", "model": 131072}, "only its bytes per token"),
        ({"hardware": "h100", "model": "llama-3.1-8c"}, "llama-3.1-8b"),
        ({"hardware": "h1000", "model": "llama-3.1-8b"}, "h100"),
        ({"cost": 3, "model": "llama-3.1-8b"}, "CostModel"),
        ({"hardware": "h100", "model": "llama-3.1-8b", "mode": "object"}, "no times"),
    ],
)
def test_what_cannot_be_timed_is_refused(chats: kv.Trace, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(kv.ConfigError) as caught:
        kv.replay(chats, [kv.Tier("gpu", capacity="5%")], **arguments)  # type: ignore[arg-type]
    assert message in f"{caught.value} {caught.value.hint}"


def test_an_unknown_link_names_the_nearest() -> None:
    with pytest.raises(kv.ConfigError) as caught:
        kv.Tier("cpu", capacity="5%", link="pcie5x16")
    assert "pcie5-x16" in f"{caught.value} {caught.value.hint}"


def test_retiming_is_a_new_replay_without_the_work(chats: kv.Trace, timed: kv.ReplayResult) -> None:
    slow = kv.Link("slow", bandwidth="0.25 GB/s", fixed="10 ms")
    again = timed.retime(hardware="a100-sxm", links={"ssd": slow})
    tiers = [*TIERS[:2], kv.Tier("ssd", capacity="50%", link=slow)]
    fresh = kv.replay(chats, tiers, model="llama-3.1-8b", hardware="a100-sxm", per_request=True)
    assert again.tiers.equals(fresh.tiers)
    assert again.requests.equals(fresh.requests)
    assert timed.tiers["saved_us"].to_list() != again.tiers["saved_us"].to_list()


def test_a_grid_of_plans_is_each_of_them(timed: kv.ReplayResult) -> None:
    choices = {"cpu": ["pcie4-x16", "pcie5-x16"], "ssd": ["nvme-gen4", "object-node"]}
    table = timed.retime_grid(models=["llama-3.1-8b", "qwen3-32b"], hardware=["h200-sxm"], links=choices)
    assert table.height == 2 * 2 * 2 * 2
    rows = table.iter_rows(named=True)
    for model in ("llama-3.1-8b", "qwen3-32b"):
        for cpu in choices["cpu"]:
            for ssd in choices["ssd"]:
                one = timed.retime(model=model, hardware="h200-sxm", links={"cpu": cpu, "ssd": ssd})
                tiers = {row["tier"]: row for row in one.tiers.iter_rows(named=True)}
                for name, link in (("cpu", cpu), ("ssd", ssd)):
                    row = next(rows)
                    assert (row["model"], row["tier"], row["link"]) == (model, name, link)
                    for what in ("hits", "harmful_hits", "saved_us"):
                        assert row[what] == tiers[name][what], (what, row)
                    lost = -one.requests.filter(f"harmful_{name}")[f"saved_us_{name}"].sum()
                    assert row["lost_us"] == lost
                    assert row["oracle_saved_us"] == row["saved_us"] + lost


def test_a_grid_counts_stores_that_block(chats: kv.Trace, timed: kv.ReplayResult) -> None:
    link = kv.Link("pcie-b", bandwidth="20 GB/s", fixed="1 ms", store="blocking")
    row = timed.retime_grid(links={"cpu": [link]}).row(0, named=True)
    assert row["saved_us"] == timed.retime(links={"cpu": link}).tiers["saved_us"][1]
    assert len(chats) > 0


def test_a_grid_is_bounded(timed: kv.ReplayResult) -> None:
    with pytest.raises(kv.ConfigError, match="combinations"):
        timed.retime_grid(links={"cpu": ["pcie5-x16"] * 400, "ssd": ["nvme-gen4"] * 400})
    with pytest.raises(kv.ConfigError, match="disk"):
        timed.retime(links={"disk": "nvme-gen4"})


@settings(max_examples=25)
@given(seed=st.integers(0, 1000), small=st.integers(1, 40), large=st.integers(1, 80))
def test_savings_add_up_on_any_trace(seed: int, small: int, large: int) -> None:
    trace = kv.generate("multi_turn", requests=60, seed=seed)
    tiers = [
        kv.Tier("gpu", capacity=small),
        kv.Tier("cpu", capacity=small + large, link="pcie4-x16"),
        kv.Tier("ssd", capacity=small + 2 * large, fill="write_back", link="nvme-gen5"),
    ]
    rows = kv.replay(trace, tiers, model="qwen3-8b", hardware="l40s", per_request=True).requests
    saved = rows["saved_us_cpu"] + rows["saved_us_ssd"]
    assert (rows["service_ttft_without_tiers_us"] - rows["service_ttft_us"]).equals(saved)
    for name in ("cpu", "ssd"):
        assert (
            not rows.filter(f"harmful_{name}")
            .filter(rows.filter(f"harmful_{name}")[f"hit_tokens_{name}"] == 0)
            .height
        )


def test_tiers_that_no_machine_holds_are_said(chats: kv.Trace) -> None:
    tiers = [kv.Tier("gpu", capacity="70GB"), kv.Tier("cpu", capacity="2TB", link="pcie5-x16")]
    small = kv.replay(chats, tiers, model="qwen2.5-1.5b", hardware="h100-sxm")
    large = kv.replay(chats, tiers, model="qwen3-32b", hardware="h100-sxm")
    assert "gpu_memory" not in [one["code"] for one in small.warnings]
    (warning,) = [one["text"] for one in large.warnings if one["code"] == "gpu_memory"]
    assert "more than the 80.0 GiB of 1 x h100-sxm" in warning
    two = kv.replay(chats, tiers, model=kv.model("qwen3-32b", tp=2, host_copies=2), hardware="h100-sxm")
    assert "gpu_memory" not in [one["code"] for one in two.warnings]
    assert two.plan is not None
    assert two.tiers["capacity_bytes"][1] * 2 == budget(two.tiers, two.plan)["host_bytes"]


def test_times_that_cannot_be_counted_are_refused(chats: kv.Trace, timed: kv.ReplayResult) -> None:
    crawl = kv.Link("crawl", bandwidth="1 B/s", fixed="1 s")
    tiers = [TIERS[0], kv.Tier("cpu", capacity="20%", link=crawl)]
    for call in (
        lambda: kv.replay(chats, tiers, model=2**38, cost=COST),
        lambda: kv.analyze(chats, tiers, model=2**38, cost=COST),
        lambda: kv.sweep(chats, [tiers], model=2**38, cost=COST),
        lambda: timed.retime(model=2**38, cost=COST, links={"cpu": crawl}),
        lambda: timed.retime_grid(models=[2**38], costs=[COST], links={"cpu": [crawl]}),
    ):
        with pytest.raises(kv.ConfigError, match="loading from"):
            call()
    huge = kv.CostModel(c0_us=0, floor_us=0, linear_us_per_token=1e12, quadratic_us_per_token2=1e12)
    with pytest.raises(kv.ConfigError, match="computing"):
        kv.replay(chats, TIERS, model=131072, cost=huge)


def test_bytes_per_token_and_a_cost_are_enough(chats: kv.Trace) -> None:
    tiers = [*TIERS[:2], kv.Tier("ssd", capacity="50%", link=SSD)]
    plain = kv.analyze(chats, tiers, model=131072, cost=COST)
    named = kv.analyze(chats, tiers, model="llama-3.1-8b", cost=COST)
    for name in ("tiers", "hit_quality", "scenarios", "hits_by_length", "demand", "break_even"):
        assert plain.tables[name].equals(named.tables[name]), name
    assert [line["code"] for line in plain.verdict] == [line["code"] for line in named.verdict]


def test_a_tier_on_its_own_with_a_link_is_an_offload_tier(chats: kv.Trace) -> None:
    report = kv.analyze(
        chats, [kv.Tier("cpu", capacity="20%", link="pcie5-x16")], model="llama-3.1-8b", hardware="h100-sxm"
    )
    scenarios = report.tables["scenarios"]["scenario"].to_list()
    assert scenarios == ["all tiers", "no cache"]
    codes = [line["code"] for line in report.verdict]
    assert "tier_pays" in codes
    assert report.tables["hit_quality"]["link"].to_list() == ["pcie5-x16"]
    rows = report.tables["demand"].filter(window_s=60, direction="read")
    assert rows["resource"].to_list() == ["cpu"]


def test_a_trace_without_reuse_has_tiers_of_no_worth() -> None:
    unique = kv.generate("unique", requests=3, seed=1)
    report = kv.analyze(unique, TIERS, model="llama-3.1-8b", hardware="h100-sxm")
    assert report.tables["hits_by_length"].height == 0
    assert report.tables["hit_quality"]["hits"].to_list() == [0, 0, 0]
    assert report.tables["hit_quality"]["saved_us"].to_list() == [0, 0, 0]
    codes = [line["code"] for line in report.verdict]
    assert codes.count("tier_unused") == 2
    assert json.dumps(report.to_dict(), allow_nan=False)


def test_a_fitted_link_serves_its_tier_unless_another_is_given(chats: kv.Trace) -> None:
    rows = [
        {"input_tokens": 8000, "ttft_ms": 250},
        {"input_tokens": 8000, "hit_tokens": 7000, "tier": "cpu", "ttft_ms": 70},
        {"input_tokens": 2000, "ttft_ms": 70},
        {"input_tokens": 2000, "hit_tokens": 1600, "tier": "cpu", "ttft_ms": 25},
    ]
    cost = kv.calibrate(rows, model="llama-3.1-8b", hardware="h100-sxm")
    tiers = [TIERS[0], kv.Tier("cpu", capacity="20%")]
    result = kv.replay(chats, tiers, model="llama-3.1-8b", cost=cost)
    assert result.plan is not None
    assert result.plan.links == (None, cost.links["cpu"])
    assert result.tiers["saved_us"].null_count() == 0
    own = kv.replay(chats, TIERS[:2], model="llama-3.1-8b", cost=cost)
    assert own.plan is not None
    assert own.plan.links[1] == kv.link("pcie5-x16")


def test_names_are_checked_where_there_is_nothing_to_time(chats: kv.Trace) -> None:
    for bad in ({"hardware": "h1000", "model": "llama-3.1-8b"}, {"prices": {"euro": 1.0}}):
        with pytest.raises(kv.ConfigError):
            kv.analyze(chats, **bad)
