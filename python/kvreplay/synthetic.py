"""Generated traces: small, deterministic, and honest about what they model."""

from __future__ import annotations

from kvreplay import _core, calls
from kvreplay.errors import ConfigError
from kvreplay.trace import Trace
from kvreplay.units import is_whole

_MAX_REQUESTS = 2**31 - 1


def generate(
    kind: str, *, requests: int, seed: int = 0, block_tokens: int = 16, **parameters: float
) -> Trace:
    """Generate a trace.

    Parameters
    ----------
    kind
        One of :func:`kvreplay.generators`.
    requests
        Number of requests, at least 1.
    seed
        Equal seeds give equal traces on every platform; 0 to 2^64 - 1.
    block_tokens
        Tokens of a block.
    **parameters
        Parameters of the kind, see :func:`kvreplay.generators`.

    Returns
    -------
    Trace
        With exactly `requests` requests.

    Raises
    ------
    ConfigError
        For an unknown kind or parameter, or a value outside its range.

    Examples
    --------
    >>> import kvreplay as kv
    >>> scan = kv.generate("cyclic_scan", requests=30, documents=10, document_tokens=5008)
    >>> scan.info["requests"], scan.info["unique_blocks"]
    (30, 3130)
    """
    _check_whole("requests", requests, 1, _MAX_REQUESTS)
    _check_whole("seed", seed, 0, 2**64 - 1)
    _check_whole("block_tokens", block_tokens, 1, 2**31 - 1)
    for name, value in parameters.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ConfigError(f"{name} must be a number, not {value!r}", hint="see kvreplay list generators")
    numbers = {name: float(value) for name, value in parameters.items()}
    core = calls.run(
        lambda p: _core.generate(
            kind, requests=requests, seed=seed, block_tokens=block_tokens, parameters=numbers, progress=p
        ),
        what="generating",
    )
    return Trace(core)


def _check_whole(name: str, value: object, least: int, most: int) -> None:
    if not is_whole(value, least, most):
        raise ConfigError(
            f"{name} must be a whole number from {least} to {most}, not {value!r}",
            hint="see kvreplay list generators",
        )
