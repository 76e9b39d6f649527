"""Output ids (``output_hash_ids``): kept wherever a trace goes, and no part of any number."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import kvreplay as kv

if TYPE_CHECKING:
    from pathlib import Path

ROWS: list[dict[str, Any]] = [
    {
        "timestamp": 0,
        "input_length": 40,
        "hash_ids": [1, 2, 3],
        "output_hash_ids": [7, "x"],
        "session_id": "a",
    },
    {"timestamp": 1, "input_length": 16, "hash_ids": [1], "session_id": "b"},
    {"timestamp": 2, "input_length": 70, "hash_ids": [1, 2, 7, "x", 9], "output_hash_ids": [2**64 - 1]},
]
LISTED = [[7, "x"], [], [2**64 - 1]]


def read(rows: list[dict[str, Any]], **options: Any) -> kv.Trace:
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    return kv.read_trace(io.BytesIO(data), block_tokens=16, **options)


def listed(trace: kv.Trace) -> list[list[int | str]]:
    return [trace.output_blocks(request) for request in range(len(trace))]


@pytest.fixture
def trace() -> kv.Trace:
    return read(ROWS)


def test_they_change_no_number(trace: kv.Trace) -> None:
    plain = read([{k: v for k, v in row.items() if k != "output_hash_ids"} for row in ROWS])
    assert listed(trace) == LISTED
    assert listed(plain) == [[], [], []]
    assert {k for k, v in trace.info.items() if v != plain.info[k]} == {"sha256"}
    assert [trace.blocks(r) for r in range(3)] == [plain.blocks(r) for r in range(3)]
    assert kv.ratios(trace).equals(kv.ratios(plain))
    assert kv.hit_curve(trace).equals(kv.hit_curve(plain))
    assert trace.requests()["output_blocks"].to_list() == [2, 0, 1]
    assert trace.requests().drop("output_blocks").equals(plain.requests())
    assert kv.scan_trace(trace).select("output_blocks").collect().to_series().to_list() == [2, 0, 1]
    with pytest.raises(IndexError):
        trace.output_blocks(3)


@pytest.mark.parametrize(
    ("name", "kind"), [("a.parquet", "native"), ("b.parquet", "parquet"), ("c.jsonl", "mooncake")]
)
def test_files_keep_them(trace: kv.Trace, tmp_path: Path, name: str, kind: str) -> None:
    trace.write(tmp_path / name, format=kind)
    again = kv.read_trace(tmp_path / name)
    assert listed(again) == LISTED
    assert again.info["sha256"] == trace.info["sha256"]
    assert again.requests().equals(trace.requests())


def test_native_files_keep_plain_numbers_and_namespaces(tmp_path: Path) -> None:
    rows = [
        {"input_length": 5, "hash_ids": [], "model": model, "output_hash_ids": [at]}
        for at, model in enumerate("abb")
    ]
    numbers = read(rows)
    numbers.write(tmp_path / "t.parquet")
    again = kv.read_trace(tmp_path / "t.parquet")
    assert listed(again) == [[0], [1], [2]]
    assert again.info["sha256"] == numbers.info["sha256"]
    columns = pl.read_parquet_schema(tmp_path / "t.parquet")
    assert "output_is_text" not in columns
    assert columns["output_namespace"] == pl.UInt32


def test_tables_and_other_names(trace: kv.Trace) -> None:
    frame = pl.DataFrame(
        {
            "timestamp": [0, 1, 2],
            "input_length": [40, 16, 70],
            "hash_ids": [["1", "2", "3"], ["1"], ["1", "2", "7", "x", "9"]],
            "decoded": [["7", "x"], None, [str(2**64 - 1)]],
            "session_id": ["a", "b", None],
        }
    )
    columns = {"output_hash_ids": "decoded"}
    assert kv.read_trace(frame, block_tokens=16, columns=columns).info["sha256"] == trace.info["sha256"]
    array = json.dumps(ROWS, indent=1).encode()
    assert kv.read_trace(io.BytesIO(array), block_tokens=16).info["sha256"] == trace.info["sha256"]


def test_cuts_and_anonymized_traces(trace: kv.Trace) -> None:
    assert listed(trace.select(pl.col("request") != 1)) == [LISTED[0], LISTED[2]]
    assert "output_blocks" not in trace.select(pl.col("request") == 1).requests().columns
    assert listed(trace.spread_ties()) == LISTED
    hidden = trace.anonymize()
    # Numbered as requests list them: 1 2 3, then 7 x, then the third prompt's 9 and its output.
    assert [hidden.blocks(r) for r in range(3)] == [[0, 1, 2], [0], [0, 1, 3, 4, 5]]
    assert listed(hidden) == [[3, 4], [], [6]]
