"""Bandwidths, times and links."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

import kvreplay as kv
from kvreplay.cost import data, rates


class TestRates:
    @pytest.mark.parametrize(
        ("text", "bytes_per_s"),
        [
            ("43.9 GB/s", 43.9e9),
            ("43.9GB/s", 43.9e9),
            ("32 GiB/s", 32 * 2**30),
            ("400 Gbps", 50e9),
            ("10 Gbit/s", 1.25e9),
            ("762 MB/s", 762e6),
            ("1_000 KB/s", 1e6),
        ],
    )
    def test_units(self, text: str, bytes_per_s: float) -> None:
        assert rates.bandwidth(text) == pytest.approx(bytes_per_s, rel=1e-12)

    @pytest.mark.parametrize("text", ["50 Gb/s", "50 Gb", "50 GB", "50 gb/s", "50 G", "50"])
    def test_bits_or_bytes_must_be_told(self, text: str) -> None:
        with pytest.raises(kv.ConfigError, match="may mean bits or bytes"):
            rates.bandwidth(text)

    @pytest.mark.parametrize("text", ["", "fast", "-3 GB/s", "0 GB/s", "1e30 GB/s", "nan GB/s", 5, None])
    def test_what_is_no_bandwidth(self, text: object) -> None:
        with pytest.raises(kv.ConfigError, match="bandwidth"):
            rates.bandwidth(text)

    @pytest.mark.parametrize(("text", "us"), [("9.8 ms", 9800), ("0 us", 0), ("5ns", 0.005), ("1 s", 1e6)])
    def test_times(self, text: str, us: float) -> None:
        assert rates.time_us(text) == pytest.approx(us, rel=1e-12)

    @pytest.mark.parametrize("text", ["9.8", "0", "5 minutes", "-1 ms", "2000000 s", 3])
    def test_what_is_no_time(self, text: object) -> None:
        with pytest.raises(kv.ConfigError, match="time"):
            rates.time_us(text)


class TestLink:
    def test_the_form(self) -> None:
        link = kv.Link(
            "x",
            bandwidth="2 GB/s",
            fixed="1 ms",
            lookup="200 us",
            copies_per_block=64,
            copy="5 us",
            block_tokens=16,
        )
        # 1 ms + 0.2 ms + 3 blocks of 64 copies of 5 us + 4 MB at 2,000 bytes per us
        assert link.load_us(40, 4_000_000) == 1000 + 200 + 3 * 64 * 5 + 2000
        assert link.load_us(0, 0) == 0

    def test_links_behind_links_add_up(self) -> None:
        host = kv.Link("pcie", bandwidth="20 GB/s", fixed="1 ms", copy="4 us", block_tokens=32)
        disk = kv.Link("disk", bandwidth="5 GB/s", fixed="2 ms", through=host)
        alone = kv.Link("disk", bandwidth="5 GB/s", fixed="2 ms")
        assert disk.load_us(64, 10**7) == alone.load_us(64, 10**7) + host.load_us(64, 10**7)

    def test_a_pipeline_waits_for_its_slowest_part(self) -> None:
        host = kv.Link("pcie", bandwidth="20 GB/s", fixed="1 ms")
        disk = kv.Link("disk", bandwidth="5 GB/s", fixed="2 ms", through=host, pipelined=True)
        assert disk.load_us(64, 10**7) == 3000 + 10**7 / 5000

    def test_the_host_link_needs_a_gpu(self) -> None:
        link = kv.link("nvme-gen4")
        with pytest.raises(kv.ConfigError, match="no GPU is named"):
            link.load_us(16, 1)
        resolved = link.of(kv.hardware("a100-sxm"))
        assert resolved.next == kv.link("pcie4-x16")
        assert resolved.fixed_us == 400 + 2000

    def test_writing(self) -> None:
        link = kv.Link("x", bandwidth="8 GB/s", fixed="1 ms", write_bandwidth="4 GB/s", copy="2 us")
        assert link.store_us(32, 8000) == 2 * 2 + 2
        assert link.store_us(0, 0) == 0
        assert kv.Link("x", bandwidth="8 GB/s", fixed="1 ms").store_us(16, 8000) == 1

    def test_ends(self) -> None:
        slow, fast = kv.link("nvme-gen4").of(kv.hardware("h100-sxm")).ends()
        assert (slow.bandwidth, fast.bandwidth) == ("4.6 GB/s", "6.97 GB/s")
        assert slow.next is not None
        assert slow.next.bandwidth == "43.9 GB/s"
        own = kv.Link("x", bandwidth="8 GB/s", fixed="1 ms")
        assert own.ends() == (own, own)

    @pytest.mark.parametrize(("overlap", "want"), [("none", 30.0), ("full", 20.0), ("layerwise", 2.0 + 18.0)])
    def test_overlap_with_computing(self, overlap: str, want: float) -> None:
        link = kv.Link("x", bandwidth="1 GB/s", fixed="0 us", overlap=overlap)
        assert link.hit_us(20.0, 10.0, layers=10) == want

    def test_from_text(self) -> None:
        link = kv.link("mine(bandwidth=22 GB/s, fixed=5 ms, copies_per_block=64, pipelined=false)")
        assert link == kv.Link("mine", bandwidth="22 GB/s", fixed="5 ms", copies_per_block=64)
        assert kv.link("PCIE5-x16(bandwidth=40 GB/s)").bandwidth == "40 GB/s"
        assert kv.link("pcie5-x16(bandwidth=40 GB/s)").copy == "3.5 us"

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("pcie6", "unknown link"),
            ("mine(bandwidth=22 GB/s)", "has no fixed"),
            ("mine(bandwidth=22 GB/s, fixed=5 ms", "closing"),
            ("mine(speed=22 GB/s, fixed=5 ms)", "unknown key of link"),
            ("mine(bandwidth=22 Gb/s, fixed=5 ms)", "bits or bytes"),
            ("mine()", "not key=value"),
        ],
    )
    def test_unusable_texts(self, text: str, told: str) -> None:
        with pytest.raises(kv.ConfigError, match=told):
            kv.link(text)

    @pytest.mark.parametrize(
        ("options", "told"),
        [
            ({"bandwidth": "400 GB/s", "bus": "63 GB/s"}, "more than its bus"),
            ({"overlap": "some"}, "unknown overlap"),
            ({"store": "maybe"}, "unknown store"),
            ({"medium": "tape"}, "unknown medium"),
            ({"copies_per_block": 0}, "copies_per_block"),
            ({"through": 3}, "through"),
            ({"through": "nowhere"}, "unknown link"),
            ({"pipelined": 1}, "pipelined"),
            ({"fixed": "5"}, "unit"),
        ],
    )
    def test_unusable_values(self, options: dict[str, object], told: str) -> None:
        values: dict[str, object] = {"bandwidth": "8 GB/s", "fixed": "1 ms"} | options
        with pytest.raises(kv.ConfigError, match=told):
            kv.Link("x", **values)  # type: ignore[arg-type]

    def test_a_known_bus_bounds_its_name(self) -> None:
        with pytest.raises(kv.ConfigError, match="more than its bus carries"):
            kv.Link("pcie4-x16", bandwidth="64 GB/s", fixed="0 us")

    @settings(max_examples=50, deadline=None)
    @given(
        st.lists(st.tuples(st.integers(0, 300_000), st.integers(0, 2**36)), min_size=1, max_size=8),
        st.sampled_from(["none", "nvme-gen4", "piped"]),
    )
    def test_columns_are_as_numbers(self, pairs: list[tuple[int, int]], kind: str) -> None:
        link = kv.link("pcie5-x16")
        if kind != "none":
            link = kv.Link(
                "d", bandwidth="6 GB/s", fixed="1 ms", copy="3 us", through=link, pipelined=kind == "piped"
            )
        frame = pl.DataFrame(pairs, schema={"t": pl.Int64, "b": pl.Int64}, orient="row")
        got = frame.select(
            load=link.load_expr(pl.col("t"), pl.col("b")), store=link.store_expr(pl.col("t"), pl.col("b"))
        )
        assert got["load"].to_list() == pytest.approx([link.load_us(t, b) for t, b in pairs], rel=1e-12)
        assert got["store"].to_list() == pytest.approx([link.store_us(t, b) for t, b in pairs], rel=1e-12)


class TestCatalogue:
    def test_names(self) -> None:
        names = set(kv.links()["name"])
        assert {"pcie3-x16", "pcie4-x16", "pcie5-x16", "nvlink-c2c", "nvme-gen4", "nvme-gen5"} <= names

    def test_every_entry_is_whole(self) -> None:
        for row in kv.links().iter_rows(named=True):
            assert row["source"], row["name"]
            assert len(row["date"]) == 10, row["name"]
            assert row["low_gb_s"] <= row["bandwidth_gb_s"] <= row["high_gb_s"], row["name"]

    def test_two_megabyte_blocks_go_as_fast_as_measured(self) -> None:
        """vLLM's blog, figure 3: 47.7 GB/s for blocks of 2 MiB by DMA."""
        link = kv.link("pcie5-x16")
        streamed = link.load_us(16_000, 1000 * 2**21) - link.fixed_us
        assert 1000 * 2**21 / streamed / 1e3 == pytest.approx(47.7, rel=0.02)


class TestHardware:
    def test_rates_are_dense(self) -> None:
        for row in kv.hardware().iter_rows(named=True):
            if row["fp8_tflops"] is not None:
                assert row["fp8_tflops"] / row["bf16_tflops"] == pytest.approx(2, abs=0.05), row["name"]

    def test_every_entry_is_whole(self) -> None:
        table = kv.hardware()
        assert table["name"].is_sorted()
        for name, entry in data.catalogue("hardware").items():
            assert entry["source"], name
            assert len(entry["date"]) == 10, name
            assert kv.link(entry["host_link"]).bus is not None, name

    def test_an_unknown_name(self) -> None:
        with pytest.raises(kv.ConfigError, match="unknown hardware") as caught:
            kv.hardware("h100-smx")
        assert "did you mean h100-sxm?" in caught.value.hint
        assert kv.hardware("H100").name == "h100-sxm"

    @pytest.mark.parametrize(
        ("values", "told"),
        [
            ({"fp8_tflops": 1466.0}, "twice bf16"),
            ({"bf16_tflops": 0}, "bf16_tflops"),
            ({"hbm_gb_s": float("nan")}, "hbm_gb_s"),
            ({"host_link": "pcie7"}, "unknown link"),
        ],
    )
    def test_a_gpu_of_your_own_that_cannot_be(self, values: dict[str, object], told: str) -> None:
        own: dict[str, object] = {
            "name": "mine", "bf16_tflops": 362.0, "fp8_tflops": 733.0, "hbm_gb_s": 864.0,
            "memory_bytes": 2**35, "host_link": "pcie4-x16",
        }  # fmt: skip
        assert kv.Hardware(**own).source == "given"  # type: ignore[arg-type]
        with pytest.raises(kv.ConfigError, match=told):
            kv.Hardware(**own | values)  # type: ignore[arg-type]
