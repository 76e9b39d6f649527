"""What the command line says and where: results to stdout, everything else to stderr.

stdout may be a pipe that closes early (``| head``) or a full disk; both end quietly or with one clear error.
"""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kvreplay.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kvreplay import _core
    from kvreplay.calls import ProgressHook
    from kvreplay.trace import Trace

_BAR_WIDTH = 24
_MOST_COLUMNS = 100


def width() -> int:
    """Columns to fill: the terminal's, at most 100; 80 where there is none."""
    return min(shutil.get_terminal_size((80, 24)).columns, _MOST_COLUMNS)


def put(text: str) -> None:
    """Write a result to stdout.

    Raises
    ------
    OutputError
        When stdout cannot be written, except for a pipe whose reader has left: it has what it wanted.
    """
    with _standard_output():
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()


@contextmanager
def _standard_output() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        silence_stdout()
    except OSError as error:
        silence_stdout()
        raise OutputError(
            f"cannot write to standard output: {error.strerror or error}",
            hint="free some space, or send the output elsewhere",
        ) from error


def put_json(document: Any) -> None:
    """Write one JSON document to stdout."""
    import json

    put(json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False))


def put_trace(trace: Trace) -> None:
    """Write a trace to stdout as Mooncake JSONL.

    Raises
    ------
    OutputError
        As :func:`put`.
    """
    with _standard_output():
        trace.write_rows(sys.stdout.buffer)
        sys.stdout.flush()


def silence_stdout() -> None:
    """Let what is still buffered go nowhere: the interpreter would flush it again at exit and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(text: str) -> None:
    """Write a line to stderr; a stderr that cannot be written is nobody's to report to."""
    try:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
    except OSError:
        pass


def warn(warnings: Iterable[dict[str, str]], *, quiet: bool) -> None:
    """Write warnings to stderr, one line each, unless asked to be quiet."""
    if not quiet:
        for warning in warnings:
            say(f"warning: {warning['code']}: {warning['text']}")


def warn_of_quality(trace: Trace, *, quiet: bool) -> None:
    """Warn of what reading found, without loading Polars."""
    from kvreplay.report.warnings import of_quality

    warn(of_quality(rows_of(trace.core.quality())), quiet=quiet)


def rows_of(table: _core.Table) -> list[dict[str, Any]]:
    """A table of the core as a list of rows."""
    columns = table.to_pydict()
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def progress(*, quiet: bool) -> ProgressHook | None:
    """A progress line on stderr, only where a person looks at it."""
    if (
        quiet
        or not sys.stderr.isatty()
        or os.environ.get("TERM") == "dumb"
        or os.environ.get("KVREPLAY_NO_PROGRESS")
    ):
        return None
    return _draw


def _draw(what: str, done: int, total: int) -> None:
    if done < 0:
        text = ""  # the step is over: clear the line
    elif total > 0:
        filled = min(_BAR_WIDTH, _BAR_WIDTH * done // total)
        text = f"{what} [{'#' * filled}{'.' * (_BAR_WIDTH - filled)}] {100 * done // total} %"
    else:
        text = f"{what} {done:,}" if done else what
    room = min(_BAR_WIDTH + 40, width() - 1)  # a line that wraps could not be drawn over
    try:
        sys.stderr.write(f"\r{text[:room]:<{room}}" + ("\r" if done < 0 else ""))
        sys.stderr.flush()
    except OSError:
        pass
