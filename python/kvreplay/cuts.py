"""What leaving requests out does to a trace's working set.

A cut trace is another workload: fewer requests, fewer blocks, and less reuse wherever a block was shared with
what was left out. So every cut says what it did.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

from kvreplay import _core
from kvreplay.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class WorkingSet:
    """How large a trace is and what an infinite cache would serve of it.

    Parameters
    ----------
    requests
        Number of requests.
    block_refs
        Listed blocks of all requests.
    unique_blocks
        Distinct blocks.
    ceiling_token_hit_ratio
        ``token_hit_ratio`` with an infinite cache; ``None`` without input tokens.
    """

    requests: int
    block_refs: int
    unique_blocks: int
    ceiling_token_hit_ratio: float | None


@dataclass(frozen=True)
class Cut:
    """What one call of ``select`` or ``sample_sessions`` did.

    Parameters
    ----------
    what
        The call.
    before, after
        The working set.
    sessions_cut
        Sessions that lost some of their requests but not all: their later turns meet a cache that their
        earlier ones never filled. ``None`` in a trace without sessions.
    """

    what: str
    before: WorkingSet
    after: WorkingSet
    sessions_cut: int | None

    def __str__(self) -> str:
        old, new = self.before, self.after
        parts = [
            f"requests {old.requests:,} -> {new.requests:,}",
            f"block references {old.block_refs:,} -> {new.block_refs:,}",
            f"unique blocks {old.unique_blocks:,} -> {new.unique_blocks:,}",
            f"ceiling {_percent(old)} -> {_percent(new)}",
        ]
        if self.sessions_cut:
            parts.append(f"{self.sessions_cut:,} sessions lost some of their requests")
        return f"{self.what}: {', '.join(parts)}"


def cut(before: _core.Trace, after: _core.Trace, keep: Sequence[int], what: str) -> Cut:
    """Describe how `after`, the requests `keep` of `before`, differs from it."""
    return Cut(what, _working_set(before), _working_set(after), _sessions_cut(before, keep))


def _working_set(trace: _core.Trace) -> WorkingSet:
    ratios = _core.ratios(trace).to_pydict()
    ceiling = dict(zip(ratios["name"], ratios["value"], strict=True))["token_hit_ratio"]
    return WorkingSet(len(trace), trace.totals()["block_refs"], trace.unique_blocks(), ceiling)


def _sessions_cut(trace: _core.Trace, keep: Sequence[int]) -> int | None:
    from kvreplay.frames import frame

    requests = frame(trace.requests())
    if "session" not in requests.columns:
        return None
    sessions = requests["session"]
    old, new = sessions.drop_nulls().value_counts(), sessions[list(keep)].drop_nulls().value_counts()
    both = old.join(new, on="session", suffix="_kept")
    return both.filter(both["count"] > both["count_kept"]).height


def kept_of(names: Sequence[str | None], fraction: float, seed: int) -> list[int]:
    """Positions whose session falls into the sample; ``None`` is a session of its own."""
    limit = int(fraction * 2**64)
    kept: dict[str, bool] = {}
    keep = []
    for request, name in enumerate(names):
        key = f"request {request}" if name is None else f"session {name}"
        if key not in kept:
            kept[key] = _hash64(key, seed) < limit
        if kept[key]:
            keep.append(request)
    return keep


def no_sessions() -> ConfigError:
    """Say that a trace without sessions cannot be cut by them."""
    return ConfigError(
        "the trace has no session column",
        hint='map one with columns={"session": ...}; single requests would lose their reuse',
    )


def _hash64(key: str, seed: int) -> int:
    salt = (seed & (2**64 - 1)).to_bytes(8, "little")
    return int.from_bytes(blake2b(key.encode(), digest_size=8, key=salt).digest(), "little")


def _percent(working_set: WorkingSet) -> str:
    ratio = working_set.ceiling_token_hit_ratio
    return "-" if ratio is None else f"{100 * ratio:.2f} %"
