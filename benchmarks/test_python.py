"""Micro-benchmarks of the Python package: `make bench` runs them, no test depends on their times.

Every benchmark works on the same generated trace, so that numbers of two commits can be compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import kvreplay as kv

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_benchmark.fixture import BenchmarkFixture

REQUESTS = 20_000


@pytest.fixture(scope="session")
def trace() -> kv.Trace:
    return kv.generate("multi_turn", requests=REQUESTS, seed=1)


@pytest.fixture(scope="session")
def files(trace: kv.Trace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the trace as t.jsonl and t.parquet."""
    directory: Path = tmp_path_factory.mktemp("bench")
    trace.write(directory / "t.jsonl", format="mooncake")
    trace.write(directory / "t.parquet")
    return directory


@pytest.mark.parametrize("name", ["t.jsonl", "t.parquet"])
def test_read(benchmark: BenchmarkFixture, files: Path, name: str) -> None:
    assert len(benchmark(kv.read_trace, files / name)) == REQUESTS


def test_write_native(benchmark: BenchmarkFixture, trace: kv.Trace, tmp_path: Path) -> None:
    benchmark(trace.write, tmp_path / "t.parquet")


def test_exact_curve(benchmark: BenchmarkFixture, trace: kv.Trace) -> None:
    assert benchmark(kv.hit_curve, trace).height > 0


@pytest.mark.parametrize("policy", ["lru", "fifo", "opt"])
def test_one_capacity(benchmark: BenchmarkFixture, trace: kv.Trace, policy: str) -> None:
    assert benchmark(kv.hit_curve, trace, policy=policy, capacities=["10%"]).height == 1


@pytest.mark.parametrize("fill", ["write_through", "write_back", "victim"])
def test_two_tiers(benchmark: BenchmarkFixture, trace: kv.Trace, fill: str) -> None:
    tiers = [kv.Tier("gpu", capacity="5%"), kv.Tier("cpu", capacity="20%", fill=fill)]
    assert benchmark(kv.replay, trace, tiers).tiers.height == 2


@pytest.mark.parametrize("threads", ["1", "2"])
def test_policy_curve(
    benchmark: BenchmarkFixture, trace: kv.Trace, monkeypatch: pytest.MonkeyPatch, threads: str
) -> None:
    monkeypatch.setenv("KVREPLAY_THREADS", threads)
    sizes = [f"{percent}%" for percent in range(5, 85, 10)]
    assert benchmark(kv.hit_curve, trace, policy="fifo", capacities=sizes).height == 8


@pytest.mark.parametrize("policies", [["lru"], ["opt"], ["fifo", "arc", "sieve", "s3fifo"]], ids="-".join)
def test_sweep(benchmark: BenchmarkFixture, trace: kv.Trace, policies: list[str]) -> None:
    grid = {"capacity": ["1%", "5%", "10%", "20%"], "policy": policies}
    assert benchmark(kv.sweep, trace, grid).height == 4 * len(policies)


@pytest.mark.parametrize("events", [False, True], ids=["stack", "blocks"])
def test_lru_by_either_engine(benchmark: BenchmarkFixture, trace: kv.Trace, *, events: bool) -> None:
    """Events are what the stack cannot tell; without them it answers."""
    result = benchmark(kv.replay, trace, [kv.Tier("gpu", capacity="10%")], events=events)
    assert result.summary["engine"] == ("blocks" if events else "stack")


def test_split_by_session_and_window(benchmark: BenchmarkFixture, trace: kv.Trace) -> None:
    def split() -> int:
        return kv.replay(trace, [kv.Tier("gpu", capacity="10%")], window="1m").windows.height

    assert benchmark(split) > 0


def test_reuse_runs(benchmark: BenchmarkFixture, trace: kv.Trace) -> None:
    assert benchmark(kv.reuse_runs, trace).height > 0


def test_analyze(benchmark: BenchmarkFixture, trace: kv.Trace) -> None:
    tiers = [kv.Tier("gpu", capacity="5%"), kv.Tier("cpu", capacity="20%", fill="victim")]
    assert benchmark(kv.analyze, trace, tiers).verdict
