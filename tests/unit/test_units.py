from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from kvreplay.errors import ConfigError
from kvreplay.units import Scale, capacity_blocks, check_capacity, duration_us, kv_bytes_per_token

SCALE = Scale(block_tokens=16, unique_blocks=1000, kv_bytes_per_token=131072)
NO_MODEL = Scale(block_tokens=16, unique_blocks=1000)


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        (1, 1),
        ("5000 blocks", 5000),
        ("1 block", 1),
        ("5_000blocks", 5000),
        ("21520 tokens", 1345),
        ("21535 tokens", 1345),
        ("1GiB", 512),
        ("40GiB", 20480),
        ("40gib", 20480),
        ("40GB", 19073),
        ("1.5 GiB", 768),
        ("10%", 100),
        ("0.19 %", 1),
        ("8TB", 8 * 10**12 // (16 * 131072)),
    ],
)
def test_sizes(text: str | int, blocks: int) -> None:
    assert capacity_blocks(text, SCALE) == blocks


@pytest.mark.parametrize(
    "size",
    [
        "5000",
        "",
        "GiB",
        "-5 blocks",
        "0 blocks",
        0,
        -1,
        "5 apples",
        "nan blocks",
        "1e3 blocks",
        2.5,
        None,
        True,
        "0%",
    ],
)
def test_what_is_no_size_is_refused_with_a_hint(size: object) -> None:
    with pytest.raises(ConfigError) as caught:
        check_capacity(size)
    assert caught.value.hint


def test_a_bare_number_says_what_to_write() -> None:
    with pytest.raises(ConfigError, match="has no unit") as caught:
        capacity_blocks("5000", SCALE)
    assert '"5000 blocks"' in caught.value.hint


def test_bytes_need_bytes_per_token() -> None:
    with pytest.raises(ConfigError, match="no model says") as caught:
        capacity_blocks("40GiB", NO_MODEL)
    assert "--kv-bytes-per-token" in caught.value.hint


@pytest.mark.parametrize("size", ["15 tokens", "1KiB", "0.05%"])
def test_less_than_a_block_is_refused(size: str) -> None:
    with pytest.raises(ConfigError, match="no whole block"):
        capacity_blocks(size, SCALE)


@pytest.mark.parametrize("size", [2**49, "9999999999999999999 blocks", "999999999999 PiB"])
def test_absurd_sizes_are_refused(size: str | int) -> None:
    with pytest.raises(ConfigError, match="beyond all measure"):
        capacity_blocks(size, SCALE)


@given(st.integers(1, 2**32), st.integers(1, 4096))
def test_tokens_round_down_exactly(tokens: int, block_tokens: int) -> None:
    scale = Scale(block_tokens=block_tokens, unique_blocks=1)
    if tokens < block_tokens:
        with pytest.raises(ConfigError):
            capacity_blocks(f"{tokens} tokens", scale)
    else:
        assert capacity_blocks(f"{tokens} tokens", scale) == tokens // block_tokens


@given(st.integers(1, 2**40), st.integers(1, 2**20))
def test_bytes_round_down_exactly(size: int, per_token: int) -> None:
    scale = Scale(block_tokens=16, unique_blocks=1, kv_bytes_per_token=per_token)
    if size >= 16 * per_token:
        assert capacity_blocks(f"{size} B", scale) == size // (16 * per_token)


@pytest.mark.parametrize(
    ("text", "value_us"),
    [
        ("5m", 300_000_000),
        ("5min", 300_000_000),
        ("90s", 90_000_000),
        ("1.5h", 5_400_000_000),
        ("3us", 3),
        ("2 d", 172_800_000_000),
    ],
)
def test_durations(text: str, value_us: int) -> None:
    assert duration_us(text) == value_us


@pytest.mark.parametrize("text", ["5", "5 years", "-3s", "m", "", "99999999999999999 d"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        duration_us(text)


class Model:
    kv_bytes_per_token = 131072


def test_models() -> None:
    assert [kv_bytes_per_token(m) for m in (None, 7, Model())] == [None, 7, 131072]


@pytest.mark.parametrize("model", ["llama", 0, -4, 1.5, True, 2**50])
def test_what_is_no_model_is_refused(model: object) -> None:
    with pytest.raises(ConfigError):
        kv_bytes_per_token(model)


def test_scale() -> None:
    assert (SCALE.block_bytes, SCALE.tokens(3), SCALE.bytes(3)) == (2097152, 48, 6291456)
    assert (NO_MODEL.block_bytes, NO_MODEL.bytes(3)) == (None, None)
