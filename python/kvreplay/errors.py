"""The errors users meet: who has to act, where it is, what to do about it.

The compiled core raises errors of its own; :func:`translated` turns them into these at the border, so that
``except kv.TraceError`` catches both.
"""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kvreplay import _core

if TYPE_CHECKING:
    from collections.abc import Iterator


class KvreplayError(ValueError):
    """Base of the package's errors.

    Parameters
    ----------
    message
        What is wrong, with the offending value.
    hint
        What to do about it; may be empty.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class TraceError(KvreplayError):
    """A trace cannot be read or holds nothing usable (exit code 3).

    Parameters
    ----------
    message
        What is wrong, with file and line where they are known.
    code
        A quality code of ``trace.quality``, or ``io``, ``no_rows`` and the like.
    file
        The file; empty when the trace is in memory.
    line
        The line of the file (row of a table), from 1.
    hint
        What to do about it.
    """

    def __init__(
        self, message: str, *, code: str, file: str = "", line: int | None = None, hint: str = ""
    ) -> None:
        super().__init__(message, hint=hint)
        self.code = code
        self.file = file
        self.line = line


class ConfigError(KvreplayError):
    """A size, tier, option or file name that cannot be used (exit code 4)."""


class OutputError(KvreplayError):
    """A result could not be written, for example because the disk is full (exit code 1)."""


@contextmanager
def translated() -> Iterator[None]:
    """Turn the core's errors into the ones of this module."""
    try:
        yield
    except _core.TraceError as error:
        raise TraceError(
            str(error), code=error.code, file=error.file, line=error.line, hint=error.hint
        ) from None
    except _core.ConfigError as error:
        raise ConfigError(str(error), hint=error.hint) from None
    except _core.Cancelled:
        raise KeyboardInterrupt from None


# What the operating system says when the place was wrong rather than the machine in trouble.
_WRONG_PLACE = {
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EEXIST,
    errno.ENAMETOOLONG,
    errno.EINVAL,
}


def cannot_write(target: str | os.PathLike[str], error: OSError) -> KvreplayError:
    """Say why `target` could not be written: a wrong place is the caller's, a full disk is not.

    Polars and pyarrow wrap the system's error and may lose its number; the text is kept then.
    """
    if error.errno is None:
        return OutputError(f"cannot write {os.fspath(target)}: {error}", hint="nothing was replaced")
    reason = os.strerror(error.errno)
    message = f"cannot write {os.fspath(target)}: {reason}"
    if error.errno in _WRONG_PLACE:
        return ConfigError(message, hint="choose a place that exists and that you may write to")
    return OutputError(message, hint="nothing was replaced; free some space or choose another place")


def unknown(what: str, name: str, known: list[str]) -> ConfigError:
    """Name something that does not exist, with its nearest neighbour and all that do."""
    from difflib import get_close_matches  # slow to load and only needed here

    near = get_close_matches(name, known, n=1)
    guess = f"did you mean {near[0]}? " if near else ""
    listed = f"known: {', '.join(known)}" if known else "there is none here"
    return ConfigError(f"unknown {what} {name!r}", hint=f"{guess}{listed}")
