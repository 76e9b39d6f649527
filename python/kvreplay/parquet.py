"""Reading and writing Parquet traces with pyarrow, a row group at a time.

A native file (schema ``trace/1``) holds the rows the core hands out and its metadata as JSON; everything the
core needs to build the trace again is in it, so it is read several times faster than text.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from kvreplay import _core
from kvreplay.errors import TraceError
from kvreplay.sources import name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

NATIVE_SCHEMA = "trace/1"
ROW_GROUP_ROWS = 65_536
# A batch is decoded before the core takes it: small ones keep the memory of reading flat.
_BATCH_ROWS = 16_384


@contextmanager
def reported(file: str) -> Iterator[None]:
    """Turn pyarrow's errors about a file into ours."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TraceError(
            f"{file}: not a readable Parquet file: {reason}",
            code="io",
            file=file,
            hint="the file may be cut short or still being written; fetch it again",
        ) from error


def open_file(source: str | BinaryIO) -> pq.ParquetFile:
    """Open a Parquet file without reading rows.

    Raises
    ------
    TraceError
        When it is not a readable Parquet file.
    """
    with reported(name_of(source)):
        return pq.ParquetFile(source, pre_buffer=False, memory_map=False)


def native_metadata(file: pq.ParquetFile, name: str) -> str | None:
    """The JSON of a native file; ``None`` for any other Parquet file.

    Raises
    ------
    TraceError
        When a later version of kvreplay wrote it, or it is a table of results.
    """
    metadata = file.schema_arrow.metadata or {}
    schema = metadata.get(b"kvreplay.schema", b"").decode("utf-8", "replace")
    if not schema:
        return None
    if schema == NATIVE_SCHEMA and b"kvreplay.trace" in metadata:
        return str(metadata[b"kvreplay.trace"].decode("utf-8", "replace"))
    if schema.startswith("trace/"):
        raise TraceError(
            f"{name}: written with schema {schema}, this version reads {NATIVE_SCHEMA}",
            code="future_schema",
            file=name,
            hint="update kvreplay, or convert the original again",
        )
    raise TraceError(
        f"{name}: a table of results ({schema}), not a trace",
        code="io",
        file=name,
        hint="give the trace it was made from",
    )


def stream(files: list[pq.ParquetFile], names: list[str]) -> pa.RecordBatchReader:
    """The rows of several files of one schema as one stream.

    Raises
    ------
    TraceError
        When the files differ in their columns.
    """
    schema = files[0].schema_arrow
    for file, name in zip(files[1:], names[1:], strict=True):
        if not file.schema_arrow.equals(schema):
            raise TraceError(
                f"{name}: its columns differ from those of {names[0]}",
                code="io",
                file=name,
                hint="read files of one schema at a time",
            )
    return pa.RecordBatchReader.from_batches(schema, _batches(files, names))


def _batches(files: list[pq.ParquetFile], names: list[str]) -> Iterator[Any]:
    for file, name in zip(files, names, strict=True):
        with reported(name):
            yield from file.iter_batches(batch_size=_BATCH_ROWS, use_threads=False)


def release_memory() -> None:
    """Give the decoder's buffers back: Arrow's allocator keeps them, and the replay needs room."""
    pa.default_memory_pool().release_unused()


def write_native(trace: _core.Trace, path: Path | BinaryIO) -> None:
    """Write the native file: zstd, row groups of 65,536 rows, delta encoding for integers."""
    table, text = trace.native()
    reader = pa.RecordBatchReader.from_stream(table)
    metadata = {
        "kvreplay.schema": NATIVE_SCHEMA,
        "kvreplay.version": _core.__version__,
        "kvreplay.trace_sha256": trace.sha256,
        "kvreplay.trace": text,
    }
    schema = reader.schema.with_metadata(metadata)
    integers: list[str] = []
    others: list[str] = []
    for field in schema:
        _leaves(field.type, field.name, integers, others)
    with pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        compression_level=9,
        use_dictionary=others or False,
        column_encoding=dict.fromkeys(integers, "DELTA_BINARY_PACKED"),
        write_statistics=False,
        data_page_version="2.0",
    ) as writer:
        for batch in reader:
            for start in range(0, batch.num_rows, ROW_GROUP_ROWS):
                part = batch.slice(start, ROW_GROUP_ROWS)
                writer.write_table(pa.Table.from_batches([part]).replace_schema_metadata(metadata))


def write_plain(trace: _core.Trace, path: Path, *, on_rows: Callable[[int], None]) -> None:
    """Write one row a request with the ids as a list, for other tools; `on_rows` hears how many are done."""
    table, done = trace.plain(0)
    schema = pa.RecordBatchReader.from_stream(table).schema
    # Numbers of a path rise mostly by one: deltas make them small. Statistics of a list say nothing.
    deltas = [
        f"{field.name}.list.element" if field.name in ("hash_ids", "output_hash_ids") else field.name
        for field in schema
        if pa.types.is_integer(getattr(field.type, "value_type", field.type))
    ]
    texts = [field.name for field in schema if pa.types.is_large_string(field.type)]
    with pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        use_dictionary=texts or False,
        column_encoding=dict.fromkeys(deltas, "DELTA_BINARY_PACKED"),
        write_statistics=False,
    ) as writer:
        while True:
            for batch in pa.RecordBatchReader.from_stream(table):
                writer.write_batch(batch)
            on_rows(done)
            if done >= len(trace):
                return
            table, done = trace.plain(done)


def _leaves(kind: pa.DataType, path: str, integers: list[str], others: list[str]) -> None:
    """Sort a column's leaves by whether delta encoding fits them (32 and 64 bit integers)."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        _leaves(kind.value_type, f"{path}.list.element", integers, others)
    elif pa.types.is_struct(kind):
        for field in kind:
            _leaves(field.type, f"{path}.{field.name}", integers, others)
    else:
        (integers if pa.types.is_integer(kind) else others).append(path)
