"""Ctrl-C: before the work it ends the process at once, during the work it ends it cleanly.

While modules load, a KeyboardInterrupt would surface inside some import and end in a traceback. Nothing has
been written then, so the process may simply stop.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

EXIT_CODE = 130


def stop_at_once(_signal: int, _frame: FrameType | None) -> None:
    """End the process: nothing has begun."""
    os.write(sys.stderr.fileno(), b"\ninterrupted\n")
    os._exit(EXIT_CODE)


def raise_once(_signal: int, _frame: FrameType | None) -> None:
    """Raise in the main thread so that half-written files are removed; a second Ctrl-C does not wait."""
    signal.signal(signal.SIGINT, stop_at_once)
    raise KeyboardInterrupt


def install() -> None:
    """Set the handler for the time before the work."""
    signal.signal(signal.SIGINT, stop_at_once)


def work_begins() -> None:
    """Set the handler for the work; called when everything is loaded."""
    signal.signal(signal.SIGINT, raise_once)
