"""How many threads kvreplay may start."""

from __future__ import annotations

import os

from kvreplay.errors import ConfigError

_VARIABLE = "KVREPLAY_THREADS"
_MOST = 1024


def threads() -> int:
    """Number of threads: ``KVREPLAY_THREADS``, or the processors this process may use.

    Raises
    ------
    ConfigError
        When the variable is not a number from 1 to 1024.
    """
    text = os.environ.get(_VARIABLE, "").strip()
    if not text:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= _MOST:
        raise ConfigError(
            f"{_VARIABLE}={text!r} is not a number of threads", hint=f"give a number from 1 to {_MOST}"
        )
    return int(text)
