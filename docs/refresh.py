"""Write the parts of the pages that the code itself knows: tables, kinds of generated traces, the screen.

``python docs/refresh.py`` rewrites what lies between the marks ``begin NAME`` and ``end NAME`` of a page;
``--check`` names the parts that are out of date instead, and exits with 1 if there are any.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parent.parent
MOONCAKE = ROOT.parent / "shared" / "traces" / "conversation_trace.jsonl"
TIERS = ["--tier", "gpu=5000 blocks", "--tier", "cpu=20000 blocks,fill=victim"]
TYPES = {"Int64": "integer", "Float64": "number", "Boolean": "true or false", "String": "text"}


def tables() -> str:
    """One section per table of the registry."""
    from kvreplay.tables import TABLES, optional

    sections = []
    for table in (*TABLES, *optional()):
        rows = [f"| `{c.name}` | {TYPES[str(c.dtype)]} | {c.doc} |" for c in table.columns]
        head = ["| column | type | meaning |", "|---|---|---|"]
        sections.append(
            "\n".join([f"## {table.name}\n", f"`{table.schema_name}`. {table.doc}\n", *head, *rows])
        )
    return "\n\n".join(sections)


def generators() -> str:
    """One section per kind of generated trace."""
    from kvreplay import _core

    kinds = _core.generators().to_pydict()
    sections = []
    for name, doc, parameters, source in zip(*kinds.values(), strict=True):
        pairs = [pair.split("=") for pair in parameters.split(", ")]
        rows = [f"| `{key}` | {value} |" for key, value in pairs]
        table = ["| parameter | default |", "|---|---|", *rows]
        sections.append(
            "\n".join([f"## {name}\n", f"{doc[0].upper()}{doc[1:]}.\n", f"Models {source}.\n", *table])
        )
    return "\n\n".join(sections)


def screen() -> str | None:
    """What `analyze` prints for Mooncake's conversation trace, or ``None`` where that is not at hand."""
    if not MOONCAKE.exists():
        return None
    own = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": own, "COLUMNS": "80"}
    command = ["kvreplay", "analyze", str(MOONCAKE), *TIERS]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return f"```\n{done.stdout.rstrip()}\n```"


PARTS: dict[str, tuple[str, Callable[[], str | None]]] = {
    "tables": ("docs/tables.md", tables),
    "generators": ("docs/generated-traces.md", generators),
    "screen": ("README.md", screen),
}


def main(arguments: list[str]) -> int:
    """Refresh or check every part."""
    stale = []
    for name, (page, make) in PARTS.items():
        path = ROOT / page
        text = path.read_text(encoding="utf-8")
        begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
        before, rest = text.split(begin)
        part, after = rest.split(end)
        made = make()
        if made is None or part == f"\n{made}\n\n":
            continue
        stale.append(f"{page}: {name}")
        if "--check" not in arguments:
            path.write_text(f"{before}{begin}\n{made}\n\n{end}{after}", encoding="utf-8")
    for one in stale:
        print(f"{'out of date' if '--check' in arguments else 'refreshed'}: {one}")
    return int("--check" in arguments and bool(stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
