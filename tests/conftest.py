"""What all tests share: where things are, small traces, a bounded and repeatable hypothesis."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import kvreplay as kv

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
# The oracle is imported as tests.oracle; pytest's importlib mode does not put the root on the path.
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

settings.register_profile(
    "kvreplay", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("kvreplay")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The directory with the public traces; tests that need it are skipped without it."""
    if not SHARED.is_dir():
        pytest.skip("the public traces are not here: no ../shared")
    return SHARED


@pytest.fixture(scope="session")
def conversation(shared: Path) -> Path:
    return shared / "traces" / "conversation_trace.jsonl"


@pytest.fixture(scope="session")
def synthetic(shared: Path) -> Path:
    return shared / "traces" / "synthetic_trace.jsonl"


@pytest.fixture(scope="session")
def chats() -> kv.Trace:
    """A generated trace with sessions."""
    return kv.generate("multi_turn", requests=300, seed=7)
