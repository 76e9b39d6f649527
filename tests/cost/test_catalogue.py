"""Models of the catalogue against the figures of their publishers and of the calculators we checked."""

from __future__ import annotations

import pytest

import kvreplay as kv
from kvreplay.cost import data

# Stored bytes per token in bf16, one copy. Sources: the models' config.json; vLLM's blog of 2026-01-08 gives
# blocks of 16 tokens of 0.44, 0.87, 0.5 and 2 MB for the Qwen2.5 and Llama models.
STORED = {
    "qwen2.5-1.5b": 28_672,
    "qwen2.5-7b": 57_344,
    "llama-3.2-1b": 32_768,
    "qwen3-0.6b": 114_688,
    "qwen3-8b": 147_456,
    "llama-3.1-8b": 131_072,
    "mistral-7b": 131_072,
    "qwen3-14b": 163_840,
    "qwen3-32b": 262_144,
    "llama-3.1-70b": 327_680,
    "llama-3.1-405b": 516_096,
    "mixtral-8x7b": 131_072,
    "mixtral-8x22b": 229_376,
    "qwen3-30b-a3b": 98_304,
    "qwen3-235b-a22b": 192_512,
    "qwen3-coder-480b-a35b": 253_952,
    "minimax-m2": 253_952,
    "minimax-m3": 122_880 + 14_592,
    "deepseek-v3": 70_272,
    "deepseek-v3.2": 85_888,
    "kimi-k2": 70_272,
    "glm-5": 109_824,
    "glm-5.2": 95_232,
    "kimi-k3": 27_648,
    "qwen3-next-80b-a3b": 24_576,
    "qwen3.5-27b": 65_536,
    "qwen3.5-397b-a17b": 30_720,
    "gpt-oss-20b": 49_152,
    "gpt-oss-120b": 73_728,
    "gemma-3-27b": 81_920 + 425_984,
    "gemma-4-31b": 81_920 + 819_200,
    "gemma-4-26b-a4b": 20_480 + 204_800,
    "llama-4-scout": 196_608,
    "llama-4-maverick": 196_608,
    "nemotron-3-nano-30b-a3b": 6_144,
    "nemotron-3-super-120b-a12b": 8_192,
    "nemotron-h-56b": 40_960,
    "command-a": 65_536 + 196_608,
    "mimo-v2.5": 23_040 + 199_680,
}
# What a token of a long hit adds to the bytes that are loaded: layers without a window.
LOADED = {
    "gpt-oss-20b": 24_576,
    "gpt-oss-120b": 36_864,
    "gemma-3-27b": 81_920,
    "gemma-4-31b": 81_920,
    "gemma-4-26b-a4b": 20_480,
    "llama-4-scout": 49_152,
    "command-a": 65_536,
    "mimo-v2.5": 23_040,
    "llama-3.1-8b": 131_072,
}
# Bytes of the windows of a hit longer than they are: 10^6 bytes.
WINDOWS_MB = {"gemma-3-27b": 436, "gemma-4-31b": 839, "gemma-4-26b-a4b": 210, "mimo-v2.5": 25.6}
STATES_MB = {"kimi-k3": 449, "qwen3-next-80b-a3b": 77.3, "qwen3.5-27b": 154, "qwen3.5-397b-a17b": 192}
# 10^9 parameters in all and per prefilled token; dense ones to two digits, experts as their names say.
DENSE = {
    "qwen2.5-1.5b": (1.54, 1.31),
    "qwen2.5-7b": (7.62, 6.53),
    "llama-3.2-1b": (1.24, 0.97),
    "qwen3-0.6b": (0.60, 0.44),
    "qwen3-8b": (8.19, 6.95),
    "llama-3.1-8b": (8.03, 6.98),
    "mistral-7b": (7.24, 6.98),
    "qwen3-14b": (14.77, 13.21),
    "qwen3-32b": (32.76, 31.21),
    "llama-3.1-70b": (70.55, 68.45),
    "llama-3.1-405b": (405.9, 401.7),
}
NAMED = {
    "mixtral-8x7b": (46.7, 12.9),
    "mixtral-8x22b": (141, 39),
    "qwen3-30b-a3b": (30.5, 3.3),
    "qwen3-235b-a22b": (235, 22),
    "qwen3-coder-480b-a35b": (480, 35),
    "minimax-m2": (230, 10),
    "deepseek-v3": (671, 37),
    "kimi-k2": (1000, 32),
    "glm-5": (744, 40),
    "qwen3-next-80b-a3b": (80, 3.9),
    "qwen3.5-122b-a10b": (122, 10),
    "qwen3.5-397b-a17b": (397, 17),
    "gpt-oss-20b": (21, 3.6),
    "gpt-oss-120b": (117, 5.1),
    "gemma-4-26b-a4b": (26, 4),
    "llama-4-scout": (109, 17),
    "llama-4-maverick": (400, 17),
    "nemotron-3-nano-30b-a3b": (31.6, 3.5),
    "nemotron-3-super-120b-a12b": (120, 12),
}


@pytest.mark.parametrize("name", STORED)
def test_stored_bytes_per_token(name: str) -> None:
    assert kv.model(name).kv_bytes_per_token == STORED[name]


@pytest.mark.parametrize("name", LOADED)
def test_a_long_hit_loads_less_where_layers_have_windows(name: str) -> None:
    spec = kv.model(name)
    assert spec.loaded_bytes(200_001) - spec.loaded_bytes(200_000) == LOADED[name]


@pytest.mark.parametrize("name", WINDOWS_MB)
def test_windows_are_loaded_once(name: str) -> None:
    spec = kv.model(name)
    windows = spec.loaded_bytes(100_000) - 100_000 * LOADED[name]
    assert windows / 1e6 == pytest.approx(WINDOWS_MB[name], rel=0.002)
    assert spec.loaded_bytes(50) == 50 * STORED[name]


@pytest.mark.parametrize("name", STATES_MB)
def test_states_of_linear_layers(name: str) -> None:
    spec = kv.model(name)
    assert spec.state_bytes / 1e6 == pytest.approx(STATES_MB[name], rel=0.005)
    assert spec.loaded_bytes(1000) == 1000 * spec.kv_bytes_per_token + spec.state_bytes
    assert spec.loaded_bytes(0) == 0


@pytest.mark.parametrize("name", DENSE)
def test_parameters_of_dense_models(name: str) -> None:
    spec = kv.model(name)
    total, body = DENSE[name]
    assert spec.params_total / 1e9 == pytest.approx(total, abs=0.06 if total > 100 else 0.006)
    assert spec.params_body / 1e9 == pytest.approx(body, abs=0.06 if total > 100 else 0.006)


@pytest.mark.parametrize("name", NAMED)
def test_parameters_of_models_with_experts_are_what_their_names_say(name: str) -> None:
    spec = kv.model(name)
    total, active = NAMED[name]
    fields = data.config_of(name)
    embeddings = (
        fields["vocab_size"] * fields["hidden_size"] * (1 if fields.get("tie_word_embeddings") else 2)
    )
    assert spec.params_total / 1e9 == pytest.approx(total, rel=0.055)
    # Names count embedding and head among the active ones; some leave out one of the two.
    assert spec.params_body / 1e9 <= active * 1.03
    assert (spec.params_body + embeddings) / 1e9 >= active * 0.93


def test_every_entry_has_source_and_date_and_nothing_unknown() -> None:
    known = {"source", "date", "aliases", "params_total", "params_active", *data.CONFIG_PARTS}
    for name, entry in data.catalogue("models").items():
        assert set(entry) <= known, name
        assert entry["source"], name
        assert len(entry["date"]) == 10, name


def test_the_table() -> None:
    models = kv.models()
    assert models.height >= 35
    assert models["name"].is_sorted()
    row = models.filter(name="deepseek-v3.2").row(0, named=True)
    assert row["kv_bytes_per_token"] == 85_888
    assert row["attention"] == "61 x latent attention (MLA), 61 x index of sparse attention"


def test_aliases_and_case() -> None:
    assert kv.model("DeepSeek-R1").name == "deepseek-v3"
    assert kv.model("llama-3.3-70b").kv_bytes_per_token == 327_680
    spec = kv.model("llama-3.1-8b")
    assert kv.model(spec) is spec


def test_an_unknown_name_names_the_nearest() -> None:
    with pytest.raises(kv.ConfigError, match="unknown model") as caught:
        kv.model("llama-3.1-8")
    assert "did you mean llama-3.1-8b?" in caught.value.hint


@pytest.mark.parametrize(
    "options",
    [{"tp": 0}, {"tp": 1.5}, {"host_copies": -1}, {"block_tokens": 0}, {"kv_dtype": "fp7"}, {"tp": True}],
)
def test_options_that_cannot_be(options: dict[str, object]) -> None:
    with pytest.raises(kv.ConfigError):
        kv.model("llama-3.1-8b", **options)  # type: ignore[arg-type]


class TestDtypes:
    def test_scales(self) -> None:
        of = {
            name: kv.model("qwen3-8b", kv_dtype=name).kv_bytes_per_token
            for name in ("bf16", "fp8", "fp8_token_head", "nvfp4", "mxfp4", "int4_g32", "fp32")
        }
        elements = 36 * 2 * 8 * 128
        assert of == {
            "bf16": 2 * elements,
            "fp8": elements,
            # an fp32 scale per token, layer, head and of K and V
            "fp8_token_head": elements + 4 * 2 * 8 * 36,
            "nvfp4": elements * 9 // 16,
            "mxfp4": elements * 17 // 32,
            "int4_g32": elements // 2 + elements // 8,
            "fp32": 4 * elements,
        }

    def test_the_index_may_have_a_type_of_its_own(self) -> None:
        spec = kv.model("deepseek-v3.2", indexer_dtype="fp8_block128")
        assert spec.kv_bytes_per_token == 78_324  # 132 B per layer and token for the index


class TestRanks:
    def test_heads_are_split_and_doubled_beyond_their_number(self) -> None:
        base = kv.model("qwen3-235b-a22b").kv_bytes_per_token
        assert kv.model("qwen3-235b-a22b", tp=4).hbm_bytes_per_token == base
        assert kv.model("qwen3-235b-a22b", tp=4).rank_bytes_per_token == base // 4
        wide = kv.model("qwen3-235b-a22b", tp=8)
        assert (wide.hbm_bytes_per_token, wide.rank_bytes_per_token) == (2 * base, base // 4)
        assert wide.kv_bytes_per_token == base

    def test_latent_attention_is_on_every_rank(self) -> None:
        spec = kv.model("deepseek-v3", tp=8, host_copies=8)
        assert spec.hbm_bytes_per_token == 8 * 70_272
        assert spec.rank_bytes_per_token == 70_272
        assert spec.rank_loaded_bytes(1000) == 70_272_000
        assert spec.host_bytes_per_token == 8 * 70_272

    def test_blocks_round_down(self) -> None:
        spec = kv.model("llama-3.1-8b", block_tokens=256)
        assert [spec.stored_tokens(n) for n in (255, 256, 5011)] == [0, 256, 4864]


class TestWrongPublicNumbers:
    """Figures that circulate, and what is right (docs/cost/models.md warns of them)."""

    def test_seventy_billion_and_256_users(self) -> None:
        user = kv.model("llama-3.1-70b").kv_bytes_per_token * 4096
        assert user / 1e9 == pytest.approx(1.342, abs=5e-4)  # "1.3 GB": right
        assert 256 * user / 1e9 == pytest.approx(343.6, abs=0.05)  # "336 GB": neither GB nor GiB
        assert 256 * user == 320 * 2**30

    def test_storage_benchmark_presets(self) -> None:
        assert kv.model("llama-3.1-8b").kv_bytes_per_token == 1024 * 128  # preset: 128 B
        assert kv.model("llama-3.1-405b").kv_bytes_per_token != 516_018
        assert kv.model("deepseek-v3").kv_bytes_per_token < 1_749_384 / 24
        assert kv.model("glm-5").kv_bytes_per_token == 78 * 1_408  # preset: bytes of one layer

    def test_128k_user_of_70b(self) -> None:
        assert kv.model("llama-3.1-70b").kv_bytes_per_token * 131_072 / 1e9 == pytest.approx(42.9, abs=0.06)

    def test_fifty_thousand_tokens_of_the_laboratory_are_gibibytes(self) -> None:
        size = 50_110 * kv.model("qwen2.5-1.5b").kv_bytes_per_token
        assert size / 1e9 == pytest.approx(1.437, abs=5e-4)
        assert size / 2**30 == pytest.approx(1.338, abs=5e-4)
