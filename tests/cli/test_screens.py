"""What people see, at 80 columns. Update with `pytest --snapshot-update` and read the difference."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from syrupy.assertion import SnapshotAssertion
    from tests.cli.conftest import Run

TIMED = [
    "--tier",
    "gpu=1000 blocks",
    "--tier",
    "cpu=10%,link=pcie5-x16",
    "--tier",
    "ssd=20%,link=mine(bandwidth=5 GB/s, fixed=1 ms, medium=ssd)",
]
WORTH = ["--model", "llama-3.1-8b", "--hardware", "h100-sxm"]
TIERS = ["--tier", "gpu=1000 blocks", "--tier", "cpu=20%,fill=victim"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["analyze"],
        ["analyze", *TIERS, "--kv-bytes-per-token", "131072", "--warmup", "0.5"],
        ["inspect"],
        ["curve"],
        ["curve", "--policy", "lru", "--policy", "opt", "--capacity", "10%", "--capacity", "1000 blocks"],
        ["replay", *TIERS],
        ["sweep", "--capacity", "100 blocks", "--capacity", "10%", "--policy", "lru", "--policy", "arc"],
        ["sweep", "--tier", "gpu=500 blocks", "--tier", "cpu=1000 blocks|20%,policy=lru|fifo,fill=victim"],
        ["analyze", *TIERS, "--policy", "lru", "--policy", "arc", "--window", "1h"],
        ["analyze", *TIMED, *WORTH],
        ["analyze", *TIMED, *WORTH, "--admission", "always", "--admission", "min_count(2)"],
        ["replay", *TIMED, *WORTH, "--price", "ssd_dwpd=3"],
    ],
    ids=" ".join,
)
def test_screens(run: Run, native: Path, snapshot: SnapshotAssertion, arguments: list[str]) -> None:
    done = run(arguments[0], native, *arguments[1:])
    assert done.code == 0
    assert [line for line in done.out.splitlines() if len(line) > 80] == []
    assert "\x1b" not in done.out
    assert done.out == snapshot


@pytest.mark.parametrize(
    "what", ["formats", "generators", "policies", "admissions", "fill-rules", "quality-codes", "tables"]
)
def test_lists(run: Run, what: str) -> None:
    done = run("list", what)
    rows = json.loads(run("list", what, "--json").out)
    assert (done.code, done.err) == (0, "")
    assert [next(iter(row.values())) for row in rows] == [
        line for line in done.out.splitlines() if not line.startswith(" ")
    ]
    assert [line for line in done.out.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize(
    "command", ["", "analyze", "inspect", "curve", "convert", "generate", "replay", "sweep", "list"]
)
def test_help(run: Run, command: str) -> None:
    done = run(*([command] if command else []), "--help")
    assert done.code == 0
    assert len(done.out) > 200
    assert "Usage: kvreplay" in done.out


def test_version(run: Run) -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*\n", run("--version").out)


@pytest.mark.parametrize("columns", ["40", "60"])
def test_narrow_terminals(run: Run, native: Path, monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    done = run("analyze", native, *TIERS)
    assert done.code == 0
    assert [line for line in done.out.splitlines() if len(line) > int(columns)] == []


def test_settings(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "kvreplay.toml"
    path.write_text('[analyze]\nwarmup = 0.5\n[[tier]]\nname = "gpu"\ncapacity = "5 blocks"\n')
    monkeypatch.setenv("KVREPLAY_BLOCK_TOKENS", "64")
    document = json.loads(run("config", "show", "--config", path, "--json").out)
    assert document["analyze"]["warmup"] == {"value": 0.5, "origin": f"file {path}"}
    assert document["analyze"]["block_tokens"] == {"value": 64, "origin": "environment KVREPLAY_BLOCK_TOKENS"}
    assert document["tier"][0]["policy"] == "lru"
    text = run("config", "show", "--config", path).out
    assert "warmup" in text
    assert "gpu" in text
