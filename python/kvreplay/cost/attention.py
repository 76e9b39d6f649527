"""Work of attention in prefill: what grows with the position of a token, and what is bounded.

``m`` new tokens after ``p`` do ``4 H D (m p + m^2 / 2)`` operations per plain layer (causal, scores and
values), written ``f (2 p m + m^2)`` with ``f = 2 H D``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvreplay.cost.patterns import layer_kinds

if TYPE_CHECKING:
    from kvreplay.cost.configs import Config


def attention_flops(config: Config) -> tuple[float, float, str]:
    """Attention work of a model.

    Returns
    -------
    coefficient
        ``f`` of all layers that read the whole prefix.
    per_token
        Operations per token of layers that read a bounded number of tokens: windows, and the tokens that
        sparse attention selects. An upper bound for prompts shorter than that.
    formula
        The arithmetic for people.
    """
    if config.has("compress_ratios"):
        return _compressed(config)
    kinds = layer_kinds(config)
    full, windows = kinds.count("full"), kinds.count("window")
    heads, dims = config.heads, _query_and_value_dims(config, full=True)
    per_layer, coefficient, bounded = heads * dims, 0.0, 0.0
    parts = []
    if config.has("index_head_dim") and config.has("index_topk"):
        index = config.whole("index_n_heads") * config.whole("index_head_dim")
        bounded += 2.0 * full * per_layer * config.whole("index_topk")
        coefficient += float(full * index)
        parts.append(f"{full} layers x {index:,} of the index; attention reads {config.whole('index_topk')}")
    elif full:
        coefficient += float(full * per_layer)
        parts.append(f"{full} layers x {heads} heads x {dims}")
    if windows:
        chunked = not config.has("sliding_window")
        window = config.whole("attention_chunk_size" if chunked else "sliding_window")
        # Within a chunk the average token sees half of it; a sliding window is full after its length.
        each = heads * _query_and_value_dims(config, full=False)
        bounded += 2.0 * windows * each * (window / 2 if chunked else window)
        parts.append(f"{windows} layers read at most {window:,} tokens")
    return coefficient, bounded, "; ".join(parts)


def _query_and_value_dims(config: Config, *, full: bool) -> int:
    """Elements of a query and of a value together: 2 D, or what MLA uses in prefill (not absorbed)."""
    if config.has("kv_lora_rank"):
        rope = config.whole("qk_rope_head_dim", least=0)
        return config.whole("qk_nope_head_dim", least=0) + rope + config.whole("v_head_dim")
    dim = config.whole_or("global_head_dim", config.head_dim) if full else config.head_dim
    return dim + config.whole_or("v_head_dim", dim)


def _compressed(config: Config) -> tuple[float, float, str]:
    """DeepSeek-V4: lightly compressed layers select, strongly compressed ones read every entry."""
    layers = config.layers
    ratios = config.wholes("compress_ratios", least=0)[:layers]
    per_layer = config.heads * 2 * config.head_dim
    bounded = 2.0 * layers * per_layer * config.whole("sliding_window")
    coefficient = 0.0
    selected = config.whole_or("index_topk", 0)
    for ratio in (ratio for ratio in ratios if ratio):
        if ratio <= 4 and selected:  # noqa: PLR2004 - the lightly compressed layers, see layers.py
            bounded += 2.0 * per_layer * selected
            coefficient += config.whole("index_n_heads") * config.whole("index_head_dim") / ratio
        else:
            coefficient += per_layer / ratio
    return coefficient, bounded, f"{layers} layers with windows, entries per 4 and 128 tokens"
