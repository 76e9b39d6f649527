"""A wheel installed into an empty environment runs: nothing of the source tree is needed."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "traces" / "multi_turn.jsonl"

pytestmark = pytest.mark.slow


def run(*command: str | Path, cwd: Path) -> str:
    # Variables of the outer environment would let its packages in.
    keep = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env=keep, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]} {done.stderr[-2000:]}"
    return done.stdout


def maturin(*arguments: str | Path) -> None:
    pytest.importorskip("maturin", reason="maturin is not installed")
    run(sys.executable, "-m", "maturin", *arguments, cwd=ROOT)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The release wheel; cargo has the extension already when `make build` has run.

    Workers of one test run share it: two builds at once would take each other's files away.
    """
    base = tmp_path_factory.getbasetemp()
    out = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "wheel"
    out.mkdir(exist_ok=True)
    with (out / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not list(out.glob("kvreplay-*.whl")):
            maturin("build", "--release", "--locked", "--quiet", "--out", out)
    (path,) = out.glob("kvreplay-*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin directory of an environment that holds the wheel and its dependencies."""
    home = tmp_path_factory.mktemp("empty") / "env"
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel, cwd=home)
    return home / "bin"


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "-cp311-abi3-" in wheel.name
    assert {name.split("/")[0].split("-")[0] for name in names} == {"kvreplay"}
    assert {"kvreplay/__init__.py", "kvreplay/py.typed", "kvreplay/_core.pyi"} <= set(names)
    assert sum(name.startswith("kvreplay/_core.") and name.endswith(".so") for name in names) == 1
    assert not [name for name in names if "__pycache__" in name]


def test_the_source_archive_can_be_built_from(tmp_path: Path) -> None:
    maturin("sdist", "--out", tmp_path)
    (path,) = tmp_path.glob("kvreplay-*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    needed = {"Cargo.lock", "Cargo.toml", "pyproject.toml", "LICENSE", "python/kvreplay/__init__.py"}
    assert needed <= names
    assert {"rust/kvreplay-core/src/lib.rs", "rust/kvreplay-py/src/lib.rs"} <= names
    assert not [name for name in names if name.startswith(("target/", ".venv/"))]


def test_the_installed_command_answers(installed: Path, tmp_path: Path) -> None:
    version = run(installed / "kvreplay", "--version", cwd=tmp_path)
    core = run(installed / "python", "-c", "import kvreplay._core as c; print(c.__version__)", cwd=tmp_path)
    assert core.strip() in version
    tiers = ["--tier", "gpu=1000 blocks", "--tier", "cpu=4000 blocks,fill=victim"]
    screen = run(installed / "kvreplay", "analyze", SAMPLE, *tiers, "--out", "report", cwd=tmp_path)
    assert "gpu" in screen
    assert "cpu" in screen
    assert (tmp_path / "report" / "report.json").is_file()
    assert (tmp_path / "report" / "tables" / "tiers.parquet").is_file()


def test_the_installed_package_is_the_wheel_s(installed: Path, tmp_path: Path) -> None:
    where = run(installed / "python", "-c", "import kvreplay; print(kvreplay.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(installed.parent)
