"""Curves, ratios and replays: columns, units, warm-up, refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from tests.oracle import single
from tests.oracle.forest import hit_tokens, rows_of, write_jsonl

import kvreplay as kv

if TYPE_CHECKING:
    from pathlib import Path

PATHS = [[1, 2, 3], [1, 2, 4], [9, 10, 11], [1, 2, 3], [5], [1, 2, 4, 6]]
ROWS = rows_of(PATHS)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> kv.Trace:
    path: Path = tmp_path_factory.mktemp("t") / "t.jsonl"
    return kv.read_trace(write_jsonl(path, ROWS), block_tokens=16, time_unit="ms")


def test_columns_of_a_curve(trace: kv.Trace) -> None:
    curve = kv.hit_curve(trace, capacities=["10 blocks", 3, "48 tokens", "100%"], model=100)
    assert curve.schema == {
        "policy": pl.String,
        "capacity_blocks": pl.Int64,
        "capacity_tokens": pl.Int64,
        "capacity_bytes": pl.Int64,
        "hit_blocks": pl.Int64,
        "hit_tokens": pl.Int64,
        "block_hit_ratio": pl.Float64,
        "token_hit_ratio": pl.Float64,
    }
    assert curve["capacity_blocks"].to_list() == [3, 9, 10]
    assert curve["capacity_tokens"].to_list() == [48, 144, 160]
    assert curve["capacity_bytes"].to_list() == [4800, 14400, 16000]
    hits = single.lru_hits(PATHS, 9)
    tokens = sum(map(hit_tokens, hits, ROWS))
    row = curve.row(1, named=True)
    assert (row["hit_blocks"], row["hit_tokens"]) == (sum(hits), tokens)
    assert row["block_hit_ratio"] == sum(hits) / 17
    assert row["token_hit_ratio"] == tokens / sum(one["input_length"] for one in ROWS)
    assert kv.hit_curve(trace)["capacity_bytes"].null_count() == kv.hit_curve(trace).height


def test_warm_columns(trace: kv.Trace) -> None:
    hits = [hit_tokens(h, row) for h, row in zip(single.lru_hits(PATHS, 9), ROWS, strict=True)]
    for warmup, first in ((0.5, 3), (0, 0), ("0.5", 3), ("501ms", 3), ("0.5 s", 2)):
        curve = kv.hit_curve(trace, capacities=[9], warmup=warmup)
        tokens = sum(row["input_length"] for row in ROWS[first:])
        assert curve["warm_hit_tokens"].to_list() == [sum(hits[first:])], warmup
        assert curve["warm_token_hit_ratio"].to_list() == [sum(hits[first:]) / tokens], warmup
        opt = kv.hit_curve(trace, capacities=[9], warmup=warmup, policy="opt")
        assert opt["warm_hit_tokens"].to_list() == [sum(hits[first:])], "all fits: equal to LRU"
    for warmup in (1, 1.0, -0.1, "soon", True, "2"):
        with pytest.raises(kv.ConfigError):
            kv.hit_curve(trace, warmup=warmup)


def test_other_policies_get_log_spaced_capacities(trace: kv.Trace) -> None:
    curve = kv.hit_curve(trace, policy="fifo")
    last = kv.hit_curve(trace)["capacity_blocks"].to_list()[-1]
    assert curve["capacity_blocks"].to_list() == list(range(1, last + 1))
    assert set(curve["policy"]) == {"fifo"}
    with pytest.raises(kv.ConfigError) as caught:
        kv.hit_curve(trace, policy="no_such", capacities=[3])
    assert caught.value.hint


def test_distances_in_every_unit(trace: kv.Trace) -> None:
    blocks = kv.reuse_distance(trace)
    distances = [d for one in single.stack_distances(PATHS) for d in one if d is not None]
    for lower, upper, accesses in blocks.select("lower", "upper", "accesses").iter_rows():
        assert accesses == sum(lower <= d < upper for d in distances)
    assert blocks["accesses"].sum() == len(distances)
    tokens = kv.reuse_distance(trace, unit="tokens")
    assert tokens["lower"].to_list() == [16 * lower for lower in blocks["lower"]]
    size = kv.reuse_distance(trace, unit="bytes", model=10)
    assert size["upper"].to_list() == [160 * upper for upper in blocks["upper"]]
    with pytest.raises(kv.ConfigError, match="bytes per token"):
        kv.reuse_distance(trace, unit="bytes")
    for options in ({"unit": "pages"}, {"bins": "linear"}):
        with pytest.raises(kv.ConfigError):
            kv.reuse_distance(trace, **options)


def test_reuse_times(trace: kv.Trace) -> None:
    last: dict[int, int] = {}
    ages = []
    for at, path in enumerate(PATHS):
        ages += [250_000 * (at - last[block]) for block in path if block in last]
        last.update(dict.fromkeys(path, at))
    table = kv.reuse_time(trace)
    for lower, upper, accesses in table.select("lower", "upper", "accesses").iter_rows():
        assert accesses == sum(lower <= age < upper for age in ages)
    assert table["accesses"].sum() == len(ages)


def test_a_trace_without_times(tmp_path: Path) -> None:
    rows = [{key: value for key, value in row.items() if key != "timestamp"} for row in ROWS]
    trace = kv.read_trace(write_jsonl(tmp_path / "t.jsonl", rows), block_tokens=16)
    assert trace.info["arrival_first_us"] is None
    assert trace.requests()["arrival_us"].null_count() == len(ROWS)
    assert kv.reuse_time(trace).height == 0
    assert kv.reuse_runs(trace)["age_us"].null_count() == kv.reuse_runs(trace).height
    with pytest.raises(kv.ConfigError, match="trace with times"):
        kv.hit_curve(trace, warmup="5m")
    report = kv.analyze(trace, [kv.Tier("gpu", capacity=4)])
    assert report.tables["window_growth"]["until_us"].null_count() == report.tables["window_growth"].height


def test_ratios_of_a_result_are_the_tiers_together(trace: kv.Trace) -> None:
    result = kv.replay(trace, [kv.Tier("a", capacity=4), kv.Tier("b", capacity=5, fill="victim")])
    found = dict(kv.ratios(result).select("name", "value").iter_rows())
    hits = single.lru_hits(PATHS, 9)
    assert found["block_hit_ratio"] == sum(hits) / 17
    assert found["request_hit_ratio"] == sum(h > 0 for h in hits) / 6
    assert result.summary["token_hit_ratio"] == found["token_hit_ratio"]
    assert result.summary["hit_tokens"] + result.summary["computed_tokens"] == result.summary["input_tokens"]
    assert kv.ratios(trace).columns == ["name", "value", "numerator", "denominator", "definition"]


def test_columns_of_the_tiers(trace: kv.Trace) -> None:
    wanted = [
        "tier",
        "policy",
        "admission",
        "fill",
        "capacity_blocks",
        "capacity_tokens",
        "capacity_bytes",
        "asked_blocks",
        "hit_blocks",
        "hit_tokens",
        "tier_conditional_hit_ratio",
        "tier_share",
        "inserted_blocks",
        "evicted_blocks",
        "rejected_blocks",
        "moved_blocks",
        "dead_on_arrival_blocks",
        "unread_at_end_blocks",
        "no_room_blocks",
        "stranded_blocks",
        "resident_blocks",
        "written_bytes",
        "read_bytes",
        "hits",
        "harmful_hits",
        "saved_us",
        "lifetime_years",
    ]
    result = kv.replay(trace, [kv.Tier("a", capacity=4)], model=10)
    assert result.tiers.columns[: len(wanted)] == wanted
    row = result.tiers.row(0, named=True)
    assert (row["capacity_tokens"], row["capacity_bytes"]) == (64, 640)
    assert row["written_bytes"] == 160 * row["inserted_blocks"]
    assert [row[name] for name in ("harmful_hits", "saved_us", "lifetime_years")] == [None] * 3
    plain = kv.replay(trace, [kv.Tier("a", capacity=4)]).tiers.row(0, named=True)
    assert [plain[name] for name in ("capacity_bytes", "written_bytes", "read_bytes")] == [None] * 3
    assert not {pl.UInt32, pl.Float32} & set(result.tiers.dtypes)


def test_what_was_not_recorded_is_said(trace: kv.Trace) -> None:
    result = kv.replay(trace, [kv.Tier("a", capacity=4)])
    for name in ("requests", "events"):
        with pytest.raises(kv.ConfigError) as caught:
            getattr(result, name)
        assert "=True" in caught.value.hint
    with pytest.raises(kv.ConfigError, match="unknown tier"):
        result.content("b")


def test_warm_columns_of_the_tiers(trace: kv.Trace) -> None:
    row = kv.replay(trace, [kv.Tier("a", capacity=9)], warmup=0.5).tiers.row(0, named=True)
    hits = [hit_tokens(h, one) for h, one in zip(single.lru_hits(PATHS, 9), ROWS, strict=True)]
    assert row["hit_tokens"] == sum(hits)
    assert row["warm_hit_tokens"] == sum(hits[3:])
    assert row["warm_tier_share"] == sum(hits[3:]) / sum(one["input_length"] for one in ROWS[3:])


def test_object_mode(trace: kv.Trace) -> None:
    result = kv.replay(trace, [kv.Tier("a", capacity=9)], mode="object", per_request=True)
    assert "usable_hit_blocks" in result.tiers.columns
    assert any(name.startswith("usable_hit_blocks") for name in result.requests.columns)


def test_engine_rules(trace: kv.Trace) -> None:
    plain = kv.replay(trace, [kv.Tier("a", capacity=99)], per_request=True).requests
    last = kv.replay(trace, [kv.Tier("a", capacity=99)], per_request=True, last_token=True).requests
    bound = [(row["input_length"] - 1) // 16 for row in ROWS]
    assert last["hit_blocks_a"].to_list() == [
        min(h, b) for h, b in zip(plain["hit_blocks_a"], bound, strict=True)
    ]
    full = kv.replay(trace, [kv.Tier("a", capacity=99)], per_request=True, full_blocks_only=True).requests
    assert (full["hit_tokens_a"] % 16 == 0).all()


@pytest.mark.parametrize(
    "arguments",
    [
        {"capacity": "5000"},
        {"capacity": 0},
        {"capacity": 5, "touch": "twice"},
        {"capacity": 5, "closure": "half"},
        {"capacity": 5, "chunk_blocks": 0},
        {"capacity": 5, "chunk_blocks": True},
        {"capacity": 5, "policy": 7},
        {"name": "", "capacity": 5},
        {"name": "a b", "capacity": 5},
        {"name": "x" * 65, "capacity": 5},
    ],
)
def test_tiers_that_cannot_be(arguments: dict[str, Any]) -> None:
    with pytest.raises(kv.ConfigError) as caught:
        kv.Tier(**({"name": "a"} | arguments))
    assert caught.value.hint


@pytest.mark.parametrize(
    "tiers",
    [
        [],
        ["gpu"],
        [kv.Tier("a", capacity=4), kv.Tier("a", capacity=4)],
        [kv.Tier("a", capacity="4GiB")],
        [kv.Tier("a", capacity=4, policy="no_such")],
        [kv.Tier("a", capacity=4, policy="lru(")],
        [kv.Tier("a", capacity=4, admission="no_such")],
        [kv.Tier("a", capacity=4), kv.Tier("b", capacity=4, fill="no_such")],
        [kv.Tier("a", capacity=4, chunk_blocks=5)],
        [kv.Tier("a", capacity=4, admission="min_count(2)"), kv.Tier("b", capacity=4)],
    ],
    ids=str,
)
def test_replays_that_cannot_be(trace: kv.Trace, tiers: list[kv.Tier]) -> None:
    with pytest.raises(kv.ConfigError) as caught:
        kv.replay(trace, tiers)
    assert caught.value.hint


def test_a_wrong_mode(trace: kv.Trace) -> None:
    with pytest.raises(kv.ConfigError, match="unknown mode"):
        kv.replay(trace, [kv.Tier("a", capacity=4)], mode="both")


def test_events_that_would_not_fit(trace: kv.Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvreplay.memory.available_bytes", lambda: 1000)
    with pytest.raises(kv.ConfigError, match="events of this replay would take") as caught:
        kv.replay(trace, [kv.Tier("a", capacity=4)], events=True)
    assert "leave events out" in caught.value.hint


def test_generating_refuses_nonsense() -> None:
    for arguments in (
        {"requests": 0},
        {"requests": 2.5},
        {"requests": 5, "seed": -1},
        {"requests": 5, "block_tokens": 0},
        {"requests": 5, "no_such": 1},
        {"requests": 5, "turns": "many"},
        {"requests": 5, "turns": float("nan")},
    ):
        with pytest.raises(kv.ConfigError) as caught:
            kv.generate("multi_turn", **arguments)
        assert caught.value.hint


@pytest.mark.parametrize(
    ("registry", "columns"),
    [
        (kv.formats, "name doc example source"),
        (kv.generators, "name doc parameters source"),
        (kv.policies, "name doc parameters source"),
        (kv.admissions, "name doc parameters source"),
        (kv.fill_rules, "name doc parameters source"),
        (kv.quality_codes, "code severity message hint"),
    ],
)
def test_registries(registry: Any, columns: str) -> None:
    table = registry()
    assert table.columns == columns.split()
    assert table.height > 0
    assert table.to_series(0).n_unique() == table.height
    assert (table.to_series(1).str.len_chars() > 3).all()
