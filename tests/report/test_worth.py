"""The verdict about worth: what is said, on what evidence, and what is left undecided."""

from __future__ import annotations

import json
from typing import Any

import pytest

import kvreplay as kv

GPU = kv.Tier("gpu", capacity="5%")
WORTH: dict[str, Any] = {"model": "llama-3.1-8b", "hardware": "h100-sxm"}
SLOW = kv.Link("slow", bandwidth="0.25 GB/s", fixed="100 ms", medium="dram")


def lines(trace: kv.Trace, link: object, **more: Any) -> dict[str, dict[str, Any]]:
    """Lines of a verdict by code for a GPU and a CPU tier."""
    tiers = [GPU, kv.Tier("cpu", capacity="40%", link=link)]  # type: ignore[arg-type]
    verdict = kv.analyze(trace, tiers, **(WORTH | more)).verdict
    assert all(line["evidence"] for line in verdict)
    json.dumps(verdict, allow_nan=False)
    return {line["code"]: line for line in verdict}


def test_a_fast_link_pays_and_the_line_says_how_much(chats: kv.Trace) -> None:
    got = lines(chats, "pcie5-x16")
    assert {"service_ttft", "tier_pays", "load_from", "limits", "assumed"} <= set(got)
    assert {"overload", "undecided", "do_not_offload", "tier_harms"} & set(got) == set()
    evidence = got["tier_pays"]["evidence"]
    assert (evidence["latency"], evidence["gpu_time"]) == ("pays", "pays")
    assert min(evidence["saved_ends_us"]) > 0
    assert min(evidence["saved_ends_us"]) <= evidence["saved_us"] <= max(evidence["saved_ends_us"])
    assert "Does it pay: in latency yes, in GPU time yes, in money" in got["tier_pays"]["text"]


def test_a_slow_link_is_said_to_harm_with_what_to_try_instead(chats: kv.Trace) -> None:
    got = lines(chats, SLOW)
    harms = got["tier_harms"]["evidence"]
    assert harms["harmful_hits"] == harms["hits"]
    assert max(harms["saved_ends_us"]) < 0
    assert harms["oracle_saved_us"] == 0
    assert "Do not offload" in got["do_not_offload"]["text"]
    for alternative in ("GPU's own memory", "fp8", "shorter contexts", "routing"):
        assert alternative in got["do_not_offload"]["text"]


def test_where_the_ends_differ_nothing_is_decided_and_the_measurements_are_named(chats: kv.Trace) -> None:
    middle = kv.Link("middle", bandwidth="4 GB/s", fixed="2 ms", low="1 GB/s", high="60 GB/s")
    got = lines(chats, middle)
    evidence = got["undecided"]["evidence"]
    assert min(evidence["saved_ends_us"]) < 0 < max(evidence["saved_ends_us"])
    assert evidence["latency"] == "undecided"
    assert "kvreplay calibrate" in got["undecided"]["text"]
    assert "do_not_offload" not in got


def test_a_given_cost_has_no_ends(chats: kv.Trace) -> None:
    cost = kv.CostModel(c0_us=0, floor_us=0, linear_us_per_token=21.94, quadratic_us_per_token2=4.724e-4)
    link = kv.Link("mine", bandwidth="40 GB/s", fixed="1 ms")
    evidence = lines(chats, link, cost=cost, hardware=None)["tier_pays"]["evidence"]
    assert set(evidence["saved_ends_us"]) == {evidence["saved_us"]}
    assert evidence["money"] == "unknown"


def test_break_even_lengths_are_those_of_the_break_even_table(chats: kv.Trace) -> None:
    tiers = [GPU, kv.Tier("cpu", capacity="40%", link="pcie5-x16")]
    report = kv.analyze(chats, tiers, **WORTH)
    (line,) = [line for line in report.verdict if line["code"] == "load_from"]
    want = kv.break_even(links=["pcie5-x16"], **WORTH)
    assert line["evidence"]["break_even_tokens"] == want["break_even_tokens"][0]
    low, high = want["break_even_low_tokens"][0], want["break_even_high_tokens"][0]
    assert (min(line["evidence"]["ends_tokens"]), max(line["evidence"]["ends_tokens"])) == (low, high)


def test_times_are_not_quoted_where_requests_wait() -> None:
    crowd = kv.generate("multi_turn", requests=300, seed=7, rate_per_s=50)
    tiers = [GPU, kv.Tier("cpu", capacity="40%", link="pcie5-x16")]
    report = kv.analyze(crowd, tiers, model="llama-3.1-70b", hardware="l4")
    codes = [line["code"] for line in report.verdict]
    assert "overload" in codes
    assert "service_ttft" not in codes
    (over,) = [line for line in report.verdict if line["code"] == "overload"]
    assert all(row["p99_share"] > 0.8 for row in over["evidence"]["demand"])
    from kvreplay.report.text import screen

    text = screen(report, width=80)
    assert "p50" not in text
    assert "p99 share" in text
    assert max(len(line) for line in text.splitlines()) <= 80


def test_a_tier_without_a_link_is_more_hits_and_no_speed(chats: kv.Trace) -> None:
    tiers = [GPU, kv.Tier("cpu", capacity="40%")]
    report = kv.analyze(chats, tiers, **WORTH)
    got = {line["code"]: line for line in report.verdict}
    assert "More hits are not more speed" in got["tier_untimed"]["text"]
    assert {"tier_pays", "tier_harms", "load_from"} & set(got) == set()
    assert "tier_without_link" in [warning["code"] for warning in report.warnings]


def test_wear_is_said_with_what_would_spare_the_drive(chats: kv.Trace) -> None:
    tiers = [GPU, kv.Tier("ssd", capacity="40%", link="nvme-gen4")]
    plain = {line["code"]: line for line in kv.analyze(chats, tiers, **WORTH).verdict}
    assert "min_count(2)" in plain["wear"]["text"]
    filters = ["always", "min_count(2)"]
    report = kv.analyze(chats, tiers, admissions=filters, **WORTH)
    got = {line["code"]: line for line in report.verdict}
    assert "A filter spares it" not in got["wear"]["text"]
    table = report.tables["admissions"]
    assert got["admission"]["evidence"]["best"] == {
        "ssd": table.sort("all_saved_us", descending=True)["admission"][0]
    }


def test_the_same_report_is_the_same_to_the_byte(chats: kv.Trace, tmp_path: Any) -> None:
    tiers = [GPU, kv.Tier("cpu", capacity="40%", link="pcie5-x16")]
    for name in ("one", "two"):
        kv.analyze(chats, tiers, **WORTH).write(tmp_path / name)
    for path in sorted((tmp_path / "one" / "tables").iterdir()):
        assert path.read_bytes() == (tmp_path / "two" / "tables" / path.name).read_bytes(), path.name
    page = (tmp_path / "one" / "report.html").read_text("utf-8")
    assert page == (tmp_path / "two" / "report.html").read_text("utf-8")
    for title in ("What hits are worth", "With and without tiers", "Demand", "Prices used"):
        assert title in page


def test_a_trace_without_times_has_no_demand_and_no_money(tmp_path: Any) -> None:
    path = tmp_path / "t.jsonl"
    rows = [{"input_length": 64, "output_length": 1, "hash_ids": [1, 2, 3, 4 + at % 3]} for at in range(40)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    trace = kv.read_trace(path, block_tokens=16)
    tiers = [kv.Tier("gpu", capacity=4), kv.Tier("cpu", capacity=8, link="pcie5-x16")]
    report = kv.analyze(trace, tiers, **WORTH)
    assert "demand" not in report.tables
    quality = report.tables["hit_quality"].row(1, named=True)
    for name in ("net_usd_per_hour", "written_bytes_per_day", "residence_us", "reuse_gap_p50_us"):
        assert quality[name] is None, name
    (times,) = [line for line in report.verdict if line["code"] == "service_ttft"]
    assert "no times" in times["text"]


@pytest.mark.parametrize(
    "bad", [{"price": "gpu_hour_usd=cheap"}, {"price": "euro=3"}, {"cost": "missing.toml"}]
)
def test_bad_options_of_worth_are_refused(bad: dict[str, str]) -> None:
    from kvreplay.cli.options import WORTH as OPTIONS, worth_of

    values = dict.fromkeys(OPTIONS) | {"model": "llama-3.1-8b", "hardware": "h100-sxm"} | bad
    if "price" in bad:
        values["price"] = [bad["price"]]
    with pytest.raises(kv.ConfigError):
        kv.replay(kv.generate("unique", requests=2), [kv.Tier("gpu", capacity=5)], **worth_of(values))


@pytest.mark.parametrize("fill", ["write_through", "victim"])
def test_the_best_size_is_found_on_the_curve_that_replays_confirm(chats: kv.Trace, fill: str) -> None:
    cpu = kv.Tier("cpu", capacity="40%", link="pcie5-x16", fill=fill)
    report = kv.analyze(chats, [GPU, cpu], **WORTH)
    (line,) = [line for line in report.verdict if line["code"] == "best_size"]
    best, now = line["evidence"]["best"], line["evidence"]["now"]
    row = report.tables["hit_quality"].row(1, named=True)
    assert now["net_usd_per_hour"] == pytest.approx(row["net_usd_per_hour"])
    assert best["net_usd_per_hour"] >= now["net_usd_per_hour"]
    other = kv.Tier("cpu", capacity=best["capacity_blocks"], link="pcie5-x16", fill=fill)
    hits = kv.replay(chats, [GPU, other]).tiers["hit_tokens"][1]
    value = row["gpu_usd_saved_per_hour"] / row["hit_tokens"] * hits
    rent = row["tier_usd_per_hour"] / now["capacity_blocks"] * best["capacity_blocks"]
    assert best["net_usd_per_hour"] == pytest.approx(value - rent)


def test_memory_that_costs_more_than_all_it_saves_pays_at_no_size(chats: kv.Trace) -> None:
    report = kv.analyze(
        chats,
        [GPU, kv.Tier("cpu", capacity="40%", link="pcie5-x16")],
        prices={"dram_gb_usd": 1e6},
        **WORTH,
    )
    (line,) = [line for line in report.verdict if line["code"] == "best_size"]
    assert line["text"] == "In money no size of cpu pays on this traffic."


def test_stores_that_cost_more_than_loads_save_are_named_as_the_cause(chats: kv.Trace) -> None:
    link = kv.Link(
        "mine", bandwidth="40 GB/s", fixed="1 ms", write_bandwidth="0.5 GB/s", store="blocking", medium="dram"
    )
    got = lines(chats, link)
    evidence = got["tier_harms"]["evidence"]
    assert evidence["harmful_hits"] == 0
    assert evidence["saved_us"] < 0
    assert "storing delays requests by" in got["tier_harms"]["text"]
    assert "stores that do not block" in got["do_not_offload"]["text"]


def test_a_tier_that_serves_nothing_is_no_reason_against_offloading() -> None:
    unique = kv.generate("unique", requests=20, seed=1)
    tiers = [GPU, kv.Tier("cpu", capacity="40%", link="pcie5-x16")]
    codes = [line["code"] for line in kv.analyze(unique, tiers, **WORTH).verdict]
    assert "tier_unused" in codes
    assert "do_not_offload" not in codes
