"""Writes spread over requests: whole tokens, exact in sum, by events where there are some."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

import kvreplay as kv
from kvreplay.worth.writes import weights_by_offers, written_tokens


@settings(max_examples=80)
@given(weights=st.lists(st.integers(0, 10_000), min_size=1, max_size=60), total=st.integers(0, 2_000_000))
def test_a_spread_sums_to_its_total(weights: list[int], total: int) -> None:
    got = written_tokens(pl.DataFrame({"cpu": weights}), ["cpu"], [total])["written_tokens_cpu"]
    assert got.dtype == pl.Int64
    assert got.sum() == (total if sum(weights) else 0)
    for weight, written in zip(weights, got, strict=True):
        assert abs(written - weight * total / max(sum(weights), 1)) <= 1 + 1e-6


def test_who_may_write_by_fill_rule() -> None:
    hits = pl.DataFrame(
        {"hit_tokens_a": [16], "hit_tokens_b": [32], "hit_tokens_c": [64], "computed_tokens": [5]}
    )
    rules = {
        ("write_through", "write_through", "write_through"): (7, 5, 1),
        ("write_through", "victim", "write_back"): (7, 7, 7),
        ("write_through", "write_through", "victim"): (7, 5, 5),
    }
    for fills, want in rules.items():
        assert weights_by_offers(hits, ["a", "b", "c"], fills, block_tokens=16).row(0) == want


@pytest.mark.parametrize("fill", ["write_through", "write_back", "victim"])
def test_events_say_what_each_request_wrote(chats: kv.Trace, fill: str) -> None:
    tiers = [kv.Tier("gpu", capacity="5%"), kv.Tier("cpu", capacity="20%", fill=fill)]
    exact = kv.replay(chats, tiers, events=True, per_request=True)
    spread = kv.replay(chats, tiers, per_request=True)
    inserts = exact.events.filter(event="insert").group_by("request", "tier").len()
    for at, name in enumerate(("gpu", "cpu")):
        total = int(exact.tiers["inserted_blocks"][at]) * 16
        want = dict(inserts.filter(tier=name).select("request", pl.col("len") * 16).iter_rows())
        mine = exact.writes[f"written_tokens_{name}"].to_list()
        assert mine == [want.get(request, 0) for request in range(len(chats))]
        assert spread.writes[f"written_tokens_{name}"].sum() == total


def test_a_write_through_tier_without_holes_needs_no_events(chats: kv.Trace) -> None:
    """What is computed is stored: the spread is what the events say."""
    tiers = [kv.Tier("gpu", capacity="5%"), kv.Tier("cpu", capacity="100%")]
    exact = kv.replay(chats, tiers, events=True, per_request=True).writes["written_tokens_cpu"]
    spread = kv.replay(chats, tiers, per_request=True).writes["written_tokens_cpu"]
    assert exact.equals(spread)
