"""Profiles on the command line: show, replay, compare, validate."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Run

VLLM = ("--profile", "vllm@0.33", "--tier", "gpu=200 blocks")


def test_show_prints_rules_within_the_screen(run: Run) -> None:
    done = run("profile", "show", "vllm@0.33")
    assert done.code == 0
    assert done.out.startswith("vllm@0.33.0\n")
    for word in ("Tiers", "Options", "block_size", "Rules", "Source"):
        assert word in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    document = json.loads(run("profile", "show", "vllm", "--json").out)
    assert document["profile"] == "vllm@0.33.0"
    assert {"topic", "rule", "since", "source"} == set(document["rules"][0])


def test_an_unknown_release_lists_the_known_ones(run: Run, native: Path) -> None:
    done = run("replay", native, "--profile", "vllm@9.9", "--tier", "gpu=100 blocks")
    assert (done.code, done.out) == (4, "")
    assert "error: no profile vllm@9.9" in done.err
    assert "vllm@0.33.0" in done.err


def test_list_names_them(run: Run) -> None:
    names = [row["name"] for row in json.loads(run("list", "profiles", "--json").out)]
    assert "vllm" in names


def test_a_vllm_command_line_gives_tiers(run: Run, native: Path) -> None:
    command = "vllm serve m --num-gpu-blocks-override 200 --max-model-len 4096"
    done = run("replay", native, "--from-vllm", command, "--json")
    assert done.code == 0
    assert "from vllm: --num-gpu-blocks-override 200 -> tier gpu of 200 blocks" in done.err
    assert "from vllm: not used: --max-model-len 4096" in done.err
    same = run("replay", native, *VLLM, "--json")
    assert json.loads(done.out)["tiers"] == json.loads(same.out)["tiers"]
    logged = run("replay", native, "--profile", "vllm", "--tier", "gpu=3,200 tokens", "--json")
    assert json.loads(logged.out)["tiers"] == json.loads(same.out)["tiers"]


def test_two_profiles_are_compared(run: Run, native: Path) -> None:
    done = run(
        "compare",
        native,
        "--profile",
        "vllm@0.33",
        "--profile",
        "vllm@0.22",
        "--tier",
        "gpu=200 blocks",
        "--json",
    )
    assert done.code == 0
    document = json.loads(done.out)
    assert (document["a"]["name"], document["b"]["name"]) == ("vllm@0.33.0", "vllm@0.22.1")
    ratio = next(row for row in document["ratios"] if row["name"] == "token_hit_ratio")
    assert ratio["difference"] == ratio["b"] - ratio["a"]
    assert {row["column"] for row in document["tiers"]} >= {"hit_tokens", "evicted_blocks"}
    assert document["requests"]["requests"] >= 0
    screen = run("compare", native, "--profile", "vllm", "--profile", "generic", "--tier", "gpu=200 blocks")
    assert screen.code == 0
    assert "b: generic" in screen.out
    assert max(map(len, screen.out.splitlines())) <= 80


def test_two_reports_are_compared(run: Run, native: Path, tmp_path: Path) -> None:
    for name, size in (("a", 100), ("b", 200)):
        assert (
            run("analyze", native, "--tier", f"gpu={size} blocks", "--out", tmp_path / name, "-q").code == 0
        )
    document = json.loads(run("compare", tmp_path / "a", tmp_path / "b", "--json").out)
    names = {row["name"] for row in document["ratios"]}
    assert {"token_hit_ratio", "ceiling.token_hit_ratio"} <= names
    capacity = next(row for row in document["tiers"] if row["column"] == "capacity_blocks")
    assert (capacity["a"], capacity["b"], capacity["difference"]) == (100, 200, 100)
    assert document["warnings"] == []
    for wrong in ((tmp_path / "a",), (tmp_path / "a", tmp_path), (native,), (native, "--profile", "vllm")):
        done = run("compare", *wrong)
        assert done.code == 4
        assert "hint:" in done.err


def rows(path: Path, hits: list[int]) -> Path:
    lines = [
        json.dumps({"hash_ids": [1, 2, 3], "input_length": 48, "output_length": 1, "cached_tokens": hit})
        for hit in hits
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_observed_hits_are_validated(run: Run, tmp_path: Path) -> None:
    # vLLM computes the last token, so of three full blocks two are hit.
    options = ("--block-tokens", 16, *VLLM, "--observed", "cached_tokens")
    good = run("validate", rows(tmp_path / "good.jsonl", [0, 32, 32]), *options, "--json")
    assert good.code == 0
    assert json.loads(good.out)["summary"]["mean_absolute_error_points"] == 0.0
    bad = run("validate", rows(tmp_path / "bad.jsonl", [0, 48, 32]), *options, "--tolerance", 0.1)
    assert bad.code == 5
    assert "failed: mean absolute error 11.111 points > 0.1" in bad.err
    assert "at most one block" in " ".join(bad.out.split())
    assert max(map(len, bad.out.splitlines())) <= 80


def test_a_trace_without_observations_cannot_be_validated(run: Run, native: Path) -> None:
    done = run("validate", native, *VLLM)
    assert done.code in (3, 4)
    assert "error:" in done.err
    assert "hint:" in done.err
