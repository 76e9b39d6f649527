"""Two results side by side: reports on disk, or two engine profiles on one trace."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvreplay.errors import ConfigError

if TYPE_CHECKING:
    import os

    from kvreplay.results import ReplayResult

SCHEMA = "compare/1"


@dataclass(frozen=True)
class Side:
    """One of the two: names ratios and counters of tiers.

    Parameters
    ----------
    name
        What it is called.
    trace_sha256
        Digest of the trace's content.
    ratios
        Ratios by name; those of an infinite cache as ``ceiling.NAME``.
    tiers
        Rows of ``result.tiers``.
    """

    name: str
    trace_sha256: str
    ratios: dict[str, float | None]
    tiers: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of_report(cls, directory: str | os.PathLike[str]) -> Side:
        """Read the report a directory holds.

        Raises
        ------
        ConfigError
            When it holds none, or one of another kind.
        """
        path = Path(directory) / "report.json"
        try:
            document = json.loads(path.read_text("utf-8"))
            ratios = _ratios_of(document.get("summary") or {})
            ratios |= {f"ceiling.{name}": value for name, value in document["ratios"].items()}
            return cls(str(directory), document["trace"]["sha256"], ratios, list(document["tiers"]))
        except OSError as error:
            raise ConfigError(
                f"{path}: {error.strerror}", hint="give directories that kvreplay analyze --out wrote"
            ) from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigError(
                f"{path} is no report of kvreplay", hint="give directories that kvreplay analyze --out wrote"
            ) from error

    @classmethod
    def of_result(cls, name: str, result: ReplayResult, trace_sha256: str) -> Side:
        """Take a replay."""
        return cls(name, trace_sha256, _ratios_of(result.summary), result.tiers.to_dicts())


def _ratios_of(summary: dict[str, Any]) -> dict[str, float | None]:
    return {name: value for name, value in summary.items() if name.endswith("_ratio")}


def difference(a: Side, b: Side) -> dict[str, Any]:
    """Compare two sides: ``ratios`` and ``tiers`` as lists of ``{..., a, b, difference}``.

    Tiers are matched by name; counters are listed where either side has a value. A difference is ``b - a``,
    null where one side has none.
    """
    names = dict.fromkeys([*a.ratios, *b.ratios])
    ratios = [{"name": name, **_pair(a.ratios.get(name), b.ratios.get(name))} for name in names]
    mine, theirs = ({row["tier"]: row for row in side.tiers} for side in (a, b))
    tiers = [
        {"tier": tier, "column": column, **_pair(one.get(column), other.get(column))}
        for tier in dict.fromkeys([*mine, *theirs])
        for one, other in [(mine.get(tier, {}), theirs.get(tier, {}))]
        for column in dict.fromkeys([*one, *other])
        if column != "tier" and (one.get(column), other.get(column)) != (None, None)
    ]
    warnings = []
    if a.trace_sha256 != b.trace_sha256:
        warnings.append(
            {
                "code": "different_traces",
                "text": "the two sides are of different traces: what differs may be those",
            }
        )
    return {
        "schema": SCHEMA,
        "a": {"name": a.name, "trace_sha256": a.trace_sha256},
        "b": {"name": b.name, "trace_sha256": b.trace_sha256},
        "ratios": ratios,
        "tiers": tiers,
        "warnings": warnings,
    }


def _pair(a: Any, b: Any) -> dict[str, Any]:
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (a, b))
    return {"a": a, "b": b, "difference": b - a if numbers else None}


def requests_apart(a: ReplayResult, b: ReplayResult) -> dict[str, Any]:
    """How many requests of one trace are served differently.

    ``requests`` that differ, tokens that only one side hits (``only_a_tokens``, ``only_b_tokens``), and
    ``first``, the first request that differs (null if none does).
    """
    import polars as pl

    hits = [
        result.requests.select(pl.sum_horizontal("^hit_tokens_.*$").alias("hits"))["hits"]
        for result in (a, b)
    ]
    apart = hits[1] - hits[0]
    differs = apart != 0
    return {
        "requests": int(differs.sum()),
        "only_a_tokens": -int(apart.filter(apart < 0).sum()),
        "only_b_tokens": int(apart.filter(apart > 0).sum()),
        "first": differs.arg_max() if differs.any() else None,
    }
