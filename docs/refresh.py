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

    from kvreplay import _core

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


def profiles() -> str:
    """The registry of engine profiles."""
    from kvreplay import _core

    registry = _core.profiles().to_pydict()
    lines = ["| profile | models | tiers |", "|---|---|---|"]
    for name, doc, tiers in zip(registry["name"], registry["doc"], registry["tiers"], strict=True):
        names = ", ".join(f"`{line.partition(':')[0]}`" for line in tiers.splitlines())
        lines.append(f"| `{name}` | {doc} | {names} |")
    return "\n".join(lines)


def rules() -> str:
    """One section per engine profile: options, tiers and the rules of the newest release."""
    from kvreplay import _core

    registry = _core.profiles().to_pydict()
    sections = []
    for name, releases, tiers in zip(registry["name"], registry["releases"], registry["tiers"], strict=True):
        resolved, table = _core.profile_rules(name)
        lines = [f"## {resolved}\n", f"Known releases: {releases}.\n"]
        lines += [f"- {line}" for line in tiers.splitlines()]
        lines += ["", "| option | default | meaning |", "|---|---|---|"]
        lines += [_row(f"`{o[0]}`", *o[1:]) for o in _rows(_core.profile_options(name))]
        lines += ["", "| topic | rule | since | source |", "|---|---|---|---|"]
        lines += [_row(*rule) for rule in _rows(table)]
        sections.append("\n".join(lines))
    return "\n\n".join(sections)


def _rows(table: _core.Table) -> list[tuple[str, ...]]:
    return list(zip(*table.to_pydict().values(), strict=True))


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def screen() -> str | None:
    """What `analyze` prints for Mooncake's conversation trace, or ``None`` where that is not at hand."""
    if not MOONCAKE.exists():
        return None
    own = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": own, "COLUMNS": "80"}
    command = ["kvreplay", "analyze", str(MOONCAKE), *TIERS]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return f"```\n{done.stdout.rstrip()}\n```"


def validation() -> str:
    """Published figures beside ours."""
    sys.path.insert(0, str(ROOT / "docs"))
    from validation import page  # type: ignore[import-not-found, unused-ignore]

    return str(page())


def models() -> str:
    """The models of the catalogue."""
    import kvreplay as kv

    head = [
        "| model | stored B | loaded B, long | state B | params, 10^9 | attention |",
        "|---|---|---|---|---|---|",
    ]
    rows = []
    for row in kv.models().iter_rows(named=True):
        size = (
            "-"
            if row["params_total"] is None
            else f"{row['params_total'] / 1e9:,.2f} / {row['params_active'] / 1e9:,.2f}"
        )
        state = f"{row['state_bytes']:,}" if row["state_bytes"] else "-"
        rows.append(
            f"| `{row['name']}` | {row['kv_bytes_per_token']:,} | {row['loaded_bytes_per_token_long']:,} | "
            f"{state} | {size} | {row['attention']} |"
        )
    return "\n".join([*head, *rows])


def hardware() -> str:
    """The GPUs of the catalogue."""
    import kvreplay as kv

    head = [
        "| GPU | bf16 TFLOPS | fp8 | memory GB/s | memory GiB | link | source |",
        "|---|---|---|---|---|---|---|",
    ]
    rows = [
        f"| `{row['name']}` | {row['bf16_tflops']:g} | {_or_dash(row['fp8_tflops'])} | {row['hbm_gb_s']:g} | "
        f"{row['memory_bytes'] / 2**30:.1f} | `{row['host_link']}` | {row['source']}, {row['date']} |"
        for row in kv.hardware().iter_rows(named=True)
    ]
    return "\n".join([*head, *rows])


def links() -> str:
    """The links of the catalogue."""
    import kvreplay as kv

    head = [
        "| link | GB/s | low | high | bus | fixed ms | copy us | through | source |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    rows = [
        f"| `{row['name']}` | {row['bandwidth_gb_s']:g} | {row['low_gb_s']:g} | {row['high_gb_s']:g} | "
        f"{_or_dash(row['bus_gb_s'])} | {row['fixed_us'] / 1e3:g} | {row['copy_us']:g} | "
        f"{row['through'] or '-'} | {row['source']}, {row['date']} |"
        for row in kv.links().iter_rows(named=True)
    ]
    return "\n".join([*head, *rows])


def prices() -> str:
    """The prices of the catalogue."""
    from kvreplay.cost.money import price_list

    head = ["| price | value | low | high | unit | source |", "|---|---|---|---|---|---|"]
    rows = [
        f"| `{row['name']}` | {row['value']:g} | {_or_dash(row['low'])} | {_or_dash(row['high'])} | "
        f"{row['unit']} | {row['source']}, {row['date']} |"
        for row in price_list().iter_rows(named=True)
    ]
    return "\n".join([*head, *rows])


def _or_dash(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"


PARTS: dict[str, tuple[str, Callable[[], str | None]]] = {
    "tables": ("docs/tables.md", tables),
    "generators": ("docs/generated-traces.md", generators),
    "profiles": ("docs/engines/index.md", profiles),
    "rules": ("docs/engines/rules.md", rules),
    "models": ("docs/cost/models.md", models),
    "hardware": ("docs/cost/hardware-and-links.md", hardware),
    "links": ("docs/cost/hardware-and-links.md", links),
    "prices": ("docs/cost/hardware-and-links.md", prices),
    "validation": ("docs/cost/validation.md", validation),
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
