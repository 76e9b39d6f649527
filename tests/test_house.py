"""The house keeps its own rules: import directions, file lengths, documentation that matches the code."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
CORE = ROOT / "rust" / "kvreplay-core" / "src"

# What each module of the core may use besides itself. Everything may use what `error` stands on: nothing.
_BASE = {"error", "progress", "table"}
_TRACE = _BASE | {"trace"}
_TIERS = _TRACE | {"policy", "admission"}
ALLOWED = {
    "error": set[str](),
    "progress": {"error"},
    "table": {"error"},
    "trace": _BASE,
    "ingest": _TRACE,
    "stack": _TRACE,
    "policy": _TRACE,
    "admission": _TRACE | {"policy"},
    "hierarchy": _TIERS,
    "engine": _TIERS | {"hierarchy"},
    "replay": _TIERS | {"hierarchy", "engine", "stack"},
}
# Files of policy/ that are not a policy.
POLICY_HELPERS = {"mod", "registry", "runs", "spec", "tests"}
SOURCES = ("*.rs", "*.py", "*.pyi", "*.sh", "*.toml", "*.html", "*.css", "*.js")
MAX_LINES = 800


def tracked(*patterns: str) -> list[Path]:
    """Files of the repository by glob, what git ignores left out."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [path for path in (ROOT / name for name in listed.stdout.splitlines()) if path.is_file()]


def run(command: list[str | Path]) -> str:
    """Standard output of a command that must succeed, with our own `kvreplay` on PATH, 80 columns wide."""
    own = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [*map(str, command)],
        env={**os.environ, "PATH": own, "COLUMNS": "80"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def module_of(path: Path) -> list[str]:
    """Module path of a source file: `policy/lru.rs` is `policy::lru`."""
    parts = list(path.relative_to(CORE).with_suffix("").parts)
    return parts[:-1] if parts[-1] in {"mod", "lib"} else parts


def is_test(path: Path) -> bool:
    inside = path.relative_to(CORE).with_suffix("").parts
    return "tests" in inside or inside[0] == "reference"


def code_of(path: Path) -> str:
    """Source without comments and without the test module at its end."""
    text = path.read_text(encoding="utf-8").split("#[cfg(test)]\nmod ", 1)[0]
    return re.sub(r"//[^\n]*", "", text)


def references(text: str, module: list[str]) -> Iterator[list[str]]:
    """Module paths of the crate that a source text names, `use a::{b, c}` taken apart at its first level."""
    pattern = r"\b(crate|super(?:::super)*)((?:::\w+)+)?(?:::\{([^;]*?)\};)?"
    for found in re.finditer(pattern, text):
        root, names, group = found.groups()
        base = [] if root == "crate" else module[: len(module) - root.count("super")]
        path = base + [name for name in (names or "").split("::") if name]
        if not group:
            yield path
            continue
        flat = re.sub(r"\{[^{}]*\}", "", group)
        yield from (path + item.strip().split("::") for item in flat.split(",") if item.strip())


def core_files() -> list[Path]:
    return [path for path in sorted(CORE.rglob("*.rs")) if path.name != "lib.rs" and not is_test(path)]


def test_the_reader_of_references_reads_what_rust_code_looks_like() -> None:
    text = """
        use crate::error::{Error, Result};
        use crate::{progress::Progress, trace};
        use super::parts::Queue;
        use super::super::trace::{Forest,
            Node};
        let x = crate::table::Table::new();
    """
    got = {tuple(path[:2]) for path in references(text, ["policy", "lru"])}
    assert got == {
        ("error", "Error"),
        ("error", "Result"),
        ("progress", "Progress"),
        ("trace",),
        ("policy", "parts"),
        ("trace", "Forest"),
        ("trace", "Node"),
        ("table", "Table"),
    }


def test_the_core_imports_in_one_direction() -> None:
    wrong = []
    for path in core_files():
        module = module_of(path)
        assert module[0] in ALLOWED, f"{path.name}: add {module[0]} to the directions"
        for used in references(code_of(path), module):
            if used and used[0] in ALLOWED and used[0] != module[0] and used[0] not in ALLOWED[module[0]]:
                wrong.append(f"{path.relative_to(CORE)} uses {'::'.join(used)}")
    assert wrong == []


def test_the_slow_twins_are_used_by_tests_only() -> None:
    users = [
        str(path.relative_to(CORE))
        for path in core_files()
        if any(used[:1] == ["reference"] for used in references(code_of(path), module_of(path)))
    ]
    assert users == []


def test_a_policy_uses_no_other_policy() -> None:
    policies = {path.stem for path in (CORE / "policy").glob("*.rs")} - POLICY_HELPERS
    wrong = []
    for name in sorted(policies):
        path = CORE / "policy" / f"{name}.rs"
        for used in references(code_of(path), ["policy", name]):
            if used[:1] == ["policy"] and used[1:2] and used[1] in policies - {name}:
                wrong.append(f"{name} uses {used[1]}")
    assert wrong == []


def test_the_core_knows_neither_python_nor_arrow() -> None:
    manifest = (ROOT / "rust" / "kvreplay-core" / "Cargo.toml").read_text(encoding="utf-8")
    assert not re.search(r"^(pyo3|arrow|parquet|polars)", manifest, re.MULTILINE)


def test_no_source_file_is_longer_than_a_reader_bears() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in tracked(*SOURCES)}
    assert lengths
    long = {str(path.relative_to(ROOT)): length for path, length in lengths.items() if length > MAX_LINES}
    assert long == {}


def test_every_quality_code_is_documented() -> None:
    text = (CORE / "trace" / "quality.rs").read_text(encoding="utf-8")
    text = text[text.index("pub const CODES") : text.index("/// One code found")]
    codes = re.findall(r'code\(\s*"(\w+)",\s*(Error|Warning|Info),\s*(true|false),', text)
    assert len(codes) > 40
    page = (ROOT / "docs" / "quality-codes.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)` \| ([\w, ]+) \|", page, re.MULTILINE)
    want = [(code, kind.lower() + (", repaired" if fix == "true" else "")) for code, kind, fix in codes]
    assert listed == want


@pytest.mark.parametrize("registry", ["policies", "formats"])
def test_every_registered_name_has_a_page_and_every_page_a_name(registry: str) -> None:
    """One page may describe several names (the containers of one format), but it must name them."""
    core = pytest.importorskip("kvreplay._core", reason="the extension is not built")
    names = set(getattr(core, registry)().to_pydict()["name"])
    pages = {path.stem: path for path in (ROOT / "docs" / registry).glob("*.md")}
    described = {name for path in pages.values() for name in re.findall(r"`(\w+)`", path.read_text("utf-8"))}
    assert names - described - set(pages) == set()
    assert set(pages) - names - {"index"} == set()


def test_every_engine_profile_is_described_on_a_page() -> None:
    core = pytest.importorskip("kvreplay._core", reason="the extension is not built")
    pages = [path for path in (ROOT / "docs" / "engines").glob("*.md") if path.stem not in ("index", "rules")]
    described = {name for path in pages for name in re.findall(r"`([\w+-]+)`", path.read_text("utf-8"))}
    names = set(core.profiles().to_pydict()["name"])
    assert names - described == set()
    engines = {part for name in names for part in name.split("+")}
    assert [path.stem for path in pages if path.stem not in engines] == []


def test_the_generated_parts_of_the_pages_are_up_to_date() -> None:
    check = [sys.executable, str(ROOT / "docs" / "refresh.py"), "--check"]
    done = subprocess.run(check, check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"run python docs/refresh.py\n{done.stdout}{done.stderr[-2000:]}"


def test_links_between_pages_lead_somewhere() -> None:
    broken = []
    for page in tracked("*.md"):
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if "://" not in target and not (page.parent / target).exists():
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert broken == []


def test_the_sample_traces_are_the_ones_listed() -> None:
    folder = ROOT / "traces"
    lines = (folder / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    listed = {name: digest for digest, name in (line.split() for line in lines)}
    samples = sorted(folder.glob("*.jsonl"))
    assert [path.name for path in samples] == sorted(listed)
    for path in samples:
        data = path.read_bytes()
        assert hashlib.sha256(data).hexdigest() == listed[path.name], path.name
        assert len(data) < 300_000, path.name
        assert f"| `{path.name}` |" in (folder / "README.md").read_text(encoding="utf-8"), path.name
        assert listed[path.name][:12] in (folder / "README.md").read_text(encoding="utf-8"), path.name


def test_the_samples_are_what_the_generator_makes(tmp_path: Path) -> None:
    run([ROOT / "traces" / "make.sh", tmp_path])
    names = sorted(path.name for path in (ROOT / "traces").glob("*.jsonl"))
    assert names == sorted(path.name for path in tmp_path.iterdir())
    for name in names:
        assert (tmp_path / name).read_bytes() == (ROOT / "traces" / name).read_bytes(), name


def test_the_licence_is_the_unchanged_apache_licence() -> None:
    digest = hashlib.sha256((ROOT / "LICENSE").read_bytes()).hexdigest()
    assert digest == "c71d239df91726fc519c6eb72d318ec65820627232b2f796219e87dcf35d0ab4"
