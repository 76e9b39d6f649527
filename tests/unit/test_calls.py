from __future__ import annotations

import threading

import pytest

from kvreplay import _core, calls
from kvreplay.errors import ConfigError, TraceError, cannot_write, unknown


def test_the_result_comes_back_and_the_hook_hears_the_end() -> None:
    heard: list[tuple[str, int, int]] = []
    assert calls.run(lambda _: 42, what="counting", hook=lambda *step: heard.append(step)) == 42
    assert heard[-1] == ("counting", -1, 0)


def test_other_threads_call_directly() -> None:
    found: list[threading.Thread] = []
    worker = threading.Thread(
        target=lambda: calls.run(lambda _: found.append(threading.current_thread()), what="x")
    )
    worker.start()
    worker.join()
    assert found == [worker]


def test_an_interrupt_cancels_the_call_and_waits_for_it() -> None:
    stopped = threading.Event()
    started = threading.Event()
    asked: list[_core.Progress] = []

    def work(progress: _core.Progress) -> None:
        asked.append(progress)
        started.set()
        stopped.wait(10)

    def hook(_what: str, done: int, _total: int) -> None:
        if done >= 0:
            assert started.wait(10)
            stopped.set()  # what the core does when it sees that it is cancelled
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        calls.run(work, what="working", hook=hook)
    assert stopped.is_set()


def test_errors_of_the_call_are_raised() -> None:
    def work(_: _core.Progress) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        calls.run(work, what="dividing")


def test_errors_of_the_core_become_ours() -> None:
    with pytest.raises(ConfigError) as caught:
        calls.run(
            lambda _: _core.generate("no_such", requests=1, seed=0, block_tokens=16, parameters={}),
            what="generating",
        )
    assert caught.value.hint
    assert isinstance(caught.value, ValueError)


def test_unknown_names_come_with_a_guess() -> None:
    error = unknown("policy", "lur", ["lru", "arc"])
    assert (str(error), error.hint) == ("unknown policy 'lur'", "did you mean lru? known: lru, arc")
    assert unknown("policy", "zzz", ["lru"]).hint == "known: lru"


def test_write_errors_without_a_number_keep_their_text() -> None:
    assert "odd" in str(cannot_write("x", OSError("odd")))


def test_a_trace_error_knows_its_place() -> None:
    error = TraceError("t.jsonl:3: bad", code="bad_type", file="t.jsonl", line=3, hint="look")
    assert (error.code, error.file, error.line, error.hint) == ("bad_type", "t.jsonl", 3, "look")
