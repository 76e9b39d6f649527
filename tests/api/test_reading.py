"""Every kind of source gives the same trace, or one clear error."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pytest
import zstandard
from tests.oracle.forest import rows_of, write_jsonl

import kvreplay as kv

if TYPE_CHECKING:
    from pathlib import Path

PATHS = [[1, 2, 3], [1, 2, 4], [9, 10], [1, 2, 3, 5], [9, 10, 11], [2**64 - 1, 2**63]]
ROWS = rows_of(PATHS)
SCHEMA: dict[str, Any] = {
    "timestamp": pl.Int64,
    "input_length": pl.Int64,
    "output_length": pl.Int64,
    "hash_ids": pl.List(pl.UInt64),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "t.jsonl", ROWS)


@pytest.fixture
def trace(path: Path) -> kv.Trace:
    return kv.read_trace(path, block_tokens=16)


def same(one: kv.Trace, other: kv.Trace) -> bool:
    return (
        one.info["sha256"] == other.info["sha256"]
        and one.requests().equals(other.requests())
        and kv.hit_curve(one).equals(kv.hit_curve(other))
    )


def test_facts(trace: kv.Trace) -> None:
    info = trace.info
    assert (info["requests"], info["block_refs"], info["unique_blocks"]) == (6, 17, 10)
    assert info["input_tokens"] == sum(row["input_length"] for row in ROWS)
    assert [trace.blocks(i) for i in range(len(trace))] == PATHS
    for request in (-1, 6):
        with pytest.raises(IndexError):
            trace.blocks(request)


def test_packed_files(trace: kv.Trace, path: Path) -> None:
    text = path.read_bytes()
    half = len(text) // 2
    packs = {
        "a.gz": gzip.compress(text[:half]) + gzip.compress(text[half:]),
        "a.zst": zstandard.compress(text[:half]) + zstandard.compress(text[half:]),
        "looks_plain.jsonl": gzip.compress(text),
    }
    for name, data in packs.items():
        (path.parent / name).write_bytes(data)
        assert same(kv.read_trace(path.parent / name, block_tokens=16), trace)


def test_files_in_order(trace: kv.Trace, tmp_path: Path) -> None:
    parts = [write_jsonl(tmp_path / f"{i}.jsonl", ROWS[i : i + 2]) for i in (0, 2, 4)]
    assert same(kv.read_trace(parts, block_tokens=16), trace)
    with pytest.raises(kv.ConfigError, match="empty"):
        kv.read_trace([])


def test_file_objects(trace: kv.Trace, path: Path) -> None:
    with path.open("rb") as file:
        assert same(kv.read_trace(file, block_tokens=16), trace)
    assert same(kv.read_trace(io.BytesIO(path.read_bytes()), block_tokens=16), trace)
    with pytest.raises(kv.ConfigError, match="text mode"), path.open() as text:
        kv.read_trace(text)


def test_an_object_that_can_only_be_read(trace: kv.Trace, path: Path) -> None:
    class Reader:
        def __init__(self) -> None:
            self.file = io.BytesIO(path.read_bytes())

        def read(self, size: int = -1) -> bytes:
            return self.file.read(size)

    assert same(kv.read_trace(Reader(), block_tokens=16), trace)


def test_a_failing_file_object_is_an_error_of_its_own(path: Path) -> None:
    class Failing(io.BytesIO):
        def read(self, _size: int | None = -1, /) -> bytes:
            raise OSError(5, "the cable was pulled")

        readinto = None  # type: ignore[assignment]

    with pytest.raises((kv.TraceError, OSError), match="cable"):
        kv.read_trace(Failing(path.read_bytes()))


def test_a_named_pipe(trace: kv.Trace, path: Path) -> None:
    pipe = path.parent / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["sh", "-c", f"cat '{path}' > '{pipe}'"]):
        assert same(kv.read_trace(pipe, block_tokens=16), trace)


def frames() -> dict[str, Any]:
    frame = pl.DataFrame(ROWS, schema=SCHEMA)
    table = frame.to_arrow()
    return {
        "polars": frame,
        "sliced": pl.concat([frame[:1], frame])[1:],
        "chunked": pl.concat([frame[:2], frame[2:]], rechunk=False),
        "lazy": frame.lazy(),
        "arrow": table,
        "batches": pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=2)),
    }


@pytest.mark.parametrize("name", list(frames()))
def test_rows_in_memory(trace: kv.Trace, name: str) -> None:
    assert same(kv.read_trace(frames()[name], block_tokens=16, time_unit="ms"), trace)


def test_parquet(trace: kv.Trace, tmp_path: Path) -> None:
    frame = pl.DataFrame(ROWS, schema=SCHEMA)
    frame.write_parquet(tmp_path / "a.parquet", row_group_size=2)
    assert same(kv.read_trace(tmp_path / "a.parquet", block_tokens=16, time_unit="ms"), trace)
    with (tmp_path / "a.parquet").open("rb") as file:
        assert same(kv.read_trace(file, block_tokens=16, time_unit="ms"), trace)
    frame[:3].write_parquet(tmp_path / "b.parquet")
    frame[3:].write_parquet(tmp_path / "c.parquet")
    both = [tmp_path / "b.parquet", tmp_path / "c.parquet"]
    assert same(kv.read_trace(both, block_tokens=16, time_unit="ms"), trace)
    frame.rename({"timestamp": "when"}).write_parquet(tmp_path / "d.parquet")
    columns = {"time": "when"}
    assert same(
        kv.read_trace(tmp_path / "d.parquet", block_tokens=16, time_unit="ms", columns=columns), trace
    )
    with pytest.raises(kv.TraceError, match="differ"):
        kv.read_trace([tmp_path / "b.parquet", tmp_path / "d.parquet"])


def test_what_is_not_a_trace_file(path: Path, tmp_path: Path) -> None:
    pl.DataFrame(ROWS, schema=SCHEMA).write_parquet(tmp_path / "a.parquet")
    data = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(data[: len(data) // 2])
    with pytest.raises(kv.TraceError, match="not a readable Parquet"):
        kv.read_trace(tmp_path / "cut.parquet")
    with pytest.raises(kv.ConfigError, match="Parquet and text"):
        kv.read_trace([path, tmp_path / "a.parquet"])
    with pytest.raises(kv.TraceError, match="directory") as caught:
        kv.read_trace(tmp_path)
    assert caught.value.hint
    with pytest.raises(kv.TraceError, match="cannot read from ftp://"):
        kv.read_trace("ftp://example.org/t.jsonl")
    with pytest.raises(kv.ConfigError, match="is empty"):
        kv.read_trace("")
    for wrong in (7, None, object()):
        with pytest.raises(kv.ConfigError, match="cannot read a trace from"):
            kv.read_trace(wrong)


@pytest.mark.parametrize(
    "options",
    [
        {"block_tokens": 0},
        {"block_tokens": "16"},
        {"block_tokens": True},
        {"tail": "round"},
        {"time_unit": "fortnight"},
        {"scope": "galactic"},
        {"format": "no_such"},
        {"columns": {"time": 7}},
        {"columns": {"no_such": "x"}},
    ],
)
def test_wrong_options(path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(kv.ConfigError) as caught:
        kv.read_trace(path, **options)
    assert caught.value.hint


def test_formats_that_do_not_fit(path: Path, tmp_path: Path) -> None:
    pl.DataFrame(ROWS, schema=SCHEMA).write_parquet(tmp_path / "a.parquet")
    for source, name in ((path, "native"), (path, "arrow"), (tmp_path / "a.parquet", "native")):
        with pytest.raises(kv.TraceError):
            kv.read_trace(source, format=name)


def test_standard_input(path: Path) -> None:
    code = "import kvreplay as kv; print(kv.read_trace('-', block_tokens=16).info['requests'])"
    with path.open("rb") as file:
        done = subprocess.run(
            [sys.executable, "-c", code], stdin=file, capture_output=True, text=True, check=True
        )
    assert done.stdout.strip() == "6"


def test_parquet_from_a_pipe(tmp_path: Path) -> None:
    pl.DataFrame(ROWS, schema=SCHEMA).write_parquet(tmp_path / "a.parquet")
    code = "import kvreplay as kv; print(kv.read_trace('-', time_unit='ms').info['requests'])"
    command = [sys.executable, "-c", code]
    with (tmp_path / "a.parquet").open("rb") as file:
        done = subprocess.run(command, stdin=file, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "6"
    data = (tmp_path / "a.parquet").read_bytes()
    piped = subprocess.run(command, input=data, capture_output=True, check=False)
    assert b"cannot be read from a pipe" in piped.stderr


def test_strict_stops_at_the_first_doubtful_row(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps(ROWS[0]) + "\n{oops\n" + json.dumps(ROWS[1]) + "\n")
    trace = kv.read_trace(path, block_tokens=16)
    assert (len(trace), trace.info["rejected_rows"]) == (2, 1)
    (found,) = trace.quality.filter(code="json_syntax").to_dicts()
    assert (found["severity"], found["count"], found["first_line"]) == ("error", 1, 2)
    with pytest.raises(kv.TraceError) as caught:
        kv.read_trace(path, block_tokens=16, strict=True)
    assert (caught.value.line, caught.value.code) == (2, "json_syntax")
    assert f"{path}:2" in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_importing_is_light() -> None:
    loaded = "sorted({'polars', 'pyarrow', 'rich'} & set(sys.modules))"
    code = f"import sys, kvreplay, kvreplay.cli.run; print({loaded})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_columns_of_nothing_but_missing_values() -> None:
    frame = pl.DataFrame(
        {"timestamp": [0, 1], "input_tokens": [16, 5], "hash_ids": [[1], []], "who": [None, None]}
    )
    empty = pl.DataFrame({"timestamp": [0], "input_tokens": [5], "hash_ids": [[]]})
    assert [frame.schema["who"], empty.schema["hash_ids"]] == [pl.Null(), pl.List(pl.Null)]
    assert kv.read_trace(frame, block_tokens=16).requests().columns[5:] == []
    assert kv.read_trace(empty, block_tokens=16).info["block_refs"] == 0
