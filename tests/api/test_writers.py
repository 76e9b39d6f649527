"""Traces out: every format, and what comes back."""

from __future__ import annotations

import gzip
import io
import json
import struct
from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given, settings, strategies as st
from tests.oracle.forest import rows_of, write_jsonl

import kvreplay as kv

if TYPE_CHECKING:
    from pathlib import Path

BLOCK = 16


def text(trace: kv.Trace, **options: Any) -> str:
    out = io.BytesIO()
    trace.write_rows(out, **options)
    return out.getvalue().decode()


def same(a: kv.Trace, b: kv.Trace) -> None:
    """Two traces hold the same requests in the same namespaces."""
    assert a.info["sha256"] == b.info["sha256"]
    assert a.requests().equals(b.requests())
    assert [a.blocks(r) for r in range(len(a))] == [b.blocks(r) for r in range(len(b))]
    assert kv.ceiling(a).equals(kv.ceiling(b))


@st.composite
def traces(draw: st.DrawFn) -> kv.Trace:
    """Small traces with sessions, models, texts, times or none, of one block size or two."""
    texts, timed, mixed = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    rows: list[dict[str, Any]] = []
    for at in range(draw(st.integers(1, 12))):
        path = draw(st.lists(st.integers(0, 3), max_size=6))
        ids = [hash(tuple(path[: i + 1])) % 2**64 if i else path[0] for i in range(len(path))]
        row: dict[str, Any] = {
            "hash_ids": [f"h{i}" for i in ids] if texts else ids,
            "input_length": max(0, len(path) * BLOCK - draw(st.integers(0, BLOCK - 1))) if path else 5,
            "block_size": draw(st.sampled_from([BLOCK, 4 * BLOCK])) if mixed else BLOCK,
        }
        if row["block_size"] != BLOCK and path:
            row["input_length"] = len(path) * row["block_size"]
        if timed:
            row["timestamp_us"] = draw(st.integers(0, 10**7)) + 1_700_000_000_000_000
        if draw(st.booleans()):
            row["output_length"] = draw(st.integers(0, 50))
        for name, choices in (("session", "ab\u00e9"), ("model", "mn"), ("who", ['x"y', "z\\", "\u4e2d"])):
            if draw(st.booleans()):
                row[name] = draw(st.sampled_from(list(choices)))
        row["request_id"] = f"r{at}"
        rows.append(row)
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    return kv.read_trace(io.BytesIO(data), format="mooncake", tail="ceil")


@settings(max_examples=25)
@given(traces())
def test_what_keeps_everything_reads_back_equal(
    tmp_path_factory: pytest.TempPathFactory, trace: kv.Trace
) -> None:
    folder = tmp_path_factory.mktemp("there")
    for name, kind in (
        ("a.parquet", "native"),
        ("b.parquet", "parquet"),
        ("c.jsonl", "mooncake"),
        ("d.jsonl.zst", "mooncake"),
    ):
        trace.write(folder / name, format=kind)
        same(kv.read_trace(folder / name, tail="auto" if kind == "native" else "ceil"), trace)


@settings(max_examples=60)
@given(trace=traces(), shift=st.booleans())
def test_anonymized_traces_hit_the_same(*, trace: kv.Trace, shift: bool) -> None:
    hidden = trace.anonymize(shift_times=shift)
    assert kv.ceiling(hidden).equals(kv.ceiling(trace))
    tiers = [kv.Tier("gpu", capacity=3), kv.Tier("cpu", capacity=4, policy="s3fifo", fill="victim")]
    results = [kv.replay(one, tiers, per_request=True) for one in (trace, hidden)]
    assert results[0].requests.equals(results[1].requests)
    seen: list[int] = []
    for request in range(len(hidden)):
        seen += [block for block in hidden.blocks(request) if isinstance(block, int) and block not in seen]
    assert seen == list(range(hidden.info["unique_blocks"]))
    again = kv.read_trace(io.BytesIO(text(hidden).encode()), tail="ceil")
    assert kv.ceiling(again).equals(kv.ceiling(trace))
    assert again.anonymize(shift_times=shift).info["sha256"] == hidden.info["sha256"]


def test_anonymizing_leaves_no_name(tmp_path: Path) -> None:
    rows = [
        {
            "timestamp": 5_000 + at,
            "input_length": 32,
            "hash_ids": ["sha256:aa", f"sha256:b{at % 2}"],
            "session_id": f"secret-{at % 2}",
            "tenant": "secret-corp",
            "model": None if at == 1 else "secret-model",
            "request_id": f"secret-r{at}",
            "secret-column": "secret",
            "turn": at,
            "ttft": "secret",
        }
        for at in range(4)
    ]
    rows += [dict(rows[3])]
    trace = kv.read_trace(write_jsonl(tmp_path / "secret.jsonl", rows), block_tokens=16)
    assert "secret" in trace.quality.write_json()
    hidden = trace.anonymize(shift_times=True)
    hidden.write(tmp_path / "t.parquet")
    assert b"secret" not in (tmp_path / "t.parquet").read_bytes()
    for shown in (text(hidden), hidden.quality.write_json(), str(hidden.info), repr(hidden)):
        assert "secret" not in shown
    assert hidden.requests().columns[5:] == ["session", "turn", "tenant", "model"]
    assert hidden.requests().select("arrival_us", "session", "tenant", "model", "turn").rows() == [
        (0, "s1", "t1", "m1", "0"),
        (1_000, "s2", "t1", None, "1"),
        (2_000, "s1", "t1", "m1", "2"),
        (3_000, "s2", "t1", "m1", "3"),
        (3_000, "s2", "t1", "m1", "3"),
    ]
    # Models are namespaces: equal ids below two of them were two blocks, and still are.
    assert [hidden.blocks(r) for r in range(5)] == [[0, 1], [2, 3], [0, 1], [0, 4], [0, 4]]
    assert hidden.quality["code"].to_list() == trace.quality["code"].to_list()
    assert trace.anonymize().requests()["arrival_us"][0] == 5_000_000


def test_parents_that_name_sessions_stay(tmp_path: Path) -> None:
    pairs = [("main", None), ("helper", "main"), ("main", "elsewhere"), ("deep", "helper")]
    rows = [
        {"timestamp": at, "input_length": 16, "hash_ids": [1], "session": session, "parent": parent}
        for at, (session, parent) in enumerate(pairs)
    ]
    hidden = kv.read_trace(write_jsonl(tmp_path / "t.jsonl", rows), block_tokens=16).anonymize()
    want = [("s1", None), ("s2", "s1"), ("s1", None), ("s3", "s2")]
    assert hidden.requests().select("session", "parent").rows() == want
    for at, row in enumerate(rows):
        row["request_id"] = f"r{at}"
    named = kv.read_trace(write_jsonl(tmp_path / "t.jsonl", rows), block_tokens=16).anonymize()
    assert named.requests().columns[5:] == ["session"]


def test_plain_parquet_is_plain(chats: kv.Trace, tmp_path: Path) -> None:
    chats.write(tmp_path / "t.parquet", format="parquet")
    table = pq.read_table(tmp_path / "t.parquet")
    assert table.schema.field("hash_ids").type == pa.list_(pa.field("element", pa.uint64(), nullable=False))
    assert table.column_names == [
        "arrival_us",
        "input_tokens",
        "output_tokens",
        "block_tokens",
        "session",
        "hash_ids",
    ]
    frame = pl.read_parquet(tmp_path / "t.parquet")
    assert frame["hash_ids"].to_list() == [chats.blocks(r) for r in range(len(chats))]
    assert frame["input_tokens"].equals(chats.requests()["input_tokens"])
    same(kv.read_trace(tmp_path / "t.parquet"), chats)
    before = (tmp_path / "t.parquet").read_bytes()
    chats.write(tmp_path / "t.parquet", format="parquet")
    assert (tmp_path / "t.parquet").read_bytes() == before


def test_local_ids_stay_local(tmp_path: Path) -> None:
    rows = [{"timestamp": t, "input_length": 32, "hash_ids": [1, 2], "who": "a"} for t in (0, 5)]
    paths = [write_jsonl(tmp_path / f"{t}.jsonl", [row]) for t, row in enumerate(rows)]
    trace = kv.read_trace(paths, block_tokens=16, scope="local")
    assert trace.info["unique_blocks"] == 4
    for name, kind in (("t.parquet", "parquet"), ("t.jsonl", "mooncake"), ("n.parquet", "native")):
        trace.write(tmp_path / name, format=kind)
        again = kv.read_trace(tmp_path / name)
        assert (again.info["unique_blocks"], again.info["namespaces"]) == (4, 2)
        assert kv.ceiling(again).equals(kv.ceiling(trace))


def test_packed_files(chats: kv.Trace, tmp_path: Path) -> None:
    plain = text(chats).encode()
    chats.write(tmp_path / "t.jsonl.gz", format="mooncake")
    chats.write(tmp_path / "t.jsonl.zst", format="mooncake")
    packed = (tmp_path / "t.jsonl.gz").read_bytes()
    assert gzip.decompress(packed) == plain
    assert packed[3:8] == bytes(5), "neither name nor time"
    with zstandard.open(tmp_path / "t.jsonl.zst", "rb") as file:
        assert file.read() == plain


def test_a_block_size_is_stated_where_it_does_not_show(tmp_path: Path) -> None:
    shows = kv.read_trace(write_jsonl(tmp_path / "a.jsonl", rows_of([[1, 2], [1, 2, 3]])), block_tokens=16)
    hides = kv.read_trace(
        write_jsonl(tmp_path / "b.jsonl", [{"input_length": 5, "hash_ids": [1]}]), block_tokens=48
    )
    assert "block_size" not in text(shows)
    assert text(hides) == '{"input_length": 5, "block_size": 48, "hash_ids": [1]}\n'
    assert kv.read_trace(io.BytesIO(text(hides).encode())).info["block_tokens"] == 48


CHATS = (
    '{"chat_id": 7, "parent_chat_id": -1, "timestamp": 61.114, "input_length": 20, "output_length": 3, '
    '"type": "text", "turn": 1, "hash_ids": [10, 11]}\n'
    '{"chat_id": 9, "parent_chat_id": 7, "timestamp": 62.0, "input_length": 40, '
    '"type": "image", "turn": 2, "hash_ids": [10, 12, 13]}\n'
    '{"chat_id": 5, "parent_chat_id": 2, "timestamp": 62.5, "input_length": 9, "output_length": 0, '
    '"type": "text", "turn": 4, "hash_ids": [14]}\n'
)


def test_bailian_there_and_back() -> None:
    trace = kv.read_trace(io.BytesIO(CHATS.encode()), format="bailian")
    assert text(trace, format="bailian") == CHATS
    same(kv.read_trace(io.BytesIO(text(trace, format="bailian").encode())), trace)


def test_sessions_become_chats(tmp_path: Path) -> None:
    rows = [
        {"timestamp": 500 * at, "input_length": 16, "hash_ids": [at], "session_id": name}
        for at, name in enumerate(["a", "b", "a", None, "a"])
    ]
    trace = kv.read_trace(write_jsonl(tmp_path / "t.jsonl", rows), block_tokens=16)
    out = [json.loads(line) for line in text(trace, format="bailian").splitlines()]
    assert [(r["chat_id"], r["parent_chat_id"], r["turn"], r["timestamp"], r["type"]) for r in out] == [
        (0, -1, 1, 0.0, "text"),
        (1, -1, 1, 0.5, "text"),
        (2, 0, 2, 1.0, "text"),
        (3, -1, 1, 1.5, "text"),
        (4, 2, 3, 2.0, "text"),
    ]
    again = kv.read_trace(io.BytesIO(text(trace, format="bailian").encode()), format="bailian")
    assert again.requests()["session"].to_list() == ["0", "1", "0", "3", "0"]


@settings(max_examples=60)
@given(st.lists(st.lists(st.integers(0, 2), max_size=5), min_size=1, max_size=12))
def test_oracle_general_against_the_obvious(paths: list[list[int]]) -> None:
    chained = [[sum((v + 1) * 4**i for i, v in enumerate(p[: n + 1])) for n in range(len(p))] for p in paths]
    rows = rows_of(chained, block_tokens=BLOCK)
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    trace = kv.read_trace(io.BytesIO(data), block_tokens=BLOCK)
    out = io.BytesIO()
    trace.write_rows(out, format="oracle-general")
    refs = [(row["timestamp"] // 1000, i) for row in rows for i in row["hash_ids"]]
    want = b""
    for at, (seconds, block) in enumerate(refs):
        later = [i for i in range(at + 1, len(refs)) if refs[i][1] == block]
        want += struct.pack("<IQIq", seconds, block, BLOCK, later[0] if later else -1)
    assert out.getvalue() == want


def test_oracle_general_is_read_back_block_by_block(chats: kv.Trace, tmp_path: Path) -> None:
    chats.write(tmp_path / "t.bin", format="oracle_general")
    again = kv.read_trace(tmp_path / "t.bin", format="oracle_general")
    refs = [block for request in range(len(chats)) for block in chats.blocks(request)]
    assert [again.blocks(r) for r in range(len(again))] == [[block] for block in refs]
    assert again.info["unique_blocks"] == chats.info["unique_blocks"]


@pytest.mark.parametrize(
    ("row", "format", "says"),
    [
        ({"hash_ids": ["x", "y"]}, "bailian", "some ids are texts"),
        ({"hash_ids": ["x", "y"]}, "oracle_general", "some ids are texts"),
        ({"model": "b"}, "bailian", "namespaces"),
        ({"model": "b"}, "oracle_general", "namespaces"),
        ({"hash_ids": [2, 1]}, "bailian", "two parents"),
        ({"hash_ids": [1, 1]}, "oracle_general", "come twice"),
        ({"block_size": 32}, "bailian", "blocks of 16 tokens, this trace of 32"),
        ({"timestamp": -9_000}, "oracle_general", "does not fit"),
    ],
)
def test_what_a_format_cannot_hold_is_refused(
    tmp_path: Path, row: dict[str, Any], format: str, says: str
) -> None:
    base = {"timestamp": 0, "input_length": 32, "hash_ids": [1, 2], "model": "a", "block_size": 16}
    path = write_jsonl(tmp_path / "t.jsonl", [base, base | row])
    trace = kv.read_trace(path)
    with pytest.raises(kv.ConfigError, match=says) as caught:
        trace.write(tmp_path / "out", format=format)
    assert caught.value.hint
    assert [path.name for path in tmp_path.iterdir()] == ["t.jsonl"]
    if "ids" in says or "namespaces" in says or "twice" in says:
        trace.anonymize().write(tmp_path / "out", format=format)
        assert (tmp_path / "out").exists()


def test_no_times_no_bailian(tmp_path: Path) -> None:
    trace = kv.read_trace(
        write_jsonl(tmp_path / "t.jsonl", [{"input_length": 5, "hash_ids": [1]}]), block_tokens=16
    )
    with pytest.raises(kv.ConfigError, match="needs times"):
        text(trace, format="bailian")
    out = io.BytesIO()
    trace.write_rows(out, format="oracle_general")
    assert out.getvalue() == struct.pack("<IQIq", 0, 1, 16, -1)


def test_writers_are_listed() -> None:
    writers = kv.writers()
    assert writers.columns == ["name", "doc", "loses", "source"]
    assert writers["name"].to_list() == ["native", "mooncake", "bailian", "oracle_general", "parquet"]


def test_columns_that_mean_something_else_are_not_written() -> None:
    frame = pl.DataFrame(
        {"at_us": [0, 9], "timestamp": ["x", "y"], "input_tokens": [16, 16], "hash_ids": [[1], [1]]}
    )
    trace = kv.read_trace(frame, columns={"time": "at_us"}, block_tokens=16)
    assert text(trace).count("timestamp") == 2
    assert kv.read_trace(io.BytesIO(text(trace).encode())).requests()["arrival_us"].to_list() == [0, 9]


def _said(said: list[tuple[str, int, int]], what: str, done: int, total: int) -> None:
    said.append((what, done, total))


def test_progress_of_writing(chats: kv.Trace, tmp_path: Path) -> None:
    for kind in ("mooncake", "parquet"):
        said: list[tuple[str, int, int]] = []
        hook = partial(_said, said)
        chats.write(tmp_path / kind, format=kind, progress=hook)
        assert said[-1] == ("writing", -1, 0)
        assert {what for what, _, _ in said} == {"writing"}


def test_ties_are_spread(tmp_path: Path) -> None:
    rows = [{"timestamp": t, "input_length": 16, "hash_ids": [1]} for t in (0, 0, 0, 9, 20, 20)]
    trace = kv.read_trace(write_jsonl(tmp_path / "t.jsonl", rows), block_tokens=16)
    spread = trace.spread_ties()
    assert spread.requests()["arrival_us"].to_list() == [0, 3_000, 6_000, 9_000, 20_000, 25_500]
    assert kv.ceiling(spread).equals(kv.ceiling(trace))
    ties = spread.quality.filter(code="time_ties")
    assert "spread" in ties["message"].item()
    assert trace.requests()["arrival_us"].to_list()[:3] == [0, 0, 0]


def test_cuts_say_what_they_did(chats: kv.Trace) -> None:
    half = chats.sample_sessions(0.5, seed=3)
    cut = half.cuts[0]
    assert chats.cuts == ()
    assert (cut.what, cut.sessions_cut) == ("sample_sessions 0.5 seed 3", 0)
    for trace, side in ((chats, cut.before), (half, cut.after)):
        ratio = kv.ratios(trace).filter(name="token_hit_ratio")["value"].item()
        info = trace.info
        assert (side.requests, side.block_refs) == (info["requests"], info["block_refs"])
        assert (side.unique_blocks, side.ceiling_token_hit_ratio) == (info["unique_blocks"], ratio)
    few = half.select(pl.col("request") < 20)
    assert [one.what.split()[0] for one in few.cuts] == ["sample_sessions", "select"]
    assert few.anonymize().cuts == few.cuts
    sessions = half.requests()["session"]
    split = set(sessions[:20]) & set(sessions[20:])
    assert few.cuts[1].sessions_cut == len(split) > 0
    assert "lost some of their requests" in str(few.cuts[1])
    whole = half.select(pl.col("request") < 20, whole_sessions=True)
    assert whole.cuts[1].sessions_cut == 0
    assert whole.requests().height == sessions.is_in(sessions[:20].unique().to_list()).sum()


def test_whole_sessions_need_sessions() -> None:
    trace = kv.generate("unique", requests=5, seed=1)
    with pytest.raises(kv.ConfigError, match="no session column"):
        trace.select(pl.col("request") < 3, whole_sessions=True)
    assert trace.select(pl.col("request") < 3).cuts[0].sessions_cut is None
