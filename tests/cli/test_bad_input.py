"""Every kind of bad input: one clear error and hint, the documented exit code, nothing half-written."""

from __future__ import annotations

import gzip
import json
import os
import random
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.oracle.forest import rows_of, write_jsonl

import kvreplay as kv

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Done, Run

ROWS = rows_of([[1, 2, 3], [1, 2, 4], [1, 2, 3, 5]])
LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 132054902\n"


def is_error(done: Done, code: int) -> None:
    """One `error:` and one `hint:` line, the code, nothing on stdout."""
    assert done.code == code, done.err
    assert done.out == ""
    starts = [line.split(":")[0] for line in done.err.splitlines()]
    assert starts.count("error") == 1, done.err
    assert starts.count("hint") == 1, done.err
    assert "Traceback" not in done.err


def text_of(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


UNREADABLE: dict[str, bytes] = {
    "empty": b"",
    "blank": b"\n\n \n",
    "only_bad_rows": b"not json\n{}\n",
    "junk": random.Random(5).randbytes(4096),  # noqa: S311 - bytes that repeat
    "zeros": bytes(4096),
    "lfs": LFS.encode(),
    "empty_gz": gzip.compress(b""),
    "an_array_of_nothing": b"[]",
    "half_parquet": b"PAR1" + bytes(100),
    "broken_gz": gzip.compress(text_of(ROWS))[:12] + bytes(50),
}


@pytest.mark.parametrize("name", list(UNREADABLE))
@pytest.mark.parametrize("command", ["analyze", "curve", "inspect"])
def test_unreadable_traces(run: Run, tmp_path: Path, command: str, name: str) -> None:
    path = tmp_path / f"{name}.jsonl"
    path.write_bytes(UNREADABLE[name])
    done = run(command, path)
    is_error(done, 3)
    assert str(path) in done.err
    if name == "lfs":
        assert "lfs" in done.err.lower()


def test_places_that_hold_no_trace(run: Run, tmp_path: Path) -> None:
    for place in (
        tmp_path,
        tmp_path / "missing.jsonl",
        tmp_path / "missing" / "t.jsonl",
        "s3://bucket/t.jsonl",
    ):
        is_error(run("analyze", place), 3)


def test_a_file_that_may_not_be_read(run: Run, tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "t.jsonl", ROWS)
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    is_error(run("analyze", path), 3)


def test_a_cut_archive_is_said_and_read_up_to_the_cut(run: Run, tmp_path: Path) -> None:
    rows = rows_of([[i, i + 1] for i in range(1, 4000, 2)])
    path = tmp_path / "t.jsonl.gz"
    path.write_bytes(gzip.compress(text_of(rows))[:9000])
    done = run("inspect", path, "--json", "--block-tokens", 16)
    assert done.code == 0
    document = json.loads(done.out)
    assert "cut_archive" in [row["code"] for row in document["quality"]]
    assert 0 < document["trace"]["requests"] < 2000
    done = run("analyze", path, "--block-tokens", 16)
    assert "warning: cut_archive" in done.err
    assert "warning" not in run("analyze", path, "--block-tokens", 16, "--quiet").err
    is_error(run("analyze", path, "--block-tokens", 16, "--strict"), 3)


@pytest.mark.parametrize(
    "ids", [[1.5, 2.0], ["x", None], [2**64], [-(2**63) - 1], 12, {"a": 1}, [True], [[1]]]
)
def test_rows_with_odd_ids_are_rejected_and_counted(run: Run, tmp_path: Path, ids: object) -> None:
    path = write_jsonl(tmp_path / "t.jsonl", [*ROWS, {**ROWS[0], "timestamp": 900, "hash_ids": ids}])
    document = json.loads(run("analyze", path, "--block-tokens", 16, "--json").out)
    assert (document["trace"]["requests"], document["trace"]["rejected_rows"]) == (3, 1)
    assert len(document["warnings"]) == 1
    is_error(run("analyze", path, "--block-tokens", 16, "--strict"), 3)


@pytest.mark.parametrize("ids", [[1.0, 2.0, 3.0], ["1", "2", "3"], ["0x1", "0x2", "0x3"], [1, 2, "3"]])
def test_rows_with_ids_in_other_forms(run: Run, tmp_path: Path, ids: object) -> None:
    path = write_jsonl(tmp_path / "t.jsonl", [*ROWS, {**ROWS[0], "timestamp": 900, "hash_ids": ids}])
    document = json.loads(run("analyze", path, "--block-tokens", 16, "--json").out)
    assert (document["trace"]["requests"], document["trace"]["rejected_rows"]) == (4, 0)


def test_very_large_rows_and_requests(run: Run, tmp_path: Path) -> None:
    many = {"timestamp": 0, "input_length": 1_000_000, "output_length": 1, "hash_ids": list(range(62_500))}
    wide = {**ROWS[0], "note": "x" * 10_000_000}
    path = write_jsonl(tmp_path / "t.jsonl", [many, {**many, "timestamp": 1}, {**wide, "timestamp": 2}])
    document = json.loads(
        run("analyze", path, "--tier", "gpu=100 blocks", "--block-tokens", 16, "--json").out
    )
    assert document["trace"]["requests"] == 3
    assert document["trace"]["block_refs"] == 125_003
    assert "oversize_request" in [warning["code"] for warning in document["warnings"]]


BAD_TIERS = """
gpu=5000
gpu=40GiB
gpu=0 blocks
gpu=-1 blocks
gpu
gpu=
=5 blocks
g u=5 blocks
gpu=5 blocks,x=1
gpu=5 blocks,policy=no_such
gpu=5 blocks,policy=lru(
gpu=5 blocks,chunk_blocks=many
gpu=5 blocks,touch=twice
"""
BAD_OPTIONS = """
--block-tokens 0
--warmup 2
--warmup soon
--tail round
--time-unit x
--scope x
--format no_such
--column time
--kv-bytes-per-token 0
--config no/such/file
"""


@pytest.mark.parametrize("tier", BAD_TIERS.strip().splitlines())
@pytest.mark.parametrize("command", ["analyze", "replay"])
def test_tiers_that_cannot_be(run: Run, native: Path, command: str, tier: str) -> None:
    is_error(run(command, native, "--tier", tier), 4)


def test_tiers_larger_than_the_trace_are_said(run: Run, native: Path) -> None:
    done = run("analyze", native, "--tier", "gpu=100000000 blocks")
    assert done.code == 0
    assert "warning: tier_larger_than_trace" in done.err
    assert "never filled" in done.out.replace("\n  ", " ")


@pytest.mark.parametrize("options", BAD_OPTIONS.strip().splitlines())
def test_options_that_cannot_be(run: Run, tmp_path: Path, options: str) -> None:
    is_error(run("analyze", write_jsonl(tmp_path / "t.jsonl", ROWS), *options.split()), 4)


@pytest.mark.parametrize(
    "arguments",
    [
        ["analyze"],
        ["analyze", "x", "--no-such-flag"],
        ["no-such"],
        ["analyze", "x", "--block-tokens", "y"],
        [],
    ],
)
def test_usage_errors(run: Run, arguments: list[str]) -> None:
    done = run(*arguments)
    assert (done.code, done.out) == (2, "")
    assert "Usage:" in done.err


def test_reports_in_wrong_places(run: Run, native: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", tmp_path / "file" / "r", tmp_path, "/proc/no/such"):
        is_error(run("analyze", native, "--out", place), 4)
    is_error(run("analyze", native, "--out", tmp_path / "file", "--overwrite"), 4)
    is_error(run("convert", native, tmp_path / "no" / "x.parquet"), 4)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


def small_files_only() -> None:
    """A process that may write 4 kB to a file: what a full disk looks like."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


def limited(arguments: list[object], before: Callable[[], None]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kvreplay", *map(str, arguments)],
        capture_output=True,
        check=False,
        preexec_fn=before,
        text=True,
    )


def test_a_full_disk_keeps_the_old_report(run: Run, native: Path, tmp_path: Path) -> None:
    out = tmp_path / "r"
    assert run("analyze", native, "--out", out, "--quiet").code == 0
    before = {path.name: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    done = limited(["analyze", native, "--out", out, "--overwrite"], small_files_only)
    assert done.returncode == 1, done.stderr
    assert "error: cannot write" in done.stderr
    assert "hint:" in done.stderr
    assert "Traceback" not in done.stderr
    assert {path.name: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["r"]


@pytest.mark.parametrize("name", ["x.parquet", "x.jsonl", "x.jsonl.gz"])
def test_a_full_disk_leaves_no_file(native: Path, tmp_path: Path, name: str) -> None:
    done = limited(["convert", native, tmp_path / name], small_files_only)
    assert done.returncode == 1, done.stderr
    assert "error: cannot write" in done.stderr
    assert "hint:" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [["analyze"], ["curve", "--json"], ["convert", "-"]], ids=" ".join)
def test_a_full_standard_output(native: Path, arguments: list[str]) -> None:
    if arguments[0] == "convert":
        arguments = ["generate", "unique", "--requests", "50"]
    else:
        arguments = [arguments[0], str(native), *arguments[1:]]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "kvreplay", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            text=True,
        )
    assert done.returncode == 1
    assert "error: cannot write to standard output: No space left" in done.stderr
    assert "hint:" in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize("arguments", [["analyze"], ["curve", "--json"], ["inspect"]], ids=" ".join)
def test_a_reader_that_leaves_early(native: Path, arguments: list[str]) -> None:
    command = [sys.executable, "-m", "kvreplay", arguments[0], str(native), *arguments[1:]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait() == 0


def test_an_interrupt_ends_cleanly(tmp_path: Path) -> None:
    """The trace is a pipe that never ends: the command is reading when the signal comes."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "kvreplay", "analyze", str(pipe), "--out", str(tmp_path / "r")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        with pipe.open("wb", buffering=0) as writer:  # opens when the reader is there
            writer.write(text_of(ROWS) * 1000)
            process.send_signal(signal.SIGINT)
            writer.write(b"\n" * 100_000)
        out, err = process.communicate()
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_an_interrupt_while_loading_ends_at_once() -> None:
    code = (
        "import os, signal, sys; from kvreplay.cli import interrupt; interrupt.install(); "
        "os.kill(os.getpid(), signal.SIGINT); print('went on')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, text=True)
    assert (done.returncode, done.stdout) == (130, "")
    assert "Traceback" not in done.stderr


def test_internal_errors_are_one_line(run: Run, native: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("deep inside\nsecond line")

    monkeypatch.setattr("kvreplay.report.analyze", fail)
    done = run("analyze", native)
    is_error(done, 1)
    assert "internal error: ZeroDivisionError: deep inside" in done.err
    monkeypatch.setenv("KVREPLAY_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        run("analyze", native)


def test_out_of_memory_is_said(run: Run, native: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvreplay.memory.available_bytes", lambda: 1000)
    is_error(run("analyze", native), 4)

    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("kvreplay.report.analyze", fail)
    is_error(run("analyze", native), 1)


def test_warnings_name_the_line(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(text_of(ROWS[:2]) + b"{oops\n" + text_of(ROWS[2:]))
    done = run("analyze", path, "--block-tokens", 16)
    assert done.code == 0
    assert "warning: json_syntax: 1 x" in done.err
    assert "line 3" in done.err
    done = run("analyze", path, "--block-tokens", 16, "--strict")
    is_error(done, 3)
    assert f"{path}:3:" in done.err
    assert kv.read_trace(path, block_tokens=16).info["rejected_rows"] == 1
