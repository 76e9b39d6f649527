"""What hits are worth from the command line: options, settings file, gates, errors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl
import pytest

import kvreplay as kv

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Run

TIERS = ["--tier", "gpu=5%", "--tier", "cpu=20%,link=pcie5-x16"]
WORTH = ["--model", "llama-3.1-8b", "--hardware", "h100-sxm"]


def test_analyze_says_in_json_what_python_says(run: Run, native: Path) -> None:
    document = json.loads(run("analyze", native, *TIERS, *WORTH, "--json").out)
    tiers = [kv.Tier("gpu", capacity="5%"), kv.Tier("cpu", capacity="20%", link="pcie5-x16")]
    report = kv.analyze(kv.read_trace(native), tiers, model="llama-3.1-8b", hardware="h100-sxm")
    for name in ("tiers", "hit_quality", "scenarios", "hits_by_length", "demand"):
        assert document[name] == report.tables[name].to_dicts(), name
    assert document["verdict"] == report.verdict
    assert document["admissions"] == []


def test_a_settings_file_and_flags_say_the_same(run: Run, native: Path, tmp_path: Path) -> None:
    path = tmp_path / "kvreplay.toml"
    path.write_text(
        '[analyze]\nmodel = "llama-3.1-8b"\nhardware = "h100-sxm"\nprice = ["gpu_hour_usd=2.1"]\n'
        '[[tier]]\nname = "gpu"\ncapacity = "5%"\n'
        '[[tier]]\nname = "cpu"\ncapacity = "20%"\nlink = "pcie5-x16"\n'
    )
    mine = run("analyze", native, "--config", path, "--json")
    flags = run("analyze", native, *TIERS, *WORTH, "--price", "gpu_hour_usd=2.1", "--json")
    assert (mine.code, mine.out) == (0, flags.out)


def test_a_gate_can_be_about_harm(run: Run, native: Path) -> None:
    slow = ["--tier", "gpu=5%", "--tier", "cpu=20%,link=slow(bandwidth=0.1 GB/s, fixed=50 ms)"]
    gate = ["--fail-if", "tier.cpu.saved_us < 0", "--quiet", "--json"]
    assert run("analyze", native, *slow, *WORTH, *gate).code == 5
    assert run("analyze", native, *TIERS, *WORTH, *gate).code == 0


def test_a_cost_file_takes_the_place_of_the_gpu(run: Run, native: Path, tmp_path: Path) -> None:
    path = tmp_path / "cost.toml"
    path.write_text(
        "[cost]\nc0_us = 0\nfloor_us = 0\nlinear_us_per_token = 21.94\nquadratic_us_per_token2 = 4.724e-4\n"
        '[links.cpu]\nbandwidth = "40 GB/s"\nfixed = "1 ms"\n'
    )
    tiers = ["--tier", "gpu=5%", "--tier", "cpu=20%"]
    document = json.loads(
        run("analyze", native, *tiers, "--model", "llama-3.1-8b", "--cost", path, "--json").out
    )
    assert document["tiers"][1]["saved_us"] > 0
    assert document["hit_quality"][1]["link"] == "cpu"
    assert document["warnings"] == []


def test_replay_writes_the_times_of_requests(run: Run, native: Path, tmp_path: Path) -> None:
    out = tmp_path / "requests.parquet"
    done = run("replay", native, *TIERS, *WORTH, "--requests-out", out, "--json")
    assert done.code == 0
    rows = pl.read_parquet(out)
    saved = json.loads(done.out)["tiers"][1]["saved_us"]
    assert (rows["service_ttft_without_tiers_us"] - rows["service_ttft_us"]).sum() == saved


def test_a_sweep_over_links(run: Run, native: Path) -> None:
    done = run("sweep", native, "--tier", "gpu=5%", "--tier", "cpu=20%,link=pcie3-x16|pcie5-x16", *WORTH)
    assert done.code == 0
    assert " saves" in done.out
    assert done.out.count("link=pcie") == 2
    assert [line for line in done.out.splitlines() if len(line) > 110] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--hardware", "h100-sxm"], "no model"),
        (["--kv-bytes-per-token", "131072", "--hardware", "h100-sxm"], "only its bytes per token"),
        (["--model", "llama-3.1-8b", "--hardware", "h9000"], "h9000"),
        (["--model", "llama-3.1-8b", "--price", "gpu_hour_usd=much"], "much"),
        (["--model", "llama-3.1-8b", "--price", "gpu_hours=2"], "gpu_hour_usd"),
        (["--model", "llama-3.1-8b", "--cost", "no/such/file.toml"], "no/such/file.toml"),
        ([*WORTH, "--admission", "min_count(0)"], "min_count"),
        ([*WORTH, "--tier", "gpu=5%", "--tier", "cpu=9%,link=pcie9"], "pcie9"),
    ],
)
def test_wrong_options_exit_with_4(run: Run, native: Path, arguments: list[str], message: str) -> None:
    tiers = [] if "--tier" in arguments else TIERS
    done = run("analyze", native, *tiers, *arguments)
    assert done.code == 4
    assert message in done.err
    assert "hint:" in done.err
