"""A table as a Parquet file: zstd, with its schema, version, spec and the trace's digest in the metadata."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from kvreplay import _core

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

ROW_GROUP_ROWS = 262_144


def spec_text(spec: dict[str, Any]) -> str:
    """A spec as JSON with sorted keys: equal specs give equal bytes."""
    return json.dumps(spec, sort_keys=True, allow_nan=False)


def write(frame: pl.DataFrame, path: Path, *, schema: str, spec: str, trace_sha256: str) -> None:
    """Write a table.

    Nothing of the file depends on where or when it was written: equal traces and specs give equal bytes.

    Parameters
    ----------
    frame
        The rows, as :meth:`kvreplay.tables.schema.Table.conform` leaves them.
    path
        The file.
    schema
        Name and version of the table: ``tiers/1``.
    spec
        What was asked, as JSON, without names of files.
    trace_sha256
        Digest of the trace's content.

    Raises
    ------
    OSError
        When it cannot be written.
    """
    metadata = {
        "kvreplay.schema": schema,
        "kvreplay.version": _core.__version__,
        "kvreplay.spec": spec,
        "kvreplay.trace_sha256": trace_sha256,
    }
    # pyarrow rather than Polars: its files carry the metadata where both libraries look for it.
    pq.write_table(
        frame.to_arrow().replace_schema_metadata(metadata),
        path,
        compression="zstd",
        row_group_size=ROW_GROUP_ROWS,
    )
