"""From arguments to an exit code: every way a command can end is listed here."""

from __future__ import annotations

import os
import sys

import typer

from kvreplay.cli import console, interrupt
from kvreplay.cli.app import build
from kvreplay.errors import ConfigError, KvreplayError, OutputError, TraceError

EXIT_INTERNAL = 1
EXIT_USAGE = 2
EXIT_TRACE = 3
EXIT_CONFIG = 4
_ISSUE_HINT = "this is a bug in kvreplay; set KVREPLAY_TRACEBACK=1 to see where, and report it"


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code. Errors become an ``error:`` and a ``hint:`` line."""
    try:
        result = build(arguments)(arguments, prog_name="kvreplay", standalone_mode=False)
    except KeyboardInterrupt:
        console.say("\ninterrupted")
        return interrupt.EXIT_CODE
    except KvreplayError as error:
        return _report(error)
    except BrokenPipeError:
        console.silence_stdout()
        return 0
    except typer.Abort:
        return interrupt.EXIT_CODE
    except Exception as error:  # noqa: BLE001 - the last resort: one line instead of a traceback
        return _unexpected(error)
    return result if isinstance(result, int) else 0


def _report(error: KvreplayError) -> int:
    console.say(f"error: {error}")
    if error.hint:
        console.say(f"hint: {error.hint}")
    match error:
        case TraceError():
            return EXIT_TRACE
        case ConfigError():
            return EXIT_CONFIG
        case OutputError():
            return EXIT_INTERNAL
    return EXIT_INTERNAL


def _unexpected(error: Exception) -> int:
    show = getattr(error, "show", None)
    if show is not None and hasattr(error, "exit_code"):  # a usage error of typer
        show()
        return int(error.exit_code)
    if os.environ.get("KVREPLAY_TRACEBACK"):
        raise error
    if isinstance(error, MemoryError):
        console.say("error: out of memory")
        console.say("hint: analyze a part of the trace, or use a machine with more memory")
        return EXIT_INTERNAL
    name = type(error).__name__
    console.say(f"error: internal error: {name}: {str(error).splitlines()[0] if str(error) else ''}")
    console.say(f"hint: {_ISSUE_HINT}")
    return EXIT_INTERNAL


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
