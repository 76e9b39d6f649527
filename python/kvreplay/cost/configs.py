"""Reading the fields of a model's ``config.json``, with errors that name the field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvreplay.errors import ConfigError
from kvreplay.units import is_whole

if TYPE_CHECKING:
    import os

_MOST = 2**40
_MOST_LAYERS = 10_000
_MOST_FILE_BYTES = 64 * 2**20
# Other names of the same fields, in the order they are tried.
_ALIASES = {
    "num_hidden_layers": ("n_layer", "n_layers", "num_layers"),
    "num_attention_heads": ("n_head", "n_heads"),
    "hidden_size": ("n_embd", "d_model", "model_dim"),
    "num_key_value_heads": ("num_kv_heads", "n_head_kv", "multi_query_group_num"),
    "head_dim": ("attention_head_dim", "kv_channels"),
    "max_position_embeddings": ("n_positions", "max_seq_len", "seq_length", "model_max_length"),
    "num_experts": ("n_routed_experts", "num_local_experts", "moe_num_experts"),
    "num_experts_per_tok": ("num_experts_per_token", "experts_per_token", "top_k_experts", "moe_topk"),
    "n_shared_experts": ("num_shared_experts",),
    "intermediate_size": ("ffn_hidden_size", "n_inner"),
}


class Config:
    """The fields of a model, the text model's where the file nests them.

    Parameters
    ----------
    fields
        The parsed file.
    name
        The model or file, for messages.
    """

    def __init__(self, fields: dict[str, Any], *, name: str) -> None:
        self.name = name
        nested = fields.get("text_config") or fields.get("llm_config") or fields.get("language_config")
        outer = fields if not isinstance(nested, dict) else {**fields, **nested}
        self._fields: dict[str, Any] = outer

    def has(self, field: str) -> bool:
        """Whether a field (or another name of it) is there and not null."""
        return self.get(field) is not None

    def get(self, field: str, default: Any = None) -> Any:
        """A field as it is, `default` where it is absent or null."""
        for name in (field, *_ALIASES.get(field, ())):
            if self._fields.get(name) is not None:
                return self._fields[name]
        return default

    def whole(self, field: str, *, least: int = 1) -> int:
        """A field that must be a whole number.

        Raises
        ------
        ConfigError
            When it is absent, no whole number or out of range.
        """
        value = self.get(field)
        if value is None:
            raise ConfigError(
                f"{self.name} has no {field}",
                hint="give the config.json of the model itself, or its size with --kv-bytes-per-token",
            )
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not is_whole(value, least, _MOST):
            raise self.unusable(field, f"{value!r} is not a number from {least}")
        return int(value)

    def whole_or(self, field: str, default: int) -> int:
        """A whole number, or `default` where the field is absent or null."""
        return self.whole(field, least=0) if self.has(field) else default

    def wholes(self, field: str, *, least: int = 1) -> list[int]:
        """A field that must be a list of whole numbers."""
        values = self.get(field)
        if not isinstance(values, list) or not all(is_whole(value, least, _MOST) for value in values):
            raise self.unusable(field, "not a list of whole numbers")
        return values

    def texts(self, field: str) -> list[str]:
        """A field that must be a list of texts."""
        values = self.get(field)
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise self.unusable(field, "not a list of texts")
        return values

    def inner(self, field: str) -> Config:
        """A field that must be an object with fields of its own."""
        value = self.get(field)
        if not isinstance(value, dict):
            raise self.unusable(field, "not an object")
        return Config(value, name=f"{self.name}: {field}")

    def unusable(self, field: str, why: str) -> ConfigError:
        """The error of a field that cannot be used."""
        return ConfigError(f"{field} of {self.name} cannot be used: {why}", hint="see the model's own file")

    @property
    def layers(self) -> int:
        """Layers of the model, those without attention included."""
        layers = self.whole("num_hidden_layers")
        if layers > _MOST_LAYERS:
            raise self.unusable("num_hidden_layers", f"{layers:,} layers")
        return layers

    @property
    def heads(self) -> int:
        """Query heads."""
        return self.whole("num_attention_heads")

    @property
    def kv_heads(self) -> int:
        """KV heads: as many as query heads unless the file says otherwise; one for multi-query attention."""
        if self.has("num_key_value_heads"):
            return self.whole("num_key_value_heads")
        if self.has("block_configs"):
            return self._heads_of_blocks()
        return 1 if self.get("multi_query") is True else self.heads

    def _heads_of_blocks(self) -> int:
        """Models cut down by search name query heads per KV head in each block, null where there are none."""
        blocks = self.get("block_configs")
        attention = [block.get("attention") or {} for block in blocks if isinstance(block, dict)]
        sizes = {one["n_heads_in_group"] for one in attention if one.get("n_heads_in_group")}
        if len(sizes) != 1 or not is_whole(size := sizes.pop(), 1, self.heads):
            raise self.unusable("block_configs", "its blocks differ in n_heads_in_group, or have none")
        return self.heads // int(size)

    @property
    def head_dim(self) -> int:
        """Elements of a head: the file's (Qwen3 and Gemma differ from the rule), else hidden size / heads."""
        if self.has("head_dim"):
            return self.whole("head_dim")
        hidden, heads = self.whole("hidden_size"), self.heads
        if hidden % heads:
            raise self.unusable("hidden_size", f"{hidden} is not a multiple of {heads} heads")
        return hidden // heads


def read_config(path: str | os.PathLike[str]) -> Config:
    """Read a ``config.json``.

    Raises
    ------
    ConfigError
        When it cannot be read, is not a JSON object, or is far too large to be one.
    """
    file = Path(path)
    if file.is_dir():
        file /= "config.json"
    hint = "give the config.json of a model, or a name of kvreplay list models"
    try:
        if file.stat().st_size > _MOST_FILE_BYTES:
            raise ConfigError(f"{file} is too large for a config.json", hint=hint)
        fields = json.loads(file.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}", hint=hint) from error
    except (ValueError, RecursionError) as error:  # a name with a NUL is a ValueError too
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(f"{file}: not JSON ({error})", hint=hint) from error
    if not isinstance(fields, dict):
        raise ConfigError(f"{file}: not a JSON object", hint=hint)
    return Config(fields, name=str(file))
