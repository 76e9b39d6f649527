"""Replay the LMCache laboratory: ten documents, three passes, with and without a CPU tier.

``python examples/lmcache_lab/run.py --out DIR`` writes ``DIR/result.json``: per setup and pass the tokens hit
in each tier and the times to the first token, with what was observed beside them. Hits come from the engines'
own rules (profiles of vLLM and LMCache), times from a cost model fitted to ``measurements.csv``.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from statistics import mean, median
from typing import Any

import polars as pl

import kvreplay as kv

HERE = Path(__file__).parent
MODEL = "qwen2.5-1.5b"
# The log does not name the GPU; this one stands for it where measurements leave a coefficient open.
HARDWARE = "l4"
DOCUMENTS = 10
DOCUMENT_TOKENS = 5011
BLOCK_TOKENS = 16
ORDER = [range(DOCUMENTS), range(DOCUMENTS), range(DOCUMENTS)[::-1]]
GPU = kv.Tier("gpu", capacity="1345 blocks")  # as vLLM prints it: 21,520 tokens, the null block among them
SETUPS: dict[str, dict[str, Any]] = {
    "gpu_only": {"profile": "vllm@0.33", "tiers": [GPU]},
    "cpu_tier": {
        "profile": "vllm@0.33+lmcache@0.5.6",
        "tiers": [GPU, kv.Tier("cpu", capacity="1.5GiB", chunk_blocks=256 // BLOCK_TOKENS)],
    },
}


def prompts() -> kv.Trace:
    """The requests: documents 0 to 9, again 0 to 9, then 9 to 0, one by one, one output token each."""
    blocks = -(-DOCUMENT_TOKENS // BLOCK_TOKENS)
    order = [document for documents in ORDER for document in documents]
    rows = {
        "timestamp": [at * 1000 for at in range(len(order))],
        "input_length": [DOCUMENT_TOKENS] * len(order),
        "output_length": [1] * len(order),
        "hash_ids": [[document * blocks + block for block in range(blocks)] for document in order],
    }
    columns = {"time": "timestamp", "input_tokens": "input_length", "output_tokens": "output_length"}
    return kv.read_trace(
        pl.DataFrame(rows), block_tokens=BLOCK_TOKENS, tail="ceil", time_unit="ms", columns=columns
    )


def cost_model() -> kv.CostModel:
    """The cost of computing, loading and storing, fitted to what was measured."""
    with (HERE / "measurements.csv").open(encoding="utf-8", newline="") as file:
        rows = [{name: _number(value) for name, value in row.items()} for row in csv.DictReader(file)]
    return kv.calibrate(rows, model=MODEL, hardware=HARDWARE)


def _number(text: str) -> float | str | None:
    try:
        return float(text) if text else None
    except ValueError:
        return text


def replayed(trace: kv.Trace, name: str, cost: kv.CostModel) -> pl.DataFrame:
    """What each request got in a setup, and its time to the first token."""
    setup = SETUPS[name]
    tiers = [replace(tier, link=cost.links.get(tier.name)) for tier in setup["tiers"]]
    result = kv.replay(
        trace,
        tiers,
        profile=setup["profile"],
        profile_options={"block_size": BLOCK_TOKENS},
        model=MODEL,
        cost=cost,
        per_request=True,
        events=True,  # what each request stored delays it, so it has to be known exactly
    )
    return result.requests


def rows_of(requests: pl.DataFrame, name: str) -> list[dict[str, Any]]:
    """One row per pass."""
    rows = []
    for number in range(3):
        part = requests.slice(number * DOCUMENTS, DOCUMENTS)
        times = [time / 1000 for time in part["service_ttft_us"]]
        hits = {
            f"{tier.name}_hit_tokens": int(part[f"hit_tokens_{tier.name}"].sum())
            for tier in SETUPS[name]["tiers"]
        }
        rows.append(
            {
                "setup": name,
                "pass": number + 1,
                "ttft_p50_ms": median(times),
                "ttft_mean_ms": mean(times),
                "ttft_sum_ms": sum(times),
                "document_5_ttft_ms": times[ORDER[number].index(5)],
                "gpu_hit_tokens": 0,
                "cpu_hit_tokens": 0,
                **hits,
                "computed_tokens": int(part["computed_tokens"].sum()),
            }
        )
    return rows


def with_passes(rows: list[dict[str, Any]], observed: dict[tuple[str, int], dict[str, Any]]) -> None:
    """Add the time of each pass: its first tokens, and per request what the log shows besides.

    The rest of a request (decoding, the client) is taken from one logged pass, the second without the CPU
    tier; the other passes are predictions.
    """
    by_key = {(row["setup"], row["pass"]): row for row in rows}
    base = ("gpu_only", 2)
    rest_ms = (observed[base]["pass_s"] * 1000 - by_key[base]["ttft_sum_ms"]) / DOCUMENTS
    for row in rows:
        row["pass_s"] = (row["ttft_sum_ms"] + DOCUMENTS * rest_ms) / 1000


def compared(rows: list[dict[str, Any]], observed: dict[tuple[str, int], dict[str, Any]]) -> None:
    """Add to each row what was observed, and the relative error of each time."""
    for row in rows:
        seen = observed[row["setup"], row["pass"]]
        row["observed"] = {name: value for name, value in seen.items() if name not in ("setup", "pass")}
        row["errors"] = {name: row[name] / value - 1 for name, value in row["observed"].items()}


def main(arguments: list[str]) -> int:
    """Replay both setups and write the result."""
    parser = argparse.ArgumentParser(description="Replay the LMCache laboratory with and without a CPU tier.")
    parser.add_argument("--out", type=Path, required=True, help="directory for result.json")
    out = parser.parse_args(arguments).out
    log = tomllib.loads((HERE / "observed.toml").read_text("utf-8"))["row"]
    observed = {(row["setup"], row["pass"]): row for row in log}
    trace, cost = prompts(), cost_model()
    rows = [row for name in SETUPS for row in rows_of(replayed(trace, name, cost), name)]
    with_passes(rows, observed)
    compared(rows, observed)
    by_key = {(row["setup"], row["pass"]): row for row in rows}
    miss, hit = by_key["gpu_only", 2], by_key["cpu_tier", 2]
    first, stored = by_key["gpu_only", 1], by_key["cpu_tier", 1]
    result = {
        "cost": {
            "error": cost.error,
            "c0_us": cost.c0_us,
            "floor_us": cost.floor_us,
            "linear_us_per_token": cost.linear_us_per_token,
            "quadratic_us_per_token2": cost.quadratic_us_per_token2,
        },
        "speedup_of_the_second_pass": miss["ttft_p50_ms"] / hit["ttft_p50_ms"],
        "store_overhead": stored["ttft_p50_ms"] / first["ttft_p50_ms"] - 1,
        "rows": rows,
    }
    out.mkdir(parents=True, exist_ok=True)
    (out / "result.json").write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    for row in rows:
        print(
            f"{row['setup']} pass {row['pass']}: p50 {row['ttft_p50_ms']:.1f} ms "
            f"({row['errors']['ttft_p50_ms']:+.1%}), mean {row['ttft_mean_ms']:.1f} ms "
            f"({row['errors']['ttft_mean_ms']:+.1%}), pass {row['pass_s']:.2f} s, "
            f"{row['gpu_hit_tokens']:,} GPU and {row['cpu_hit_tokens']:,} CPU hit tokens"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
