"""The trace as users see it: read it, look at it, write it, cut it down."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from kvreplay import _core, calls, units
from kvreplay.atomic import new_file
from kvreplay.cuts import Cut, cut, kept_of, no_sessions
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

    def __init__(self, core: _core.Trace, cuts: tuple[Cut, ...] = ()) -> None:
        self._core = core
        self._cuts = cuts

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
        ``input_tokens``, ``output_tokens``, ``blocks`` (listed blocks), ``output_blocks`` (blocks that fill
        while decoding; only where the trace lists ``output_hash_ids``), then the trace's group columns.
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

    def output_blocks(self, request: int) -> list[int | str]:
        """Ids of the blocks that fill while a request decodes (``output_hash_ids``), as given.

        They follow the full blocks of the prompt and are no part of :meth:`blocks` or of any total: only
        engine profiles let them occupy a cache. Empty where the trace lists none.

        Raises
        ------
        IndexError
            When there is no such request.

        Examples
        --------
        >>> import kvreplay as kv, polars as pl
        >>> rows = pl.DataFrame({"input_tokens": [40], "hash_ids": [[1, 2, 3]], "output_hash_ids": [[7, 8]]})
        >>> trace = kv.read_trace(rows, block_tokens=16)
        >>> trace.blocks(0), trace.output_blocks(0)
        ([1, 2, 3], [7, 8])
        """
        if not 0 <= request < len(self):
            raise IndexError(f"request {request} of {len(self)}")
        return self._core.output_blocks(request)

    def scale(self, model: object = None) -> units.Scale:
        """Factors between blocks, tokens and bytes (`model`: see :func:`kvreplay.hit_curve`)."""
        if isinstance(model, str | os.PathLike):
            from kvreplay.cost.catalogue import model as find_model

            model = find_model(model)
        info = self.info
        return units.Scale(info["block_tokens"], info["unique_blocks"], units.kv_bytes_per_token(model))

    def write(
        self,
        path: str | os.PathLike[str],
        *,
        format: str = "native",
        overwrite: bool = True,
        progress: ProgressHook | None = None,
    ) -> None:
        """Write the trace, whole or not at all.

        Parameters
        ----------
        path
            The file. Text formats are packed when its name ends in ``.gz`` or ``.zst``.
        format
            A name of :func:`kvreplay.writers`: ``native`` (run-encoded Parquet that
            :func:`kvreplay.read_trace` reads back equal), ``mooncake``, ``bailian``, ``oracle_general`` or
            ``parquet`` (one row a request, for other tools).
        overwrite
            Whether an existing file may be replaced.
        progress
            Called with ``("writing", done, total)`` in requests; ``done`` is -1 at the end.

        Raises
        ------
        ConfigError
            When the file exists and may not be replaced, the place is wrong, or the format cannot hold the
            trace.
        OutputError
            When the disk is full or fails.
        """
        kind = writer_named(format)
        with new_file(path, overwrite=overwrite) as beside:
            if kind == "native":
                from kvreplay.parquet import write_native

                write_native(self._core, beside)
            elif kind == "parquet":
                from kvreplay.parquet import write_plain

                total = len(self)
                hook = progress or (lambda *_: None)
                write_plain(self._core, beside, on_rows=lambda done: hook("writing", done, total))
                hook("writing", -1, 0)
            else:
                with beside.open("wb") as file:
                    self.write_rows(file, format=kind, name=os.fsdecode(path), progress=progress)

    def write_rows(
        self,
        file: BinaryIO,
        *,
        format: str = "mooncake",
        name: str = "",
        progress: ProgressHook | None = None,
    ) -> None:
        """Write a format that is no Parquet to an open binary file; see :meth:`write`.

        Raises
        ------
        ConfigError
            When the format cannot hold the trace.
        OSError
            As the file's own ``write``.
        """
        kind = writer_named(format)
        out = _Output(file)
        try:
            calls.run(
                lambda p: _core.write_rows(
                    self._core, cast("BinaryIO", out), format=kind, name=name, progress=p
                ),
                what="writing",
                hook=progress,
            )
        except TraceError:
            if out.error is not None:
                raise out.error from None
            raise

    def anonymize(self, *, shift_times: bool = False) -> Trace:
        """Return the trace without names, to be given away; every replay gives the same hits.

        Ids are numbered from 0 in order of first appearance. Sessions, tenants, models and the other columns
        of namespaces become ``s1``, ``t1``, ``m1``, ... in order of first appearance; request ids, parents
        that name requests, and all columns of other names go; so do the values that ``quality`` quotes.
        Lengths and the distances between arrivals stay: whoever has the original can still recognise it.

        Parameters
        ----------
        shift_times
            Move the first arrival to 0.

        Examples
        --------
        >>> import kvreplay as kv
        >>> trace = kv.generate("multi_turn", requests=50, seed=1).anonymize()
        >>> trace.blocks(0)[:3], trace.requests()["session"][0]
        ([0, 1, 2], 's1')
        """
        return Trace(self._core.anonymize(shift_times), self._cuts)

    def spread_ties(self) -> Trace:
        """Return the trace with requests of equal time spread evenly up to the next distinct time.

        Recorded times are often rounded, and a queue then meets bursts that never happened. Order and hits
        stay the same. The last group is spread over the gap before it; with one time only nothing changes.

        Examples
        --------
        >>> import kvreplay as kv, polars as pl
        >>> rows = pl.DataFrame({"timestamp_us": [0, 0, 90], "input_tokens": 16, "hash_ids": [[1], [1], [1]]})
        >>> kv.read_trace(rows, block_tokens=16).spread_ties().requests()["arrival_us"].to_list()
        [0, 45, 90]
        """
        return Trace(self._core.spread_ties(), self._cuts)

    @property
    def cuts(self) -> tuple[Cut, ...]:
        """What :meth:`select` and :meth:`sample_sessions` did to the trace, in the order they were called."""
        return self._cuts

    def select(self, expression: pl.Expr, *, whole_sessions: bool = False) -> Trace:
        """Keep the requests for which a Polars expression over the request columns is true.

        Whole requests are kept or left out, never parts of a path. Leaving requests out leaves out their
        reuse: :attr:`cuts` of the result says what became of the working set.

        Parameters
        ----------
        expression
            For example ``pl.col("input_tokens") < 8192``.
        whole_sessions
            Keep every request of a session of which one is kept.

        Raises
        ------
        ConfigError
            When the expression fails or keeps nothing, or there are no sessions to keep whole.

        Examples
        --------
        >>> import kvreplay as kv, polars as pl
        >>> trace = kv.generate("multi_turn", requests=50, seed=1)
        >>> first = trace.select(pl.col("request") < 10)
        >>> len(first), first.cuts[0].before.requests, first.cuts[0].sessions_cut
        (10, 50, 5)
        """
        import polars as pl

        requests = self.requests()
        try:
            keep = requests.filter(expression)
        except pl.exceptions.PolarsError as error:
            reason = str(error).splitlines()[0]
            columns = ", ".join(requests.columns)
            raise ConfigError(f"cannot select requests: {reason}", hint=f"columns: {columns}") from error
        if whole_sessions:
            if "session" not in requests.columns:
                raise no_sessions()
            of_kept = pl.col("session").is_in(keep["session"].drop_nulls().unique().to_list())
            alone = pl.col("request").is_in(keep["request"].to_list())
            keep = requests.filter(of_kept.fill_null(value=False) | alone)
        return self._keep(keep["request"].to_list(), f"select {expression}")

    def sample_sessions(self, fraction: float, *, seed: int = 0) -> Trace:
        """Keep about `fraction` of the sessions, each with all its requests.

        A session is kept when a hash of its name and the seed falls below `fraction`: a smaller fraction
        keeps a subset of what a larger one keeps. Requests without a session count as sessions of their own.
        What sessions share with each other is used less often in a sample: :attr:`cuts` of the result says
        what became of the working set.

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
            raise no_sessions()
        keep = kept_of(requests["session"].to_list(), fraction, seed)
        return self._keep(keep, f"sample_sessions {fraction:g} seed {seed}")

    def _keep(self, keep: list[int], what: str) -> Trace:
        if not keep:
            raise ConfigError("no request is left", hint="keep more of the trace")
        core = calls.run(lambda _: self._core.select(keep), what="selecting")
        return Trace(core, (*self._cuts, cut(self._core, core, keep, what)))


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


def writer_named(name: str) -> str:
    """Name of an output format, dashes taken for underscores.

    Raises
    ------
    ConfigError
        When there is none of that name.
    """
    known = _core.writers().to_pydict()["name"]
    if name.replace("-", "_") not in known:
        raise unknown("output format", name, known)
    return name.replace("-", "_")


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
    session_rows: str = "auto",
    shared_prefix: str = "none",
    session_starts: str = "together",
    concurrency: int | None = None,
    seed: int = 0,
    progress: ProgressHook | None = None,
) -> Trace:
    """Read a trace.

    Parameters
    ----------
    source
        A path, a list of paths (read in order), a directory of WEKA sessions, ``-`` or a binary file object,
        an object with ``__arrow_c_stream__`` (Polars, pyarrow), a ``pl.LazyFrame``, or a URL (``s3://``,
        ``gs://``, ``az://``, ``https://``; needs the extra ``kvreplay[remote]``).
        Text may be packed with gz or zst.
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
    session_rows
        What rows of a session hold: ``auto`` (the whole prompt, with a warning where it looks otherwise),
        ``cumulative`` or ``delta`` (only what the turn adds).
    shared_prefix
        ``none``, or ``tool+system``: sessions with local ids share the blocks of tools and system prompt
        (WEKA).
    session_starts
        When sessions begin whose times count from their own start: ``together``, ``every(30s)`` or
        ``uniform(8h)``.
    concurrency
        At most this many such sessions at once; ``None`` = no limit.
    seed
        Of the draws of ``uniform``.
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
    _check_sessions(concurrency, seed)
    options = reading_options(
        format=format,
        block_tokens=block_tokens,
        tail=tail,
        time_unit=time_unit,
        scope=scope,
        namespace=namespace,
        strict=strict,
        columns=columns,
        session_rows=session_rows,
        shared_prefix=shared_prefix,
        session_starts=session_starts,
        concurrency=concurrency,
        seed=seed,
    )
    match resolve(source):
        case Text(sources) as text:
            if format in ("arrow", "native"):
                _wrong_format(name_of(sources[0]), format, "it is not Parquet")
            core = calls.run(
                lambda p: _core.read(sources, options, p), what="reading", hook=progress, stop=text.stop
            )
        case Stream(stream):
            if format not in _ARROW_FORMATS:
                _wrong_format("", format, "rows in memory are Arrow")
            options["format"] = "auto"
            core = calls.run(
                lambda p: _core.read_arrow(stream, options, progress=p), what="reading", hook=progress
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
        options["format"] = "auto"
        return calls.run(
            lambda p: _core.read_arrow(rows, options, file=file, progress=p), what="reading", hook=hook
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


_DEFAULTS: dict[str, Any] = {
    "format": "auto",
    "block_tokens": None,
    "tail": "auto",
    "time_unit": "auto",
    "scope": "auto",
    "namespace": "auto",
    "strict": False,
    "session_rows": "auto",
    "shared_prefix": "none",
    "session_starts": "together",
    "concurrency": None,
    "seed": 0,
}


def reading_options(**given: Any) -> dict[str, Any]:
    """The core's options of reading: what is given, else the defaults of :func:`read_trace`."""
    return _DEFAULTS | given | {"columns": dict(given.get("columns") or {})}


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


def _check_sessions(concurrency: int | None, seed: int) -> None:
    if concurrency is not None and not units.is_whole(concurrency, 1, _MAX_BLOCK_TOKENS):
        raise ConfigError(
            f"concurrency must be a whole number from 1, not {concurrency!r}", hint="None is no limit"
        )
    if not units.is_whole(seed, 0, 2**64 - 1):
        raise ConfigError(f"seed must be a whole number from 0, not {seed!r}", hint="below 2^64")


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
    settled = ("time_unit", "scope", "namespace", "session_rows", "shared_prefix", "session_starts")
    for key in (*settled, "concurrency"):
        if options[key] != _DEFAULTS[key]:
            raise ConfigError(
                f"{name}: {key} was settled when the native file was written",
                hint="convert the original again",
            )
    if options["columns"]:
        raise ConfigError(f"{name}: a native file needs no column names", hint="leave columns out")
