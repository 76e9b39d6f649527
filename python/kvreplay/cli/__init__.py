"""The command line. The entry point installs its Ctrl-C handler before it loads anything heavy."""

from __future__ import annotations

import sys

from kvreplay.cli import interrupt


def main() -> None:
    """Run the command line and exit with its code.

    0 done, 1 internal error or an output that failed, 2 usage, 3 trace unreadable, 4 configuration invalid,
    5 a ``--fail-if`` held, 130 interrupted.
    """
    interrupt.install()
    from kvreplay.cli.run import run

    sys.exit(run(sys.argv[1:]))
