"""Models by name or by their ``config.json``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from kvreplay.cost import data
from kvreplay.cost.attention import attention_flops
from kvreplay.cost.configs import Config, read_config
from kvreplay.cost.layers import layer_groups
from kvreplay.cost.modelspec import ModelSpec, make_dtypes
from kvreplay.cost.parameters import Parameters, count
from kvreplay.cost.states import state_bytes
from kvreplay.errors import ConfigError, unknown
from kvreplay.units import is_whole

if TYPE_CHECKING:
    import polars as pl

_MOST_RANKS = 1024
_MOST_BLOCK_TOKENS = 2**20


def model(
    name_or_path: str | os.PathLike[str] | ModelSpec,
    *,
    kv_dtype: str | None = None,
    tp: int = 1,
    block_tokens: int | None = None,
    host_copies: int = 1,
    indexer_dtype: str | None = None,
) -> ModelSpec:
    """Find a model in the catalogue, or read its ``config.json``.

    Parameters
    ----------
    name_or_path
        A name of :func:`kvreplay.models`, the path of a ``config.json`` or of a directory with one. A
        :class:`ModelSpec` is returned as it is.
    kv_dtype
        Type of the stored elements: ``bf16`` (default), ``fp8``, ``fp8_token_head``, ``nvfp4``, ...
    tp
        Ranks of tensor parallelism.
    block_tokens
        Tokens of an engine block: what is stored and hit is rounded down to whole blocks.
    host_copies
        Copies of the KV that a host tier keeps: 1 or `tp`, by engine and version.
    indexer_dtype
        Type of the index of sparse attention (DeepSeek-V3.2, GLM-5); as the KV unless given.

    Returns
    -------
    ModelSpec
        Its bytes, work per token, source and date.

    Raises
    ------
    ConfigError
        For an unknown name (with the nearest), or a file that lacks a needed field (named).

    Examples
    --------
    >>> import kvreplay as kv
    >>> kv.model("llama-3.1-8b").kv_bytes_per_token, kv.model("deepseek-v3").kv_bytes_per_token
    (131072, 70272)
    """
    if isinstance(name_or_path, ModelSpec):
        return name_or_path
    for what, value, most in (("tp", tp, _MOST_RANKS), ("host_copies", host_copies, _MOST_RANKS)):
        if not is_whole(value, 1, most):
            raise ConfigError(f"{what} is {value!r}", hint=f"give a number from 1 to {most}")
    if block_tokens is not None and not is_whole(block_tokens, 1, _MOST_BLOCK_TOKENS):
        raise ConfigError(f"block_tokens is {block_tokens!r}", hint="give a number of tokens from 1")
    if not isinstance(name_or_path, str | os.PathLike):
        raise ConfigError(f"model {name_or_path!r} is no name", hint="see kvreplay list models")
    dtype, index_dtype = make_dtypes(kv_dtype, indexer_dtype)
    options = {
        "dtype": dtype,
        "indexer_dtype": index_dtype,
        "tp": tp,
        "block_tokens": block_tokens,
        "host_copies": host_copies,
    }
    config, facts = _find(name_or_path)
    return _spec(config, facts, options)


def _find(name_or_path: str | os.PathLike[str]) -> tuple[Config, dict[str, Any]]:
    """The fields of a model and what else the catalogue says of it."""
    text = os.fspath(name_or_path)
    try:
        name = data.canonical(text, of="models", what="model")
    except ConfigError:
        looks_like_path = os.sep in text or text.endswith(".json") or os.path.exists(text)  # noqa: PTH110
        if not isinstance(name_or_path, str) or looks_like_path:
            config = read_config(name_or_path)
            return config, {"source": config.name, "date": ""}
        raise unknown("model", text, list(data.catalogue("models"))) from None
    entry = data.catalogue("models")[name]
    return Config(data.config_of(name), name=name), entry


def _spec(config: Config, facts: dict[str, Any], options: dict[str, Any]) -> ModelSpec:
    groups = tuple(layer_groups(config))
    state, formula = state_bytes(config)
    windows = sum((g.entry_bytes(options["dtype"]) * (g.window_tokens or 0) for g in groups if not g.kept), 0)
    if not groups and not state:
        raise ConfigError(f"{config.name} has no layer that keeps anything", hint="is it a language model?")
    coefficient, window_flops, attention_formula = attention_flops(config)
    spec = ModelSpec(
        name=config.name,
        layers=config.layers,
        groups=groups,
        state_bytes=state + round(windows),
        state_formula=formula,
        parameters=_parameters(config, facts),
        attention_flops_coefficient=coefficient,
        attention_formula=attention_formula,
        window_flops_per_token=window_flops,
        max_context_tokens=config.whole_or("max_position_embeddings", 0) or None,
        source=str(facts["source"]),
        date=str(facts["date"]),
        **options,
    )
    if spec.kv_bytes_per_token < 1:
        raise ConfigError(
            f"{config.name} stores nothing per token", hint="tiers of blocks do not fit such a model"
        )
    return spec


def _parameters(config: Config, facts: dict[str, Any]) -> Parameters | None:
    """Published numbers where the catalogue has them (its fields then do not say enough), else counted."""
    if "params_total" in facts:
        return Parameters(total=round(facts["params_total"]), body=round(facts["params_active"]))
    return count(config)


def models() -> pl.DataFrame:
    """Models of the catalogue, by name.

    Returns
    -------
    pl.DataFrame
        ``name``, ``kv_bytes_per_token`` (bf16, one copy), ``loaded_bytes_per_token_long`` (of a long
        prefix, windows left out), ``state_bytes``, ``layers``, ``params_total``, ``params_active``,
        ``max_context_tokens``, ``attention``, ``source``, ``date``.
    """
    import polars as pl

    schema: dict[str, Any] = {
        "name": pl.String,
        "kv_bytes_per_token": pl.Int64,
        "loaded_bytes_per_token_long": pl.Int64,
        "state_bytes": pl.Int64,
        "layers": pl.Int64,
        "params_total": pl.Int64,
        "params_active": pl.Int64,
        "max_context_tokens": pl.Int64,
        "attention": pl.String,
        "source": pl.String,
        "date": pl.String,
    }
    rows = [_row(model(name)) for name in data.catalogue("models")]
    return pl.DataFrame(rows, schema=schema, orient="row").sort("name")


_LONG_TOKENS = 2**20


def _row(spec: ModelSpec) -> dict[str, Any]:
    known = spec.parameters
    marginal = spec.loaded_bytes(2 * _LONG_TOKENS) - spec.loaded_bytes(_LONG_TOKENS)
    return {
        "name": spec.name,
        "kv_bytes_per_token": spec.kv_bytes_per_token,
        "loaded_bytes_per_token_long": -(-marginal // _LONG_TOKENS),
        "state_bytes": spec.state_bytes,
        "layers": spec.layers,
        "params_total": None if known is None else known.total,
        "params_active": None if known is None else known.body,
        "max_context_tokens": spec.max_context_tokens,
        "attention": ", ".join(f"{group.layers} x {group.label}" for group in spec.groups),
        "source": spec.source,
        "date": spec.date,
    }
