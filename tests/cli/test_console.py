"""The progress line: only where a person looks, never wider than the terminal, gone at the end."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest

from kvreplay.cli import console


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    stream = Terminal()
    # pytest puts its own stream into sys between the phases of a test.
    monkeypatch.setattr(console, "sys", SimpleNamespace(stderr=stream))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("KVREPLAY_NO_PROGRESS", raising=False)
    return stream


def test_progress_is_drawn_and_cleared(terminal: Terminal) -> None:
    hook = console.progress(quiet=False)
    assert hook is not None
    hook("reading", 50, 200)
    assert terminal.getvalue() == f"\r{'reading [' + 6 * '#' + 18 * '.' + '] 25 %':<64}"
    hook("reading", 1234, 0)
    hook("reading", -1, 0)
    assert terminal.getvalue().endswith(f"\r{'reading 1,234':<64}\r{'':<64}\r")


def test_progress_fits_a_narrow_terminal(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    hook = console.progress(quiet=False)
    assert hook is not None
    hook("reading", 50, 200)
    assert len(terminal.getvalue()) == 20


@pytest.mark.parametrize("name", ["quiet", "pipe", "dumb", "asked"])
def test_no_progress(terminal: Terminal, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    assert console.progress(quiet=False) is not None
    match name:
        case "pipe":
            monkeypatch.setattr(console, "sys", SimpleNamespace(stderr=io.StringIO()))
        case "dumb":
            monkeypatch.setenv("TERM", "dumb")
        case "asked":
            monkeypatch.setenv("KVREPLAY_NO_PROGRESS", "1")
    assert console.progress(quiet=name == "quiet") is None
    assert terminal.getvalue() == ""
