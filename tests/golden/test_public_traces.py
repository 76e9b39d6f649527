"""Known facts about the public traces (skipped where they are not)."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest

import kvreplay as kv

if TYPE_CHECKING:
    from pathlib import Path

# File, sha256 of the file, facts counted independently of this code.
CONVERSATION_SHA256 = "b8cbb061a85206d729d91cdc2981f43c9e0d99209dce588d3af5f7934408b9df"
SYNTHETIC_SHA256 = "bd070915a98fc0ed264d7cfef2ce746002eb3076a695ec31ba2674c0111ec131"


@pytest.fixture(scope="module")
def conversation_trace(conversation: Path) -> kv.Trace:
    assert hashlib.sha256(conversation.read_bytes()).hexdigest() == CONVERSATION_SHA256
    return kv.read_trace(conversation)


@pytest.fixture(scope="module")
def synthetic_trace(synthetic: Path) -> kv.Trace:
    assert hashlib.sha256(synthetic.read_bytes()).hexdigest() == SYNTHETIC_SHA256
    return kv.read_trace(synthetic)


def test_conversation_facts(conversation_trace: kv.Trace) -> None:
    wanted = {
        "format": "mooncake",
        "requests": 12031,
        "rejected_rows": 0,
        "block_refs": 288500,
        "unique_blocks": 182790,
        "input_tokens": 144793823,
        "block_tokens": 512,
        "tail": "ceil",
        "chained": True,
    }
    assert {key: conversation_trace.info[key] for key in wanted} == wanted


def test_synthetic_facts(synthetic_trace: kv.Trace) -> None:
    wanted = {"requests": 3993, "block_refs": 121877, "unique_blocks": 43924, "input_tokens": 61194628}
    assert {key: synthetic_trace.info[key] for key in wanted} == wanted


def test_conversation_ceiling(conversation_trace: kv.Trace) -> None:
    found = {
        name: (numerator, denominator)
        for name, numerator, denominator in kv.ratios(conversation_trace)
        .select("name", "numerator", "denominator")
        .iter_rows()
    }
    wanted = {
        "token_hit_ratio": (54098411, 144793823),
        "block_hit_ratio": (105710, 288500),
        "full_block_hit_ratio": (105592, 276491),
        "request_hit_ratio": (12030, 12031),
        "request_full_hit_ratio": (118, 12031),
    }
    assert {name: found[name] for name in wanted} == wanted


@pytest.mark.parametrize(
    ("name", "points"),
    [
        (
            "conversation_trace",
            {
                200: (12084, 6186568),
                1000: (12847, 6575459),
                5000: (32260, 16505817),
                20000: (83035, 42493406),
                80000: (104305, 53379051),
            },
        ),
        (
            "synthetic_trace",
            {
                200: (2128, 1089336),
                1000: (10252, 5245479),
                5000: (34043, 17411123),
                20000: (69686, 35629847),
                80000: (77953, 39852661),
            },
        ),
    ],
)
def test_lru_points(request: pytest.FixtureRequest, name: str, points: dict[int, tuple[int, int]]) -> None:
    curve = kv.hit_curve(request.getfixturevalue(name), capacities=points)
    found = {
        c: (blocks, tokens)
        for c, blocks, tokens in curve.select("capacity_blocks", "hit_blocks", "hit_tokens").iter_rows()
    }
    assert found == points


def test_the_replay_engine_agrees_with_the_curve(conversation_trace: kv.Trace) -> None:
    result = kv.replay(conversation_trace, [kv.Tier("gpu", capacity="5000 blocks")])
    row = result.tiers.row(0, named=True)
    assert (row["hit_blocks"], row["hit_tokens"]) == (32260, 16505817)
    assert row["inserted_blocks"] - row["evicted_blocks"] == row["resident_blocks"] == 5000


def test_a_native_file_is_small_and_equal(conversation_trace: kv.Trace, tmp_path: Path) -> None:
    conversation_trace.write(tmp_path / "c.parquet")
    assert (tmp_path / "c.parquet").stat().st_size < 260_000
    again = kv.read_trace(tmp_path / "c.parquet")
    assert again.info == conversation_trace.info | {"format": "native"}
    assert again.requests().equals(conversation_trace.requests())
    assert kv.hit_curve(again).equals(kv.hit_curve(conversation_trace))


def test_writing_mooncake_gives_the_rows_back(
    conversation: Path, conversation_trace: kv.Trace, tmp_path: Path
) -> None:
    conversation_trace.write(tmp_path / "c.jsonl", format="mooncake")
    want = [json.loads(line) for line in conversation.read_text().splitlines()]
    assert [json.loads(line) for line in (tmp_path / "c.jsonl").read_text().splitlines()] == want
