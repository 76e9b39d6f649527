"""The compiled core. Everything here is plain: no Polars, no units, no defaults that users see.

Tables cross the border as :class:`Table` (an Arrow C stream, ``pl.DataFrame(table)`` takes it without a
copy). Long calls release the GIL and take a :class:`Progress`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, final

__all__ = [
    "Cancelled",
    "ConfigError",
    "Curve",
    "EngineTrace",
    "Error",
    "Lengths",
    "Progress",
    "Replay",
    "Table",
    "Trace",
    "TraceError",
    "__version__",
    "admissions",
    "ceiling",
    "fill_rules",
    "formats",
    "generate",
    "generators",
    "lru_curve",
    "lru_tiers",
    "policies",
    "policy_curve",
    "profile_options",
    "profile_rules",
    "profile_trace",
    "profiles",
    "quality_codes",
    "ratios",
    "read",
    "read_arrow",
    "read_lengths",
    "read_native",
    "replay",
    "replay_profile",
    "reuse_runs",
    "reuse_time",
    "window_growth",
    "write_rows",
    "writers",
]

__version__: str

class Error(ValueError):
    """Base of the two below; ``.hint`` says what to do about it."""

    hint: str

class TraceError(Error):
    """An unreadable trace. ``str(error)`` is ``file:line: message``."""

    code: str
    file: str
    line: int | None

class ConfigError(Error):
    """An invalid configuration."""

class Cancelled(Exception):  # noqa: N818 - nothing went wrong
    """A call was stopped through its :class:`Progress`."""

@final
class Progress:
    """How far a long call is. Bytes while reading, requests while replaying."""

    def __init__(self) -> None: ...
    def get(self) -> tuple[int, int]:
        """``(done, total)``; total 0 = unknown."""
    def cancel(self) -> None:
        """Asks the call to stop; it raises :class:`Cancelled`."""

@final
class Table:
    """Columns of equal length as an Arrow C stream."""

    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def to_pydict(self) -> dict[str, list[Any]]:
        """Plain lists, for callers that do without Polars."""

@final
class Trace:
    """An immutable trace, shared between threads."""

    def __len__(self) -> int: ...
    @property
    def sha256(self) -> str: ...
    def info(self) -> dict[str, Any]:
        """The dict of interface.md (`trace.info`)."""
    def quality(self) -> Table:
        """code, severity, count, first_line, first_value, message, hint."""
    def requests(self) -> Table:
        """request, arrival_us, input_tokens, output_tokens, blocks, group columns."""
    def blocks(self, request: int) -> list[int | str]: ...
    def output_blocks(self, request: int) -> list[int | str]: ...
    def select(self, keep: Sequence[int]) -> Trace: ...
    def unique_blocks(self) -> int: ...
    def longest_path(self) -> int: ...
    def totals(self) -> dict[str, int]:
        """block_refs, input_tokens, output_tokens, full_blocks, longest_path."""
    def anonymize(self, shift_times: bool) -> Trace: ...
    def spread_ties(self) -> Trace: ...
    def plain(self, begin: int) -> tuple[Table, int]:
        """Plain rows from a request on, as many as fit a batch, and the request behind them."""
    def native(self) -> tuple[Table, str]:
        """The native file's rows and its metadata (JSON)."""

@final
class Lengths:
    """Arrivals and lengths of a recorded trace."""

    def __len__(self) -> int: ...

# `options` of the three below has every key of: format, block_tokens, tail, time_unit, scope, namespace,
# strict, columns (our names to the file's), session_rows, shared_prefix, session_starts, concurrency, seed.
def read(
    sources: Sequence[str | BinaryIO], options: Mapping[str, Any], progress: Progress | None = None
) -> Trace:
    """Reads text formats. A source is a path or a binary file object; '-' never gets here."""

def read_lengths(
    sources: Sequence[str | BinaryIO], options: Mapping[str, Any], progress: Progress | None = None
) -> Lengths:
    """Reads arrivals and lengths only, of traces that list no blocks as well."""

def read_arrow(
    stream: object, options: Mapping[str, Any], *, file: str = "", progress: Progress | None = None
) -> Trace:
    """Reads rows from any object with ``__arrow_c_stream__``; `columns` maps our names to the stream's."""

def read_native(stream: object, metadata: str, *, file: str = "") -> Trace: ...
def write_rows(
    trace: Trace, file: BinaryIO, *, format: str, name: str, progress: Progress | None = None
) -> None:
    """Writes a format of :func:`writers` that is no Parquet; `name` ending in .gz or .zst packs it."""

def generate(
    kind: str,
    *,
    requests: int,
    seed: int,
    block_tokens: int,
    parameters: Mapping[str, float],
    lengths: Lengths | None = None,
    progress: Progress | None = None,
) -> Trace: ...

# Registries: name, doc, parameters (text: "name=default, ..."), source.
def formats() -> Table: ...
def generators() -> Table: ...
def policies() -> Table: ...
def admissions() -> Table: ...
def fill_rules() -> Table: ...
def quality_codes() -> Table: ...
def writers() -> Table:
    """name, doc, loses, source of the formats that traces are written in."""

@final
class Curve:
    """Exact LRU hits at every capacity, from one pass."""

    @property
    def breakpoints(self) -> int:
        """Number of capacities at which the curve rises (rows of :meth:`steps`)."""
    @property
    def last_capacity_blocks(self) -> int:
        """The smallest capacity that reaches the ceiling; 0 when nothing is reused."""
    def at(self, capacities: Sequence[int]) -> Table:
        """capacity_blocks, hit_blocks, hit_tokens[, warm_hit_tokens] at the given capacities."""
    def steps(self) -> Table:
        """The same at every capacity where it rises."""
    def reuse_distance(self) -> Table:
        """Histogram by powers of two: lower, upper, accesses, tokens."""

def lru_curve(trace: Trace, *, warmup_requests: int | None, progress: Progress | None = None) -> Curve: ...
def policy_curve(
    trace: Trace,
    *,
    policy: str,
    capacities: Sequence[int],
    warmup_requests: int | None,
    threads: int,
    progress: Progress | None = None,
) -> Table:
    """As :meth:`Curve.at` for any registered policy and for `opt` (request-granular Belady with bypass)."""

def lru_tiers(trace: Trace, *, capacities: Sequence[int], progress: Progress | None = None) -> Table:
    """Rows of :meth:`Replay.tiers` for single LRU tiers of these capacities, all from one pass."""

def reuse_runs(trace: Trace, progress: Progress | None = None) -> Table:
    """request, start, length, distance_blocks, previous_request, age_us."""

def reuse_time(trace: Trace, progress: Progress | None = None) -> Table:
    """Histogram of the time since the previous access: lower, upper, accesses, tokens.

    Bins by powers of two of a microsecond.
    """

def ceiling(trace: Trace) -> Table:
    """request, hit_blocks, hit_tokens with an infinite cache."""

def ratios(trace: Trace) -> Table:
    """name, value, numerator, denominator, definition with an infinite cache."""

def window_growth(
    trace: Trace, *, capacities: Sequence[int], windows: int, progress: Progress | None = None
) -> Table:
    """Growth over the time, cumulative.

    window, until_us, requests, input_tokens, ceiling_hit_tokens, hit_tokens_0.. (LRU of each capacity),
    distinct_blocks.
    """

@final
class Replay:
    """What one replay recorded."""

    @property
    def engine(self) -> str:
        """Which engine answered: stack, blocks, future, sequences or profile."""
    def tiers(self) -> Table: ...
    def requests(self) -> Table: ...
    def occupancy(self) -> Table:
        """Resident blocks per tier after each request; no columns unless that was asked for."""
    def events(self) -> Table: ...
    def content(self, tier: int) -> list[int | str]: ...
    def ratios(self) -> Table:
        """The named ratios of the tiers together; needs `per_request`."""

@final
class EngineTrace:
    """A trace in the blocks of an engine profile."""

    @property
    def profile(self) -> str:
        """The resolved profile: vllm@0.33.0."""
    @property
    def block_tokens(self) -> int: ...
    @property
    def unique_blocks(self) -> int: ...
    def trace(self) -> Trace:
        """The trace in engine blocks, whose ids are block numbers."""

def profile_trace(trace: Trace, profile: str, options: Sequence[tuple[str, str]]) -> EngineTrace: ...
def replay_profile(
    trace: EngineTrace,
    tiers: Sequence[Mapping[str, Any]],
    *,
    per_request: bool,
    events: bool,
    occupancy: bool = False,
    progress: Progress | None = None,
) -> Replay:
    """The tiers of an engine over the whole trace, by its own rules."""

def profiles() -> Table: ...
def profile_options(profile: str) -> Table: ...
def profile_rules(profile: str) -> tuple[str, Table]:
    """The resolved name and the rules of a profile."""

def replay(
    trace: Trace,
    tiers: Sequence[Mapping[str, Any]],
    *,
    mode: str,
    unit: str,
    last_token: bool,
    full_blocks_only: bool,
    per_request: bool,
    events: bool,
    occupancy: bool = False,
    progress: Progress | None = None,
) -> Replay:
    """One hierarchy over the whole trace. A tier is a dict: name, capacity_blocks, policy, admission, fill,
    touch, closure, chunk_blocks."""
