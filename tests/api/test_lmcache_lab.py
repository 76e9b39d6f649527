"""The example of the laboratory: hits exact, times near what was logged."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import kvreplay as kv

SCRIPT = Path(__file__).resolve().parent.parent.parent / "examples" / "lmcache_lab" / "run.py"


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    if not hasattr(kv, "profiles"):
        pytest.skip("this build has no engine profiles")
    out = tmp_path_factory.mktemp("lab")
    done = subprocess.run([sys.executable, SCRIPT, "--out", out], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-1000:]
    return dict(json.loads((out / "result.json").read_text("utf-8")))


def test_hits_are_those_of_the_engines(result: dict[str, Any]) -> None:
    hits = {
        (row["setup"], row["pass"]): (row["gpu_hit_tokens"], row["cpu_hit_tokens"]) for row in result["rows"]
    }
    assert hits == {
        ("gpu_only", 1): (0, 0),
        ("gpu_only", 2): (0, 0),
        ("gpu_only", 3): (21488, 0),
        ("cpu_tier", 1): (0, 0),
        ("cpu_tier", 2): (0, 48640),
        ("cpu_tier", 3): (21488, 27728),
    }
    assert all(
        row["gpu_hit_tokens"] + row["cpu_hit_tokens"] + row["computed_tokens"] == 50_110
        for row in result["rows"]
    )


def test_times_are_near_what_was_logged(result: dict[str, Any]) -> None:
    for row in result["rows"]:
        for name, error in row["errors"].items():
            limit = 0.1 if name == "pass_s" else 0.06
            assert abs(error) <= limit, (row["setup"], row["pass"], name, error)
    assert result["speedup_of_the_second_pass"] == pytest.approx(11.9, rel=0.1)
    assert result["store_overhead"] == pytest.approx(0.039, abs=0.004)
