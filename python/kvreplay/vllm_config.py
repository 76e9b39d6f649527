"""What a vLLM command line or ``kv-transfer-config`` says about the cache, as tiers and profile options.

Flags and keys as in vLLM 0.33.0 (``vllm serve``, ``KVTransferConfig``, ``CPUOffloadingSpec``); nothing is run
and nothing is looked up, so the size of the GPU cache is only known where the text holds it.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvreplay.errors import ConfigError
from kvreplay.replaying import Tier

if TYPE_CHECKING:
    from collections.abc import Callable

_GPU_SIZE = re.compile(r"GPU KV cache size:\s*([0-9][0-9,]*)\s*tokens")
_ASSIGNMENT = re.compile(r"([A-Z][A-Z0-9_]*)=(.*)")
_ALIASES = {"-tp": "--tensor-parallel-size", "--served-model": "--model"}
_SWITCHES = {
    "--enable-prefix-caching",
    "--no-enable-prefix-caching",
    "--enforce-eager",
    "--trust-remote-code",
}
_OFFLOADING = ("OffloadingConnector",)
_LMCACHE = ("LMCacheConnectorV1", "LMCacheConnector")
_LMCACHE_CHUNK_TOKENS = 256
_DEFAULT_BLOCK_TOKENS = 16
_DEFAULT_TRACKER = 64_000
# A tier without a limit of its own: more blocks than any trace has.
_UNLIMITED_BLOCKS = 2**40


@dataclass
class VllmConfig:
    """What was taken from a vLLM command line.

    Parameters
    ----------
    profile
        Name of the profile without a version: ``vllm`` or ``vllm+lmcache``.
    tiers
        The tiers it names, fastest first. The GPU is missing where the text does not say its size.
    options
        Options of the profile.
    model
        The model's name, ``None`` where there is none.
    taken
        What was used, as ``(flag or key, value, what it became)``.
    ignored
        What has no part in the cache, as ``(flag or key, value)``.
    """

    profile: str = "vllm"
    tiers: list[Tier] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)
    model: str | None = None
    taken: list[tuple[str, str, str]] = field(default_factory=list)
    ignored: list[tuple[str, str]] = field(default_factory=list)

    def lines(self) -> list[str]:
        """One line for each thing taken, one for all that was left."""
        lines = [f"{key} {value} -> {use}" for key, value, use in self.taken]
        if self.ignored:
            lines.append("not used: " + ", ".join(f"{key} {value}".strip() for key, value in self.ignored))
        return lines

    def merged(self, tiers: list[Tier]) -> list[Tier]:
        """The tiers with those of the same name replaced and new ones put in front (gpu) or behind."""
        given = {tier.name: tier for tier in tiers}
        mine = {tier.name: given.pop(tier.name, tier) for tier in self.tiers}
        front = [tier for name, tier in given.items() if name == "gpu"]
        return [*front, *mine.values(), *(tier for name, tier in given.items() if name != "gpu")]


def from_vllm(text: str) -> VllmConfig:
    """Read a ``vllm serve`` command, a ``kv-transfer-config`` JSON, a log with the cache size, or a file.

    Parameters
    ----------
    text
        The text, or the name of a file that holds it. Environment assignments may stand in front of the
        command (``LMCACHE_MAX_LOCAL_CPU_SIZE=20``).

    Raises
    ------
    ConfigError
        When nothing in it can be used, or a value is not what vLLM takes.

    Examples
    --------
    >>> from kvreplay.vllm_config import from_vllm
    >>> found = from_vllm("vllm serve m --block-size 32 --num-gpu-blocks-override 9 --kv-offloading-size 16")
    >>> [(tier.name, tier.capacity) for tier in found.tiers], found.options
    ([('gpu', '9 blocks'), ('cpu', '16GiB')], {'block_size': '32'})
    """
    text = _contents(text)
    found = VllmConfig()
    facts = _facts(text)
    _take_sizes(facts, found)
    _take_gpu(facts, found)
    _take_transfer(facts, found)
    _take_offloading(facts, found)
    found.ignored += [(key, str(value)) for key, value in facts.items()]
    if not (found.tiers or found.options):
        raise ConfigError(
            "nothing in the vLLM command line is about the cache",
            hint='for example --from-vllm "vllm serve MODEL --num-gpu-blocks-override 1345"',
        )
    return found


def _contents(text: str) -> str:
    if "\n" in text or " " in text.strip() or text.lstrip().startswith("{"):
        return text
    try:
        return Path(text).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{text!r} is no vLLM command line and cannot be read as a file",
            hint='give the command in quotes: --from-vllm "vllm serve ..."',
        ) from error


def _facts(text: str) -> dict[str, Any]:
    """Flags, environment and logged sizes by name."""
    facts: dict[str, Any] = {}
    if logged := _GPU_SIZE.search(text):
        facts["GPU KV cache size"] = logged[1].replace(",", "")
        text = text[: logged.start()] + text[logged.end() :]
    if text.lstrip().startswith("{"):
        return facts | {"--kv-transfer-config": text}
    try:
        words = shlex.split(text.replace("\\\n", " "), comments=True)
    except ValueError as error:
        raise ConfigError(
            f"the vLLM command line cannot be read: {error}", hint="check its quotes"
        ) from error
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if assignment := _ASSIGNMENT.fullmatch(word):
            facts[assignment[1]] = assignment[2]
            continue
        if not word.startswith("-"):
            if at >= 2 and words[at - 2] == "serve":  # noqa: PLR2004 - the word behind `serve`
                facts["--model"] = word
            continue
        name, sign, value = word.partition("=")
        name = _ALIASES.get(name, name.replace("_", "-"))
        if not sign and name not in _SWITCHES and at < len(words) and not words[at].startswith("--"):
            value = words[at]
            at += 1
        facts[name] = value
    return facts


def _take(facts: dict[str, Any], found: VllmConfig, key: str, use: Callable[[str], str]) -> None:
    """Use one fact: `use` applies it and says what it became."""
    if key in facts:
        value = str(facts.pop(key))
        found.taken.append((key, value, use(value)))


def _whole(key: str, value: Any, least: int = 1) -> int:
    try:
        number = int(str(value))
    except ValueError:
        number = least - 1
    if number < least:
        raise ConfigError(
            f"{key} {value!r} is not a whole number from {least}", hint="check the command line"
        )
    return number


def _take_sizes(facts: dict[str, Any], found: VllmConfig) -> None:
    def block_size(value: str) -> str:
        found.options["block_size"] = str(_whole("--block-size", value))
        return f"blocks of {value} tokens"

    def model(value: str) -> str:
        found.model = value
        return "model"

    _take(facts, found, "--block-size", block_size)
    _take(facts, found, "--model", model)
    if "--no-enable-prefix-caching" in facts:
        raise ConfigError(
            "--no-enable-prefix-caching: this engine keeps nothing between requests",
            hint="leave the flag out to see what prefix caching would give",
        )
    facts.pop("--enable-prefix-caching", None)


def _take_gpu(facts: dict[str, Any], found: VllmConfig) -> None:
    def tier(capacity: str) -> str:
        found.tiers = [Tier("gpu", capacity=capacity)]
        return f"tier gpu of {capacity}"

    logged, override = "GPU KV cache size", "--num-gpu-blocks-override"
    _take(facts, found, logged, lambda value: tier(f"{_whole(logged, value)} tokens"))
    _take(facts, found, override, lambda value: tier(f"{_whole(override, value)} blocks"))
    if not found.tiers:
        key = "--kv-cache-memory-bytes"
        _take(facts, found, key, lambda value: tier(f"{_whole(key, value)} B"))


def _take_transfer(facts: dict[str, Any], found: VllmConfig) -> None:
    if "--kv-transfer-config" not in facts:
        return
    try:
        config = json.loads(facts.pop("--kv-transfer-config"))
    except ValueError as error:
        raise ConfigError(
            f"--kv-transfer-config is not JSON: {error}", hint="give the JSON in single quotes"
        ) from error
    if not isinstance(config, dict):
        raise ConfigError("--kv-transfer-config is not a JSON object", hint='{"kv_connector": ...}')
    connector = config.pop("kv_connector", None)
    extra = config.pop("kv_connector_extra_config", None) or {}
    if connector in _OFFLOADING:
        found.taken.append(("kv_connector", str(connector), "tier cpu"))
        _take_cpu(dict(extra), found)
    elif connector in _LMCACHE:
        found.taken.append(("kv_connector", str(connector), "profile vllm+lmcache"))
        _take_lmcache(facts, found)
    else:
        raise ConfigError(
            f"kv_connector {connector!r} has no profile",
            hint=f"known: {', '.join((*_OFFLOADING, *_LMCACHE))}",
        )
    found.ignored += [(key, str(value)) for key, value in config.items()]


def _take_cpu(extra: dict[str, Any], found: VllmConfig) -> None:
    """The CPU tier of ``OffloadingConnector`` and what stands behind it."""
    if "cpu_bytes_to_use" not in extra:
        raise ConfigError(
            "kv_connector_extra_config has no cpu_bytes_to_use", hint="vLLM asks for it as well"
        )
    rules: dict[str, Any] = {}
    capacity = f"{_whole('cpu_bytes_to_use', extra.pop('cpu_bytes_to_use'))} B"
    found.taken.append(("cpu_bytes_to_use", capacity, f"tier cpu of {capacity}"))
    if "eviction_policy" in extra:
        rules["policy"] = str(extra.pop("eviction_policy"))
        found.taken.append(("eviction_policy", rules["policy"], "policy of tier cpu"))
    chunk = _chunk_blocks(extra, found)
    if chunk > 1:
        rules["chunk_blocks"] = chunk
    threshold = _whole("store_threshold", extra.pop("store_threshold", 0), least=0)
    tracker = _whole("max_tracker_size", extra.pop("max_tracker_size", _DEFAULT_TRACKER))
    if threshold > 1:
        rules["admission"] = f"store_threshold({threshold}, tracker={tracker})"
        found.taken.append(("store_threshold", str(threshold), rules["admission"]))
    if extra.pop("offload_prompt_only", True) is False:
        found.options["offload_decode"] = "true"
        found.taken.append(("offload_prompt_only", "false", "decoded chunks are stored too"))
    found.tiers.append(Tier("cpu", capacity=capacity, **rules))
    for secondary in extra.pop("secondary_tiers", None) or []:
        name = str(secondary.get("type", "fs")) if isinstance(secondary, dict) else str(secondary)
        policy = "obj" if name == "obj" else "fs"
        found.tiers.append(Tier(name, capacity=_UNLIMITED_BLOCKS, policy=policy, chunk_blocks=chunk))
        found.taken.append(("secondary_tiers", name, f"tier {name} without a limit"))
    found.ignored += [(key, str(value)) for key, value in extra.items()]


def _chunk_blocks(extra: dict[str, Any], found: VllmConfig) -> int:
    block_tokens = int(found.options.get("block_size", _DEFAULT_BLOCK_TOKENS))
    if "blocks_per_chunk" in extra:
        chunk = _whole("blocks_per_chunk", extra.pop("blocks_per_chunk"))
        found.taken.append(("blocks_per_chunk", str(chunk), f"chunks of {chunk} blocks"))
        return chunk
    if "block_size" not in extra:
        return 1
    tokens = _whole("block_size", extra.pop("block_size"))
    if tokens % block_tokens:
        raise ConfigError(
            f"block_size {tokens} of the connector is not a multiple of the GPU's {block_tokens}",
            hint="vLLM asks for a multiple as well",
        )
    found.taken.append(("block_size", str(tokens), f"chunks of {tokens // block_tokens} blocks"))
    return tokens // block_tokens


def _take_lmcache(facts: dict[str, Any], found: VllmConfig) -> None:
    found.profile = "vllm+lmcache"
    block_tokens = int(found.options.get("block_size", _DEFAULT_BLOCK_TOKENS))
    chunk_tokens, capacity = _LMCACHE_CHUNK_TOKENS, "5GB"  # LMCache's defaults
    if "LMCACHE_CHUNK_SIZE" in facts:
        chunk_tokens = _whole("LMCACHE_CHUNK_SIZE", facts.pop("LMCACHE_CHUNK_SIZE"))
        found.taken.append(("LMCACHE_CHUNK_SIZE", str(chunk_tokens), f"chunks of {chunk_tokens} tokens"))
    if "LMCACHE_MAX_LOCAL_CPU_SIZE" in facts:
        capacity = f"{facts.pop('LMCACHE_MAX_LOCAL_CPU_SIZE')}GB"
        found.taken.append(("LMCACHE_MAX_LOCAL_CPU_SIZE", capacity, f"tier cpu of {capacity}"))
    found.tiers.append(Tier("cpu", capacity=capacity, chunk_blocks=max(1, chunk_tokens // block_tokens)))


def _take_offloading(facts: dict[str, Any], found: VllmConfig) -> None:
    """``--kv-offloading-size`` (GiB over all ranks) and its backend."""
    backend = str(facts.pop("--kv-offloading-backend", "native"))
    if "--kv-offloading-size" not in facts:
        return
    if backend == "lmcache":
        raise ConfigError(
            "--kv-offloading-backend lmcache: the LMCache server owns the size",
            hint="use --profile lmcache-mp with --tier cpu=SIZE",
        )
    size = str(facts.pop("--kv-offloading-size"))
    try:
        good = float(size) > 0
    except ValueError:
        good = False
    if not good:
        raise ConfigError(f"--kv-offloading-size {size!r} is not a size in GiB", hint="for example 16")
    found.tiers.append(Tier("cpu", capacity=f"{size}GiB"))
    found.taken.append(("--kv-offloading-size", size, f"tier cpu of {size}GiB"))
