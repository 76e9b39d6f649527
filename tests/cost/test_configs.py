"""Reading a ``config.json`` of any make."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import kvreplay as kv

if TYPE_CHECKING:
    from pathlib import Path

LLAMA = {
    "model_type": "llama",
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "hidden_size": 8192,
    "intermediate_size": 28672,
    "vocab_size": 128256,
    "torch_dtype": "bfloat16",
}


def write(folder: Path, fields: object) -> Path:
    path = folder / "config.json"
    path.write_text(fields if isinstance(fields, str) else json.dumps(fields), encoding="utf-8")
    return path


def spec_of(folder: Path, fields: dict[str, Any], **options: Any) -> kv.ModelSpec:
    return kv.model(write(folder, fields), **options)


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in LLAMA.items() if key != name}


def test_grouped_queries(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, LLAMA)
    assert spec.kv_bytes_per_token == 327_680
    assert kv.model(str(tmp_path)).kv_bytes_per_token == 327_680  # the directory, as text
    assert (round(spec.params_total / 1e9, 2), round(spec.params_body / 1e9, 2)) == (70.55, 68.45)
    assert spec.attention_flops_coefficient == 2 * 80 * 64 * 128


def test_all_heads_where_no_kv_heads_are_named(tmp_path: Path) -> None:
    assert spec_of(tmp_path, without("num_key_value_heads")).kv_bytes_per_token == 8 * 327_680


def test_one_head_for_multi_query(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, without("num_key_value_heads") | {"multi_query": True})
    assert spec.kv_bytes_per_token == 327_680 // 8


def test_names_of_older_models(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, {"model_type": "gpt2", "n_layer": 12, "n_head": 12, "n_embd": 768})
    assert spec.kv_bytes_per_token == 12 * 2 * 768 * 2
    with pytest.raises(kv.ConfigError, match="number of parameters"):
        _ = spec.params_total


def test_head_dim_of_the_file_beats_the_rule(tmp_path: Path) -> None:
    assert spec_of(tmp_path, LLAMA | {"head_dim": 256}).kv_bytes_per_token == 2 * 327_680


def test_fields_of_a_text_model_inside_another(tmp_path: Path) -> None:
    nested = {"model_type": "vl", "vision_config": {"num_hidden_layers": 3}, "text_config": LLAMA}
    assert spec_of(tmp_path, nested).kv_bytes_per_token == 327_680


def test_latent_attention_without_compressed_queries(tmp_path: Path) -> None:
    fields = {
        "num_hidden_layers": 27,
        "num_attention_heads": 16,
        "kv_lora_rank": 512,
        "q_lora_rank": None,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
    }
    assert spec_of(tmp_path, fields).kv_bytes_per_token == 27 * 576 * 2


class TestWindows:
    def test_every_layer(self, tmp_path: Path) -> None:
        spec = spec_of(tmp_path, LLAMA | {"sliding_window": 4096})
        assert spec.kv_bytes_per_token == 327_680
        assert spec.loaded_bytes(10_000) == 4096 * 327_680
        assert spec.attention_flops_coefficient == 0
        assert spec.window_flops_per_token == 4 * 80 * 64 * 128 * 4096

    def test_switched_off(self, tmp_path: Path) -> None:
        spec = spec_of(tmp_path, LLAMA | {"sliding_window": 4096, "use_sliding_window": False})
        assert spec.loaded_bytes(10_000) == 10_000 * 327_680

    def test_from_a_layer_on(self, tmp_path: Path) -> None:
        extra = {"sliding_window": 100, "use_sliding_window": True, "max_window_layers": 60}
        spec = spec_of(tmp_path, LLAMA | extra)
        assert spec.loaded_bytes(1000) == 4096 * (60 * 1000 + 20 * 100)

    def test_every_other_layer_by_the_type_of_the_model(self, tmp_path: Path) -> None:
        spec = spec_of(tmp_path, LLAMA | {"sliding_window": 100, "model_type": "gemma2"})
        assert spec.loaded_bytes(1000) == 4096 * 40 * (1000 + 100)

    def test_by_a_list(self, tmp_path: Path) -> None:
        kinds = ["sliding_attention"] * 79 + ["full_attention"]
        spec = spec_of(tmp_path, LLAMA | {"sliding_window": 100, "layer_types": kinds})
        assert spec.loaded_bytes(1000) == 4096 * (1000 + 79 * 100)

    def test_layers_that_share_their_keys_store_nothing(self, tmp_path: Path) -> None:
        spec = spec_of(tmp_path, LLAMA | {"num_kv_shared_layers": 20})
        assert spec.kv_bytes_per_token == 60 * 4096

    def test_heads_of_window_layers_may_differ(self, tmp_path: Path) -> None:
        extra = {
            "sliding_window": 128,
            "hybrid_layer_pattern": [0] + [1] * 79,
            "swa_num_key_value_heads": 4,
            "swa_head_dim": 192,
            "swa_v_head_dim": 64,
        }
        spec = spec_of(tmp_path, LLAMA | extra)
        assert spec.kv_bytes_per_token == 4096 + 79 * 4 * (192 + 64) * 2


class TestStates:
    def test_jamba(self, tmp_path: Path) -> None:
        extra = {"attn_layer_period": 8, "attn_layer_offset": 4, "mamba_d_state": 16, "mamba_d_conv": 4}
        spec = spec_of(tmp_path, LLAMA | extra)
        inner = 2 * 8192
        assert spec.kv_bytes_per_token == 10 * 4096
        assert spec.state_bytes == 70 * (3 * inner * 2 + inner * 16 * 4)

    def test_an_interval_of_full_layers(self, tmp_path: Path) -> None:
        extra = {
            "full_attention_interval": 4,
            "linear_num_key_heads": 2,
            "linear_key_head_dim": 8,
            "linear_num_value_heads": 4,
            "linear_value_head_dim": 8,
            "linear_conv_kernel_dim": 4,
            "mamba_ssm_dtype": "bfloat16",
        }
        spec = spec_of(tmp_path, LLAMA | extra)
        assert spec.kv_bytes_per_token == 20 * 4096
        assert spec.state_bytes == 60 * (3 * (2 * 2 * 8 + 4 * 8) * 2 + 4 * 8 * 8 * 2)


def test_blocks_cut_down_by_search(tmp_path: Path) -> None:
    block = {"attention": {"n_heads_in_group": 8, "no_op": False}, "ffn": {}}
    off = {"attention": {"n_heads_in_group": None, "no_op": True}, "ffn": {}}
    fields = without("num_key_value_heads") | {"block_configs": [block] * 50 + [off] * 30}
    assert spec_of(tmp_path, fields).kv_bytes_per_token == 50 * 4096


def test_compressed_entries(tmp_path: Path) -> None:
    fields = {
        "num_hidden_layers": 4,
        "num_attention_heads": 64,
        "head_dim": 512,
        "sliding_window": 128,
        "index_head_dim": 128,
        "index_n_heads": 64,
        "index_topk": 512,
        "compress_ratios": [0, 4, 128, 4, 0],
    }
    spec = spec_of(tmp_path, fields)
    assert spec.kv_bytes_per_token == (2 * 512 // 4 + 512 // 128 + 2 * 128 // 4) * 2
    assert spec.state_bytes == 4 * 128 * 512 * 2  # the windows, kept with a checkpoint
    # floor(n / ratio) entries of each kind
    assert spec.loaded_bytes(1003) == (2 * 250 * 512 + 7 * 512 + 2 * 250 * 128) * 2 + spec.state_bytes


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, "has no num_hidden_layers"),
        (without("num_hidden_layers"), "has no num_hidden_layers"),
        ({"num_hidden_layers": 4, "num_key_value_heads": 8}, "has no hidden_size"),
        ({"num_hidden_layers": 4, "hidden_size": 64}, "has no num_attention_heads"),
        (LLAMA | {"num_hidden_layers": "80"}, "num_hidden_layers"),
        (LLAMA | {"num_hidden_layers": -1}, "num_hidden_layers"),
        (LLAMA | {"num_hidden_layers": 1e400}, "num_hidden_layers"),
        (LLAMA | {"num_attention_heads": 60}, "not a multiple"),
        (LLAMA | {"kv_lora_rank": 512}, "qk_rope_head_dim"),
        (LLAMA | {"layer_types": ["full_attention"]}, "describes 1 layers of 80"),
        (LLAMA | {"layer_types": ["psychic"] * 80}, "'psychic' is unknown"),
        (LLAMA | {"layer_types": "full"}, "not a list"),
        (LLAMA | {"hybrid_override_pattern": "MX"}, "no kind of layer"),
        (LLAMA | {"num_kv_shared_layers": 80}, "num_kv_shared_layers"),
        (LLAMA | {"compress_ratios": [4]}, "compress_ratios"),
        (LLAMA | {"layer_types": ["mlp"] * 80}, "keeps anything"),
        (LLAMA | {"block_configs": [1]}, "block_configs"),
        (LLAMA | {"linear_attn_config": []}, "not an object"),
        (LLAMA | {"layer_types": ["linear_attention"] * 80}, "linear_num_key_heads"),
        (LLAMA | {"num_hidden_layers": 10**9}, "1,000,000,000 layers"),
        ([1], "not a JSON object"),
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_unusable_files_name_the_field(tmp_path: Path, fields: object, told: str) -> None:
    with pytest.raises(kv.ConfigError, match=told):
        kv.model(write(tmp_path, fields))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(kv.ConfigError, match="No such file"):
        kv.model(tmp_path / "config.json")
    with pytest.raises(kv.ConfigError, match="No such file"):
        kv.model("somewhere/config.json")
    with pytest.raises(kv.ConfigError, match="null byte"):
        kv.model("some\0where/config.json")


def test_the_derivation_adds_up(tmp_path: Path) -> None:
    lines = spec_of(tmp_path, LLAMA, tp=4).derivation()
    assert lines[0] == "80 layers of attention: 8 KV heads x 2 x 128, x 80 x 2 B (bf16) = 327,680 B per token"
    assert lines[1] == "stored per token, one copy: 327,680 B"
    assert lines[2].startswith("on 4 ranks: 327,680 B per token in all, 81,920 B over each rank's link")
