"""How many users of a length fit a set of GPUs after the weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvreplay.cost import rates
from kvreplay.cost.dtypes import kv_dtype
from kvreplay.errors import ConfigError
from kvreplay.units import is_whole

if TYPE_CHECKING:
    from kvreplay.cost.devices import Hardware
    from kvreplay.cost.modelspec import ModelSpec

DEFAULT_UTILIZATION = 0.9


@dataclass(frozen=True)
class Room:
    """Memory of a set of GPUs that serve one copy of a model.

    Parameters
    ----------
    memory_bytes
        Memory of all GPUs.
    usable_bytes
        What the engine takes of it.
    weights_bytes
        What the weights take.
    kv_bytes
        What is left for KV; negative when the weights do not fit.
    kv_tokens
        Tokens that fit there.
    user_bytes
        KV of one user, all ranks together.
    users
        Users whose whole context fits at once.
    """

    memory_bytes: int
    usable_bytes: int
    weights_bytes: int
    kv_bytes: int
    kv_tokens: int
    user_bytes: int
    users: int


def room(
    spec: ModelSpec,
    device: Hardware,
    *,
    tokens: int,
    utilization: float = DEFAULT_UTILIZATION,
    weight_dtype: str = "bf16",
) -> Room:
    """Work out how many users with `tokens` tokens of context fit ``spec.tp`` GPUs.

    Parameters
    ----------
    spec
        The model with its ranks (``tp``) and type of KV.
    device
        The GPU.
    tokens
        Context of a user.
    utilization
        Share of the memory that the engine takes (vLLM ``--gpu-memory-utilization``); activations are not
        counted, so the true number is a little lower.
    weight_dtype
        Type of the weights.

    Raises
    ------
    ConfigError
        When a value cannot be, or the number of parameters is unknown.

    Examples
    --------
    Llama 3.1 70B on four A100: the KV of 256 users of 4,096 tokens alone would fill all the memory.

    >>> import kvreplay as kv
    >>> from kvreplay.cost.room import room
    >>> room(kv.model("llama-3.1-70b", tp=4), kv.hardware("a100-sxm"), tokens=4096).users
    125
    """
    if not is_whole(tokens, 1, 2**40):
        raise ConfigError(f"a user of {tokens!r} tokens", hint="give a number of tokens from 1")
    hint = "a share of the memory between 0.01 and 1"
    share = rates.finite(utilization, what="utilization", hint=hint, least=0.01, most=1.0)
    weights = round(spec.params_total * kv_dtype(weight_dtype).element_bytes)
    memory = device.memory_bytes * spec.tp
    usable = round(memory * share)
    left = usable - weights
    each = spec.hbm_bytes_per_token
    stored = tokens if spec.block_tokens is None else -(-tokens // spec.block_tokens) * spec.block_tokens
    user = stored * each + spec.state_bytes
    return Room(
        memory_bytes=memory,
        usable_bytes=usable,
        weights_bytes=weights,
        kv_bytes=left,
        kv_tokens=max(0, left) // each,
        user_bytes=user,
        users=max(0, left) // user,
    )


def logged_bytes_per_token(kv_pool_bytes: int, tokens: int) -> float:
    """Bytes per token that an engine's log means: the memory it gave to KV over the tokens it says fit.

    vLLM logs ``Available KV cache memory: X GiB`` and ``GPU KV cache size: N tokens``.
    """
    if not is_whole(tokens, 1, 2**50) or not is_whole(kv_pool_bytes, 1, 2**60):
        raise ConfigError(f"{kv_pool_bytes!r} bytes for {tokens!r} tokens", hint="give both as logged")
    return kv_pool_bytes / tokens
