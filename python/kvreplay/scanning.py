"""A trace's requests as a Polars LazyFrame."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from polars.io.plugins import register_io_source

from kvreplay.trace import Trace, read_trace

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

_BATCH_ROWS = 65_536


def scan_trace(source: object, **options: Any) -> pl.LazyFrame:
    """Requests of a trace as a LazyFrame: one row per request, in replay order.

    The trace is read when the frame's schema or rows are first asked for, and kept as long as the frame
    lives.

    Parameters
    ----------
    source
        A :class:`kvreplay.Trace` or a source of :func:`kvreplay.read_trace`.
    **options
        Options of :func:`kvreplay.read_trace`.

    Returns
    -------
    polars.LazyFrame
        Columns as in :meth:`kvreplay.Trace.requests`.

    Raises
    ------
    TraceError, ConfigError
        When the frame is collected, as :func:`kvreplay.read_trace`.

    Examples
    --------
    >>> import kvreplay as kv, polars as pl
    >>> lazy = kv.scan_trace(kv.generate("unique", requests=25, seed=1))
    >>> lazy.select(pl.len()).collect().item()
    25
    """

    @cache
    def rows() -> pl.DataFrame:
        trace = source if isinstance(source, Trace) else read_trace(source, **options)
        return trace.requests()

    def read(
        columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_rows: int | None
    ) -> Iterator[pl.DataFrame]:
        frame = rows().head(n_rows) if n_rows is not None else rows()
        for part in frame.iter_slices(batch_rows or _BATCH_ROWS):
            kept = part if predicate is None else part.filter(predicate)
            yield kept if columns is None else kept.select(columns)

    return register_io_source(read, schema=lambda: rows().schema)
