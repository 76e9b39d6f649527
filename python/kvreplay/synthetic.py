"""Generated traces: small, deterministic, and honest about what they model."""

from __future__ import annotations

from contextlib import ExitStack
from io import BytesIO
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from kvreplay import _core, calls
from kvreplay.errors import ConfigError, TraceError
from kvreplay.sources import Parquet, Stream, Text, name_of, resolve
from kvreplay.trace import Trace, reading_options
from kvreplay.units import is_whole

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAX_REQUESTS = 2**31 - 1


def generate(
    kind: str,
    *,
    requests: int | None = None,
    seed: int = 0,
    block_tokens: int = 16,
    lengths_from: object = None,
    lengths_columns: Mapping[str, str] | None = None,
    **parameters: float,
) -> Trace:
    """Generate a trace.

    Parameters
    ----------
    kind
        One of :func:`kvreplay.generators`.
    requests
        Number of requests, at least 1. With `lengths_from` it may be left out (all of them), or be smaller:
        then the first ones by arrival are taken.
    seed
        Equal seeds give equal traces on every platform; 0 to 2^64 - 1.
    block_tokens
        Tokens of a block.
    lengths_from
        A recording whose arrivals, input and output lengths the requests get, in order of arrival: any source
        of :func:`kvreplay.read_trace`, with or without blocks (Azure's and BurstGPT's CSV files have none).
        What requests share still is the kind's: its prompts are cut at their end, or filled up with text of
        their own, to the length given.
    lengths_columns
        Our names mapped to those of `lengths_from`: ``time``, ``input_tokens``, ``output_tokens``.
    **parameters
        Parameters of the kind, see :func:`kvreplay.generators`.

    Returns
    -------
    Trace
        With exactly `requests` requests.

    Raises
    ------
    ConfigError
        For an unknown kind or parameter, a value outside its range, or more requests than `lengths_from` has.
    TraceError
        When `lengths_from` cannot be read.

    Examples
    --------
    >>> import kvreplay as kv
    >>> scan = kv.generate("cyclic_scan", requests=30, documents=10, document_tokens=5008)
    >>> scan.info["requests"], scan.info["unique_blocks"]
    (30, 3130)
    """
    if requests is None and lengths_from is None:
        raise ConfigError("the number of requests is missing", hint="give requests or lengths_from")
    if lengths_columns and lengths_from is None:
        raise ConfigError("lengths_columns without lengths_from", hint="give both")
    if requests is not None:
        _check_whole("requests", requests, 1, _MAX_REQUESTS)
    _check_whole("seed", seed, 0, 2**64 - 1)
    _check_whole("block_tokens", block_tokens, 1, 2**31 - 1)
    for name, value in parameters.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ConfigError(f"{name} must be a number, not {value!r}", hint="see kvreplay list generators")
    numbers = {name: float(value) for name, value in parameters.items()}
    lengths = None if lengths_from is None else _lengths(lengths_from, lengths_columns or {})
    count = requests if requests is not None else len(lengths or ())
    core = calls.run(
        lambda p: _core.generate(
            kind,
            requests=count,
            seed=seed,
            block_tokens=block_tokens,
            parameters=numbers,
            lengths=lengths,
            progress=p,
        ),
        what="generating",
    )
    return Trace(core)


def _lengths(source: object, columns: Mapping[str, str]) -> _core.Lengths:
    """Read arrivals and lengths. The core reads them from text, so tables go to it as CSV."""
    with ExitStack() as stack:
        match resolve(source):
            case Text() as text:
                options = reading_options(columns=columns)
            case table:
                text = Text([_as_csv(table, stack)])
                options = reading_options(columns=columns, format="csv")
        return calls.run(
            lambda p: _core.read_lengths(text.sources, options, p), what="reading", stop=text.stop
        )


def _as_csv(table: Parquet | Stream, stack: ExitStack) -> BinaryIO:
    """The plain columns of a table as CSV in a temporary file: lists hold no lengths."""
    import polars as pl

    try:
        if isinstance(table, Parquet):
            lazy = pl.concat([pl.scan_parquet(_whole(one)) for one in table.sources])
        else:
            lazy = pl.DataFrame(cast("Any", table.stream)).lazy()
        plain = [name for name, kind in lazy.collect_schema().items() if not kind.is_nested()]
        file = stack.enter_context(TemporaryFile())  # noqa: SIM115 - the stack closes it
        lazy.select(plain).collect().write_csv(file)
    except pl.exceptions.PolarsError as error:
        name = name_of(table.sources[0]) if isinstance(table, Parquet) else "the table"
        reason = str(error).splitlines()[0]
        raise TraceError(
            f"{name}: cannot be read: {reason}", code="io", file=name, hint="write it as CSV"
        ) from error
    file.seek(0)
    return cast("BinaryIO", file)


def _whole(source: str | BinaryIO) -> Any:
    """What Polars can scan: a path, or all bytes of a file object."""
    return source if isinstance(source, str) else BytesIO(source.read())


def _check_whole(name: str, value: object, least: int, most: int) -> None:
    if not is_whole(value, least, most):
        raise ConfigError(
            f"{name} must be a whole number from {least} to {most}, not {value!r}",
            hint="see kvreplay list generators",
        )
