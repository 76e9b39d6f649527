"""The trace as users see it: read it, look at it, write it, cut it down."""

from __future__ import annotations

import os
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, cast

from kvreplay import _core, calls, units
from kvreplay.atomic import new_file
from kvreplay.errors import ConfigError, TraceError, unknown
from kvreplay.sources import Parquet, Stream, Text, name_of, resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import polars as pl

    from kvreplay.calls import ProgressHook

_ARROW_FORMATS = ("auto", "arrow")
_MAX_BLOCK_TOKENS = 2**31 - 1


class Trace:
    """A prefix trace: which blocks of KV each request asked for, root first, in replay order.

    Immutable and cheap to share between threads. Made by :func:`kvreplay.read_trace` or
    :func:`kvreplay.generate`.
    """

    def __init__(self, core: _core.Trace) -> None:
        self._core = core

    def __len__(self) -> int:
        return len(self._core)

    def __repr__(self) -> str:
        info = self.info
        return (
            f"<Trace {info['requests']:,} requests, {info['input_tokens']:,} input tokens, "
            f"{info['unique_blocks']:,} blocks of {info['block_tokens']} tokens>"
        )

    def __reduce__(self) -> tuple[Callable[[bytes], Trace], tuple[bytes]]:
        """Pickle as the native file: processes of an executor read it back equal."""
        from io import BytesIO

        from kvreplay.parquet import write_native

        file = BytesIO()
        write_native(self._core, file)
        return _unpickled, (file.getvalue(),)

    @property
    def core(self) -> _core.Trace:
        """The compiled trace."""
        return self._core

    @property
    def info(self) -> dict[str, Any]:
        """Facts about the trace.

        ``format``, ``requests``, ``rejected_rows``, ``block_refs``, ``unique_blocks``, ``input_tokens``,
        ``output_tokens``, ``block_tokens``, ``tail`` (``ceil``: partial last blocks are listed),
        ``namespaces``, ``chained``, ``arrival_first_us``, ``arrival_last_us``, ``sha256``.
        """
        return self._core.info()

    @property
    def quality(self) -> pl.DataFrame:
        """What reading found, one row per code.

        ``code``, ``severity`` (``error``: rows were rejected, ``warning``: kept, ``info``), ``count``,
        ``first_line``, ``first_value``, ``message``, ``hint``.
        """
        from kvreplay.frames import frame

        return frame(self._core.quality())

    def requests(self) -> pl.DataFrame:
        """One row per request, in replay order.

        ``request`` (0-based position in replay order), ``arrival_us`` (as given, null without times),
        ``input_tokens``, ``output_tokens``, ``blocks`` (listed blocks), then the trace's group columns.
        """
        from kvreplay.frames import frame

        return frame(self._core.requests())

    def blocks(self, request: int) -> list[int | str]:
        """Ids of a request's blocks as given, root first.

        Raises
        ------
        IndexError
            When there is no such request.
        """
        if not 0 <= request < len(self):
            raise IndexError(f"request {request} of {len(self)}")
        return self._core.blocks(request)

    def scale(self, model: object = None) -> units.Scale:
        """Factors between blocks, tokens and bytes (`model`: see :func:`kvreplay.hit_curve`)."""
        info = self.info
        return units.Scale(info["block_tokens"], info["unique_blocks"], units.kv_bytes_per_token(model))

    def write(
        self,
        path: str | os.PathLike[str],
        *,
        format: Literal["native", "mooncake"] = "native",
        overwrite: bool = True,
    ) -> None:
        """Write the trace, whole or not at all.

        Parameters
        ----------
        path
            The file. With ``mooncake``, a name ending in ``.gz`` is compressed.
        format
            ``native``: run-encoded Parquet that :func:`kvreplay.read_trace` reads back equal. ``mooncake``:
            JSONL.
        overwrite
            Whether an existing file may be replaced.

        Raises
        ------
        ConfigError
            When the file exists and may not be replaced, or the place is wrong.
        OutputError
            When the disk is full or fails.
        """
        if format not in ("native", "mooncake"):
            raise unknown("output format", format, ["native", "mooncake"])
        with new_file(path, overwrite=overwrite) as beside:
            if format == "native":
                from kvreplay.parquet import write_native

                write_native(self._core, beside)
            else:
                with beside.open("wb") as file:
                    self._write_mooncake(file, packed=os.fspath(path).endswith(".gz"))

    def _write_mooncake(self, file: BinaryIO, *, packed: bool) -> None:
        if not packed:
            self.write_rows(file)
            return
        import gzip

        # No name and no time in the header: equal traces give equal bytes.
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as pack:
            self.write_rows(cast("BinaryIO", pack))

    def write_rows(self, file: BinaryIO) -> None:
        """Write the rows as Mooncake JSONL to an open binary file.

        Raises
        ------
        OSError
            As the file's own ``write``.
        """
        out = _Output(file)
        try:
            _core.write_mooncake(self._core, cast("BinaryIO", out))
        except _core.TraceError:
            if out.error is not None:
                raise out.error from None
            raise

    def select(self, expression: pl.Expr) -> Trace:
        """Keep the requests for which a Polars expression over the request columns is true.

        Whole requests are kept or left out, never parts of a path.

        Raises
        ------
        ConfigError
            When the expression fails or keeps nothing.

        Examples
        --------
        >>> import kvreplay as kv, polars as pl
        >>> trace = kv.generate("multi_turn", requests=50, seed=1)
        >>> len(trace.select(pl.col("request") < 10))
        10
        """
        import polars as pl

        try:
            keep = self.requests().filter(expression)["request"]
        except pl.exceptions.PolarsError as error:
            reason = str(error).splitlines()[0]
            columns = ", ".join(self.requests().columns)
            raise ConfigError(f"cannot select requests: {reason}", hint=f"columns: {columns}") from error
        return self._keep(keep.to_list())

    def sample_sessions(self, fraction: float, *, seed: int = 0) -> Trace:
        """Keep about `fraction` of the sessions, each with all its requests.

        A session is kept when a hash of its name and the seed falls below `fraction`: a smaller fraction
        keeps a subset of what a larger one keeps. Requests without a session count as sessions of their own.

        Raises
        ------
        ConfigError
            When the trace has no sessions, the fraction is outside (0, 1], or nothing is left.
        """
        if not 0 < fraction <= 1:
            raise ConfigError(
                f"fraction {fraction!r} is outside (0, 1]", hint="0.1 keeps a tenth of the sessions"
            )
        requests = self.requests()
        if "session" not in requests.columns:
            raise ConfigError(
                "the trace has no session column",
                hint='map one with columns={"session": ...}; single requests would lose their reuse',
            )
        names: list[str | None] = requests["session"].to_list()
        limit = int(fraction * 2**64)
        kept: dict[str, bool] = {}
        keep = []
        for request, name in enumerate(names):
            key = f"request {request}" if name is None else f"session {name}"
            if key not in kept:
                kept[key] = _hash64(key, seed) < limit
            if kept[key]:
                keep.append(request)
        return self._keep(keep)

    def _keep(self, keep: list[int]) -> Trace:
        if not keep:
            raise ConfigError("no request is left", hint="keep more of the trace")
        return Trace(calls.run(lambda _: self._core.select(keep), what="selecting"))


def _unpickled(data: bytes) -> Trace:
    from io import BytesIO

    return read_trace(BytesIO(data), format="native")


class _Output:
    """A file that remembers why writing failed: the core knows the text of the error, not its number."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.error: OSError | None = None

    def write(self, data: bytes) -> int:
        try:
            return self._file.write(data)
        except OSError as error:
            self.error = error
            raise


def _hash64(key: str, seed: int) -> int:
    salt = (seed & (2**64 - 1)).to_bytes(8, "little")
    return int.from_bytes(blake2b(key.encode(), digest_size=8, key=salt).digest(), "little")


def read_trace(
    source: object,
    *,
    format: str = "auto",
    block_tokens: int | None = None,
    tail: str = "auto",
    time_unit: str = "auto",
    scope: str = "auto",
    namespace: str | Sequence[str] = "auto",
    strict: bool = False,
    columns: Mapping[str, str] | None = None,
    progress: ProgressHook | None = None,
) -> Trace:
    """Read a trace.

    Parameters
    ----------
    source
        A path, a list of paths (read in order), ``-`` or a binary file object, an object with
        ``__arrow_c_stream__`` (Polars, pyarrow) or a ``pl.LazyFrame``. Text may be packed with gz or zst.
    format
        ``auto`` or a name of :func:`kvreplay.formats`.
    block_tokens
        Tokens per block; inferred from the lengths when not given.
    tail
        ``auto``, ``ceil`` (partial last blocks are listed) or ``floor``.
    time_unit
        ``auto``, ``s``, ``ms``, ``us`` or ``ns``.
    scope
        ``auto``, ``local`` or ``global``: whether ids of different sessions or files are comparable.
    namespace
        ``auto``, ``none`` or a list of columns: requests that differ in them share no blocks.
    strict
        Raise at the first row that would be rejected or repaired.
    columns
        Our names mapped to the file's, for example ``{"time": "ts", "session": "chat_id"}``.
    progress
        Called with ``(what, done, total)`` in bytes; ``done`` is -1 at the end.

    Returns
    -------
    Trace
        See ``trace.quality`` for what was found on the way.

    Raises
    ------
    TraceError
        When nothing usable can be read; with `strict` at the first doubtful row.
    ConfigError
        When an option is invalid.
    """
    _check_options(block_tokens, columns)
    found = resolve(source)
    options: dict[str, Any] = {
        "block_tokens": block_tokens,
        "tail": tail,
        "time_unit": time_unit,
        "scope": scope,
        "namespace": namespace,
        "strict": strict,
        "columns": dict(columns or {}),
    }
    match found:
        case Text(sources):
            if format in ("arrow", "native"):
                _wrong_format(name_of(sources[0]), format, "it is not Parquet")
            core = calls.run(
                lambda p: _core.read(sources, format=format, progress=p, **options),
                what="reading",
                hook=progress,
            )
        case Stream(stream):
            if format not in _ARROW_FORMATS:
                _wrong_format("", format, "rows in memory are Arrow")
            core = calls.run(
                lambda p: _core.read_arrow(stream, progress=p, **options), what="reading", hook=progress
            )
        case Parquet(files):
            core = _read_parquet(files, format, options, progress)
    return Trace(core)


def _read_parquet(
    sources: list[str | BinaryIO], format: str, options: dict[str, Any], hook: ProgressHook | None
) -> _core.Trace:
    from kvreplay import parquet  # keeps pyarrow out of reading text

    names = [name_of(source) for source in sources]
    files = [parquet.open_file(source) for source in sources]
    metadata = [parquet.native_metadata(file, name) for file, name in zip(files, names, strict=True)]
    if format not in (*_ARROW_FORMATS, "native"):
        _wrong_format(names[0], format, "it is Parquet")
    rows = parquet.stream(files, names)
    file = names[0] if len(names) == 1 else ""
    if all(text is None for text in metadata):
        if format == "native":
            _wrong_format(names[0], format, "it is Parquet, but kvreplay did not write it")
        return calls.run(
            lambda p: _core.read_arrow(rows, file=file, progress=p, **options), what="reading", hook=hook
        )
    if format == "arrow":
        _wrong_format(names[0], format, "it is a native file")
    text = metadata[0]
    if len(files) > 1 or text is None:
        raise ConfigError("a native file holds a whole trace and cannot be joined", hint="join the originals")
    trace = calls.run(lambda _: _core.read_native(rows, text, file=file), what="reading", hook=hook)
    parquet.release_memory()
    _check_native_options(trace, options, names[0])
    return trace


def _check_options(block_tokens: int | None, columns: Mapping[str, str] | None) -> None:
    if block_tokens is not None and not units.is_whole(block_tokens, 1, _MAX_BLOCK_TOKENS):
        raise ConfigError(
            f"block_tokens must be a positive number, not {block_tokens!r}", hint="usual: 16 to 512"
        )
    pairs: Iterable[tuple[object, object]] = (columns or {}).items()
    for ours, theirs in pairs:
        if not isinstance(ours, str) or not isinstance(theirs, str):
            raise ConfigError(
                f"columns maps names to names, not {ours!r} to {theirs!r}",
                hint='{"time": "ts"} reads time from ts',
            )


def _wrong_format(file: str, format: str, why: str) -> None:
    place = f"{file}: " if file else ""
    raise TraceError(
        f"{place}cannot be read as {format}: {why}", code="io", file=file, hint="leave the format to auto"
    )


def _check_native_options(trace: _core.Trace, options: dict[str, Any], name: str) -> None:
    """Refuse options that a native file has settled already, rather than ignore them."""
    info = trace.info()
    given = options["block_tokens"]
    if given is not None and given != info["block_tokens"]:
        raise ConfigError(
            f"{name}: has blocks of {info['block_tokens']} tokens, not {given}",
            hint="convert the original again",
        )
    if options["tail"] not in ("auto", info["tail"]):
        raise ConfigError(f"{name}: has {info['tail']} tails", hint="convert the original again")
    for key in ("time_unit", "scope", "namespace"):
        if options[key] != "auto":
            raise ConfigError(
                f"{name}: {key} was settled when the native file was written",
                hint="convert the original again",
            )
    if options["columns"]:
        raise ConfigError(f"{name}: a native file needs no column names", hint="leave columns out")
