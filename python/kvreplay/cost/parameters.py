"""Parameters of a model from its ``config.json``: what its weights weigh, and what a token multiplies with.

Counted are matrices only; norms and biases are below a thousandth. ``body`` leaves out the embedding (a
look-up) and the output head (used for the last position only), and counts the active experts alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvreplay.cost.patterns import layer_kinds

if TYPE_CHECKING:
    from kvreplay.cost.configs import Config


@dataclass(frozen=True)
class Parameters:
    """Numbers of parameters.

    Parameters
    ----------
    total
        All of them: what a GPU holds.
    body
        Those a prefilled token is multiplied with.
    """

    total: int
    body: int


_NEEDED = ("hidden_size", "num_attention_heads", "vocab_size")


def count(config: Config) -> Parameters | None:
    """Count the parameters, or ``None`` where the file does not say enough.

    Examples
    --------
    >>> from kvreplay.cost.configs import Config
    >>> from kvreplay.cost.parameters import count
    >>> llama = {"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    ...          "hidden_size": 4096, "intermediate_size": 14336, "vocab_size": 128256}
    >>> count(Config(llama, name="llama-3.1-8b"))
    Parameters(total=8029995008, body=6979321856)
    """
    has_mlp = config.has("intermediate_size") or config.has("moe_intermediate_size")
    if not has_mlp or not all(config.has(field) for field in _NEEDED) or config.has("compress_ratios"):
        return None
    kinds = layer_kinds(config)
    if len(kinds) != config.layers or config.has("block_configs"):
        return None  # shared or cut-down layers differ in ways the file does not fully say
    mixers = sum(_mixer(config, kind) for kind in kinds)
    total, active = _feed_forward(config, kinds)
    embedding = config.whole("vocab_size") * config.whole("hidden_size")
    tied = config.get("tie_word_embeddings") is True
    return Parameters(total=mixers + total + embedding * (1 if tied else 2), body=mixers + active)


def _mixer(config: Config, kind: str) -> int:
    if kind in ("full", "window"):
        return _latent(config) if config.has("kv_lora_rank") else _attention(config)
    if kind == "linear":
        return _linear(config)
    return _mamba(config) if kind == "mamba" else 0


def _attention(config: Config) -> int:
    hidden, dim = config.whole("hidden_size"), config.head_dim
    value_dim = config.whole_or("v_head_dim", dim)
    gate = 2 if config.get("attn_output_gate") is True else 1
    query, output = config.heads * dim * gate, config.heads * value_dim
    return hidden * (query + config.kv_heads * (dim + value_dim) + output)


def _latent(config: Config) -> int:
    hidden, heads = config.whole("hidden_size"), config.heads
    nope, rope = config.whole("qk_nope_head_dim", least=0), config.whole("qk_rope_head_dim", least=0)
    value, rank = config.whole("v_head_dim"), config.whole("kv_lora_rank")
    query_rank = config.whole_or("q_lora_rank", 0)
    wide = heads * (nope + rope)
    query = hidden * query_rank + query_rank * wide if query_rank else hidden * wide
    return query + hidden * (rank + rope) + rank * heads * (nope + value) + heads * value * hidden


def _linear(config: Config) -> int:
    hidden = config.whole("hidden_size")
    if config.has("linear_attn_config"):
        inner = config.inner("linear_attn_config")
        wide = inner.whole("num_heads") * inner.whole("head_dim")
        return hidden * 5 * wide  # query, key, value, gate and output
    key = config.whole("linear_num_key_heads") * config.whole("linear_key_head_dim")
    value_heads = config.whole("linear_num_value_heads")
    value = value_heads * config.whole("linear_value_head_dim")
    return hidden * (2 * key + 2 * value + 2 * value_heads) + value * hidden


def _mamba(config: Config) -> int:
    hidden = config.whole("hidden_size")
    if not config.has("mamba_num_heads"):
        return 3 * config.whole_or("mamba_expand", 2) * hidden * hidden
    heads = config.whole("mamba_num_heads")
    inner = heads * config.whole("mamba_head_dim")
    state = 2 * config.whole("n_groups") * config.whole("ssm_state_size")
    return hidden * (2 * inner + state + heads) + inner * hidden


def _feed_forward(config: Config, kinds: list[str]) -> tuple[int, int]:
    """Parameters of all feed-forward parts, and of those a token uses."""
    hidden = config.whole("hidden_size")
    if config.has("hybrid_override_pattern"):  # a layer is a mixer or a feed-forward part, which is not gated
        text = str(config.get("hybrid_override_pattern"))[: len(kinds)]
        dense = text.count("-") * 2 * hidden * config.whole_or("intermediate_size", 0)
        total, active = _experts(config, matrices=2) if "E" in text else (0, 0)
        return dense + text.count("E") * total, dense + text.count("E") * active
    sparse = _sparse_layers(config) if config.has("num_experts") else 0
    dense_size = config.whole_or("dense_intermediate_size", 0) or config.whole_or("intermediate_size_mlp", 0)
    size = dense_size or config.whole_or("intermediate_size", 0)
    both = config.get("enable_moe_block") is True  # Gemma 4: experts beside a dense part, in every layer
    dense = (config.layers if both else config.layers - sparse) * 3 * hidden * size
    total, active = _experts(config, matrices=3) if sparse else (0, 0)
    return dense + sparse * total, dense + sparse * active


def _sparse_layers(config: Config) -> int:
    """Layers with experts: all but the first few, every n-th, or as a list of 0 and 1 says."""
    layers, frequency = config.layers, config.get("moe_layer_freq")
    if isinstance(frequency, list):
        return sum(config.wholes("moe_layer_freq", least=0)[:layers])
    every = max(
        config.whole_or("interleave_moe_layer_step", 1),
        config.whole_or("decoder_sparse_step", 1),
        config.whole_or("moe_layer_freq", 1),
        1,
    )
    first = config.whole_or("first_k_dense_replace", 0)
    return max(0, layers - first) // every


def _experts(config: Config, *, matrices: int) -> tuple[int, int]:
    """Parameters of a layer's experts and router: all, and those a token uses."""
    hidden, experts = config.whole("hidden_size"), config.whole("num_experts")
    used = config.whole("num_experts_per_tok")
    inner = config.whole_or("moe_latent_size", 0) or config.whole_or("routed_expert_hidden_size", 0) or hidden
    size = config.whole_or("moe_intermediate_size", 0) or config.whole("intermediate_size")
    one = matrices * inner * size
    shared_size = config.whole_or("moe_shared_expert_intermediate_size", 0)
    shared_size = shared_size or config.whole_or("shared_expert_intermediate_size", 0)
    shared = matrices * hidden * (shared_size or config.whole_or("n_shared_experts", 0) * size)
    if str(config.get("model_type")) == "llama4_text":
        shared = matrices * hidden * size  # Llama 4 always has one and does not say so
    fixed = shared + hidden * experts + (2 * hidden * inner if inner != hidden else 0)
    return experts * one + fixed, used * one + fixed
