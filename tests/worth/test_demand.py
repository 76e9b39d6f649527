"""Demand by windows, against windows built one by one."""

from __future__ import annotations

import math

import polars as pl
from hypothesis import given, settings, strategies as st

import kvreplay as kv
from kvreplay.worth.demand import Amount, demand, nearest_rank, overloaded

SECOND = 1_000_000


def table(arrivals: list[int], amounts: list[float], capacity: float | None = 2.0) -> pl.DataFrame:
    frame = pl.DataFrame(
        {"arrival_us": arrivals, "amount": amounts}, {"arrival_us": pl.Int64, "amount": pl.Float64}
    )
    return demand(frame, [Amount("prefill", "with_tiers", "engine_s", pl.col("amount"), capacity)])


def test_windows_by_hand() -> None:
    # 10 s windows from the first arrival: 3, 0, 0, 0, 0, 0, 0, 5 (the last arrival falls into the eighth)
    got = table([5 * SECOND, 6 * SECOND, 84 * SECOND], [1.0, 2.0, 5.0])
    ten, sixty = got.to_dicts()
    assert ten == {
        "window_s": 10,
        "resource": "prefill",
        "direction": "with_tiers",
        "unit": "engine_s",
        "mean": 8.0 / 8 / 10,
        "p99": 0.5,
        "max": 0.5,
        "burst": 0.5 / 0.1,
        "capacity": 2.0,
        "mean_share": 0.05,
        "p99_share": 0.25,
        "max_share": 0.25,
    }
    assert (sixty["window_s"], sixty["mean"], sixty["max"]) == (60, 8 / 2 / 60, 5 / 60)


def test_without_a_capacity_there_is_no_share() -> None:
    row = table([0], [1.0], capacity=None).row(0, named=True)
    assert (row["capacity"], row["p99_share"], row["mean"]) == (None, None, 0.1)


def test_a_sparse_trace_needs_no_memory_for_its_empty_windows() -> None:
    year = 365 * 86_400 * SECOND
    row = table([0, 1000 * year], [1.0, 1.0]).row(0, named=True)
    assert row["p99"] == 0.0
    assert row["max"] == 0.1


def test_overload_counts_what_happens_and_not_what_would() -> None:
    frame = pl.DataFrame(
        {"arrival_us": [0], "amount": [60.0]}, {"arrival_us": pl.Int64, "amount": pl.Float64}
    )
    amounts = [
        Amount("prefill", "with_tiers", "engine_s", pl.col("amount") * 0.81, 1.0),
        Amount("prefill", "without_tiers", "engine_s", pl.col("amount") * 5, 1.0),
        Amount("cpu", "read", "bytes", pl.col("amount") * 0.79, 1.0),
        Amount("ssd", "read", "bytes", pl.col("amount") * 9, None),
    ]
    over = overloaded(demand(frame, amounts))
    assert over.select("resource", "direction").rows() == [("prefill", "with_tiers")]


@settings(max_examples=60)
@given(rows=st.lists(st.tuples(st.integers(0, 400 * SECOND), st.integers(0, 1000)), min_size=1, max_size=40))
def test_windows_are_those_of_a_loop(rows: list[tuple[int, int]]) -> None:
    rows = sorted(rows)
    arrivals, amounts = [at for at, _ in rows], [float(value) for _, value in rows]
    for got in table(arrivals, amounts).iter_rows(named=True):
        length = got["window_s"] * SECOND
        sums = [0.0] * ((arrivals[-1] - arrivals[0]) // length + 1)
        for at, value in zip(arrivals, amounts, strict=True):
            sums[(at - arrivals[0]) // length] += value
        ordered = sorted(sums)
        assert got["max"] == ordered[-1] / got["window_s"]
        assert got["p99"] == ordered[math.ceil(0.99 * len(sums)) - 1] / got["window_s"]
        assert math.isclose(got["mean"], sum(sums) / len(sums) / got["window_s"], abs_tol=1e-12)
    # Requests of a trace whose clock restarts do not come in the order of their times.
    assert table(arrivals[::-1], amounts[::-1]).equals(table(arrivals, amounts))


def test_nearest_rank_counts_the_zeros_that_are_not_there() -> None:
    assert nearest_rank(pl.Series([3.0, 1.0]), 2, 0.5) == 1.0
    assert nearest_rank(pl.Series([3.0, 1.0]), 2, 0.99) == 3.0
    assert nearest_rank(pl.Series([3.0]), 200, 0.99) == 0.0
    assert nearest_rank(pl.Series([], dtype=pl.Float64), 5, 0.99) == 0.0


def test_links_carry_what_their_tiers_and_those_behind_them_move(chats: kv.Trace) -> None:
    tiers = [
        kv.Tier("gpu", capacity="5%"),
        kv.Tier("cpu", capacity="20%", link="pcie5-x16"),
        kv.Tier("ssd", capacity="60%", link="nvme-gen4"),
    ]
    report = kv.analyze(chats, tiers, model="llama-3.1-8b", hardware="h100-sxm")
    rows = {
        (row["resource"], row["direction"]): row
        for row in report.tables["demand"].filter(window_s=60).iter_rows(named=True)
    }
    facts = report.study.facts
    assert facts is not None
    assert facts.span_us is not None
    windows = facts.span_us // (60 * SECOND) + 1
    moved = {row["tier"]: row for row in report.tables["tiers"].iter_rows(named=True)}
    tokens = {name: row["hit_tokens"] * 131072 for name, row in moved.items()}

    def total(resource: str, direction: str) -> int:
        mean: float = rows[resource, direction]["mean"]
        return round(mean * windows * 60)

    assert total("ssd", "read") == tokens["ssd"]
    assert total("cpu", "read") == tokens["cpu"] + tokens["ssd"]
    assert total("cpu", "write") == moved["cpu"]["written_bytes"]
    assert total("ssd", "write") == moved["ssd"]["written_bytes"]
    assert total("prefill", "with_tiers") == round(int(facts.requests["recompute_us"].sum()) / 1e6)


def test_a_drive_below_the_gpu_alone_asks_for_the_gpus_own_link(chats: kv.Trace) -> None:
    tiers = [kv.Tier("gpu", capacity="5%"), kv.Tier("ssd", capacity="60%", link="nvme-gen4")]
    report = kv.analyze(chats, tiers, model="llama-3.1-8b", hardware="h100-sxm")
    rows = (
        report.tables["demand"].filter(window_s=10).select("resource", "direction", "mean", "capacity").rows()
    )
    names = [(resource, direction) for resource, direction, _, _ in rows]
    assert names == [
        ("prefill", "with_tiers"),
        ("prefill", "without_tiers"),
        ("ssd", "read"),
        ("ssd", "write"),
        ("pcie5-x16", "read"),
    ]
    assert rows[2][2] == rows[4][2]
    assert rows[4][3] == 52.4e9
