"""What the cost model needs of a model: bytes it stores and loads, work it does per token."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING

from kvreplay.cost.dtypes import kv_dtype as find_dtype
from kvreplay.errors import ConfigError

if TYPE_CHECKING:
    import polars as pl

    from kvreplay.cost.dtypes import KvDtype
    from kvreplay.cost.layers import LayerGroup
    from kvreplay.cost.parameters import Parameters


@dataclass(frozen=True)
class ModelSpec:
    """A model as the cost model sees it. Made by :func:`kvreplay.model`.

    Parameters
    ----------
    name
        Name in the catalogue, or the path of its file.
    layers
        Layers, those without attention included.
    groups
        What its layers store, see :class:`kvreplay.cost.layers.LayerGroup`.
    dtype, indexer_dtype
        Types of the KV elements and of the index of sparse attention.
    tp
        Ranks of tensor parallelism.
    block_tokens
        Tokens of an engine block, to which stored prefixes are rounded down; ``None`` does not round.
    host_copies
        Copies a host tier keeps: 1, or `tp` where the engine stores what each rank has.
    state_bytes
        Bytes of one checkpoint of recurrent layers and of windows kept with it; 0 for most models.
    parameters
        Numbers of parameters, ``None`` where they are unknown.
    attention_flops_coefficient
        ``f`` in the attention work ``f * (2 p m + m^2)`` of `m` tokens after `p`; 2 L H D for plain layers.
    window_flops_per_token
        Attention work per token of layers that read a bounded number of tokens.
    max_context_tokens
        Longest context the model takes, ``None`` where unknown.
    source, date
        Where the fields come from and when they were taken.
    """

    name: str
    layers: int
    groups: tuple[LayerGroup, ...]
    dtype: KvDtype
    indexer_dtype: KvDtype
    tp: int
    block_tokens: int | None
    host_copies: int
    state_bytes: int
    state_formula: str
    parameters: Parameters | None
    attention_flops_coefficient: float
    attention_formula: str
    window_flops_per_token: float
    max_context_tokens: int | None
    source: str
    date: str

    def _group_dtype(self, group: LayerGroup) -> KvDtype:
        return self.indexer_dtype if group.indexer else self.dtype

    def _per_token(self, group: LayerGroup) -> Fraction:
        return group.entry_bytes(self._group_dtype(group)) / group.stride_tokens

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes stored per token: the whole model, one copy, every layer that is kept block by block."""
        return ceil(sum((self._per_token(g) for g in self.groups if g.kept), Fraction(0)))

    @property
    def hbm_bytes_per_token(self) -> int:
        """Bytes per token on all ranks together: MLA is on every rank, few KV heads are doubled."""
        kept = (self._per_token(g) * g.copies(self.tp) for g in self.groups if g.kept)
        return ceil(sum(kept, Fraction(0)))

    @property
    def rank_bytes_per_token(self) -> int:
        """Bytes per token that cross the link of one rank."""
        return ceil(Fraction(self.hbm_bytes_per_token, self.tp))

    @property
    def host_bytes_per_token(self) -> int:
        """Bytes per token in a host tier, all copies."""
        return self.kv_bytes_per_token * self.host_copies

    @property
    def params_total(self) -> int:
        """All parameters.

        Raises
        ------
        ConfigError
            When the model's file does not say enough to count them.
        """
        return self._known().total

    @property
    def params_body(self) -> int:
        """Parameters a prefilled token is multiplied with: no embedding, no head, active experts only.

        Raises
        ------
        ConfigError
            As :attr:`params_total`.
        """
        return self._known().body

    def _known(self) -> Parameters:
        if self.parameters is None:
            raise ConfigError(
                f"the number of parameters of {self.name} is unknown, and recompute time needs it",
                hint="its config.json lacks hidden_size, intermediate_size or vocab_size; or calibrate with "
                "measured times",
            )
        return self.parameters

    @property
    def linear_flops_per_token(self) -> float:
        """Work per token that does not depend on its position: 2 per parameter, and bounded attention."""
        return 2.0 * self.params_body + self.window_flops_per_token

    @property
    def is_hybrid(self) -> bool:
        """Whether some layers keep a window or a state instead of every token's keys and values."""
        return self.state_bytes > 0 or any(group.window_tokens is not None for group in self.groups)

    def stored_tokens(self, tokens: int) -> int:
        """Tokens of a prefix that are stored: whole blocks."""
        return tokens if self.block_tokens is None else tokens - tokens % self.block_tokens

    def loaded_bytes(self, tokens: int) -> int:
        """Bytes that a hit of `tokens` tokens reads, one copy.

        Layers with a window read its last tokens only; layers with a state read one checkpoint
        (:attr:`state_bytes`, included here for every hit).
        """
        if tokens <= 0:
            return 0
        total = Fraction(self.state_bytes)
        for group in self.groups:
            if group.kept:
                read = tokens if group.window_tokens is None else min(tokens, group.window_tokens)
                total += group.entry_bytes(self._group_dtype(group)) * (read // group.stride_tokens)
        return ceil(total)

    def loaded_bytes_expr(self, tokens: pl.Expr) -> pl.Expr:
        """:meth:`loaded_bytes` of a column of tokens, as Float64."""
        import polars as pl

        total = pl.lit(float(self.state_bytes))
        for group in self.groups:
            if group.kept:
                read = tokens if group.window_tokens is None else tokens.clip(upper_bound=group.window_tokens)
                each = float(group.entry_bytes(self._group_dtype(group)))
                total = total + (read // group.stride_tokens).cast(pl.Float64) * each
        return pl.when(tokens > 0).then(total.ceil()).otherwise(0.0)

    def rank_loaded_bytes(self, tokens: int) -> int:
        """Bytes of :meth:`loaded_bytes` that cross the link of one rank."""
        if self.tp == 1:
            return self.loaded_bytes(tokens)
        return ceil(self.loaded_bytes(tokens) * self._link_share)

    @property
    def _link_share(self) -> Fraction:
        """Share of one copy that each rank loads over its own link."""
        return Fraction(self.hbm_bytes_per_token, self.tp * self.kv_bytes_per_token)

    def rank_loaded_bytes_expr(self, tokens: pl.Expr) -> pl.Expr:
        """:meth:`rank_loaded_bytes` of a column of tokens, as Float64."""
        if self.tp == 1:
            return self.loaded_bytes_expr(tokens)
        return (self.loaded_bytes_expr(tokens) * float(self._link_share)).ceil()

    def derivation(self) -> list[str]:
        """How the bytes come about, one line per step."""
        from kvreplay.cost.explaining import derivation

        return derivation(self)


def make_dtypes(kv: str | None, indexer: str | None) -> tuple[KvDtype, KvDtype]:
    """Types of the KV elements and of the index: bf16, and the index as the KV, unless told otherwise."""
    main = find_dtype(kv or "bf16")
    return main, main if indexer is None else find_dtype(indexer)
