"""What can be done with a trace: write it, cut it down, look at it."""

from __future__ import annotations

import gzip
import io
import json
import threading
from typing import TYPE_CHECKING

import polars as pl
import pyarrow.parquet as pq
import pytest
from tests.oracle.forest import rows_of, write_jsonl

import kvreplay as kv

if TYPE_CHECKING:
    from pathlib import Path


def test_native_files(chats: kv.Trace, tmp_path: Path) -> None:
    for name in ("a.parquet", "b.parquet"):
        chats.write(tmp_path / name)
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    again = kv.read_trace(tmp_path / "a.parquet")
    assert again.info == chats.info | {"format": "native"}
    assert again.requests().equals(chats.requests())
    assert again.quality.equals(chats.quality)
    assert kv.reuse_runs(again).equals(kv.reuse_runs(chats))
    assert [again.blocks(r) for r in range(0, 300, 37)] == [chats.blocks(r) for r in range(0, 300, 37)]
    metadata = {
        key.decode(): value.decode() for key, value in pq.read_schema(tmp_path / "a.parquet").metadata.items()
    }
    assert metadata["kvreplay.schema"] == "trace/1"
    assert metadata["kvreplay.trace_sha256"] == chats.info["sha256"]
    assert metadata["kvreplay.version"] == kv.__version__


def test_native_files_keep_texts_and_large_ids(tmp_path: Path) -> None:
    rows = rows_of([[1, 2], [1, 2, 3]])
    for at, row in enumerate(rows):
        row["hash_ids"] = [f"sha256:{i:064x}" if i > 1 else 2**64 - i for i in row["hash_ids"]]
        row["session_id"] = f"s{at}"
    trace = kv.read_trace(write_jsonl(tmp_path / "t.jsonl", rows), block_tokens=16)
    trace.write(tmp_path / "t.parquet")
    again = kv.read_trace(tmp_path / "t.parquet")
    assert [again.blocks(0), again.blocks(1)] == [trace.blocks(0), trace.blocks(1)]
    assert again.info["sha256"] == trace.info["sha256"]


def test_native_options_that_were_settled_already(chats: kv.Trace, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    chats.write(path)
    assert len(kv.read_trace(path, block_tokens=16, tail="ceil", format="native")) == 300
    for options in ({"block_tokens": 32}, {"tail": "floor"}, {"scope": "local"}, {"columns": {"time": "x"}}):
        with pytest.raises(kv.ConfigError):
            kv.read_trace(path, **options)
    with pytest.raises(kv.ConfigError, match="cannot be joined"):
        kv.read_trace([path, path])


def test_damaged_native_files_never_crash(chats: kv.Trace, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    chats.write(path)
    table = pq.read_table(path)
    metadata = dict(table.schema.metadata)
    damaged = {
        "later": metadata | {b"kvreplay.schema": b"trace/2"},
        "a result": metadata | {b"kvreplay.schema": b"tiers/1"},
        "no json": metadata | {b"kvreplay.trace": b"{"},
        "other json": metadata | {b"kvreplay.trace": b"[1, 2]"},
        "empty json": metadata | {b"kvreplay.trace": b"{}"},
    }
    for what, wrong in damaged.items():
        pq.write_table(table.replace_schema_metadata(wrong), path)
        with pytest.raises(kv.TraceError) as caught:
            kv.read_trace(path)
        assert caught.value.hint, what
    optional = {"arrival_us", "group.session"}
    for name in set(table.column_names) - optional:
        pq.write_table(table.drop_columns([name]), path)
        with pytest.raises(kv.TraceError):
            kv.read_trace(path)
    pq.write_table(table.slice(150), path)
    with pytest.raises(kv.TraceError):
        kv.read_trace(path)
    pq.write_table(table.slice(0, 150), path)
    assert kv.read_trace(path).info["sha256"] != chats.info["sha256"], "the digest is of what was read"


def test_mooncake_files(tmp_path: Path) -> None:
    rows = rows_of([[1, 2, 3], [1, 2, 4], [9]])
    trace = kv.read_trace(write_jsonl(tmp_path / "t.jsonl", rows), block_tokens=16)
    trace.write(tmp_path / "out.jsonl", format="mooncake")
    trace.write(tmp_path / "out.jsonl.gz", format="mooncake")
    text = (tmp_path / "out.jsonl").read_bytes()
    assert [json.loads(line) for line in text.splitlines()] == rows
    packed = (tmp_path / "out.jsonl.gz").read_bytes()
    assert gzip.decompress(packed) == text
    assert packed[4:8] == bytes(4), "the time is not part of the file"


def test_existing_files_and_wrong_formats(chats: kv.Trace, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("old")
    with pytest.raises(kv.ConfigError, match="exists already"):
        chats.write(tmp_path / "x", overwrite=False)
    with pytest.raises(kv.ConfigError, match="unknown output format"):
        chats.write(tmp_path / "x", format="csv")
    assert (tmp_path / "x").read_text() == "old"


def test_select_keeps_whole_requests(chats: kv.Trace) -> None:
    part = chats.select(pl.col("request") % 3 == 0)
    assert part.info["requests"] == 100
    assert [part.blocks(i) for i in range(100)] == [chats.blocks(3 * i) for i in range(100)]
    assert (
        part.requests()
        .drop("request")
        .equals(chats.requests().filter(pl.col("request") % 3 == 0).drop("request"))
    )
    for wrong in (pl.col("no_such") > 1, pl.col("request") < 0):
        with pytest.raises(kv.ConfigError) as caught:
            chats.select(wrong)
        assert caught.value.hint


def test_sampling_keeps_whole_sessions(chats: kv.Trace) -> None:
    half = chats.sample_sessions(0.5, seed=3)
    assert half.requests().equals(chats.sample_sessions(0.5, seed=3).requests())
    assert not half.requests().equals(chats.sample_sessions(0.5, seed=4).requests())
    sizes = dict(chats.requests().group_by("session").len().iter_rows())
    kept = dict(half.requests().group_by("session").len().iter_rows())
    assert 0 < len(kept) < len(sizes)
    assert kept == {name: sizes[name] for name in kept}
    smaller = chats.sample_sessions(0.2, seed=3).requests()["session"].unique().to_list()
    assert set(smaller) <= set(kept)
    assert len(chats.sample_sessions(1.0)) == 300
    for fraction in (0, 1.5, -1):
        with pytest.raises(kv.ConfigError):
            chats.sample_sessions(fraction)
    with pytest.raises(kv.ConfigError, match="no session"):
        kv.generate("cyclic_scan", requests=5).sample_sessions(0.5)


def test_a_trace_is_shared_between_threads(chats: kv.Trace) -> None:
    want = kv.hit_curve(chats)
    found: list[bool] = []
    threads = [
        threading.Thread(target=lambda: found.append(kv.hit_curve(chats).equals(want))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4


def test_scanning(chats: kv.Trace, tmp_path: Path) -> None:
    chats.write(tmp_path / "a.parquet")
    for source in (chats, tmp_path / "a.parquet"):
        lazy = kv.scan_trace(source)
        assert isinstance(lazy, pl.LazyFrame)
        assert lazy.collect().equals(chats.requests())
        few = lazy.filter(pl.col("input_tokens") > 1000).select("request").head(5).collect()
        want = chats.requests().filter(pl.col("input_tokens") > 1000).select("request").head(5)
        assert few.equals(want)
    with pytest.raises((kv.TraceError, pl.exceptions.ComputeError), match="missing"):
        kv.scan_trace(tmp_path / "missing.jsonl").collect()


def test_what_a_trace_looks_like(chats: kv.Trace) -> None:
    info = chats.info
    assert repr(chats) == (
        f"<Trace 300 requests, {info['input_tokens']:,} input tokens, "
        f"{info['unique_blocks']:,} blocks of 16 tokens>"
    )
    assert list(chats.requests().columns)[:5] == [
        "request",
        "arrival_us",
        "input_tokens",
        "output_tokens",
        "blocks",
    ]
    assert set(chats.requests().schema.values()) == {pl.Int64(), pl.String()}


def test_a_bytes_buffer_of_a_native_file(chats: kv.Trace, tmp_path: Path) -> None:
    chats.write(tmp_path / "a.parquet")
    assert len(kv.read_trace(io.BytesIO((tmp_path / "a.parquet").read_bytes()))) == 300
