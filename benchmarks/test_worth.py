"""What times cost: of a replay, of a report, and of other hardware over the same hits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import kvreplay as kv

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

REQUESTS = 20_000
WORTH: dict[str, Any] = {"model": "llama-3.1-8b", "hardware": "h100-sxm"}
TIERS = [
    kv.Tier("gpu", capacity="5%"),
    kv.Tier("cpu", capacity="20%", link="pcie5-x16"),
]


@pytest.fixture(scope="session")
def trace() -> kv.Trace:
    return kv.generate("multi_turn", requests=REQUESTS, seed=1)


@pytest.mark.parametrize("worth", [{}, WORTH], ids=["hits", "times"])
def test_replay(benchmark: BenchmarkFixture, trace: kv.Trace, worth: dict[str, Any]) -> None:
    assert benchmark(lambda: kv.replay(trace, TIERS, **worth).tiers.height) == 2


@pytest.mark.parametrize("worth", [{}, WORTH], ids=["hits", "worth"])
def test_analyze(benchmark: BenchmarkFixture, trace: kv.Trace, worth: dict[str, Any]) -> None:
    assert benchmark(kv.analyze, trace, TIERS, **worth).verdict


def test_thousand_models_and_links(benchmark: BenchmarkFixture, trace: kv.Trace) -> None:
    """The same hits under 34 models, 2 GPUs and 15 links: no replay in it."""
    result = kv.replay(trace, TIERS, **WORTH)
    models = [name for name in kv.models()["name"] if kv.model(name).parameters is not None][:34]
    links = kv.links()["name"].to_list()[:15]
    combined = benchmark(
        result.retime_grid, models=models, hardware=["h100-sxm", "a100-sxm"], links={"cpu": links}
    )
    assert combined.height == len(models) * 2 * len(links)
