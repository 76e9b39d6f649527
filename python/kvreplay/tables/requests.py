"""Table `requests` (with per-request results): what each request got."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvreplay.tables.schema import INT, Column, Table

if TYPE_CHECKING:
    import polars as pl

    from kvreplay.tables.study import Study


def _build(study: Study) -> pl.DataFrame | None:
    return None if study.result is None else study.result.requests


def table(tiers: list[str]) -> Table:
    """Make the table for some tiers: two columns for each."""
    per_tier = [
        column
        for name in tiers
        for column in (
            Column(f"hit_blocks_{name}", INT, f"blocks that tier {name} served"),
            Column(f"hit_tokens_{name}", INT, f"tokens that tier {name} served"),
        )
    ]
    return Table(
        name="requests",
        version=1,
        doc="One row per request in replay order; the tiers' tokens and the computed ones sum to its input.",
        columns=(
            Column("request", INT, "position in replay order, from 0"),
            *per_tier,
            Column("computed_tokens", INT, "input tokens that no tier served"),
            Column("stranded_blocks", INT, "resident blocks behind a hole at look-up"),
        ),
        sort=("request",),
        build=_build,
    )
