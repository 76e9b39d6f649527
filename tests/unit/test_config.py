from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kvreplay.config import effective, load
from kvreplay.errors import ConfigError

FILE = """
[analyze]
warmup = 0.5
strict = true
fail_if = ["token_hit_ratio < 0.1"]

[[tier]]
name = "gpu"
capacity = "5000 blocks"
"""

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "kvreplay.toml"
    path.write_text(FILE)
    return path


def test_flag_beats_environment_beats_file_beats_default(file: Path) -> None:
    environ = {"KVREPLAY_WARMUP": "0.25", "KVREPLAY_BLOCK_TOKENS": "64", "KVREPLAY_TAIL": ""}
    settings = effective({"block_tokens": 16, "fail_if": []}, [], path=file, environ=environ)
    found = {name: (s.value, s.origin) for name, s in settings.options.items() if s.origin != "default"}
    assert found == {
        "block_tokens": (16, "flag"),
        "warmup": ("0.25", "environment KVREPLAY_WARMUP"),
        "strict": (True, f"file {file}"),
        "fail_if": (["token_hit_ratio < 0.1"], f"file {file}"),
    }
    assert settings["tail"] == "auto"
    assert settings.tiers == [{"name": "gpu", "capacity": "5000 blocks"}]


def test_a_tier_on_the_command_line_replaces_the_list(file: Path) -> None:
    settings = effective({}, [{"name": "cpu", "capacity": "1 block"}], path=file, environ={})
    assert (settings.tiers, settings.tiers_origin) == ([{"name": "cpu", "capacity": "1 block"}], "flag")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[analyse]\n", "analyse"),
        ('[analyze]\nmodle = "x"\n', "modle"),
        ("[analyze]\nwarmup = true\n", "wrong type"),
        ("[analyze]\nstrict = 1\n", "wrong type"),
        ("[analyze]\nfail_if = [1]\n", "wrong type"),
        ("tier = 5\n", "list of tables"),
        ("analyze = 5\n", "not a table"),
        ("[analyze\n", "kvreplay.toml"),
    ],
)
def test_mistakes_in_the_file_are_named(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "kvreplay.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=says) as caught:
        load(path)
    assert "kvreplay.toml" in str(caught.value)
    assert caught.value.hint


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "junk").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "missing", tmp_path, tmp_path / "junk"):
        with pytest.raises(ConfigError):
            load(path)


@pytest.mark.parametrize("environ", [{"KVREPLAY_STRICT": "maybe"}, {"KVREPLAY_BLOCK_TOKENS": "many"}])
def test_mistakes_in_the_environment(environ: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="KVREPLAY_"):
        effective({}, [], path=None, environ=environ)


def test_environment_values_are_typed() -> None:
    environ = {"KVREPLAY_STRICT": "Yes", "KVREPLAY_QUIET": "0", "KVREPLAY_NAMESPACE": "model,lora"}
    settings = effective({}, [], path=None, environ=environ)
    assert (settings["strict"], settings["quiet"], settings["namespace"]) == (True, False, ["model", "lora"])
