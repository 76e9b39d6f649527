"""Which layers of a model attend to everything, to a window, or keep a state instead of keys and values."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvreplay.cost.configs import Config

_KINDS = {
    "full_attention": "full",
    "attention": "full",
    "sparse_attention": "full",
    "sliding_attention": "window",
    "chunked_attention": "window",
    "local_attention": "window",
    "linear_attention": "linear",
    "mamba": "mamba",
    "mamba2": "mamba",
    "conv": "conv",
    "moe": "none",
    "mlp": "none",
}
_NEMOTRON = {"*": "full", "M": "mamba", "-": "none", "E": "none"}
# How often a layer is full where the file gives a window and leaves the pattern to the code of the model.
_PATTERN_OF_TYPE = {"gemma2": 2, "gemma3": 6, "gemma3_text": 6, "cohere2": 4, "gpt_oss": 2, "llama4_text": 4}


def layer_kinds(config: Config) -> list[str]:
    """What each layer that stores something of its own is: ``full``, ``window``, ``linear``, ``mamba``...

    Layers that read the keys and values of an earlier one (``num_kv_shared_layers``, the last of them) are
    left out.
    """
    layers = config.layers
    kinds = _kinds(config, layers)
    shared = config.whole_or("num_kv_shared_layers", 0)
    if shared >= layers:
        raise config.unusable("num_kv_shared_layers", f"{shared} of {layers} layers")
    return kinds[: layers - shared]


def _kinds(config: Config, layers: int) -> list[str]:
    for field, read in _READERS:
        if config.has(field):
            kinds = read(config, layers)
            if len(kinds) != layers:
                raise config.unusable(field, f"it describes {len(kinds)} layers of {layers}")
            return kinds
    return _windows(config, layers)


def _listed(config: Config, layers: int) -> list[str]:
    kinds = []
    for name in config.texts("layer_types")[:layers]:
        if name not in _KINDS:
            raise config.unusable("layer_types", f"the type {name!r} is unknown")
        kinds.append(_KINDS[name])
    return kinds


def _nemotron(config: Config, layers: int) -> list[str]:
    text = str(config.get("hybrid_override_pattern"))
    unknown = set(text) - set(_NEMOTRON)
    if unknown:
        raise config.unusable("hybrid_override_pattern", f"{min(unknown)!r} is no kind of layer")
    return [_NEMOTRON[char] for char in text[:layers]]


def _mimo(config: Config, layers: int) -> list[str]:
    return [
        "window" if value else "full" for value in config.wholes("hybrid_layer_pattern", least=0)[:layers]
    ]


def _kimi(config: Config, layers: int) -> list[str]:
    """Kimi Linear: layers are counted from 1 in its lists."""
    full = set(config.inner("linear_attn_config").wholes("full_attn_layers"))
    return ["full" if at in full else "linear" for at in range(1, layers + 1)]


def _interval(config: Config, layers: int) -> list[str]:
    """Qwen3-Next: the last of every few layers attends to everything, the others are linear."""
    every = config.whole("full_attention_interval")
    return ["full" if (at + 1) % every == 0 else "linear" for at in range(layers)]


def _jamba(config: Config, layers: int) -> list[str]:
    every, offset = config.whole("attn_layer_period"), config.whole_or("attn_layer_offset", 0)
    return ["full" if at % every == offset else "mamba" for at in range(layers)]


def _nas(config: Config, layers: int) -> list[str]:
    """Models cut down by search: a block may have no attention at all."""
    blocks = config.get("block_configs")
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        raise config.unusable("block_configs", "not a list of objects")
    kinds = []
    for block in blocks[:layers]:
        attention = block.get("attention") or {}
        off = bool(attention.get("no_op") or attention.get("replace_with_linear"))
        kinds.append("none" if off else "full")
    return kinds


_READERS = (
    ("layer_types", _listed),
    ("hybrid_override_pattern", _nemotron),
    ("hybrid_layer_pattern", _mimo),
    ("linear_attn_config", _kimi),
    ("full_attention_interval", _interval),
    ("attn_layer_period", _jamba),
    ("block_configs", _nas),
)


def _windows(config: Config, layers: int) -> list[str]:
    """Every n-th layer full, by a field or by the type of the model; else all alike."""
    windowed = config.has("sliding_window") or config.has("attention_chunk_size")
    if not windowed or config.get("use_sliding_window") is False:
        return ["full"] * layers
    every = config.whole_or("sliding_window_pattern", 0) or config.whole_or("_sliding_window_pattern", 0)
    every = every or _PATTERN_OF_TYPE.get(str(config.get("model_type")), 0)
    if every:
        return ["full" if (at + 1) % every == 0 else "window" for at in range(layers)]
    if config.get("use_sliding_window") is True and config.has("max_window_layers"):
        first = min(config.whole("max_window_layers", least=0), layers)
        return ["full"] * first + ["window"] * (layers - first)
    return ["window"] * layers
