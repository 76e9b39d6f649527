"""What a table is: a name, a version, columns that say their unit, and how it is built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvreplay.tables.study import Study

INT: Any = pl.Int64
FLOAT: Any = pl.Float64
TEXT: Any = pl.String
BOOL: Any = pl.Boolean


@dataclass(frozen=True)
class Column:
    """One column: its name (unit last), its type and one line of documentation."""

    name: str
    dtype: Any
    doc: str


@dataclass(frozen=True)
class Table:
    """One table of a report.

    Parameters
    ----------
    name
        File name without its end, and key of ``report.tables``.
    version
        Raised when a column changes its meaning or goes; a new nullable column does not raise it.
    doc
        One line: a row is what.
    columns
        In order.
    sort
        Columns the rows are sorted by; empty where the builder's order is the meaning (tiers, ratios).
    build
        Makes the rows from a study, or ``None`` when the study has nothing for this table.
    """

    name: str
    version: int
    doc: str
    columns: tuple[Column, ...]
    sort: tuple[str, ...]
    build: Callable[[Study], pl.DataFrame | None]

    @property
    def schema_name(self) -> str:
        """``name/version``, as written into the file."""
        return f"{self.name}/{self.version}"

    def conform(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Bring a frame to the table's columns, types and order; missing columns are null."""
        have = set(frame.columns)
        out = frame.select(
            (pl.col(c.name) if c.name in have else pl.lit(None)).cast(c.dtype).alias(c.name)
            for c in self.columns
        )
        return out.sort(self.sort, nulls_last=True, maintain_order=True) if self.sort else out
