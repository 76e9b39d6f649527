"""kvreplay sweep, and the policies, groups and windows of replay and analyze."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import polars as pl
import pytest

import kvreplay as kv
from kvreplay.sweeping import SWEEP_SCHEMA

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Run

GRID = ["--capacity", "100 blocks", "--capacity", "10%", "--policy", "lru", "--policy", "arc"]
TIERS = ["--tier", "gpu=500 blocks", "--tier", "cpu=1000 blocks|20%,policy=lru|random(seed=3),fill=victim"]


def test_the_grid_of_the_command_line(run: Run, native: Path, tmp_path: Path) -> None:
    done = run("sweep", native, *GRID, "--json", "--out", tmp_path / "s.parquet")
    document = json.loads(done.out)
    want = kv.sweep(kv.read_trace(native), {"policy": ["lru", "arc"], "capacity": ["100 blocks", "10%"]})
    assert (done.code, document["schema"], document["points"]) == (0, "sweep/1", want.to_dicts())
    written = pl.read_parquet(tmp_path / "s.parquet")
    assert written.equals(want)
    assert dict(written.schema) == SWEEP_SCHEMA
    assert pl.read_parquet_metadata(tmp_path / "s.parquet")["kvreplay.schema"] == "sweep/1"
    assert run("sweep", native, *GRID, "--out", tmp_path / "s.parquet").code == 4
    done = run("sweep", native, *GRID, "--out", tmp_path / "s.parquet", "--overwrite", "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")


def test_lists_inside_a_tier(run: Run, native: Path) -> None:
    points = json.loads(run("sweep", native, *TIERS, "--json").out)["points"]
    assert [(row["point"], row["tier"], row["policy"]) for row in points if row["tier"] == "cpu"] == [
        (0, "cpu", "lru"),
        (1, "cpu", "random(seed=3)"),
        (2, "cpu", "lru"),
        (3, "cpu", "random(seed=3)"),
    ]
    assert {row["fill"] for row in points if row["tier"] == "cpu"} == {"victim"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "nothing to sweep"),
        (["--policy", "lru"], "nothing to sweep"),
        ([*TIERS, "--capacity", "5%"], "exclude one another"),
        (["--tier", "cpu=5%|"], "empty value"),
        (["--tier", "a|b=5%"], "several names"),
        (["--tier", "cpu=5%,polcy=lru"], "unknown key"),
        (["--tier", "cpu=5%,chunk_blocks=2|x"], "chunk_blocks"),
        (["--capacity", "5%", "--policy", "lruu"], "lruu"),
        (["--capacity", "5"], "no unit"),
        (["--capacity", "5%", "--mode", "both"], "unknown mode"),
    ],
)
def test_wrong_grids(run: Run, native: Path, arguments: list[str], message: str) -> None:
    done = run("sweep", native, *arguments)
    assert (done.code, done.out) == (4, "")
    assert message in done.err
    assert "hint:" in done.err


def test_a_store_is_used(run: Run, native: Path, tmp_path: Path) -> None:
    first = run("sweep", native, *GRID, "--store", tmp_path / "s", "--json")
    files = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "s").iterdir()}
    assert len(files) == 4
    again = run("sweep", native, *GRID, "--store", tmp_path / "s", "--json")
    assert again.out == first.out
    assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "s").iterdir()} == files


ENDLESS = """
import os, signal, sys
from kvreplay.cli import interrupt
from kvreplay.sweeping import run, work
interrupt.install()
add, once = run._Done.add, work.run
def replay(trace, task, progress):
    result = once(trace, task, progress)
    while task.kind == "replay":
        once(trace, task, progress)
    return result
def kept(*arguments):
    add(*arguments)
    os.kill(os.getpid(), signal.SIGINT)
work.run, run._Done.add = replay, kept
from kvreplay.cli.run import run as command
sys.exit(command(sys.argv[1:]))
"""


def test_ctrl_c_ends_a_sweep_and_keeps_what_is_done(native: Path, tmp_path: Path) -> None:
    """The signal comes when the points of LRU, which share a pass, are done; the others run until stopped."""
    command = [sys.executable, "-c", ENDLESS, "sweep", str(native), "--store", str(tmp_path / "s")]
    command += [
        "--policy",
        "lru",
        "--policy",
        "arc",
        "--capacity",
        "1000 blocks",
        "--capacity",
        "2000 blocks",
    ]
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    assert (done.returncode, done.stdout) == (130, "")
    assert "Traceback" not in done.stderr
    assert [path.suffix for path in (tmp_path / "s").iterdir()] == [".json"] * 2


def test_replay_splits_and_compares(run: Run, native: Path) -> None:
    tier = ["--tier", "gpu=500 blocks"]
    options = ["--policy", "fifo", "--group-by", "session", "--window", "10m", "--json"]
    document = json.loads(run("replay", native, *tier, *options).out)
    result = kv.replay(
        kv.read_trace(native), [kv.Tier("gpu", capacity=500)], group_by="session", window="10m"
    )
    assert document["groups"] == result.groups.to_dicts()
    assert document["windows"] == result.windows.to_dicts()
    assert [row["policy"] for row in document["policies"]] == ["opt", "fifo"]
    assert document["summary"]["engine"] == "stack"
    text = run("replay", native, *tier, *options[:-1]).out
    assert all(title in text for title in ("One cache by policy", "By group", "By window of time"))
    done = run("replay", native, *tier, "--unit", "request", "--json")
    assert json.loads(done.out)["summary"]["engine"] == "sequences"


def test_replay_warns_of_its_tiers(run: Run, native: Path) -> None:
    done = run("replay", native, "--tier", "gpu=2 blocks", "--json")
    assert "warning: oversize_request:" in done.err
    assert [one["code"] for one in json.loads(done.out)["warnings"]] == ["oversize_request"]
    assert run("replay", native, "--tier", "gpu=2 blocks", "--quiet").err == ""


def test_analyze_writes_the_tables_asked_for(run: Run, native: Path, tmp_path: Path) -> None:
    out = tmp_path / "r"
    options = ["--policy", "arc", "--group-by", "session", "--window", "10m", "--out", out]
    assert run("analyze", native, "--tier", "gpu=500 blocks", *options, "--quiet").code == 0
    assert {"policies", "groups", "windows"} <= {path.stem for path in (out / "tables").iterdir()}
    assert pl.read_parquet(out / "tables" / "policies.parquet")["policy"].to_list() == ["opt", "arc"]
    done = run("analyze", native, "--policy", "arc")
    assert (done.code, "there is none" in done.err) == (4, True)
