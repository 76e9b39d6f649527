from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from kvreplay import atomic
from kvreplay.atomic import check_target, new_directory, new_file
from kvreplay.errors import ConfigError, OutputError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def fail_after_writing(target: AbstractContextManager[Path], error: type[BaseException]) -> None:
    with target as beside:
        (beside / "half" if beside.is_dir() else beside).write_text("half")
        raise error


def test_a_file_appears_whole(tmp_path: Path) -> None:
    with new_file(tmp_path / "x", overwrite=False) as beside:
        beside.write_text("new")
        assert names(tmp_path) == [beside.name]
    assert names(tmp_path) == ["x"]
    assert (tmp_path / "x").read_text() == "new"


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("old")
    with pytest.raises(RuntimeError):
        fail_after_writing(new_file(tmp_path / "x", overwrite=True), RuntimeError)
    assert names(tmp_path) == ["x"]
    assert (tmp_path / "x").read_text() == "old"


def test_an_existing_file_is_kept_without_overwrite(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("old")
    with pytest.raises(ConfigError, match="exists already"), new_file(tmp_path / "x", overwrite=False):
        pass
    with pytest.raises(ConfigError, match="is a directory"), new_file(tmp_path, overwrite=True):
        pass


@pytest.mark.parametrize("exchange", [True, False])
def test_a_directory_is_exchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, exchange: bool) -> None:
    if not exchange:
        monkeypatch.setattr(atomic, "_renameat2", lambda _new, _old: False)
    target = tmp_path / "r"
    for text in ("first", "second"):
        with new_directory(target, overwrite=True) as beside:
            (beside / "sub").mkdir()
            (beside / "sub" / text).write_text(text)
        assert names(tmp_path) == ["r"]
        assert names(target / "sub") == [text]


def test_a_failure_leaves_the_old_directory(tmp_path: Path) -> None:
    target = tmp_path / "r"
    target.mkdir()
    (target / "old").touch()
    with pytest.raises(KeyboardInterrupt):
        fail_after_writing(new_directory(target, overwrite=True), KeyboardInterrupt)
    assert names(tmp_path) == ["r"]
    assert names(target) == ["old"]


def test_what_dead_processes_left_is_removed(tmp_path: Path) -> None:
    dead = 2**22 + 1  # above the largest process id of Linux
    alive = os.getppid()
    (tmp_path / f".r.kvreplay-partial-{dead}").mkdir()
    (tmp_path / f".r.kvreplay-partial-{alive}").mkdir()
    (tmp_path / ".r.kvreplay-partial-notes").mkdir()
    with new_directory(tmp_path / "r", overwrite=False):
        pass
    assert names(tmp_path) == [f".r.kvreplay-partial-{alive}", ".r.kvreplay-partial-notes", "r"]


def test_a_full_disk_is_an_output_error(tmp_path: Path) -> None:
    with (
        pytest.raises(OutputError, match="No space left") as caught,
        new_directory(tmp_path / "r", overwrite=False),
    ):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert caught.value.hint
    assert names(tmp_path) == []


def test_wrong_places(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for target in (tmp_path / "file" / "r", tmp_path / "file"):
        with pytest.raises(ConfigError):
            check_target(target, overwrite=True)
        with pytest.raises(ConfigError), new_directory(target, overwrite=True):
            pass
    with pytest.raises(ConfigError, match="exists already"):
        check_target(tmp_path, overwrite=False)
    check_target(tmp_path / "new" / "deep", overwrite=False)
    with pytest.raises(ConfigError), new_file(tmp_path / "missing" / "x", overwrite=False) as beside:
        beside.touch()


def test_special_characters_in_names(tmp_path: Path) -> None:
    with new_directory(tmp_path / "a[b]*?", overwrite=False):
        pass
    assert names(tmp_path) == ["a[b]*?"]
