"""Whether a table will fit before it is built: a clear error beats the kernel's killer."""

from __future__ import annotations

from pathlib import Path

from kvreplay import display
from kvreplay.errors import ConfigError

_KEEP_FREE = 0.9
# Residents, guards, flags, queue links of a policy and its ghosts, per distinct block and tier.
_BYTES_PER_BLOCK_AND_TIER = 24


def available_bytes() -> int | None:
    """Memory that can be had without swapping; ``None`` where the system does not say (not Linux)."""
    try:
        for line in Path("/proc/meminfo").read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        return None
    return None


def check(needed_bytes: int, *, what: str, hint: str) -> None:
    """Refuse an allocation that is larger than the memory at hand.

    Raises
    ------
    ConfigError
        When it does not fit.
    """
    free = available_bytes()
    if free is not None and needed_bytes > free * _KEEP_FREE:
        raise ConfigError(
            f"{what} would take about {display.size(needed_bytes)}, "
            f"and {display.size(free)} of memory are free",
            hint=hint,
        )


def check_replays(unique_blocks: int, *, tiers: int, workers: int) -> None:
    """Refuse replays of `tiers` tiers on `workers` threads at once that would not fit.

    Raises
    ------
    ConfigError
        When they do not.
    """
    check(
        unique_blocks * _BYTES_PER_BLOCK_AND_TIER * tiers * workers,
        what=f"a replay of {tiers} tiers on {workers} threads",
        hint="set KVREPLAY_THREADS to a smaller number, or select fewer requests",
    )
