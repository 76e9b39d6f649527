"""Replayed hits against observed ones."""

from __future__ import annotations

import polars as pl
import pytest

import kvreplay as kv
from kvreplay.validating import validate

PATHS = [[1, 2], [1, 2, 3], [1, 2, 3], [9]]


def trace(observed: list[str | None]) -> kv.Trace:
    rows = pl.DataFrame(
        {
            "input_tokens": [16 * len(path) for path in PATHS],
            "hash_ids": PATHS,
            "observed_cached_tokens": observed,
        }
    )
    return kv.read_trace(rows, block_tokens=16)


def check(observed: list[str | None]) -> tuple[dict[str, object], list[int]]:
    read = trace(observed)
    result = kv.replay(read, [kv.Tier("gpu", capacity=10)], per_request=True)
    validation = validate(result, read.requests())
    return validation.summary, validation.worst()["request"].to_list()


def test_equal_hits_have_no_error() -> None:
    summary, worst = check(["0", "32", "48", "0"])
    assert summary["mean_absolute_error_points"] == 0.0
    assert (summary["exact_requests"], worst) == (4, [])
    assert summary["likely_reason"] == "none: every request agrees"


def test_the_error_is_a_share_of_the_input() -> None:
    summary, worst = check(["0", "32", "24", "0"])
    assert summary["mean_absolute_error_points"] == pytest.approx(50 / 4)
    assert summary["error_points"] == pytest.approx(100 * 24 / 144)
    assert (summary["observed_tokens"], summary["predicted_tokens"], worst) == (56, 80, [2])
    assert "the replay hits more" in str(summary["likely_reason"])


def test_one_block_less_points_to_the_last_token() -> None:
    summary, worst = check(["0", "32", "32", "0"])
    assert worst == [2]
    assert "at most one block" in str(summary["likely_reason"])


def test_requests_without_an_observation_are_counted_apart() -> None:
    summary, _ = check(["0", None, "48", None])
    assert (summary["requests"], summary["requests_without_observation"]) == (2, 2)
    assert summary["mean_absolute_error_points"] == 0.0


@pytest.mark.parametrize("observed", [["0", "x", "1", "1"], ["0", "-1", "1", "1"], ["0", "nan", "1", "1"]])
def test_what_is_no_number_of_tokens_is_refused(observed: list[str | None]) -> None:
    with pytest.raises(kv.ConfigError, match="of request 1 is no number of tokens"):
        check(observed)


def test_a_trace_without_observations_is_refused(chats: kv.Trace) -> None:
    result = kv.replay(chats, [kv.Tier("gpu", capacity=10)], per_request=True)
    with pytest.raises(kv.ConfigError, match="no observed hits"):
        validate(result, chats.requests())
    with pytest.raises(kv.ConfigError, match="no observed hits"):
        check([None, None, None, None])
