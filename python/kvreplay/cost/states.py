"""The fixed state that layers without keys and values keep: one blob per stored checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvreplay.cost.patterns import layer_kinds

if TYPE_CHECKING:
    from kvreplay.cost.configs import Config

_CONV_BYTES = 2
_BYTES = {"float32": 4, "float": 4, "bfloat16": 2, "float16": 2}


def state_bytes(config: Config) -> tuple[int, str]:
    """Bytes of one checkpoint of all layers with a recurrent state, and the arithmetic for people.

    A prefix can be hit only where a state was stored: the cost is one per checkpoint, not per token.
    Gated DeltaNet and KDA after their models' configuration (Qwen3-Next 2025, Kimi Linear 2025), Mamba-2
    after Dao and Gu (2024).
    """
    if config.has("compress_ratios"):
        return 0, ""
    kinds = layer_kinds(config)
    linear, mamba = kinds.count("linear"), kinds.count("mamba")
    if linear:
        return _linear(config, linear)
    if mamba and config.has("mamba_num_heads"):
        return _mamba2(config, mamba)
    if mamba:
        return _mamba1(config, mamba)
    return 0, ""


def _recurrent_bytes(config: Config, field: str) -> int:
    text = str(config.get(field, "float32"))
    if text not in _BYTES:
        raise config.unusable(field, f"{text!r} is no type of state")
    return _BYTES[text]


def _linear(config: Config, layers: int) -> tuple[int, str]:
    if config.has("linear_attn_config"):
        inner = config.inner("linear_attn_config")
        key_heads = value_heads = inner.whole("num_heads")
        key_dim = value_dim = inner.whole("head_dim")
        kernel = inner.whole("short_conv_kernel_size")
        size = 4
    else:
        key_heads, key_dim = config.whole("linear_num_key_heads"), config.whole("linear_key_head_dim")
        value_heads, value_dim = config.whole("linear_num_value_heads"), config.whole("linear_value_head_dim")
        kernel = config.whole("linear_conv_kernel_dim")
        size = _recurrent_bytes(config, "mamba_ssm_dtype")
    channels = 2 * key_heads * key_dim + value_heads * value_dim
    recurrent = value_heads * key_dim * value_dim
    per_layer = (kernel - 1) * channels * _CONV_BYTES + recurrent * size
    text = (
        f"{layers} linear layers x (({kernel} - 1) x {channels:,} x {_CONV_BYTES} B of convolution + "
        f"{value_heads} x {key_dim} x {value_dim} x {size} B of state)"
    )
    return layers * per_layer, text


def _mamba2(config: Config, layers: int) -> tuple[int, str]:
    heads, dim = config.whole("mamba_num_heads"), config.whole("mamba_head_dim")
    state, groups = config.whole("ssm_state_size"), config.whole("n_groups")
    kernel = config.whole("conv_kernel")
    size = _recurrent_bytes(config, "mamba_ssm_cache_dtype")
    channels = heads * dim + 2 * groups * state
    per_layer = (kernel - 1) * channels * _CONV_BYTES + heads * dim * state * size
    text = (
        f"{layers} Mamba-2 layers x (({kernel} - 1) x {channels:,} x {_CONV_BYTES} B of convolution + "
        f"{heads} x {dim} x {state} x {size} B of state)"
    )
    return layers * per_layer, text


def _mamba1(config: Config, layers: int) -> tuple[int, str]:
    inner = config.whole_or("mamba_expand", 2) * config.whole("hidden_size")
    state, kernel = config.whole_or("mamba_d_state", 16), config.whole_or("mamba_d_conv", 4)
    per_layer = (kernel - 1) * inner * _CONV_BYTES + inner * state * 4
    text = (
        f"{layers} Mamba layers x (({kernel} - 1) x {inner:,} x {_CONV_BYTES} B of convolution + "
        f"{inner:,} x {state} x 4 B of state)"
    )
    return layers * per_layer, text
