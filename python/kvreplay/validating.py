"""Replayed hits against the ones an engine logged, request by request."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from kvreplay.errors import ConfigError

if TYPE_CHECKING:
    from kvreplay.results import ReplayResult

OBSERVED = "observed_cached_tokens"
_POINTS = 100
# A share from which a pattern of differences counts as the reason.
_MOST = 0.9


@dataclass(frozen=True)
class Validation:
    """A replay beside what was observed.

    Parameters
    ----------
    requests
        One row per request with an observation: ``request``, ``input_tokens``, ``observed_tokens``,
        ``predicted_tokens``, ``difference_tokens`` (predicted less observed), ``error_points`` (its absolute
        share of the input, in percentage points).
    missing
        Requests without an observation.
    block_tokens
        Tokens per block of the replay.
    """

    requests: pl.DataFrame
    missing: int
    block_tokens: int

    @cached_property
    def summary(self) -> dict[str, Any]:
        """All requests together.

        ``requests``, ``requests_without_observation``, ``input_tokens``, ``observed_tokens``,
        ``predicted_tokens``, ``observed_ratio``, ``predicted_ratio``, ``error_points`` (of the two ratios),
        ``mean_absolute_error_points`` (mean over requests), ``exact_requests`` and ``likely_reason``.
        """
        rows = self.requests
        tokens, observed = _sum(rows, "input_tokens"), _sum(rows, "observed_tokens")
        predicted = _sum(rows, "predicted_tokens")
        mean = rows["error_points"].mean()
        return {
            "requests": rows.height,
            "requests_without_observation": self.missing,
            "input_tokens": tokens,
            "observed_tokens": observed,
            "predicted_tokens": predicted,
            "observed_ratio": observed / tokens if tokens else None,
            "predicted_ratio": predicted / tokens if tokens else None,
            "error_points": _POINTS * abs(predicted - observed) / tokens if tokens else None,
            "mean_absolute_error_points": mean,
            "exact_requests": int((rows["difference_tokens"] == 0).sum()),
            "likely_reason": self.likely_reason,
        }

    def worst(self, count: int = 10) -> pl.DataFrame:
        """The requests that differ most, in tokens; none that agree."""
        rows = self.requests.filter(pl.col("difference_tokens") != 0)
        order = pl.col("difference_tokens").abs()
        return rows.sort(order, "request", descending=[True, False], maintain_order=True).head(count)

    @cached_property
    def likely_reason(self) -> str:
        """What the pattern of the differences points to."""
        rows = self.requests.filter(pl.col("difference_tokens") != 0)
        if rows.is_empty():
            return "none: every request agrees"
        difference = rows["difference_tokens"]
        total = self.requests.height
        if _share(difference.abs() <= self.block_tokens) > _MOST:
            return (
                "differences of at most one block: the last token, a partial block or another block size "
                "(profile option block_size)"
            )
        if _share(rows["observed_tokens"] == 0) > _MOST and rows.height < total / 2:
            return "the engine logged nothing for some requests: restarts, or requests that skip the cache"
        if _share(difference > 0) > _MOST:
            return (
                "the replay hits more: a smaller cache, requests at the same time that miss together, "
                "several replicas, or keys the trace does not hold (LoRA, salt)"
            )
        if _share(difference < 0) > _MOST:
            return "the replay hits less: a larger cache, one more tier, or decoded blocks (option outputs)"
        return "differences in both directions: another eviction policy, or another order of the requests"


def _share(flags: pl.Series) -> float:
    return int(flags.sum()) / len(flags)


def _sum(rows: pl.DataFrame, name: str) -> int:
    return int(rows[name].sum())


def validate(result: ReplayResult, requests: pl.DataFrame) -> Validation:
    """Compare a replay with the hits an engine logged.

    Parameters
    ----------
    result
        The replay, with ``per_request=True``.
    requests
        ``trace.requests()`` of a trace with the column ``observed_cached_tokens``.

    Raises
    ------
    ConfigError
        When the trace has no observations, or one is no number of tokens.
    """
    if OBSERVED not in requests.columns:
        raise ConfigError(
            "the trace has no observed hits",
            hint="name the field that holds them: --observed cached_tokens",
        )
    text = requests[OBSERVED]
    observed = text.cast(pl.Float64, strict=False)
    bad = text.is_not_null() & (observed.is_null() | ~observed.is_finite() | (observed < 0))
    if bad.any():
        at = int(bad.arg_max() or 0)
        raise ConfigError(
            f"observed hit {text[at]!r} of request {at} is no number of tokens",
            hint="--observed names a field with the cached tokens of each request",
        )
    hits = result.requests.select(predicted_tokens=pl.sum_horizontal("^hit_tokens_.*$").cast(pl.Int64))
    rows = pl.DataFrame(
        {
            "request": requests["request"],
            "input_tokens": requests["input_tokens"],
            "observed_tokens": observed.round().cast(pl.Int64),
            "predicted_tokens": hits["predicted_tokens"],
        }
    )
    missing = rows["observed_tokens"].null_count()
    rows = rows.drop_nulls("observed_tokens").with_columns(
        difference_tokens=pl.col("predicted_tokens") - pl.col("observed_tokens")
    )
    if rows.is_empty():
        raise ConfigError("no request has an observed hit", hint="the field is empty in every row")
    share = pl.col("difference_tokens").abs() / pl.col("input_tokens")
    points = pl.when(pl.col("input_tokens") > 0).then(_POINTS * share).otherwise(0.0)
    rows = rows.with_columns(error_points=points).sort("request")
    return Validation(rows, missing, result.block_tokens)
