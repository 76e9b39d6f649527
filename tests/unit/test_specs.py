from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from kvreplay.errors import ConfigError
from kvreplay.specs import key_values, split_outside, tier_spec


def test_commas_inside_parentheses_and_quotes_do_not_split() -> None:
    text = 'ssd=8TB,admission=doubling(2, decay_every=10, note="a,b)"),policy=lru,name="x,y"'
    parts = ["ssd=8TB", 'admission=doubling(2, decay_every=10, note="a,b)")', "policy=lru", 'name="x,y"']
    assert split_outside(text, ",") == parts


@pytest.mark.parametrize("text", ["a(b", "a)b", 'a"b', "a(b]", "a[(b)"])
def test_unbalanced_specs_are_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        split_outside(text, ",")


@given(st.text(alphabet="ab,()[]'\"= ", max_size=30))
def test_splitting_loses_nothing(text: str) -> None:
    try:
        parts = split_outside(text, ",")
    except ConfigError:
        return
    assert ",".join(parts) == text


def test_tier() -> None:
    assert tier_spec('cpu="512 GiB",policy=wtinylfu(window=0.01),fill=victim') == {
        "name": "cpu",
        "capacity": "512 GiB",
        "policy": "wtinylfu(window=0.01)",
        "fill": "victim",
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "gpu",
        "gpu=",
        "=5 blocks",
        "gpu=5 blocks,fill",
        "gpu=5 blocks,fill=",
        "a=1,fill=x,fill=y",
        "a=1 blocks,name=b",
    ],
)
def test_what_is_no_tier_is_refused_with_a_hint(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        tier_spec(text)
    assert caught.value.hint


def test_key_values() -> None:
    assert key_values(["a=1", " b = 'x=y' "], what="--param") == {"a": "1", "b": "x=y"}
