"""Table `requests` (with per-request results): what each request got."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvreplay.tables.schema import BOOL, INT, Column, Table

if TYPE_CHECKING:
    import polars as pl

    from kvreplay.tables.study import Study


def _build(study: Study) -> pl.DataFrame | None:
    return None if study.result is None else study.result.requests


def table(tiers: list[str], *, timed: bool = False) -> Table:
    """Make the table for some tiers: two columns for each, and what times there are."""
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
            *(_times(tiers) if timed else []),
        ),
        sort=("request",),
        build=_build,
    )


def _times(tiers: list[str]) -> list[Column]:
    """Columns of :func:`kvreplay.worth.timing.timed`, in its order."""
    per_tier = [
        column
        for name in tiers
        for column in (
            Column(f"load_us_{name}", INT, f"time to load what tier {name} served; null without a link"),
            Column(
                f"store_us_{name}", INT, f"how long writing to tier {name} delays it, 0 where it does not"
            ),
            Column(f"saved_us_{name}", INT, f"time that tier {name} saves; negative where it costs time"),
            Column(f"harmful_{name}", BOOL, "whether computing would have been faster than this load"),
        )
    ]
    return [
        *per_tier,
        Column("recompute_us", INT, "time to compute the tokens that no tier served"),
        Column("service_ttft_us", INT, "time to the first token with all tiers, without any queueing"),
        Column("service_ttft_without_tiers_us", INT, "the same with the first tier alone"),
    ]
