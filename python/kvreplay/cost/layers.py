"""From a Hugging Face ``config.json`` to what its layers store per token.

All formulas: DeepSeek-V2 (2024) for MLA, DeepSeek-V3.2 (2025) for its indexer, the models' own
configuration files for everything else; the bytes they give are checked in ``tests/cost/test_catalogue.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from kvreplay.cost.patterns import layer_kinds

if TYPE_CHECKING:
    from kvreplay.cost.configs import Config
    from kvreplay.cost.dtypes import KvDtype


@dataclass(frozen=True)
class LayerGroup:
    """Layers that store the same for a token.

    Parameters
    ----------
    label
        What they are, for people.
    layers
        How many.
    elements
        Elements each stores per entry: keys and values of all KV heads, or a latent.
    vectors
        Vectors these elements form (for scales per token and head).
    heads
        KV heads, that tensor parallelism splits; ``None`` where every rank keeps a whole copy.
    window_tokens
        Tokens before the end of a prefix that such a layer reads; ``None`` reads all.
    stride_tokens
        Tokens per stored entry (compressed attention); 1 stores every token.
    kept
        ``False``: the engine keeps the window with each checkpoint instead of block by block.
    indexer
        Whether it is the index of sparse attention, which has a type of its own.
    formula
        The arithmetic, for people.
    """

    label: str
    layers: int
    elements: int
    vectors: int
    heads: int | None
    formula: str
    window_tokens: int | None = None
    stride_tokens: int = 1
    kept: bool = True
    indexer: bool = False

    def entry_bytes(self, dtype: KvDtype) -> Fraction:
        """Bytes of one entry in all layers of the group, one copy."""
        return self.layers * dtype.bytes(self.elements, self.vectors)

    def copies(self, tp: int) -> Fraction:
        """Copies that `tp` ranks keep together, as a factor."""
        if self.heads is None:
            return Fraction(tp)
        return max(Fraction(1), Fraction(tp, self.heads))


def layer_groups(config: Config) -> list[LayerGroup]:
    """The groups of layers of a model, those that store nothing per token left out.

    Raises
    ------
    ConfigError
        When a field that the formulas need is missing or unusable.
    """
    if config.has("compress_ratios"):
        return _compressed(config)
    kinds = layer_kinds(config)
    if config.has("kv_lora_rank"):
        return _latent(config, kinds.count("full")) + _indexer(config, kinds.count("full"))
    groups = [
        _attention(config, kinds.count("full"), window=None),
        _attention(config, kinds.count("window"), window=_window(config, kinds)),
    ]
    return [group for group in groups if group.layers] + _indexer(config, kinds.count("full"))


def _window(config: Config, kinds: list[str]) -> int | None:
    if "window" not in kinds:
        return None
    name = "sliding_window" if config.has("sliding_window") else "attention_chunk_size"
    return config.whole(name)


def _attention(config: Config, layers: int, *, window: int | None) -> LayerGroup:
    """MHA, GQA, MQA: keys and values of every KV head; window layers may have heads of their own."""
    prefix = "swa_" if window is not None else ""
    heads = config.kv_heads
    key_dim = config.head_dim
    if window is None and config.has("num_global_key_value_heads"):
        heads = config.whole("num_global_key_value_heads")
    if window is None and config.has("global_head_dim"):
        key_dim = config.whole("global_head_dim")
    heads = config.whole_or(f"{prefix}num_key_value_heads", heads) if prefix else heads
    key_dim = config.whole_or(f"{prefix}head_dim", key_dim) if prefix else key_dim
    value_dim = config.whole_or(f"{prefix}v_head_dim", key_dim)
    same = key_dim == value_dim
    formula = f"{heads} KV heads x 2 x {key_dim}" if same else f"{heads} KV heads x ({key_dim} + {value_dim})"
    return LayerGroup(
        label="attention" if window is None else f"window of {window:,} tokens",
        layers=layers,
        elements=heads * (key_dim + value_dim),
        vectors=2 * heads,
        heads=heads,
        window_tokens=window,
        formula=formula,
    )


def _latent(config: Config, layers: int) -> list[LayerGroup]:
    """MLA: one latent and one rotary key per token, no heads, no factor 2."""
    rank, rope = config.whole("kv_lora_rank"), config.whole("qk_rope_head_dim", least=0)
    group = LayerGroup(
        label="latent attention (MLA)",
        layers=layers,
        elements=rank + rope,
        vectors=1,
        heads=None,
        formula=f"({rank} latent + {rope} rotary)",
    )
    return [group] if layers else []


def _indexer(config: Config, layers: int) -> list[LayerGroup]:
    """The index of sparse attention (DeepSeek-V3.2, GLM-5, MiniMax-M3): one key per token and layer."""
    if config.has("index_head_dim"):
        dim, count = config.whole("index_head_dim"), _index_layers(config, layers)
    elif config.has("sparse_attention_config"):
        sparse = config.inner("sparse_attention_config")
        dim = sparse.whole("sparse_index_dim")
        count = sum(sparse.wholes("sparse_attention_freq", least=0)) if layers else 0
    else:
        return []
    group = LayerGroup(
        label="index of sparse attention",
        layers=count,
        elements=dim,
        vectors=1,
        heads=None,
        indexer=True,
        formula=f"{dim} of the index key",
    )
    return [group] if count else []


def _index_layers(config: Config, layers: int) -> int:
    """Layers with an index of their own; GLM-5.2 lets four layers share one after the first three."""
    if config.has("indexer_types"):
        return config.texts("indexer_types").count("full")
    every, offset = config.whole_or("index_topk_freq", 1), config.whole_or("index_skip_topk_offset", 0)
    if every == 1:
        return layers
    return min(offset, layers) + max(0, layers - offset) // every


def _compressed(config: Config) -> list[LayerGroup]:
    """DeepSeek-V4: a window in every layer, and one entry per 4 or 128 tokens in most."""
    layers = config.layers
    ratios = config.wholes("compress_ratios", least=0)[:layers]
    if len(ratios) < layers:
        raise config.unusable("compress_ratios", f"{len(ratios)} ratios for {layers} layers")
    dim, window = config.head_dim, config.whole("sliding_window")
    groups = [
        LayerGroup(
            label=f"window of {window:,} tokens",
            layers=layers,
            elements=dim,
            vectors=1,
            heads=None,
            window_tokens=window,
            kept=False,
            formula=f"{dim}",
        )
    ]
    for ratio in sorted(set(ratios) - {0}):
        count = ratios.count(ratio)
        formula = f"{dim} per {ratio} tokens"
        groups.append(LayerGroup("compressed attention", count, dim, 1, None, formula, stride_tokens=ratio))
        if ratio == _INDEXED_RATIO and config.has("index_head_dim"):
            index = config.whole("index_head_dim")
            formula = f"{index} per {ratio} tokens"
            groups.append(
                LayerGroup(
                    "index of sparse attention", count, index, 1, None, formula,
                    stride_tokens=ratio, indexer=True,
                )
            )  # fmt: skip
    return groups


# DeepSeek-V4 selects among the entries of its lightly compressed layers; the others read all of theirs.
_INDEXED_RATIO = 4
