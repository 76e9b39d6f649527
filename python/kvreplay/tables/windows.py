"""Tables `windows` and `groups`: a replay's hits by time and by group of requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvreplay.splits import occupancy_columns
from kvreplay.tables.schema import FLOAT, INT, TEXT, Column, Table

if TYPE_CHECKING:
    import polars as pl

    from kvreplay.tables.study import Study


def _common(tiers: list[str]) -> tuple[Column, ...]:
    return (
        Column("requests", INT, "requests"),
        Column("input_tokens", INT, "their input tokens"),
        *(Column(f"hit_tokens_{name}", INT, f"tokens that tier {name} served") for name in tiers),
        Column("hit_tokens", INT, "tokens that the tiers served together"),
        Column("computed_tokens", INT, "input tokens that no tier served"),
        Column("token_hit_ratio", FLOAT, "hit tokens / input tokens"),
        Column("request_hit_ratio", FLOAT, "requests with any hit / requests"),
        Column(
            "same_session_hit_tokens",
            INT,
            "hit tokens in blocks that the same session held last; null without sessions",
        ),
        Column(
            "other_session_hit_tokens",
            INT,
            "hit tokens in blocks that another session held last (shared prefixes); null without sessions",
        ),
    )


def _windows(study: Study) -> pl.DataFrame | None:
    return None if study.result is None else study.result.windows


def _groups(study: Study) -> pl.DataFrame | None:
    return None if study.result is None else study.result.groups


def windows_table(tiers: list[str]) -> Table:
    """Make the table of windows for some tiers."""
    return Table(
        name="windows",
        version=1,
        doc="One row per window of time that has requests.",
        columns=(
            Column("window", INT, "number of the window from the first arrival, from 0"),
            Column("from_us", INT, "its start on the trace's clock in microseconds"),
            Column("until_us", INT, "its end, not included"),
            *_common(tiers),
            *(
                Column(name, INT, f"blocks that tier {tier} holds after the window's last request")
                for tier, name in zip(tiers, occupancy_columns(tiers), strict=True)
            ),
        ),
        sort=("window",),
        build=_windows,
    )


def groups_table(keys: list[str], tiers: list[str]) -> Table:
    """Make the table of groups for the columns grouped by and some tiers."""
    return Table(
        name="groups",
        version=1,
        doc="One row per group of requests, requests without a value last.",
        columns=(*(Column(key, TEXT, "what the requests are grouped by") for key in keys), *_common(tiers)),
        sort=tuple(keys),
        build=_groups,
    )
