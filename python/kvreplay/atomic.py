"""Files and directories that appear whole or not at all.

Everything is written beside its target, flushed to the disk and renamed, so that a reader, a crash or a full
disk never meets a half-written result. What a killed run leaves behind is removed by the next one.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from kvreplay.errors import ConfigError, cannot_write

if TYPE_CHECKING:
    from collections.abc import Iterator

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_MARK = "kvreplay-partial"


@contextmanager
def new_file(target: str | os.PathLike[str], *, overwrite: bool) -> Iterator[Path]:
    """Yield a path beside `target` to write to; on success it takes the target's place.

    Raises
    ------
    ConfigError
        When the target exists and may not be replaced, or the place is wrong.
    OutputError
        When the disk is full or fails; nothing is left behind.
    """
    path = Path(target)
    _refuse_existing(path, overwrite=overwrite, directory=False)
    beside = _beside(path)
    try:
        yield beside
        _sync(beside)
        beside.replace(path)
        _sync(path.parent)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


@contextmanager
def new_directory(target: str | os.PathLike[str], *, overwrite: bool) -> Iterator[Path]:
    """Yield an empty directory beside `target`; on success it takes the target's place in one step.

    Raises
    ------
    ConfigError
        When the target exists and may not be replaced, or the place is wrong.
    OutputError
        When the disk is full or fails; nothing is left behind.
    """
    path = Path(target)
    _refuse_existing(path, overwrite=overwrite, directory=True)
    beside: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = _beside(path)
        beside.mkdir()
        yield beside
        for file in sorted(beside.rglob("*"), reverse=True):
            _sync(file)
        _sync(beside)
        _exchange(beside, path)
        _sync(path.parent)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        if beside is not None:
            shutil.rmtree(beside, ignore_errors=True)


def check_target(target: str | os.PathLike[str], *, overwrite: bool, directory: bool = True) -> None:
    """Refuse a directory (or a file) that cannot be written before any work is done.

    Raises
    ------
    ConfigError
        As :func:`new_directory`.
    """
    path = Path(target)
    _refuse_existing(path, overwrite=overwrite, directory=directory)
    parent = path.parent
    while not parent.exists() and parent != parent.parent:
        parent = parent.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise ConfigError(
            f"cannot write {path}: {parent} is not a directory you may write to",
            hint="choose another directory",
        )


def check_file(target: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Refuse a file that cannot be written before any work is done.

    Raises
    ------
    ConfigError
        As :func:`new_file`.
    """
    path = Path(target)
    _refuse_existing(path, overwrite=overwrite, directory=False)
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK | os.X_OK):
        raise ConfigError(
            f"cannot write {path}: {path.parent} is not a directory you may write to",
            hint="choose a place that exists and that you may write to",
        )


def _refuse_existing(path: Path, *, overwrite: bool, directory: bool) -> None:
    if not os.path.lexists(path):
        return
    if path.is_dir() != directory and path.exists() and (directory or path.is_dir()):
        kind = "a directory" if path.is_dir() else "not a directory"
        raise ConfigError(f"{path} is {kind}", hint="choose another name")
    if not overwrite:
        raise ConfigError(f"{path} exists already", hint="give --overwrite to replace it, or another name")


def _beside(path: Path) -> Path:
    """A name for the partial result of this process, after those of dead ones are cleared away."""
    start = f".{path.name}.{_MARK}-"
    with suppress(OSError):
        for stale in path.parent.glob(f"{_escaped(start)}*"):
            if _is_dead(stale.name.removeprefix(start)):
                if stale.is_dir():
                    shutil.rmtree(stale, ignore_errors=True)
                else:
                    stale.unlink(missing_ok=True)
    return path.with_name(f"{start}{os.getpid()}")


def _escaped(name: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)


def _is_dead(pid: str) -> bool:
    if not pid.isdecimal():
        return False
    if int(pid) == os.getpid():
        return True  # left by an earlier write of this very process that was interrupted
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _exchange(new: Path, old: Path) -> None:
    """Put `new` where `old` is. With the system call both names exist at every moment."""
    if not old.exists():
        new.rename(old)
        return
    if not _renameat2(new, old):
        # Without the call there is a moment with no target; the old one waits beside, put back on failure.
        aside = old.with_name(f".{old.name}.{_MARK}-{os.getpid()}.old")
        old.rename(aside)
        try:
            new.rename(old)
        except OSError:
            aside.rename(old)
            raise
        shutil.rmtree(aside, ignore_errors=True)


def _renameat2(new: Path, old: Path) -> bool:
    """Exchange two names by the Linux system call; False where there is none."""
    if not sys.platform.startswith("linux"):
        return False
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return False
    arguments = (_AT_FDCWD, os.fsencode(new), _AT_FDCWD, os.fsencode(old), _RENAME_EXCHANGE)
    typed = [ctypes.c_char_p(a) if isinstance(a, bytes) else ctypes.c_int(a) for a in arguments]
    return int(call(*typed)) == 0
