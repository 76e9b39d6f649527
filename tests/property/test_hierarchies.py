"""The fast engines against the oracle, on random forests: several LRU tiers and every fill rule."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st
from tests.oracle.forest import Paths, forests
from tests.oracle.hierarchy import Hierarchy, Tier
from tests.property.test_single_cache import trace_of

import kvreplay as kv

FILLS = ["write_through", "write_back", "victim"]
lower_tiers = st.tuples(st.integers(1, 30), st.sampled_from(FILLS), st.sampled_from(["path", "served"]))
COUNTERS = {
    "inserted": "inserted_blocks",
    "evicted": "evicted_blocks",
    "moved": "moved_blocks",
    "dead_on_arrival": "dead_on_arrival_blocks",
    "no_room": "no_room_blocks",
    "stranded": "stranded_blocks",
    "asked": "asked_blocks",
}


@settings(max_examples=200)
@given(forests(), st.integers(1, 20), st.lists(lower_tiers, min_size=1, max_size=2))
def test_hierarchies(paths: Paths, first: int, lower: list[tuple[int, str, str]]) -> None:
    oracle = Hierarchy([Tier(first), *(Tier(*one) for one in lower)])
    hits = oracle.replay(paths)
    tiers = [kv.Tier("t0", capacity=first, closure="none")]
    tiers += [
        kv.Tier(f"t{k}", capacity=c, fill=fill, touch=touch, closure="none")
        for k, (c, fill, touch) in enumerate(lower, 1)
    ]
    result = kv.replay(trace_of(paths), tiers, per_request=True)
    for k, tier in enumerate(oracle.tiers):
        assert result.requests[f"hit_blocks_t{k}"].to_list() == [one[k] for one in hits]
        assert sorted(map(int, result.content(f"t{k}"))) == sorted(tier.order)
        row = result.tiers.row(k, named=True)
        found = {name: row[column] for name, column in COUNTERS.items()}
        assert found == {name: tier.counters.get(name, 0) for name in COUNTERS}
        assert row["unread_at_end_blocks"] == len(tier.unserved)


@settings(max_examples=60)
@given(forests(), st.integers(0, 10), st.integers(1, 30))
def test_a_victim_tier_makes_one_lru_of_both(paths: Paths, more: int, second: int) -> None:
    trace = trace_of(paths)
    first = max(map(len, paths)) + more
    both = kv.replay(
        trace, [kv.Tier("a", capacity=first), kv.Tier("b", capacity=second, fill="victim")], per_request=True
    ).requests
    one = kv.replay(trace, [kv.Tier("a", capacity=first + second)], per_request=True).requests
    assert (both["hit_blocks_a"] + both["hit_blocks_b"]).to_list() == one["hit_blocks_a"].to_list()


@settings(max_examples=60)
@given(forests(), st.integers(1, 20), st.integers(0, 20), st.sampled_from(FILLS))
def test_every_token_has_one_source(paths: Paths, first: int, second: int, fill: str) -> None:
    trace = trace_of(paths)
    result = kv.replay(
        trace, [kv.Tier("a", capacity=first), kv.Tier("b", capacity=second + 1, fill=fill)], per_request=True
    )
    rows = result.requests
    total = rows["hit_tokens_a"] + rows["hit_tokens_b"] + rows["computed_tokens"]
    assert total.to_list() == trace.requests()["input_tokens"].to_list()
    bound = kv.ceiling(trace)["hit_blocks"]
    assert ((rows["hit_blocks_a"] + rows["hit_blocks_b"]) <= bound).all()
