from __future__ import annotations

from hypothesis import given, strategies as st

from kvreplay.points import curve_rows, log_spaced, ratio
from kvreplay.units import Scale


@given(st.integers(0, 2**40), st.integers(2, 300))
def test_log_spaced_points_are_distinct_sorted_and_end_at_the_last(last: int, points: int) -> None:
    values = log_spaced(last, points)
    assert values == sorted(set(values))
    assert len(values) == min(last, points)
    assert not values or (values[0], values[-1]) == (1, last)


def test_ratio() -> None:
    assert [ratio(1, 4), ratio(1, 0), ratio(None, 4)] == [0.25, None, None]


def test_rows_have_the_columns_of_the_interface() -> None:
    table = {"capacity_blocks": [2], "hit_blocks": [3], "hit_tokens": [40], "warm_hit_tokens": [8]}
    totals = {"block_refs": 6, "input_tokens": 80}
    (row,) = curve_rows("lru", Scale(16, 9, 10), totals=totals, table=table, warm_tokens=32)
    assert row == {
        "policy": "lru",
        "capacity_blocks": 2,
        "capacity_tokens": 32,
        "capacity_bytes": 320,
        "hit_blocks": 3,
        "hit_tokens": 40,
        "block_hit_ratio": 0.5,
        "token_hit_ratio": 0.5,
        "warm_hit_tokens": 8,
        "warm_token_hit_ratio": 0.25,
    }
