"""What is read out of a vLLM command line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import kvreplay as kv
from kvreplay.vllm_config import from_vllm

if TYPE_CHECKING:
    from pathlib import Path


def transfer(**extra: object) -> str:
    config = {"kv_connector": "OffloadingConnector", "kv_role": "kv_both", "kv_connector_extra_config": extra}
    return json.dumps(config)


def tiers(text: str) -> list[tuple[str, str | int, str, str, int]]:
    found = from_vllm(text).tiers
    return [(t.name, t.capacity, t.policy, t.admission, t.chunk_blocks) for t in found]


def test_sizes_become_tiers() -> None:
    found = from_vllm(
        "vllm serve Qwen/Qwen2.5-1.5B --block-size=32 --num-gpu-blocks-override 900 "
        "--kv-offloading-size 16 --max-model-len 8192 -tp 2 --enable-prefix-caching"
    )
    assert [(t.name, t.capacity) for t in found.tiers] == [("gpu", "900 blocks"), ("cpu", "16GiB")]
    assert (found.profile, found.options, found.model) == ("vllm", {"block_size": "32"}, "Qwen/Qwen2.5-1.5B")
    assert found.ignored == [("--max-model-len", "8192"), ("--tensor-parallel-size", "2")]
    assert found.lines()[-1] == "not used: --max-model-len 8192, --tensor-parallel-size 2"


def test_a_logged_size_is_the_gpu() -> None:
    log = "INFO kv_cache_utils.py:1234] GPU KV cache size: 21,520 tokens\n"
    assert tiers(log) == [("gpu", "21520 tokens", "lru", "always", 1)]


def test_a_transfer_config_names_the_cpu_tier() -> None:
    text = transfer(
        cpu_bytes_to_use=1 << 30,
        block_size=64,
        eviction_policy="arc",
        store_threshold=2,
        max_tracker_size=500,
        offload_prompt_only=False,
        secondary_tiers=[{"type": "fs"}],
    )
    assert tiers(text) == [
        ("cpu", "1073741824 B", "arc", "store_threshold(2, tracker=500)", 4),
        ("fs", 2**40, "fs", "always", 4),
    ]
    assert from_vllm(text).options == {"offload_decode": "true"}
    command = f"vllm serve m --kv-transfer-config '{transfer(cpu_bytes_to_use=4096, blocks_per_chunk=8)}'"
    assert tiers(command) == [("cpu", "4096 B", "lru", "always", 8)]


def test_lmcache_is_another_profile() -> None:
    found = from_vllm(
        "LMCACHE_MAX_LOCAL_CPU_SIZE=20 LMCACHE_CHUNK_SIZE=512 vllm serve m --num-gpu-blocks-override 9 "
        """--kv-transfer-config '{"kv_connector":"LMCacheConnectorV1","kv_role":"kv_both"}'"""
    )
    assert found.profile == "vllm+lmcache"
    assert [(t.name, t.capacity, t.chunk_blocks) for t in found.tiers] == [
        ("gpu", "9 blocks", 1),
        ("cpu", "20GB", 32),
    ]


def test_given_tiers_win_and_a_gpu_comes_first() -> None:
    found = from_vllm("vllm serve m --kv-offloading-size 16")
    gpu, cpu = kv.Tier("gpu", capacity=5), kv.Tier("cpu", capacity=7)
    assert found.merged([cpu, gpu]) == [gpu, cpu]
    assert found.merged([gpu]) == [gpu, *found.tiers]


def test_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "serve.sh").write_text("vllm serve m \\\n  --num-gpu-blocks-override 12\n")
    assert tiers(str(tmp_path / "serve.sh")) == [("gpu", "12 blocks", "lru", "always", 1)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("vllm serve m", "nothing in the vLLM command line"),
        ("vllm serve m --block-size zero", "--block-size 'zero'"),
        ("vllm serve m --no-enable-prefix-caching", "keeps nothing between requests"),
        ("vllm serve m --kv-offloading-size much", "--kv-offloading-size 'much'"),
        ("vllm serve m --kv-offloading-size 16 --kv-offloading-backend lmcache", "owns the size"),
        ("vllm serve 'm", "cannot be read"),
        ("vllm serve m --kv-transfer-config {", "is not JSON"),
        ("vllm serve m --kv-transfer-config []", "not a JSON object"),
        (transfer(), "cpu_bytes_to_use"),
        (transfer(cpu_bytes_to_use=-1), "cpu_bytes_to_use"),
        (transfer(cpu_bytes_to_use=4096, block_size=24), "not a multiple"),
        ('{"kv_connector": "NixlConnector"}', "has no profile"),
        ("no-such-file", "cannot be read as a file"),
    ],
)
def test_what_cannot_be_used_is_refused(text: str, message: str) -> None:
    with pytest.raises(kv.ConfigError, match=message) as error:
        from_vllm(text)
    assert error.value.hint
