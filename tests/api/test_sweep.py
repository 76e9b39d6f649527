"""kv.sweep: the grid, the store, executors, cancellation."""

from __future__ import annotations

import json
import pickle
import threading
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

import kvreplay as kv
from kvreplay.sweeping import SWEEP_SCHEMA, work

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

GRID = {"capacity": [50, 200, "20%"], "policy": ["lru", "arc", "opt", "fifo"]}


class Counting(Executor):
    """Runs every task at once in the calling thread and counts them."""

    def __init__(self) -> None:
        self.tasks: list[work.Task] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.tasks.append(args[1])
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:  # noqa: BLE001 - what an executor does
            future.set_exception(error)
        return future


def test_every_combination_is_a_row_with_the_numbers_of_a_replay(chats: kv.Trace) -> None:
    out = kv.sweep(chats, GRID)
    assert dict(out.schema) == SWEEP_SCHEMA
    assert out["point"].to_list() == list(range(12))
    assert out["policy"].to_list() == ["lru", "arc", "opt", "fifo"] * 3
    for row in out.iter_rows(named=True):
        tier = kv.Tier("cache", capacity=row["capacity_blocks"], policy=row["policy"])
        alone = kv.replay(chats, [tier])
        want = alone.tiers.row(0, named=True)
        columns = ["asked_blocks", "hit_blocks", "hit_tokens", "tier_share", "tier_conditional_hit_ratio"]
        if row["policy"] != "opt":
            columns += ["inserted_blocks", "evicted_blocks", "dead_on_arrival_blocks", "unread_at_end_blocks"]
            columns += ["resident_blocks", "stranded_blocks", "no_room_blocks", "hits"]
        assert {name: row[name] for name in columns} == {name: want[name] for name in columns}
        assert row["all_hit_tokens"] == alone.summary["hit_tokens"]
        assert row["token_hit_ratio"] == alone.summary["token_hit_ratio"]
        assert row["engine"] == alone.summary["engine"]


def test_opt_has_no_writes(chats: kv.Trace) -> None:
    row = kv.sweep(chats, {"capacity": 100, "policy": "opt"}).row(0, named=True)
    assert row["hit_blocks"] > 0
    assert row["inserted_blocks"] is None
    assert row["engine"] == "future"


def test_bytes_need_a_model(chats: kv.Trace) -> None:
    without = kv.sweep(chats, {"capacity": 100}).row(0, named=True)
    with_model = kv.sweep(chats, {"capacity": 100}, model=1000).row(0, named=True)
    size = chats.info["block_tokens"] * 1000
    assert (without["capacity_bytes"], without["written_bytes"]) == (None, None)
    assert with_model["capacity_bytes"] == 100 * size
    assert with_model["written_bytes"] == with_model["inserted_blocks"] * size


def test_equal_points_are_computed_once_and_lru_points_share_a_pass(chats: kv.Trace) -> None:
    executor = Counting()
    grid = {"capacity": [100, "100 blocks", 200], "policy": ["lru", "opt", "fifo"]}
    out = kv.sweep(chats, grid, executor=executor)
    assert out.height == 9
    assert [(task.kind, len(task.keys)) for task in executor.tasks] == [
        ("lru", 2),
        ("opt", 2),
        ("replay", 1),
        ("replay", 1),
    ]
    assert out.equals(kv.sweep(chats, grid))


def test_hierarchies_vary_tier_by_tier(chats: kv.Trace) -> None:
    tiers = [kv.Tier("gpu", capacity=100), kv.Tier("cpu", capacity=200, fill="victim")]
    out = kv.sweep(chats, {"tiers": [tiers], "cpu.capacity": [200, 400], "gpu.policy": ["lru", "fifo"]})
    assert out.select("point", "tier", "capacity_blocks", "policy").rows() == [
        (0, "gpu", 100, "lru"),
        (0, "cpu", 200, "lru"),
        (1, "gpu", 100, "fifo"),
        (1, "cpu", 200, "lru"),
        (2, "gpu", 100, "lru"),
        (2, "cpu", 400, "lru"),
        (3, "gpu", 100, "fifo"),
        (3, "cpu", 400, "lru"),
    ]
    assert out["tiers"][2] == "gpu=100 blocks,policy=fifo; cpu=200 blocks,fill=victim"
    assert out.filter(point=0)["all_hit_tokens"].unique().len() == 1
    same = kv.sweep(chats, {"tiers": tiers})
    assert same.drop("point").equals(out.filter(point=0).drop("point"))


def test_a_list_of_points(chats: kv.Trace) -> None:
    gpu = kv.Tier("gpu", capacity=100)
    points = [
        gpu,
        [gpu, kv.Tier("cpu", capacity=500)],
        {"capacity": 100, "mode": "object", "closure": "none"},
    ]
    out = kv.sweep(chats, points)
    assert out["point"].to_list() == [0, 1, 1, 2]
    assert out["mode"].to_list() == ["prefix", "prefix", "prefix", "object"]
    assert out["usable_hit_blocks"].is_null().to_list() == [True, True, True, False]


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({}, "no capacity"),
        ([], "no point"),
        ("lru", "not a grid"),
        ({"capacity": []}, "no value"),
        ({"capacity": [0]}, "holds nothing"),
        ({"capacity": ["5000"]}, "no unit"),
        ({"capacity": [10], "polcy": ["lru"]}, "unknown key of the grid"),
        ({"capacity": [10], "policy": ["lru", "lruu"]}, "lruu"),
        ({"capacity": [10], "policy": ["wtinylfu(window=7)"]}, "out of range"),
        ({"capacity": [10], "admission": ["min_count(0)"]}, "out of range"),
        ({"capacity": [10], "mode": ["both"]}, "unknown mode"),
        ({"capacity": [10], "unit": ["page"]}, "unknown unit"),
        ({"capacity": [10], "last_token": ["yes"]}, "last_token"),
        ({"capacity": list(range(1, 100)), "chunk_blocks": list(range(1, 2000))}, "points"),
        ({"tiers": [[kv.Tier("a", capacity=5)]], "b.capacity": [5]}, "unknown key of the grid"),
        ({"tiers": [[kv.Tier("a", capacity=5), kv.Tier("b", capacity=5, policy="opt")]]}, "opt"),
        ([5], "not a point"),
    ],
)
def test_a_wrong_grid_is_refused_before_any_work(chats: kv.Trace, grid: Any, message: str) -> None:
    executor = Counting()
    with pytest.raises(kv.ConfigError, match=message):
        kv.sweep(chats, grid, executor=executor)
    assert executor.tasks == []


def test_what_is_no_executor_is_refused(chats: kv.Trace) -> None:
    with pytest.raises(kv.ConfigError, match="executor"):
        kv.sweep(chats, GRID, executor="threads")  # type: ignore[arg-type]


def test_a_store_makes_a_rerun_free_and_takes_new_points(chats: kv.Trace, tmp_path: Path) -> None:
    first, again, more = Counting(), Counting(), Counting()
    out = kv.sweep(chats, GRID, executor=first, store=tmp_path / "s")
    assert len(list((tmp_path / "s").iterdir())) == 12
    assert kv.sweep(chats, GRID, executor=again, store=tmp_path / "s").equals(out)
    assert again.tasks == []
    wider = kv.sweep(chats, {**GRID, "capacity": [50, 200, "20%", 300]}, executor=more, store=tmp_path / "s")
    assert sum(len(task.keys) for task in more.tasks) == 4
    assert wider.head(12).equals(out)
    other = kv.generate("multi_turn", requests=300, seed=8)
    kv.sweep(other, GRID, store=tmp_path / "s")
    assert len(list((tmp_path / "s").iterdir())) == 28


def test_a_store_does_not_depend_on_the_model(chats: kv.Trace, tmp_path: Path) -> None:
    kv.sweep(chats, {"capacity": 100}, store=tmp_path)
    executor = Counting()
    out = kv.sweep(chats, {"capacity": 100}, store=tmp_path, model=10, executor=executor)
    assert executor.tasks == []
    assert out["capacity_bytes"][0] == 100 * chats.info["block_tokens"] * 10


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": "sweep-point/1", "key": "x", "result": {}}'])
def test_a_damaged_store_is_said(chats: kv.Trace, tmp_path: Path, text: str) -> None:
    kv.sweep(chats, {"capacity": 100}, store=tmp_path)
    [file] = tmp_path.iterdir()
    file.write_text(text)
    with pytest.raises(kv.ConfigError, match="not a result of a sweep") as caught:
        kv.sweep(chats, {"capacity": 100}, store=tmp_path)
    assert "delete it" in caught.value.hint


def test_a_store_that_is_a_file_is_refused(chats: kv.Trace, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    with pytest.raises(kv.ConfigError, match="cannot write"):
        kv.sweep(chats, GRID, store=tmp_path / "f")


def test_a_store_file_says_what_it_holds(chats: kv.Trace, tmp_path: Path) -> None:
    kv.sweep(chats, {"capacity": 100}, store=tmp_path)
    [file] = tmp_path.iterdir()
    document = json.loads(file.read_text())
    assert document["key"] == file.stem
    assert document["trace_sha256"] == chats.info["sha256"]
    assert document["spec"]["tiers"][0]["capacity_blocks"] == 100


def test_results_are_told_as_they_come(chats: kv.Trace, tmp_path: Path) -> None:
    seen: list[pl.DataFrame] = []
    steps: list[tuple[str, int, int]] = []
    out = kv.sweep(
        chats, GRID, on_result=seen.append, store=tmp_path, progress=lambda *step: steps.append(step)
    )
    assert pl.concat(seen).sort("point").equals(out)
    assert steps[-2:] == [("sweeping", 12, 12), ("sweeping", -1, 0)]
    again: list[pl.DataFrame] = []
    kv.sweep(chats, GRID, on_result=again.append, store=tmp_path)
    assert pl.concat(again).equals(out)


class Stopping(Counting):
    """Is interrupted when the third task is handed over."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        if len(self.tasks) == 2:
            raise KeyboardInterrupt
        return super().submit(fn, *args, **kwargs)


def test_an_interrupted_sweep_goes_on_where_it_stopped(chats: kv.Trace, tmp_path: Path) -> None:
    whole = kv.sweep(chats, GRID)
    seen: list[pl.DataFrame] = []
    with pytest.raises(KeyboardInterrupt):
        kv.sweep(chats, GRID, store=tmp_path, on_result=seen.append, executor=Stopping())
    # LRU's and OPT's points had finished, three each.
    kept = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert (len(kept), len(seen)) == (6, 6)
    executor = Counting()
    assert kv.sweep(chats, GRID, store=tmp_path, executor=executor).equals(whole)
    assert [task.kind for task in executor.tasks] == ["replay"] * 6
    assert {name: (tmp_path / name).read_bytes() for name in kept} == kept


def test_an_interrupt_stops_the_replays_that_run(chats: kv.Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The replays are repeated until they are stopped, so the interrupt finds them running."""
    begun = threading.Event()
    real = work.run

    def run(trace: kv.Trace, task: work.Task, progress: Any = None) -> list[dict[str, Any]]:
        begun.set()
        while True:
            real(trace, task, progress)

    def interrupt(*_: object) -> None:
        if begun.is_set():
            raise KeyboardInterrupt

    monkeypatch.setattr(work, "run", run)
    with pytest.raises(KeyboardInterrupt):
        kv.sweep(chats, {"capacity": [1000, 2000], "policy": ["arc"]}, progress=interrupt)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ThreadPoolExecutor")]


def test_processes_do_as_well_as_threads(chats: kv.Trace) -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert kv.sweep(chats, GRID, executor=pool).equals(kv.sweep(chats, GRID))


def test_a_trace_can_be_pickled(chats: kv.Trace) -> None:
    back = pickle.loads(pickle.dumps(chats))  # noqa: S301 - our own bytes
    assert {**back.info, "format": ""} == {**chats.info, "format": ""}
    assert back.requests().equals(chats.requests())


@settings(max_examples=12)
@given(
    capacities=st.lists(st.integers(1, 400), min_size=1, max_size=4),
    policies=st.lists(
        st.sampled_from(["lru", "opt", "arc", "s3fifo", "random(seed=4)"]), min_size=1, max_size=3
    ),
    threads=st.integers(1, 5),
)
def test_the_result_does_not_depend_on_threads(
    chats: kv.Trace, capacities: list[int], policies: list[str], threads: int
) -> None:
    grid = {"capacity": capacities, "policy": policies}
    with ThreadPoolExecutor(threads) as pool:
        assert kv.sweep(chats, grid, executor=pool).equals(kv.sweep(chats, grid, executor=Counting()))


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5", "99999"])
def test_a_wrong_number_of_threads_is_refused(
    chats: kv.Trace, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("KVREPLAY_THREADS", text)
    with pytest.raises(kv.ConfigError, match="KVREPLAY_THREADS"):
        kv.sweep(chats, GRID)
    with pytest.raises(kv.ConfigError, match="KVREPLAY_THREADS"):
        kv.hit_curve(chats, policy="fifo", capacities=[10])


def test_a_curve_does_not_depend_on_threads(chats: kv.Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    curves = []
    for count in ("1", "3"):
        monkeypatch.setenv("KVREPLAY_THREADS", count)
        curves.append(kv.hit_curve(chats, policy="arc", capacities=range(10, 300, 30), warmup=0.5))
    assert curves[0].equals(curves[1])


def test_points_with_links_are_timed_as_replays_are(chats: kv.Trace, tmp_path: Path) -> None:
    worth: dict[str, Any] = {"model": "llama-3.1-8b", "hardware": "h100-sxm"}
    tiers = [kv.Tier("gpu", capacity="5%"), kv.Tier("cpu", capacity="20%")]
    grid = {"tiers": [tiers], "cpu.link": [None, "pcie4-x16", "pcie5-x16"], "cpu.capacity": ["10%", "20%"]}
    table = kv.sweep(chats, grid, store=tmp_path, **worth)
    assert table["harmful_hits"].null_count() == 4  # no link: nothing is known
    for link in ("pcie4-x16", "pcie5-x16"):
        for capacity in ("10%", "20%"):
            timed = [tiers[0], kv.Tier("cpu", capacity=capacity, link=link)]
            want = kv.replay(chats, timed, **worth).tiers.row(1, named=True)
            mine = table.filter(tier="cpu", link=link, capacity_blocks=want["capacity_blocks"])
            assert mine.height == 1
            for name in ("hit_tokens", "hits", "harmful_hits", "saved_us", "written_bytes"):
                assert mine[name][0] == want[name], name
    seen: list[int] = []
    again = kv.sweep(chats, grid, store=tmp_path, progress=lambda _, done, __: seen.append(done), **worth)
    assert again.equals(table)
    plain = kv.sweep(chats, {"tiers": [tiers]})
    assert plain["saved_us"].null_count() == 2
