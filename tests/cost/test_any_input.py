"""Whatever comes in: an answer or a ConfigError, never another exception."""

from __future__ import annotations

import contextlib
import json
import math
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import kvreplay as kv
from kvreplay.cost import data
from kvreplay.cost.catalogue import _spec
from kvreplay.cost.configs import Config
from kvreplay.cost.dtypes import kv_dtype
from kvreplay.cost.files import read_cost, to_toml

if TYPE_CHECKING:
    from pathlib import Path

junk = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.sampled_from(
        [0, -1, 2**41, 10**30, 1e308, math.nan, math.inf, 0.5, "", "x", [], {}, [0], ["x"], [{}]]
    ),
    st.lists(st.integers(-2, 200), max_size=3),
    st.dictionaries(st.sampled_from(["num_heads", "head_dim", "full_attn_layers"]), st.integers(-1, 9)),
)
FIELDS = sorted({field for model in data.catalogue("models") for field in data.config_of(model)})
OTHERS = [
    *("layer_types", "block_configs", "attn_layer_period", "attn_layer_offset", "num_kv_shared_layers"),
    *("text_config", "n_layer", "use_sliding_window", "max_window_layers", "multi_query"),
    *("indexer_types", "max_position_embeddings"),
]


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(list(data.catalogue("models"))),
    st.dictionaries(st.sampled_from(FIELDS + OTHERS), junk, max_size=3),
    st.sampled_from(["bf16", "fp8_token_head", "nvfp4"]),
    st.integers(1, 16),
)
def test_fields_of_a_config(name: str, changed: dict[str, Any], dtype: str, tp: int) -> None:
    fields = data.config_of(name) | changed
    options = {
        "dtype": kv_dtype(dtype),
        "indexer_dtype": kv_dtype(dtype),
        "tp": tp,
        "block_tokens": 16,
        "host_copies": 1,
    }
    try:
        spec = _spec(Config(fields, name="it"), {"source": "s", "date": "d"}, options)
        cost = kv.CostModel.prior(spec, "h100-sxm")
        table = kv.break_even(model=spec, cost=cost, links=["rdma-200g"], lengths=[1000])
    except kv.ConfigError:
        return
    assert spec.kv_bytes_per_token > 0
    assert spec.loaded_bytes(1000) <= 1000 * spec.kv_bytes_per_token + spec.state_bytes + 1
    assert spec.derivation()
    json.dumps(table.to_dicts(), allow_nan=False)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(
                [
                    "input_tokens",
                    "ttft_ms",
                    "hit_tokens",
                    "tier",
                    "stored_tokens",
                    "block_bytes",
                    "count",
                    "load_ms",
                ]
            ),
            st.one_of(junk, st.integers(1, 10**6), st.floats(1e-5, 1e6), st.sampled_from(["cpu", "gpu"])),
        ),
        max_size=4,
    )
)
def test_measurements(rows: list[dict[str, Any]]) -> None:
    good = [{"input_tokens": n, "ttft_ms": 10 + n * 0.02} for n in (100, 9000)]
    for several in (rows, good + rows):
        try:
            cost = kv.calibrate(several, model="qwen3-0.6b", hardware="l4")
        except kv.ConfigError:
            continue
        assert 0 <= cost.recompute_us(5000) < math.inf
        assert to_toml(cost)


@settings(max_examples=15, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(1, 2**30),
            st.floats(1e-6, 3.6e6),
            st.integers(0, 2**30),
            st.sampled_from(["cpu", "gpu", ""]),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_wild_but_valid_measurements(rows: list[tuple[int, float, int, str]]) -> None:
    given_rows = [
        {"input_tokens": tokens, "ttft_ms": ms, "hit_tokens": hit % tokens, "tier": tier}
        for tokens, ms, hit, tier in rows
    ]
    try:
        cost = kv.calibrate(given_rows, model="llama-3.1-8b", hardware="h100-sxm")
    except kv.ConfigError:
        return
    assert 0 <= cost.recompute_us(5000) < math.inf
    assert tuple(cost.links) == tuple(
        sorted({r[3] for r, g in zip(rows, given_rows, strict=True) if r[3] == "cpu" and g["hit_tokens"]})
    )


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=40) | st.from_regex(r"[a-z0-9-]{1,12}\([a-z_]{0,12}=[^)]{0,12}\)?", fullmatch=True))
def test_texts_of_links(text: str) -> None:
    with contextlib.suppress(kv.ConfigError):
        assert kv.link(text).bytes_per_us > 0


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(range(400)), st.binary(max_size=3))
def test_files_with_a_few_other_bytes(tmp_path: Path, at: int, other: bytes) -> None:
    rows = [{"input_tokens": n, "ttft_ms": 10 + n * 0.02} for n in (100, 900, 3000, 9000)]
    rows.append({"input_tokens": 9000, "ttft_ms": 40.0, "hit_tokens": 8000, "tier": "cpu"})  # type: ignore[dict-item]
    whole = _TEXT.setdefault("cost", to_toml(kv.calibrate(rows, model="qwen3-0.6b", hardware="l4"))).encode()
    path = tmp_path / "cost.toml"
    path.write_bytes(whole[:at] + other + whole[at + 1 :])
    with contextlib.suppress(kv.ConfigError):
        assert read_cost(path).recompute_us(100) >= 0


_TEXT: dict[str, str] = {}


@pytest.mark.parametrize("name", [3, None, b"x", ["llama-3.1-8b"]])
def test_names_that_are_none(name: object) -> None:
    with pytest.raises(kv.ConfigError):
        kv.model(name)  # type: ignore[arg-type]
