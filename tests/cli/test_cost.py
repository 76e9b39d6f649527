"""The commands of the cost model: model, breakeven, calibrate, and the lists they read."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from syrupy.assertion import SnapshotAssertion
    from tests.cli.conftest import Run

MEASURED = "input_tokens,ttft_ms\n10000,260\n20000,640\n30000,1095\n40000,1650\n50000,2290\n"


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    path = tmp_path / "measured.csv"
    path.write_text(MEASURED, encoding="utf-8")
    return path


def document(run: Run, *arguments: object) -> dict[str, Any]:
    done = run(*arguments, "--json")
    assert (done.code, done.err) == (0, "")
    found: dict[str, Any] = json.loads(done.out)
    return found


@pytest.mark.parametrize(
    "arguments",
    [
        ["model", "show", "qwen2.5-1.5b", "--tokens", "50110"],
        ["model", "show", "gemma-3-27b", "--kv-dtype", "fp8", "--tp", "8"],
        ["model", "show", "kimi-k3", "--tp", "8", "--host-copies", "8"],
        ["model", "fit", "llama-3.1-70b", "--hardware", "a100-sxm", "--gpus", "4", "--tokens", "4096"],
        ["breakeven", "--model", "llama-3.1-8b", "--hardware", "h100-sxm"],
    ],
    ids=" ".join,
)
def test_screens(run: Run, snapshot: SnapshotAssertion, arguments: list[str]) -> None:
    done = run(*arguments)
    assert (done.code, done.err) == (0, "")
    assert [line for line in done.out.splitlines() if len(line) > 80] == []
    assert done.out == snapshot


@pytest.mark.parametrize("command", ["model", "model show", "model fit", "breakeven", "calibrate"])
def test_help(run: Run, command: str) -> None:
    done = run(*command.split(), "--help")
    assert done.code == 0
    assert [line for line in done.out.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("what", ["models", "hardware", "links", "prices"])
def test_lists(run: Run, what: str) -> None:
    done = run("list", what)
    rows = json.loads(run("list", what, "--json").out)
    assert (done.code, done.err) == (0, "")
    assert [row["name"] for row in rows] == [line for line in done.out.splitlines() if line[:1] != " "]
    assert all(row["source"] and row["date"] for row in rows)
    assert [line for line in done.out.splitlines() if len(line) > 80] == []


class TestModel:
    def test_show(self, run: Run) -> None:
        shown = document(run, "model", "show", "deepseek-v3", "--tp", "8")
        assert shown["kv_bytes_per_token"] == shown["rank_bytes_per_token"] == 70_272
        assert shown["hbm_bytes_per_token"] == 8 * 70_272
        assert (shown["log"], shown["prefix"]) == (None, None)

    def test_a_log_that_agrees_and_one_that_does_not(self, run: Run) -> None:
        # 21,520 tokens of 28,672 B are 0.5747 GiB
        own = ["model", "show", "qwen2.5-1.5b", "--logged-tokens", "21520", "--logged-memory"]
        assert document(run, *own, "0.5747GiB")["log"]["agrees"] is True
        shown = document(run, *own, "1.1494 GiB")["log"]
        assert (round(shown["factor"], 2), shown["agrees"]) == (2.0, False)
        assert "2 times as much" in run(*own, "1.1494GiB").out.replace("\n  ", " ")
        assert "they agree" in run(*own, "0.5747GiB").out

    def test_a_config_file(self, run: Run, tmp_path: Path) -> None:
        fields = {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 64}
        (tmp_path / "config.json").write_text(json.dumps(fields), encoding="utf-8")
        shown = document(run, "model", "show", tmp_path)
        assert shown["kv_bytes_per_token"] == 2 * 2 * 64 * 2
        assert shown["params_total"] is None

    def test_fit(self, run: Run) -> None:
        shown = document(
            run, "model", "fit", "llama-3.1-70b", "--hardware", "a100-sxm", "--gpus", "4", "--tokens", "4096"
        )
        assert (shown["users"], shown["user_bytes"]) == (125, 327_680 * 4096)
        none = run("model", "fit", "llama-3.1-70b", "--hardware", "a100-sxm")
        assert none.out.startswith("the weights of llama-3.1-70b do not fit 1 x a100-sxm")


class TestBreakeven:
    def test_rows_and_headline(self, run: Run) -> None:
        found = document(
            run, "breakeven", "--model", "llama-3.1-8b", "--hardware", "h100-sxm", "--length", 1024,
            "--link", "mine(bandwidth=22 GB/s, fixed=5 ms, medium=dram)", "--link", "nvme-gen4",
            "--dram-gb-usd", "5",
        )  # fmt: skip
        assert [(row["link"], row["prefix_tokens"]) for row in found["rows"]] == [
            ("mine", 1024),
            ("nvme-gen4", 1024),
        ]
        low, high = (found[f"break_even_bandwidth_{end}_gb_s"] for end in ("low", "high"))
        assert low < found["break_even_bandwidth_gb_s"] < high
        assert found["prices"][1] == "dram_gb_usd = 5: given"
        assert found["cost"]["origin"] == "prior"

    def test_with_a_calibrated_cost(self, run: Run, measured: Path, tmp_path: Path) -> None:
        out = tmp_path / "cost.toml"
        done = run(
            "calibrate",
            measured,
            "--model",
            "llama-3.1-8b",
            "--hardware",
            "h100-sxm",
            "--out",
            out,
            "--quiet",
        )
        assert (done.code, done.out, done.err) == (0, "", "")
        found = document(run, "breakeven", "--model", "llama-3.1-8b", "--cost", out, "--link", "pcie5-x16")
        assert found["cost"]["origin"] == "fitted"
        assert "fitted to 5 points" in found["cost"]["error"]
        assert found["hardware"] is None


class TestCalibrate:
    def test_the_file(self, run: Run, measured: Path, tmp_path: Path) -> None:
        out = tmp_path / "cost.toml"
        own = ["calibrate", measured, "--model", "llama-3.1-8b", "--hardware", "h100-sxm"]
        done = run(*own, "--out", out)
        assert done.code == 0
        assert "linear b" in done.out
        written = tomllib.loads(out.read_text(encoding="utf-8"))
        assert written["cost"]["origin"] == "fitted"
        assert run(*own, "--out", out).code == 4
        assert run(*own, "--out", out, "--overwrite").code == 0
        shown = document(run, *own)
        assert shown["linear_us_per_token"] == written["cost"]["linear_us_per_token"]

    def test_json_rows_and_links(self, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "rows.jsonl"
        rows = [{"input_tokens": n, "ttft_ms": 20 + n * 0.03} for n in (1000, 4000, 16_000, 64_000)]
        rows += [{"input_tokens": 9000, "hit_tokens": 8000, "tier": "cpu", "ttft_ms": 90}]  # type: ignore[dict-item]
        path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
        own = ["calibrate", path, "--model", "llama-3.1-8b", "--hardware", "h100-sxm"]
        assert list(document(run, *own)["links"]) == ["cpu"]
        path.write_text(json.dumps(rows), encoding="utf-8")
        assert list(document(run, *own)["links"]) == ["cpu"]
        assert "cpu: bandwidth" in run(*own).out

    def test_warnings_go_to_stderr(self, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "one.csv"
        path.write_text("input_tokens,ttft_ms\n10000,260\n", encoding="utf-8")
        done = run("calibrate", path, "--model", "llama-3.1-8b", "--hardware", "h100-sxm")
        assert done.code == 0
        assert "warning: calibration: one length only" in done.err


def test_curve_takes_a_model(run: Run, native: Path) -> None:
    found = document(run, "curve", native, "--model", "qwen2.5-1.5b", "--capacity", "64MiB")
    assert found["curve"][0]["capacity_bytes"] == found["curve"][0]["capacity_tokens"] * 28_672


H100 = ["--hardware", "h100-sxm"]
LLAMA = ["--model", "llama-3.1-8b"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["model", "show", "llama-3"], "unknown model"),
        (["model", "show", "no/config.json"], "No such file"),
        (["model", "show", "llama-3.1-8b", "--logged-tokens", "5"], "both of"),
        (
            ["model", "show", "llama-3.1-8b", "--logged-tokens", "5", "--logged-memory", "5 blocks"],
            "not in bytes",
        ),
        (["model", "show", "llama-3.1-8b", "--tokens", "0"], "prefix of 0"),
        (["model", "fit", "llama-3.1-8b"], "no GPU"),
        (["model", "fit", "llama-3.1-8b", *H100, "--gpus", "0"], "tp is 0"),
        (["breakeven", *H100], "no model"),
        (["breakeven", *LLAMA], "neither --hardware nor --cost"),
        (["breakeven", *LLAMA, *H100, "--link", "x(bandwidth=50 Gb/s, fixed=0 us)"], "bits or bytes"),
        (["breakeven", *LLAMA, *H100, "--length", "0"], "a length is 0"),
        (["breakeven", *LLAMA, *H100, "--cost", "nowhere.toml"], "No such file"),
        (["breakeven", *LLAMA, *H100, "--gpu-hour-usd", "-1"], "gpu_hour_usd"),
        (["breakeven", *H100, "--tp", "4"], "--tp is about a model"),
        (["calibrate", "nowhere.csv", *LLAMA, *H100], "No such file"),
        (["calibrate", "nowhere.csv", *LLAMA], "no GPU"),
        (["list", "model"], "unknown list"),
    ],
)
def test_bad_input_exits_4_and_says_what(run: Run, arguments: list[str], told: str) -> None:
    done = run(*arguments)
    assert (done.code, done.out) == (4, "")
    assert told in done.err
    assert "hint:" in done.err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no measurements"),
        ("input_tokens,ttft_ms\n10000,-4\n", "is -4"),
        ("input_tokens,ttft_ms\n10000,nan\n", "is nan"),
        ("input_tokens,ttft_ms\n10000,260,9\n", "cells behind the heading"),
        ("tokens,ms\n10000,260\n", "unknown column"),
        ("[1, 2]", "measurement 1 is 1"),
        ("{", "Expecting"),
        ("[" * 100_000, "recursion"),
        ("\x00\x00", "measurement"),
    ],
)
def test_measurements_that_cannot_be(run: Run, tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(text, encoding="utf-8")
    done = run("calibrate", path, *LLAMA, *H100)
    assert (done.code, done.out) == (4, "")
    assert told in done.err


def test_two_sizes_of_a_token_are_one_too_many(run: Run, native: Path) -> None:
    done = run("curve", native, *LLAMA, "--kv-bytes-per-token", "131072")
    assert done.code == 4
    assert "give one of them" in done.err
