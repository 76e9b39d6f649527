"""A report as a directory: ``report.json``, ``tables/NAME.parquet`` and ``report.html``.

Equal traces and specs give equal bytes, except under ``run`` in report.json, which holds the wall clock.
"""

from __future__ import annotations

import json
import platform
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import polars as pl

from kvreplay import _core
from kvreplay.atomic import new_directory
from kvreplay.report.html import page
from kvreplay.tables.files import spec_text, write

if TYPE_CHECKING:
    import os

    from kvreplay.report.analysis import Report

SCHEMA = "report/1"


def write_bundle(report: Report, directory: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Write a report beside its target and exchange the two; see :meth:`Report.write`."""
    spec = spec_text(report.spec)
    with new_directory(directory, overwrite=overwrite) as beside:
        tables = beside / "tables"
        tables.mkdir()
        for name, frame in report.tables.items():
            write(
                frame,
                tables / f"{name}.parquet",
                schema=report.schemas[name].schema_name,
                spec=spec,
                trace_sha256=report.info["sha256"],
            )
        (beside / "report.json").write_text(
            json.dumps(manifest(report), indent=1, allow_nan=False) + "\n", "utf-8"
        )
        (beside / "report.html").write_text(page(report), "utf-8")


def manifest(report: Report) -> dict[str, Any]:
    """What ``report.json`` holds: the document of ``--json``, the spec and the schema of every table."""
    return {
        "report_schema": SCHEMA,
        **report.to_dict(),
        "spec": report.spec,
        "tables": {
            name: {"schema": table.schema_name, "rows": report.tables[name].height, "doc": table.doc}
            for name, table in report.schemas.items()
        },
        "run": {
            "finished": datetime.now(tz=UTC).isoformat(timespec="seconds"),
            "polars": pl.__version__,
            "python": platform.python_version(),
            "kvreplay": _core.__version__,
        },
    }
