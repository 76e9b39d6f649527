"""Windows, groups, sessions, whole sequences and policies side by side, against plain Python."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

import kvreplay as kv
from kvreplay.comparing import POLICIES_SCHEMA, compare_policies

BLOCK = 16


def trace_of(rows: list[dict[str, Any]]) -> kv.Trace:
    types = {"session": pl.String} if "session" in rows[0] else {}
    frame = pl.DataFrame(rows, schema_overrides=types)
    return kv.read_trace(frame, block_tokens=BLOCK, time_unit="us", scope="global", tail="ceil")


def row(
    time: int, path: list[int], session: str | None, tenant: str = "a", *, short: int = 0
) -> dict[str, Any]:
    return {
        "timestamp": time,
        "input_length": len(path) * BLOCK - short,
        "output_length": 1,
        "hash_ids": path,
        "session": session,
        "tenant": tenant,
    }


ROWS = [
    row(0, [1, 2, 3], "s", short=6),
    row(10, [1, 2], "t"),
    row(100, [1, 2, 3], "s", short=6),
    row(250, [1, 2, 9], None, "b"),
    row(260, [7], "s", "b"),
]


def test_hits_are_split_by_who_held_the_blocks_last() -> None:
    result = kv.replay(trace_of(ROWS), [kv.Tier("gpu", capacity=100)], group_by="tenant")
    # Request 1 takes 1 2 from s; request 2 takes 1 2 from t and 3 (10 tokens) from its own session.
    assert result.summary["same_session_hit_tokens"] == 10
    assert result.summary["other_session_hit_tokens"] == 32 + 32 + 32
    assert result.groups.rows() == [
        ("a", 3, 116, 74, 74, 42, 74 / 116, 2 / 3, 10, 64),
        ("b", 2, 64, 32, 32, 32, 0.5, 0.5, 0, 32),
    ]


def test_windows_have_rows_where_requests_are() -> None:
    result = kv.replay(trace_of(ROWS), [kv.Tier("gpu", capacity=100)], window="100us")
    assert result.windows.select("window", "from_us", "until_us", "requests", "hit_tokens_gpu").rows() == [
        (0, 0, 100, 2, 32),
        (1, 100, 200, 1, 42),
        (2, 200, 300, 2, 32),
    ]
    assert result.windows["input_tokens"].sum() == result.summary["input_tokens"]


@pytest.mark.parametrize("mode", ["prefix", "object"])
@pytest.mark.parametrize("policy", ["lru", "fifo", "opt"])
def test_windows_say_what_the_tiers_hold(policy: str, mode: str) -> None:
    rows = [row(0, [1, 2], None), row(1, [1, 2, 3], None), row(5, [4], None), row(12, [5, 6, 7], None)]
    tier = kv.Tier("gpu", capacity=4, policy=policy)
    result = kv.replay(trace_of(rows), [tier], mode=mode, window="5us")
    held = result.windows["resident_blocks_gpu"].to_list()
    assert result.windows.columns[-1] == "resident_blocks_gpu"
    assert held[-1] == result.tiers["resident_blocks"][0]
    if policy != "opt":
        assert held == [3, 4, 4]


def test_what_two_tiers_hold_is_the_same_from_both_engines(chats: kv.Trace) -> None:
    first = chats.core.longest_path()
    tiers = [kv.Tier("gpu", capacity=first), kv.Tier("cpu", capacity=3 * first, fill="victim")]
    fast, slow = (kv.replay(chats, tiers, window="10s", events=events) for events in (False, True))
    assert (fast.summary["engine"], slow.summary["engine"]) == ("stack", "blocks")
    assert fast.windows.equals(slow.windows)
    last = fast.windows.select("resident_blocks_gpu", "resident_blocks_cpu").row(-1)
    assert list(last) == fast.tiers["resident_blocks"].to_list()


def test_groups_of_several_columns_and_of_missing_values() -> None:
    result = kv.replay(trace_of(ROWS), [kv.Tier("gpu", capacity=100)], group_by=["session", "tenant"])
    assert result.groups.select("session", "tenant", "requests").rows() == [
        ("s", "a", 2),
        ("s", "b", 1),
        ("t", "a", 1),
        (None, "b", 1),
    ]


def test_without_sessions_and_in_object_mode_the_split_is_null() -> None:
    rows = [{key: value for key, value in one.items() if key != "session"} for one in ROWS]
    result = kv.replay(trace_of(rows), [kv.Tier("gpu", capacity=100)], window="1s")
    assert result.windows["same_session_hit_tokens"].to_list() == [None]
    assert "same_session_hit_tokens" not in result.summary
    tier = kv.Tier("gpu", capacity=100)
    result = kv.replay(trace_of(ROWS), [tier], mode="object", window="1s")
    assert result.windows["other_session_hit_tokens"].to_list() == [None]
    assert result.summary["same_session_hit_tokens"] is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"group_by": "tenat"}, "unknown column"),
        ({"group_by": "input_tokens"}, "unknown column"),
        ({"group_by": ["tenant", "tenant"]}, "twice"),
        ({"window": "5"}, "not a duration"),
        ({"window": 5}, "not a duration"),
        ({"window": "0s"}, "shorter"),
        ({"unit": "page"}, "unknown unit"),
    ],
)
def test_a_wrong_split_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(kv.ConfigError, match=message):
        kv.replay(trace_of(ROWS), [kv.Tier("gpu", capacity=100)], **options)


def test_a_split_that_was_not_asked_for_is_refused() -> None:
    result = kv.replay(trace_of(ROWS), [kv.Tier("gpu", capacity=100)])
    with pytest.raises(kv.ConfigError, match="windows"):
        _ = result.windows
    with pytest.raises(kv.ConfigError, match="groups"):
        _ = result.groups


def test_windows_need_times_and_groups_need_columns() -> None:
    plain = trace_of([{"input_length": 16, "output_length": 1, "hash_ids": [1]}])
    tier = kv.Tier("gpu", capacity=1)
    with pytest.raises(kv.ConfigError, match="times"):
        kv.replay(plain, [tier], window="5m")
    with pytest.raises(kv.ConfigError, match="no column"):
        kv.replay(plain, [tier], group_by="tenant")


PATHS = st.lists(
    st.tuples(
        st.integers(0, 30), st.integers(0, 5), st.lists(st.integers(0, 1), max_size=4), st.integers(0, 15)
    ),
    min_size=1,
    max_size=30,
)


def rows_of(steps: list[tuple[int, int, list[int], int]]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for at, (which, keep, labels, short) in enumerate(steps):
        path = list(rows[which % len(rows)]["hash_ids"][:keep]) if rows else []
        for label in labels:
            path.append((path[-1] if path else 0) * 3 + label + 1)
        path = path or [1]
        session = None if short == 0 and rows else f"s{which % 3}"
        rows.append(row(at * 7, path, session, f"t{keep % 2}", short=short))
    return rows


@settings(max_examples=40)
@given(steps=PATHS, capacity=st.integers(1, 12), policy=st.sampled_from(["lru", "fifo", "arc"]))
def test_the_split_equals_a_slow_one(
    steps: list[tuple[int, int, list[int], int]], capacity: int, policy: str
) -> None:
    rows = rows_of(steps)
    trace = trace_of(rows)
    result = kv.replay(
        trace,
        [kv.Tier("gpu", capacity=capacity, policy=policy)],
        per_request=True,
        group_by="tenant",
        window="20us",
    )
    last: dict[int, str | None] = {}
    by_tenant: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    by_window: dict[int, list[int]] = defaultdict(lambda: [0, 0, 0])
    for one, hit in zip(rows, result.requests["hit_blocks_gpu"], strict=True):
        same = other = 0
        for at, block in enumerate(one["hash_ids"]):
            if at < hit:
                tokens = min((at + 1) * BLOCK, one["input_length"]) - at * BLOCK
                mine = one["session"] is not None and last[block] == one["session"]
                same, other = same + tokens * mine, other + tokens * (not mine)
        last |= dict.fromkeys(one["hash_ids"], one["session"])
        for sums in (by_tenant[one["tenant"]], by_window[one["timestamp"] // 20]):
            sums[:] = [sums[0] + 1, sums[1] + same, sums[2] + other]
    columns = ["requests", "same_session_hit_tokens", "other_session_hit_tokens"]
    assert result.groups.select("tenant", *columns).rows() == [(k, *by_tenant[k]) for k in sorted(by_tenant)]
    assert result.windows.select("window", *columns).rows() == [(k, *by_window[k]) for k in sorted(by_window)]
    parts = result.windows["same_session_hit_tokens"] + result.windows["other_session_hit_tokens"]
    assert parts.equals(result.windows["hit_tokens"])


@pytest.mark.parametrize("fill", ["write_through", "victim", "write_back"])
def test_the_engine_is_said_and_changes_nothing(chats: kv.Trace, fill: str) -> None:
    first = chats.core.longest_path()  # a victim tier is a slice of the stack if every request fits above it
    tiers = [kv.Tier("gpu", capacity=first), kv.Tier("cpu", capacity=3 * first, fill=fill)]
    fast = kv.replay(chats, tiers, per_request=True)
    slow = kv.replay(chats, tiers, per_request=True, events=True)
    assert fast.summary.pop("engine") == ("blocks" if fill == "write_back" else "stack")
    assert slow.summary["engine"] == "blocks"
    assert fast.tiers.equals(slow.tiers)
    assert fast.requests.equals(slow.requests)
    assert [fast.content(name) for name in ("gpu", "cpu")] == [slow.content(name) for name in ("gpu", "cpu")]
    assert fast.ratios.equals(slow.ratios)


def test_whole_sequences_share_nothing_and_leave_whole() -> None:
    paths = [[1, 2, 3], [1, 2, 3, 4], [1, 2, 9], [1, 2, 3], [5]]
    trace = trace_of([row(at, path, None) for at, path in enumerate(paths)])
    result = kv.replay(trace, [kv.Tier("gpu", capacity=7)], unit="request", per_request=True)
    assert result.summary["engine"] == "sequences"
    assert result.requests["hit_blocks_gpu"].to_list() == [0, 3, 2, 3, 0]
    assert result.tiers.select("inserted_blocks", "evicted_blocks", "resident_blocks").rows() == [(8, 3, 5)]
    assert result.content("gpu") == [5, 1, 2, 3, 4]
    with pytest.raises(kv.ConfigError, match="one tier"):
        kv.replay(trace, [kv.Tier("a", capacity=7), kv.Tier("b", capacity=7)], unit="request")
    with pytest.raises(kv.ConfigError, match="policy=arc"):
        kv.replay(trace, [kv.Tier("a", capacity=7, policy="arc")], unit="request")


def test_warnings_of_a_result(chats: kv.Trace) -> None:
    small = kv.replay(chats, [kv.Tier("gpu", capacity=2)])
    assert [one["code"] for one in small.warnings] == ["oversize_request"]
    large = kv.replay(chats, [kv.Tier("gpu", capacity="100%")])
    assert [one["code"] for one in large.warnings] == ["tier_larger_than_trace"]
    assert kv.replay(chats, [kv.Tier("gpu", capacity="50%")]).warnings == []


def test_object_mode_reports_usable_hits(chats: kv.Trace) -> None:
    result = kv.replay(chats, [kv.Tier("gpu", capacity=100, policy="fifo")], mode="object", per_request=True)
    tier = result.tiers.row(0, named=True)
    assert result.requests["usable_hit_blocks"].sum() == tier["usable_hit_blocks"] <= tier["hit_blocks"]
    assert tier["stranded_blocks"] == result.requests["stranded_blocks"].sum()


def test_policies_side_by_side(chats: kv.Trace) -> None:
    out = compare_policies(chats, ["lru", "arc", "lru"], [200, 100])
    assert dict(out.schema) == POLICIES_SCHEMA
    assert out["capacity_blocks"].to_list() == [100] * 3 + [200] * 3
    ceiling = int(kv.ceiling(chats)["hit_blocks"].sum())
    for capacity, rows in out.group_by("capacity_blocks"):
        opt = int(kv.hit_curve(chats, policy="opt", capacities=[int(str(capacity[0]))])["hit_blocks"][0])
        assert set(rows["policy"]) == {"lru", "arc", "opt"}
        assert rows["opt_hit_blocks"].to_list() == [opt] * 3
        assert (rows["gap_to_opt_blocks"] >= 0).all()
        assert (rows["gap_to_ceiling_blocks"] + rows["hit_blocks"] == ceiling).all()
    counted = kv.replay(chats, [kv.Tier("t", capacity=100, policy="arc")], mode="object").tiers
    share = out.filter(policy="arc", capacity_blocks=100)["usable_share"][0]
    assert share == counted["usable_hit_blocks"][0] / counted["hit_blocks"][0]
    assert out.filter(policy="opt")["usable_share"].null_count() == 2


def test_policies_in_a_report(chats: kv.Trace) -> None:
    tiers = [kv.Tier("gpu", capacity=100), kv.Tier("cpu", capacity=300)]
    report = kv.analyze(chats, tiers, policies=["arc", "fifo"], window="10m", group_by=[])
    assert report.tables["policies"]["capacity_blocks"].unique(maintain_order=True).to_list() == [
        100,
        300,
        400,
    ]
    assert report.tables["windows"]["requests"].sum() == len(chats)
    assert "groups" not in report.tables
    [line] = [line for line in report.verdict if line["code"] == "capacity_or_policy"]
    evidence = line["evidence"]
    larger = evidence["lost_to_capacity_blocks"] >= evidence["lost_to_policy_blocks"]
    assert evidence["cause"] == ("capacity" if larger else "policy")
    assert report.to_dict()["policies"] == report.tables["policies"].to_dicts()


def test_policies_and_splits_need_tiers(chats: kv.Trace) -> None:
    for options in ({"policies": ["arc"]}, {"window": "5m"}):
        with pytest.raises(kv.ConfigError, match="there is none"):
            kv.analyze(chats, **options)
    with pytest.raises(kv.ConfigError, match="nothing to compare"):
        compare_policies(chats, [], [5])
