"""Running commands: in this process where that is enough, as a process where the system takes part."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pytest

import kvreplay as kv
from kvreplay.cli.run import run as run_command

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str


class Run(Protocol):
    def __call__(self, *arguments: object) -> Done: ...


class Spawn(Protocol):
    def __call__(self, *arguments: object, stdin: bytes) -> Done: ...


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Run a command in this process, 80 columns wide."""
    handler = signal.getsignal(signal.SIGINT)
    monkeypatch.setenv("COLUMNS", "80")
    for name in [name for name in os.environ if name.startswith("KVREPLAY_")]:
        monkeypatch.delenv(name)

    def call(*arguments: object) -> Done:
        capfd.readouterr()
        code = run_command([str(argument) for argument in arguments])
        return Done(code, *capfd.readouterr())

    yield call
    signal.signal(signal.SIGINT, handler)


@pytest.fixture
def spawn() -> Spawn:
    """Run a command as a process of its own, with something on its standard input."""

    def call(*arguments: object, stdin: bytes) -> Done:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("KVREPLAY_")}
        done = subprocess.run(
            [sys.executable, "-m", "kvreplay", *map(str, arguments)],
            capture_output=True,
            check=False,
            env=environment | {"COLUMNS": "80"},
            input=stdin,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    return call


@pytest.fixture(scope="session")
def native(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generated trace as a native file."""
    path: Path = tmp_path_factory.mktemp("cli") / "chats.parquet"
    kv.generate("multi_turn", requests=300, seed=7).write(path)
    return path
