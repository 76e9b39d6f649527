"""`kvreplay convert`, the options of reading that all commands share, lengths of recordings."""

from __future__ import annotations

import gzip
import inspect
import json
import re
from typing import TYPE_CHECKING

import polars as pl
import pytest
from tests.oracle.forest import write_jsonl

import kvreplay as kv
from kvreplay.cli import options
from kvreplay.cli.app import COMMANDS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Run

READERS = ("analyze", "inspect", "curve", "replay", "convert")


@pytest.mark.parametrize(
    ("name", "to", "format"),
    [
        ("t.parquet", None, "native"),
        ("t.jsonl", None, "mooncake"),
        ("t.jsonl.gz", None, "mooncake"),
        ("t.jsonl.zst", None, "mooncake"),
        ("t.bin", None, "oracle_general"),
        ("t.jsonl", "bailian", "bailian"),
        ("t.out", "oracle-general", "oracle_general"),
        ("t.out", "oracle_general", "oracle_general"),
        ("t.parquet", "parquet", "parquet"),
        ("t.out", "native", "native"),
    ],
)
def test_formats(  # noqa: PLR0917
    run: Run, native: Path, tmp_path: Path, name: str, to: str | None, format: str
) -> None:
    done = run("convert", native, tmp_path / name, *([] if to is None else ["--to", to]))
    assert (done.code, done.out, done.err) == (0, "", "")
    kv.read_trace(native).write(tmp_path / f"want-{name}", format=format)
    assert (tmp_path / name).read_bytes() == (tmp_path / f"want-{name}").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["t.csv"], "cannot tell the format"),
        (["t.parquet.gz"], "packed inside"),
        (["t.jsonl.zst", "--to", "parquet"], "packed inside"),
        (["t.x", "--to", "mooncak"], "did you mean mooncake"),
        (["t.jsonl", "--shift-times"], "without --anonymize"),
        (["t.jsonl", "--whole-sessions"], "without --select"),
        (["t.jsonl", "--select", "no_such > 3"], "cannot select"),
        (["t.jsonl", "--select", "((("], "no SQL expression"),
        (["t.jsonl", "--select", "request < 0"], "no request is left"),
        (["t.jsonl", "--sample-sessions", "2"], "outside"),
        (["missing/t.jsonl"], "not a directory you may write to"),
    ],
)
def test_refusals(  # noqa: PLR0917
    run: Run, native: Path, tmp_path: Path, arguments: list[str], says: str
) -> None:
    done = run("convert", native, tmp_path / arguments[0], *arguments[1:])
    assert (done.code, done.out) == (4, "")
    assert says in done.err
    assert "hint:" in done.err
    assert list(tmp_path.iterdir()) == []


def test_existing_files_are_refused_before_reading(run: Run, tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text("old")
    done = run("convert", tmp_path / "no-such-trace", tmp_path / "t.jsonl")
    assert (done.code, "exists already" in done.err) == (4, True)
    assert (tmp_path / "t.jsonl").read_text() == "old"


def test_parts_of_a_trace(run: Run, native: Path, tmp_path: Path) -> None:
    trace = kv.read_trace(native)
    done = run(
        "convert", native, tmp_path / "a.parquet", "--select", "input_tokens < 2000 AND session != 'chat-1'"
    )
    want = trace.select((pl.col("input_tokens") < 2000) & (pl.col("session") != "chat-1"))
    assert kv.read_trace(tmp_path / "a.parquet").info["sha256"] == want.info["sha256"]
    before, after = trace.info, want.info
    assert re.search(
        rf"select .*: requests {before['requests']:,} -> {after['requests']:,}, block references "
        rf"{before['block_refs']:,} -> {after['block_refs']:,}, unique blocks {before['unique_blocks']:,} -> "
        rf"{after['unique_blocks']:,}, ceiling \d+\.\d\d % -> \d+\.\d\d %, \d+ sessions lost some",
        done.err,
    )
    done = run("convert", native, tmp_path / "b.parquet", "--sample-sessions", "0.5", "--seed", "3")
    sample = trace.sample_sessions(0.5, seed=3)
    assert kv.read_trace(tmp_path / "b.parquet").info["sha256"] == sample.info["sha256"]
    assert done.err == f"{sample.cuts[0]}\n"
    arguments = ["--select", "request < 9", "--whole-sessions", "--quiet"]
    done = run("convert", native, tmp_path / "c.parquet", *arguments)
    whole = trace.select(pl.col("request") < 9, whole_sessions=True)
    assert kv.read_trace(tmp_path / "c.parquet").info["sha256"] == whole.info["sha256"]
    assert done.err == ""


def test_anonymizing(run: Run, native: Path, tmp_path: Path) -> None:
    arguments = ["--anonymize", "--shift-times", "--select", "request >= 100", "--quiet"]
    assert run("convert", native, tmp_path / "t.jsonl", *arguments).code == 0
    trace = kv.read_trace(native).select(pl.col("request") >= 100)
    hidden = kv.read_trace(tmp_path / "t.jsonl")
    assert hidden.requests()["arrival_us"][0] == 0
    assert hidden.requests()["session"][0] == "s1"
    tiers = [kv.Tier("gpu", capacity=500)]
    results = [kv.replay(one, tiers, per_request=True).requests for one in (trace, hidden)]
    assert results[0].equals(results[1])


@pytest.mark.parametrize("command", READERS)
def test_every_command_that_reads_has_every_option(run: Run, command: str) -> None:
    text = run(command, "--help").out
    flags = re.findall(r"--[a-z-]+", text)
    for name in options.READING:
        flag = "--columns" if name == "column" else f"--{name.replace('_', '-')}"
        assert flag in flags, flag
    assert set(READERS) <= set(COMMANDS)


def test_the_options_of_reading_are_those_of_the_python_call() -> None:
    ours = set(inspect.signature(kv.read_trace).parameters) - {"source", "progress"}
    renamed = {"columns": "column", "seed": "session_seed"}
    assert {renamed.get(name, name) for name in ours} | {"spread_ties"} == set(options.READING)


def test_columns_of_another_name(run: Run, tmp_path: Path) -> None:
    rows = [{"at, ms": 5 * n, "len": 32, "ids": [9, n], "who": f"u{n % 2}"} for n in range(1, 5)]
    path = write_jsonl(tmp_path / "t.jsonl", rows)
    arguments = ["--columns", "input_tokens=len,hash_ids=ids,time='at, ms'", "--column", "tenant=who"]
    done = run("inspect", path, *arguments, "--json", "--block-tokens", "16", "--time-unit", "ms")
    document = json.loads(done.out)
    assert (document["trace"]["requests"], document["trace"]["arrival_last_us"]) == (4, 20_000)
    assert document["columns"] == {"tenant": 2}
    for wrong in ("input_tokens", "=x", "input_tokens=len,input_tokens=ids"):
        done = run("inspect", path, "--columns", wrong)
        assert (done.code, "--columns" in done.err) == (4, True)


def test_sessions_on_a_clock_of_their_own(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "weka"
    folder.mkdir()
    for name in ("b", "a"):
        session = {
            "id": name,
            "models": ["m"],
            "block_size": 16,
            "hash_id_scope": "local",
            "tool_tokens": 16,
            "system_tokens": 0,
            "requests": [
                {"t": 0.0, "type": "n", "model": "m", "in": 16, "out": 1, "hash_ids": [1]},
                {"t": 2.0, "type": "n", "model": "m", "in": 32, "out": 1, "hash_ids": [1, 2]},
            ],
        }
        (folder / f"{name}.json").write_text(json.dumps(session))
    together = json.loads(run("inspect", folder, "--json").out)["trace"]
    assert (together["format"], together["requests"], together["unique_blocks"]) == ("weka", 4, 4)
    assert together["arrival_last_us"] == 2_000_000
    apart = json.loads(run("inspect", folder, "--json", "--session-starts", "every(10s)").out)["trace"]
    assert apart["arrival_last_us"] == 12_000_000
    shared = json.loads(run("inspect", folder, "--json", "--shared-prefix", "tool+system").out)["trace"]
    assert shared["unique_blocks"] == 3
    one = json.loads(run("inspect", folder, "--json", "--concurrency", "1").out)["trace"]
    assert one["arrival_last_us"] == 4_000_000
    drawn = [
        json.loads(
            run("inspect", folder, "--json", "--session-starts", "uniform(1h)", "--session-seed", seed).out
        )["trace"]["sha256"]
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    for wrong in (["--session-starts", "never"], ["--concurrency", "0"], ["--shared-prefix", "all"]):
        assert run("inspect", folder, *wrong).code == 4
    (tmp_path / "empty").mkdir()
    done = run("inspect", tmp_path / "empty")
    assert (done.code, "without JSON files" in done.err) == (3, True)


def test_spreading_ties(run: Run, tmp_path: Path) -> None:
    rows = [{"timestamp": t, "input_length": 16, "hash_ids": [1]} for t in (0, 0, 8)]
    path = write_jsonl(tmp_path / "t.jsonl", rows)
    done = run("convert", path, tmp_path / "out.jsonl", "--spread-ties", "--block-tokens", "16", "--quiet")
    assert done.code == 0
    assert kv.read_trace(tmp_path / "out.jsonl").requests()["arrival_us"].to_list() == [0, 4_000, 8_000]


AZURE = (
    "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
    "2023-11-16 18:17:03.9799600,4808,10\r\n"
    "2023-11-16 18:17:04.0319600,3180,8\r\n"
    "2023-11-16 18:17:04.0319600,0,27\r\n"
    "2023-11-16 18:17:05.5000000,110,27"
)
BURST = (
    "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    "5,ChatGPT,472,18,490,Conversation log\n"
    "45,ChatGPT,1087,0,1087,Conversation log\n"
)


def test_lengths_of_recordings(run: Run, tmp_path: Path) -> None:
    (tmp_path / "azure.csv").write_text(AZURE, newline="")
    done = run(
        "generate", "multi_turn", "--lengths-from", tmp_path / "azure.csv", "--out", tmp_path / "a.jsonl"
    )
    assert (done.code, done.err) == (0, "")
    requests = kv.read_trace(tmp_path / "a.jsonl").requests()
    first = 1_700_158_623_979_960
    assert requests["arrival_us"].to_list() == [first, first + 52_000, first + 52_000, first + 1_520_040]
    assert requests["input_tokens"].to_list() == [4808, 3180, 0, 110]
    assert requests["output_tokens"].to_list() == [10, 8, 27, 27]
    assert "session" in requests.columns
    done = run("inspect", tmp_path / "azure.csv")
    assert (done.code, "--lengths-from" in done.err) == (3, True)
    (tmp_path / "burst.csv").write_text(BURST)
    trace = kv.generate("shared_prefix", lengths_from=tmp_path / "burst.csv", requests=1, seed=3)
    assert trace.requests().select("arrival_us", "input_tokens", "output_tokens").rows() == [
        (5_000_000, 472, 18)
    ]
    assert kv.generate("unique", lengths_from=tmp_path / "burst.csv").info["unique_blocks"] == 30 + 68


def test_lengths_of_tables(run: Run, tmp_path: Path) -> None:
    frame = pl.DataFrame({"at_ms": [0, 7, 9], "n": [100, 0, 64], "m": [1, None, 3], "l": [[1], [2], []]})
    frame.write_parquet(tmp_path / "t.parquet")
    columns = "time=at_ms,input_tokens=n,output_tokens=m"
    done = run("generate", "agent", "--lengths-from", tmp_path / "t.parquet", "--columns", columns)
    mapping = dict(pair.split("=") for pair in columns.split(","))
    out = kv.generate("agent", lengths_from=frame, lengths_columns=mapping)
    assert done.code == 0
    assert [json.loads(line)["input_length"] for line in done.out.splitlines()] == [100, 0, 64]
    requests = out.requests()
    assert requests["arrival_us"].to_list() == [0, 7_000, 9_000]
    assert requests["output_tokens"][0] == 1


def test_lengths_keep_what_a_kind_shares(chats: kv.Trace, tmp_path: Path) -> None:
    """The lengths of a trace of the same kind and seed give that trace again."""
    chats.write(tmp_path / "t.jsonl", format="mooncake")
    again = kv.generate("multi_turn", lengths_from=tmp_path / "t.jsonl", seed=7)
    assert again.info["sha256"] == chats.info["sha256"]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["unique"], 4, "number of requests is missing"),
        (["unique", "--requests", "9", "--lengths-from", "burst.csv"], 4, "only 2 have lengths"),
        (["unique", "--requests", "0", "--lengths-from", "burst.csv"], 4, "from 1 to"),
        (["unique", "--lengths-from", "missing.csv"], 3, "missing.csv"),
        (["unique", "--requests", "3", "--columns", "time=t"], 4, "without lengths_from"),
        (["unique", "--requests", "3", "--to", "native"], 4, "--to without --out"),
    ],
)
def test_lengths_that_do_not_fit(  # noqa: PLR0917
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, says: str
) -> None:
    (tmp_path / "burst.csv").write_text(BURST)
    monkeypatch.chdir(tmp_path)
    done = run("generate", *arguments)
    assert (done.code, done.out) == (code, "")
    assert says in done.err
    assert "hint:" in done.err


def test_formats_show_an_example_line(run: Run) -> None:
    rows = json.loads(run("list", "formats", "--json").out)
    assert all(row["example"] for row in rows)
    text = run("list", "formats").out
    for row in rows:
        words = row["example"].split()
        assert " ".join(words) in " ".join(text.split()), row["name"]


def test_packed_output_of_generate(run: Run, tmp_path: Path) -> None:
    plain = run("generate", "unique", "--requests", 5).out
    assert run("generate", "unique", "--requests", 5, "--out", tmp_path / "t.jsonl.gz").code == 0
    assert gzip.decompress((tmp_path / "t.jsonl.gz").read_bytes()).decode() == plain
