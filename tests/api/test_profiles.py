"""Engine profiles from Python: names, options, blocks, tiers, and what goes wrong."""

from __future__ import annotations

import polars as pl
import pytest

import kvreplay as kv
from kvreplay import engines
from kvreplay.report.difference import requests_apart

GPU = kv.Tier("gpu", capacity=9)


def trace(paths: list[list[int]], *, block_tokens: int = 16) -> kv.Trace:
    lengths = [block_tokens * len(path) for path in paths]
    rows = pl.DataFrame({"input_tokens": lengths, "output_tokens": [1] * len(paths), "hash_ids": paths})
    return kv.read_trace(rows, block_tokens=block_tokens)


def test_every_profile_has_a_newest_release_rules_and_sources() -> None:
    registry = kv.profiles()
    names = registry["name"].to_list()
    assert names == sorted(set(names))
    for name in names:
        resolved, rules = engines.rules(name)
        assert resolved.startswith(name.split("+")[0] + "@")
        assert rules.height > 4
        assert all(rules[column].str.len_chars().min() for column in ("topic", "rule", "source"))
    assert all(registry["releases"].str.contains("@"))


def test_a_prefix_of_a_release_resolves_and_others_are_refused() -> None:
    small = trace([[1, 2, 3]])
    result = kv.replay(small, [GPU], profile="vllm@0.33")
    assert result.summary["profile"] == "vllm@0.33.0"
    with pytest.raises(kv.ConfigError, match=r"no profile vllm@9\.9") as error:
        kv.replay(small, [GPU], profile="vllm@9.9")
    assert "vllm@0.33.0" in error.value.hint
    with pytest.raises(kv.ConfigError, match="unknown profile") as error:
        kv.replay(small, [GPU], profile="vlm@0.33")
    assert "did you mean vllm" in error.value.hint


def test_vllm_computes_the_last_token_and_frees_the_tail_first() -> None:
    # 9 blocks, one of them the null block: 8 hold KV. Two documents of 5 blocks do not fit together.
    paths = [[1, 2, 3, 4, 5], [1, 2, 3, 4, 5], [11, 12, 13, 14, 15], [1, 2, 3, 4, 5]]
    result = kv.replay(trace(paths), [GPU], profile="vllm@0.33", per_request=True, events=True)
    # The second request computes its last block anew (a second copy); the third takes 5 of the 8 blocks:
    # the two never used, the first copy of 5, then the tail of what was freed.
    assert result.requests["hit_blocks_gpu"].to_list()[:3] == [0, 4, 0]
    assert result.requests["hit_tokens_gpu"].to_list()[:3] == [0, 64, 0]
    evicted = result.events.filter(pl.col("event") == "evict", pl.col("request") == 2)["block"].to_list()
    assert evicted == [5, 5, 4]
    assert result.requests["hit_blocks_gpu"][3] == 3


def test_trace_blocks_are_refined_to_engine_blocks() -> None:
    coarse = trace([[1, 2], [1, 2], [1, 3]], block_tokens=64)
    tier = kv.Tier("gpu", capacity="160 tokens")
    result = kv.replay(coarse, [tier], profile="vllm@0.33", per_request=True, events=True)
    assert result.summary["block_tokens"] == 16
    assert result.tiers["capacity_blocks"].to_list() == [10]
    # 9 usable blocks of 16 tokens: a request of 8 leaves one; the last token is computed.
    assert result.requests["hit_tokens_gpu"].to_list() == [0, 112, 64]
    assert set(result.events["block"].to_list()) == {1, 2, 3}
    same = kv.replay(coarse, [GPU], profile="vllm@0.33", profile_options={"block_size": 64})
    assert same.summary["block_tokens"] == 64


def test_rules_of_the_engine_are_not_the_users() -> None:
    small = trace([[1, 2, 3]])
    with pytest.raises(kv.ConfigError, match="mode does not go with"):
        kv.replay(small, [GPU], profile="vllm@0.33", mode="object")
    with pytest.raises(kv.ConfigError, match="last_token does not go with"):
        kv.replay(small, [GPU], profile="vllm@0.33", last_token=True)
    with pytest.raises(kv.ConfigError, match="fill of tier gpu is fixed by the profile"):
        kv.replay(small, [kv.Tier("gpu", capacity=9, fill="victim")], profile="vllm@0.33")
    with pytest.raises(kv.ConfigError, match="profile_options without a profile"):
        kv.replay(small, [GPU], profile_options={"block_size": 16})
    with pytest.raises(kv.ConfigError, match="no parameter"):
        kv.replay(small, [GPU], profile="vllm@0.33", profile_options={"blocksize": 16})
    with pytest.raises(kv.ConfigError, match="is no text, number or truth value"):
        kv.replay(small, [GPU], profile="vllm@0.33", profile_options={"block_size": [16]})
    with pytest.raises(kv.ConfigError, match="has no tier"):
        kv.replay(small, [GPU, kv.Tier("hbm", capacity=9)], profile="sglang@0.5")
    with pytest.raises(kv.ConfigError, match='has no tier "gpu"'):
        kv.replay(small, [GPU], profile="lmcache")


def test_a_trace_that_a_profile_cannot_serve_is_refused() -> None:
    rows = pl.DataFrame({"input_tokens": [32, 32], "output_tokens": [5, None], "hash_ids": [[1, 2], [1, 2]]})
    unknown = kv.read_trace(rows, block_tokens=16)
    with pytest.raises(kv.ConfigError, match="1 of 2 requests state no output length") as error:
        kv.replay(unknown, [GPU], profile="vllm@0.33")
    assert "outputs=none" in error.value.hint
    result = kv.replay(unknown, [GPU], profile="vllm@0.33", profile_options={"outputs": "none"})
    assert result.summary["hit_tokens"] == 16
    for replay in (
        lambda: kv.replay(trace([[1, 2]]), [GPU], profile="vllm@0.33", model="gpt-oss-20b"),
        lambda: kv.sweep(trace([[1, 2]]), [{"tiers": [GPU], "profile": "vllm"}], model="gpt-oss-20b"),
    ):
        with pytest.raises(kv.ConfigError, match="gpt-oss-20b is a hybrid model"):
            replay()
    with pytest.raises(kv.ConfigError, match="engine blocks of 16 tokens do not fit trace blocks of 24"):
        kv.replay(trace([[1, 2]], block_tokens=24), [GPU], profile="vllm@0.33")


def test_a_sweep_takes_profiles(chats: kv.Trace) -> None:
    grid = {"capacity": [100, 400], "name": "gpu", "profile": ["vllm@0.33", None]}
    frame = kv.sweep(chats, grid)
    assert frame["profile"].to_list() == ["vllm@0.33.0", None, "vllm@0.33.0", None]
    alone = kv.replay(chats, [kv.Tier("gpu", capacity=400)], profile="vllm@0.33")
    assert frame["hit_tokens"][2] == alone.tiers["hit_tokens"][0]
    assert frame["engine"].to_list() == ["profile", "stack", "profile", "stack"]


def test_an_analysis_takes_a_profile(chats: kv.Trace) -> None:
    report = kv.analyze(chats, [kv.Tier("gpu", capacity=400)], profile="vllm@0.33")
    assert report.summary["profile"] == "vllm@0.33.0"
    assert report.spec["rules"]["profile"] == "vllm@0.33"
    assert "vllm@0.33.0" in report.verdict[-1]["text"]
    with pytest.raises(kv.ConfigError, match="has no tier to replay"):
        kv.analyze(chats, profile="vllm@0.33")


def test_requests_that_two_releases_serve_differently_are_counted() -> None:
    documents = [[100 * d + b for b in range(5)] for d in (1, 2, 3)]
    uneven = pl.DataFrame({"input_tokens": [84] * 9, "output_tokens": [1] * 9, "hash_ids": documents * 3})
    read = kv.read_trace(uneven, block_tokens=16)
    tier = kv.Tier("gpu", capacity=17)
    new, old = (
        kv.replay(read, [tier], profile=f"vllm@{release}", per_request=True) for release in ("0.33", "0.22")
    )
    apart = requests_apart(old, new)
    assert apart["only_a_tokens"] == 0
    assert apart["only_b_tokens"] == new.summary["hit_tokens"] - old.summary["hit_tokens"] > 0
    assert requests_apart(new, new) == {
        "requests": 0,
        "only_a_tokens": 0,
        "only_b_tokens": 0,
        "first": None,
    }


def test_listed_outputs_bound_the_hits_from_above() -> None:
    rows = pl.DataFrame(
        {
            "input_tokens": [32, 80, 80],
            "output_tokens": [33, 1, 1],
            "hash_ids": [[1, 2], [1, 2, 7, 8, 9], [1, 2, 7, 8, 9]],
            "output_hash_ids": [[7, 8], [], []],
        }
    )
    read = kv.read_trace(rows, block_tokens=16)
    tier = kv.Tier("gpu", capacity=100)
    bounds = engines.output_bounds(read, [tier], profile="vllm@0.33")
    # The second request finds its first two blocks, and the two decoded ones where they are known.
    assert [(row["outputs"], row["hit_tokens"]) for row in bounds] == [("private", 96), ("listed", 128)]
    assert engines.output_bounds(trace([[1, 2]]), [tier], profile="vllm@0.33") == []


def test_windows_say_what_the_tiers_of_a_profile_hold(chats: kv.Trace) -> None:
    result = kv.replay(chats, [kv.Tier("gpu", capacity=400)], profile="vllm@0.33", window="10s")
    held = result.windows["resident_blocks_gpu"]
    assert held[-1] == result.tiers["resident_blocks"][0]
    assert held.max() == 399


def test_a_replay_that_would_not_fit_into_memory_is_refused() -> None:
    rows = pl.DataFrame(
        {"input_tokens": [16] * 4000, "output_tokens": [2**31] * 4000, "hash_ids": [[1]] * 4000}
    )
    with pytest.raises(kv.ConfigError, match="would take about"):
        kv.replay(kv.read_trace(rows, block_tokens=16), [kv.Tier("gpu", capacity=2**40)], profile="vllm@0.33")
