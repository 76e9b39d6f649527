"""What a trace can be read from: which of the core's readers takes it.

Text goes to the core as it is (it reads files, gz and zst itself); Parquet and Arrow go as streams of record
batches, so that no file is ever in memory as a whole.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from kvreplay.errors import ConfigError, TraceError

if TYPE_CHECKING:
    from collections.abc import Iterable

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
# What a directory of one trace holds: WEKA's recordings are one JSON file a session.
_IN_DIRECTORY = (".json", ".json.gz", ".json.zst")
_PARQUET_MAGIC = b"PAR1"


@dataclass(frozen=True)
class Text:
    """Files and streams of a text format, in order."""

    sources: list[str | BinaryIO]

    def stop(self) -> None:
        """Let a download that a reader waits for fail at once."""
        for source in self.sources:
            stop = getattr(source, "kvreplay_stop", None)
            if stop is not None:
                stop()


@dataclass(frozen=True)
class Parquet:
    """Parquet files, in order."""

    sources: list[str | BinaryIO]


@dataclass(frozen=True)
class Stream:
    """Rows in memory: an object with ``__arrow_c_stream__``."""

    stream: object


def resolve(source: object) -> Text | Parquet | Stream:
    """Sort out what `source` is.

    Raises
    ------
    TraceError
        For a directory without JSON files, and a URL that cannot be fetched.
    ConfigError
        For what cannot be a source at all, a mixture, or a URL without the extra that reads it.
    """
    if hasattr(source, "__arrow_c_stream__"):
        return Stream(_readable(source))
    if hasattr(source, "collect_batches") and hasattr(source, "collect_schema"):
        return Stream(_lazy_stream(source))
    if isinstance(source, list | tuple):
        return _several(source)
    return _several([source])


def _several(sources: Iterable[object]) -> Text | Parquet:
    found = [_one(one) for source in sources for one in _expanded(source)]
    if not found:
        raise ConfigError("the list of files is empty", hint="give at least one file")
    parquet = [_is_parquet(source) for source in found]
    if all(parquet):
        return Parquet(found)
    if any(parquet):
        raise ConfigError("Parquet and text files in one list", hint="read files of one kind at a time")
    return Text(found)


def _one(source: object) -> str | BinaryIO:
    if isinstance(source, str | os.PathLike):
        return _path(os.fsdecode(source))
    if hasattr(source, "read"):
        if hasattr(source, "encoding"):
            raise ConfigError("the file object is in text mode", hint='open it with mode "rb"')
        return cast("BinaryIO", source)
    raise ConfigError(
        f"cannot read a trace from {type(source).__name__}",
        hint="give a path, a binary file object, or anything with __arrow_c_stream__",
    )


def _expanded(source: object) -> list[object]:
    """A directory as its files, in the order of their names; anything else as it is."""
    if not isinstance(source, str | os.PathLike):
        return [source]
    path = os.fsdecode(source)
    if not path or _URL.match(path) or not Path(path).is_dir():
        return [source]
    try:
        names = sorted(entry.name for entry in Path(path).iterdir() if entry.name.endswith(_IN_DIRECTORY))
    except OSError as error:
        raise TraceError(
            f"{path}: {error.strerror}", code="io", file=path, hint="check the permissions"
        ) from error
    if not names:
        raise TraceError(
            f"{path}: is a directory without JSON files",
            code="io",
            file=path,
            hint="give the files in it, in the order they were written",
        )
    return [str(Path(path) / name) for name in names]


def _path(path: str) -> str | BinaryIO:
    if not path:
        raise ConfigError("the name of the trace is empty", hint="give a path, or - for standard input")
    if path == "-":
        return sys.stdin.buffer
    if _URL.match(path):
        from kvreplay.remote import open_url  # only who reads from far away pays for it

        return open_url(path)
    return path


def _is_parquet(source: str | BinaryIO) -> bool:
    """Look at the first bytes without taking them away from whoever reads later."""
    if isinstance(source, str):
        try:
            if not stat.S_ISREG(Path(source).stat().st_mode):
                return False
            with Path(source).open("rb") as file:
                return file.read(4) == _PARQUET_MAGIC
        except OSError:
            return False  # the reader reports it, with the file's name
    seekable = getattr(source, "seekable", bool)()  # an object with read() alone will do
    if hasattr(source, "peek") and not seekable:
        if source.peek(4)[:4] == _PARQUET_MAGIC:
            name = name_of(source)
            raise TraceError(
                f"{name}: a Parquet file cannot be read from a pipe: its index stands at its end",
                code="io",
                file=name,
                hint="give the name of the file",
            )
        return False
    if not seekable:
        return False
    at = source.tell()
    magic = source.read(4)
    source.seek(at)
    return magic == _PARQUET_MAGIC


def _readable(table: Any) -> object:
    """The table, with Polars' type Null (nothing but missing values, or empty lists) made a usual one.

    Polars hands such columns over with a buffer that Arrow does not know, and the core's reader refuses it.
    """
    schema: Any = getattr(table, "schema", None)
    if not (hasattr(table, "with_columns") and hasattr(schema, "dtypes") and "Null" in str(schema.dtypes())):
        return table
    import polars as pl

    usual = {pl.Null(): pl.String(), pl.List(pl.Null): pl.List(pl.UInt64)}
    casts = [pl.col(name).cast(usual[kind]) for name, kind in schema.items() if kind in usual]
    return table.with_columns(casts)


def _lazy_stream(lazy: Any) -> object:
    """A LazyFrame as a stream of record batches: it has none of its own."""
    import pyarrow as pa

    schema = lazy.collect_schema().to_frame().to_arrow().schema
    batches = (batch for frame in lazy.collect_batches() for batch in frame.to_arrow().to_batches())
    return pa.RecordBatchReader.from_batches(schema, batches)


def name_of(source: str | BinaryIO) -> str:
    """Name of a source for messages."""
    if isinstance(source, str):
        return source
    name = getattr(source, "name", "")
    return "-" if name == "<stdin>" else name if isinstance(name, str) else ""
