"""The report: tables with fixed schemas, a verdict that follows from the numbers, files that repeat."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import polars as pl
import pyarrow.parquet as pq
import pytest
from tests.oracle.forest import rows_of, write_jsonl

import kvreplay as kv
from kvreplay.report import knee, svg
from kvreplay.report.text import screen, section
from kvreplay.tables import TABLES

if TYPE_CHECKING:
    from pathlib import Path

TIERS = [kv.Tier("gpu", capacity="5%"), kv.Tier("cpu", capacity="20%", fill="victim")]


@pytest.fixture(scope="module")
def report(chats: kv.Trace) -> kv.Report:
    return kv.analyze(chats, TIERS, model=1000, warmup=0.5, per_request=True)


def test_every_table_has_its_declared_columns(report: kv.Report) -> None:
    assert list(report.tables) == [*(table.name for table in TABLES), "requests"]
    for name, table in report.schemas.items():
        frame = report.tables[name]
        assert frame.schema == {column.name: column.dtype for column in table.columns}
        assert set(frame.dtypes) <= {pl.Int64, pl.Float64, pl.String}
        if table.sort:
            assert frame.equals(frame.sort(table.sort, nulls_last=True, maintain_order=True))
        assert all(column.doc for column in table.columns)


def test_tables_agree_with_the_calls_they_come_from(chats: kv.Trace, report: kv.Report) -> None:
    result = kv.replay(chats, TIERS, model=1000, warmup=0.5, per_request=True)
    assert report.tables["tiers"].equals(result.tiers.select(report.tables["tiers"].columns))
    assert report.tables["requests"].equals(result.requests)
    assert report.tables["reuse_distance"].equals(kv.reuse_distance(chats))
    assert report.tables["reuse_time"].equals(kv.reuse_time(chats))
    assert report.tables["ratios"].filter(scope="ceiling").drop("scope").equals(kv.ratios(chats))
    assert report.tables["ratios"].filter(scope="tiers").drop("scope").equals(kv.ratios(result))
    curve = report.tables["hit_curve"].filter(policy="lru")
    capacities = curve["capacity_blocks"].to_list()
    assert curve.equals(kv.hit_curve(chats, capacities=capacities, model=1000, warmup=0.5))
    sizes = result.tiers["capacity_blocks"].to_list()
    assert {*sizes, sum(sizes)} <= set(capacities)
    opt = report.tables["hit_curve"].filter(policy="opt")
    assert opt["capacity_blocks"].to_list() == sorted({*sizes, sum(sizes)})
    assert (
        report.curve
        == kv.hit_curve(
            chats, capacities=[row["capacity_blocks"] for row in report.curve], model=1000, warmup=0.5
        ).to_dicts()
    )
    assert len(report.curve) == 32


def test_window_growth_counts_from_the_start(chats: kv.Trace, report: kv.Report) -> None:
    table = report.tables["window_growth"]
    ceiling: list[int] = kv.ceiling(chats)["hit_tokens"].to_list()
    gpu: list[int] = report.tables["requests"]["hit_tokens_gpu"].to_list()
    inputs: list[int] = chats.requests()["input_tokens"].to_list()
    for scope, tier, hits in (("ceiling", None, ceiling), ("tier", "gpu", gpu)):
        rows = table.filter(pl.col("scope") == scope, pl.col("tier").eq_missing(tier))
        assert rows["window"].to_list() == list(range(1, 11))
        for row in rows.iter_rows(named=True):
            n = row["requests"]
            assert row["input_tokens"] == sum(inputs[:n])
            assert row["hit_tokens"] == sum(hits[:n])
            assert row["token_hit_ratio"] == (sum(hits[:n]) / sum(inputs[:n]) if n else None)
        assert rows["requests"].to_list()[-1] == len(chats)
    both = table.filter(scope="tiers")["hit_tokens"].to_list()[-1]
    assert both == report.summary["hit_tokens"]
    distinct = table.filter(scope="ceiling")["distinct_blocks"].to_list()
    assert distinct[-1] == chats.info["unique_blocks"]
    last = table.filter(scope="ceiling", window=10).row(0, named=True)
    half = kv.analyze(chats).study.growth.row(9, named=True)["requests"]
    assert last["last_half_token_hit_ratio"] == sum(ceiling[half:]) / sum(inputs[half:])


def test_the_verdict_rests_on_the_numbers(chats: kv.Trace, report: kv.Report) -> None:
    lines = {line["code"]: line for line in report.verdict}
    assert list(lines)[:4] == ["ceiling", "tiers", "knee", "lost"]
    assert list(lines)[-1] == "definition"
    assert 3 <= len(lines) <= 6
    ratios = dict(kv.ratios(chats).select("name", "value").iter_rows())
    assert lines["ceiling"]["evidence"]["token_hit_ratio"] == ratios["token_hit_ratio"]
    assert f"{100 * ratios['token_hit_ratio']:.2f} %" in lines["ceiling"]["text"]
    shares = dict(report.tables["tiers"].select("tier", "tier_share").iter_rows())
    assert lines["tiers"]["evidence"]["tier_share"] == shares
    lost = lines["lost"]["evidence"]
    assert lost["hit_blocks"] <= lost["opt_hit_blocks"] <= lost["ceiling_hit_blocks"]
    assert json.loads(json.dumps(report.verdict, allow_nan=False)) == report.verdict


def test_the_knee_is_where_it_is_defined_to_be(chats: kv.Trace) -> None:
    exact = kv.hit_curve(chats)
    bend = knee.find(kv.analyze(chats).study.curve)
    assert bend is not None
    target = 0.95 * exact["hit_tokens"].to_list()[-1]
    first = exact.filter(pl.col("hit_tokens") >= target).row(0, named=True)
    assert (bend.nearly_all_blocks, bend.nearly_all_tokens) == (first["capacity_blocks"], first["hit_tokens"])
    start = bend.doubling_from_blocks
    pair = kv.hit_curve(chats, capacities=[start, 2 * start])["hit_tokens"].to_list()
    assert bend.doubling_gain_tokens == pair[1] - pair[0]


def test_a_trace_that_reuses_nothing() -> None:
    report = kv.analyze(kv.generate("unique", requests=40, seed=1), [kv.Tier("gpu", capacity="10%")])
    assert report.verdict[0]["text"].startswith("Nothing in this trace is reused")
    assert [line["code"] for line in report.verdict] == ["ceiling", "tiers", "definition"]
    assert report.curve == []
    assert "there is no curve" in report._repr_html_()
    assert screen(report, width=80)


def test_window_limited_and_large_tiers(chats: kv.Trace) -> None:
    report = kv.analyze(chats, [kv.Tier("gpu", capacity="200%")])
    (line,) = [line for line in report.verdict if line["code"] == "window_limited"]
    assert line["evidence"]["never_full"] == ["gpu"]
    assert "gpu never filled" in line["text"]
    assert [w["code"] for w in report.warnings] == ["tier_larger_than_trace"]
    longest = chats.requests()["blocks"].max()
    assert isinstance(longest, int)
    small = kv.analyze(chats, [kv.Tier("gpu", capacity=longest - 1)])
    (warning,) = small.warnings
    assert warning["code"] == "oversize_request"
    assert warning["text"].startswith("1 request with more blocks")


def test_files_repeat_and_name_no_places(chats: kv.Trace, tmp_path: Path) -> None:
    for name in ("a", "b"):
        kv.analyze(chats, TIERS).write(tmp_path / name)
    assert sorted(p.name for p in (tmp_path / "a").iterdir()) == ["report.html", "report.json", "tables"]
    for path in sorted((tmp_path / "a" / "tables").iterdir()):
        assert path.read_bytes() == (tmp_path / "b" / "tables" / path.name).read_bytes()
        metadata = {k.decode(): v.decode() for k, v in pq.read_schema(path).metadata.items()}
        assert metadata["kvreplay.schema"] == f"{path.stem}/1"
        assert metadata["kvreplay.trace_sha256"] == chats.info["sha256"]
        assert metadata["kvreplay.version"] == kv.__version__
        spec = json.loads(metadata["kvreplay.spec"])
        assert [tier["name"] for tier in spec["tiers"]] == ["gpu", "cpu"]
        assert str(tmp_path) not in metadata["kvreplay.spec"]
    one, other = (json.loads((tmp_path / name / "report.json").read_text()) for name in ("a", "b"))
    del one["run"], other["run"]
    assert one == other
    assert (tmp_path / "a" / "report.html").read_bytes() == (tmp_path / "b" / "report.html").read_bytes()
    with pytest.raises(kv.ConfigError, match="exists already"):
        kv.analyze(chats).write(tmp_path / "a")
    kv.analyze(chats).write(tmp_path / "a", overwrite=True)
    assert not (tmp_path / "a" / "tables" / "tiers.parquet").exists()


def test_the_page_is_one_file_and_escapes_what_it_shows(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    text = "".join(json.dumps(row) + "\n" for row in rows_of([[1, 2], [1, 3]])) + evil + "\n"
    (tmp_path / "t.jsonl").write_text(text)
    report = kv.analyze(kv.read_trace(tmp_path / "t.jsonl", block_tokens=16), [kv.Tier("gpu", capacity=2)])
    assert report.tables["quality"]["first_value"].to_list()[0].startswith(evil[:8])
    report.write(tmp_path / "r")
    page = (tmp_path / "r" / "report.html").read_text()
    assert evil not in page
    assert "&lt;script&gt;" in page
    assert not re.search(r"""(?:\bsrc|<link[^>]*\bhref)\s*=""", page)
    assert page.count("<svg") == 1
    assert "<script" not in page
    assert "<table" in report._repr_html_()


def test_rejected_rows_stand_on_the_first_screen(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "t.jsonl", rows_of([[1, 2], [1, 3]]))
    path.write_text(path.read_text() + "oops\n")
    text = screen(kv.analyze(kv.read_trace(path, block_tokens=16)), width=80)
    assert "WARNING: 1 rejected row, counted in none of the numbers" in text


@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_the_screen_is_never_wider_than_the_terminal(report: kv.Report, width: int) -> None:
    lines = screen(report, width=width).splitlines()
    assert [line for line in lines if len(line) > width] == []


def test_the_narrowest_screen_still_says_something(report: kv.Report) -> None:
    assert "gpu" in screen(report, width=1)


def test_sections_drop_their_last_columns_first() -> None:
    rows = [["a", "bb", "ccc"], ["x", "1", "2"]]
    assert section("T", rows, 80) == "T\na  bb  ccc\nx   1    2"
    assert section("T", rows, 6) == "T\na  bb\nx   1"


def test_the_picture() -> None:
    drawn = svg.hit_curve([(1, 0.0), (1000, 0.5)], ceiling=0.5, marks=[("a<b", 100)])
    assert drawn.startswith("<svg")
    assert drawn.endswith("</svg>")
    assert "a&lt;b" in drawn
    assert drawn.count("<polyline") == 1
    assert svg.hit_curve([(1, 0.1)], ceiling=0.1, marks=[]).count("<polyline") == 1
