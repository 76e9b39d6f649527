"""What commands print, write and end with when all is well."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from typing import TYPE_CHECKING

import polars as pl
import pytest

import kvreplay as kv

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Run, Spawn

TIERS = ["--tier", "gpu=1000 blocks", "--tier", "cpu=20%,fill=victim"]


def test_the_json_of_analyze_is_the_report(run: Run, native: Path) -> None:
    done = run("analyze", native, *TIERS, "--json")
    document = json.loads(done.out)
    report = kv.analyze(
        kv.read_trace(native), [kv.Tier("gpu", capacity=1000), kv.Tier("cpu", capacity="20%", fill="victim")]
    )
    assert document == report.to_dict()
    wanted = ["schema", "trace", "ratios", "curve", "tiers", "summary", "verdict", "warnings"]
    assert set(wanted) <= set(document)
    assert len(document["curve"]) == 32


def test_the_json_of_curve_is_the_curve(run: Run, native: Path) -> None:
    trace = kv.read_trace(native)
    document = json.loads(run("curve", native, "--json", "--kv-bytes-per-token", 100).out)
    capacities = [row["capacity_blocks"] for row in document["curve"]]
    assert document["curve"] == kv.hit_curve(trace, capacities=capacities, model=100).to_dicts()
    exact = kv.hit_curve(trace)
    assert document["breakpoints"] == exact.height
    assert document["last_capacity_blocks"] == capacities[-1] == exact["capacity_blocks"].to_list()[-1]
    arguments = [
        "--policy",
        "fifo",
        "--policy",
        "lru",
        "--policy",
        "opt",
        "--capacity",
        "900 blocks",
        "--warmup",
        "0.5",
    ]
    rows = json.loads(run("curve", native, "--json", *arguments).out)["curve"]
    want = [
        row
        for policy in ("fifo", "lru", "opt")
        for row in kv.hit_curve(trace, policy=policy, capacities=[900], warmup=0.5).to_dicts()
    ]
    assert rows == want


def test_curve_loads_no_polars(native: Path, tmp_path: Path) -> None:
    kv.read_trace(native).write(tmp_path / "t.jsonl", format="mooncake")
    code = (
        "import sys; from kvreplay.cli.run import run; "
        f"code = run(['curve', {str(tmp_path / 't.jsonl')!r}, '--json']); "
        "print(sorted({'polars', 'pyarrow', 'rich'} & set(sys.modules)), file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip().endswith("[]")


def test_the_exact_curve_is_written(run: Run, native: Path, tmp_path: Path) -> None:
    out = tmp_path / "curve.parquet"
    assert run("curve", native, "--out", out, "--quiet").out == ""
    trace = kv.read_trace(native)
    assert pl.read_parquet(out).drop("warm_hit_tokens", "warm_token_hit_ratio").equals(kv.hit_curve(trace))
    assert pl.read_parquet_metadata(out)["kvreplay.schema"] == "hit_curve/1"
    assert run("curve", native, "--out", out).code == 4
    assert run("curve", native, "--out", out, "--overwrite").code == 0


def test_reports_are_written_and_replaced(run: Run, native: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "report"
    done = run("analyze", native, *TIERS, "--out", out, "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")
    document = json.loads((out / "report.json").read_text())
    assert document["report_schema"] == "report/1"
    assert set(document["tables"]) == {path.stem for path in (out / "tables").iterdir()}
    before = {path.name: path.read_bytes() for path in (out / "tables").iterdir()}
    done = run("analyze", native, "--out", out)
    assert done.code == 4
    assert "exists already" in done.err
    assert done.out == ""
    assert {path.name: path.read_bytes() for path in (out / "tables").iterdir()} == before
    assert run("analyze", native, *TIERS, "--out", out, "--overwrite", "--per-request").code == 0
    assert pl.read_parquet(out / "tables" / "requests.parquet").height == 300
    assert [path.name for path in out.parent.iterdir()] == ["report"]


def test_converting_there_and_back(run: Run, native: Path, tmp_path: Path) -> None:
    for name in ("t.jsonl", "t.jsonl.gz", "t.parquet"):
        assert run("convert", native, tmp_path / name).code == 0
    assert gzip.decompress((tmp_path / "t.jsonl.gz").read_bytes()) == (tmp_path / "t.jsonl").read_bytes()
    assert (tmp_path / "t.parquet").read_bytes() == native.read_bytes()
    trace = kv.read_trace(tmp_path / "t.jsonl")
    assert kv.hit_curve(trace).equals(kv.hit_curve(kv.read_trace(native)))
    assert run("convert", native, tmp_path / "t.parquet").code == 4
    assert run("convert", native, tmp_path / "t.parquet", "--overwrite").code == 0
    done = run("convert", native, tmp_path / "t.csv")
    assert (done.code, "cannot tell the format" in done.err) == (4, True)


def test_generating(run: Run, tmp_path: Path) -> None:
    arguments = [
        "generate",
        "cyclic_scan",
        "--requests",
        30,
        "--param",
        "documents=10",
        "--param",
        "document_tokens=5008",
    ]
    text = run(*arguments).out
    assert text.count("\n") == 30
    assert text == run(*arguments).out
    assert run(*arguments, "--out", tmp_path / "t.jsonl").code == 0
    assert (tmp_path / "t.jsonl").read_text() == text
    assert run(*arguments, "--out", tmp_path / "t.parquet").code == 0
    assert kv.read_trace(tmp_path / "t.parquet").info["unique_blocks"] == 3130
    assert run(*arguments, "--out", tmp_path / "t.jsonl").code == 4
    for wrong in (
        ["generate", "no_such", "--requests", 5],
        [*arguments, "--param", "documents=many"],
        [*arguments, "--param", "x"],
    ):
        done = run(*wrong)
        assert (done.code, "hint:" in done.err) == (4, True)
    assert run("generate", "unique").code == 4


def test_replaying(run: Run, native: Path, tmp_path: Path) -> None:
    tiers = [kv.Tier("gpu", capacity=1000), kv.Tier("cpu", capacity="20%", fill="victim")]
    result = kv.replay(kv.read_trace(native), tiers, per_request=True, events=True)
    document = json.loads(run("replay", native, *TIERS, "--json").out)
    assert document["tiers"] == result.tiers.to_dicts()
    assert document["summary"] == result.summary
    out, events = tmp_path / "r.parquet", tmp_path / "e.parquet"
    assert run("replay", native, *TIERS, "--requests-out", out, "--events-out", events).code == 0
    assert pl.read_parquet(out).equals(result.requests)
    assert pl.read_parquet(events).equals(result.events)
    assert run("replay", native).code == 4


def test_inspecting(run: Run, native: Path) -> None:
    document = json.loads(run("inspect", native, "--json").out)
    requests = kv.read_trace(native).requests()
    assert document["trace"] == kv.read_trace(native).info
    assert document["lengths"]["input_tokens"]["p100"] == requests["input_tokens"].max()
    assert document["lengths"]["input_tokens"]["p50"] in requests["input_tokens"]
    assert document["columns"] == {"session": requests["session"].n_unique()}


def test_several_files(run: Run, native: Path, tmp_path: Path) -> None:
    run("convert", native, tmp_path / "t.jsonl")
    lines = (tmp_path / "t.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "a.jsonl").write_text("".join(lines[:100]))
    (tmp_path / "b.jsonl").write_text("".join(lines[100:]))
    one = json.loads(run("analyze", tmp_path / "t.jsonl", "--json").out)
    two = json.loads(run("analyze", tmp_path / "a.jsonl", tmp_path / "b.jsonl", "--json").out)
    assert one["ratios"] == two["ratios"]
    assert one["trace"]["sha256"] == two["trace"]["sha256"]


def test_standard_input(run: Run, spawn: Spawn, native: Path, tmp_path: Path) -> None:
    run("convert", native, tmp_path / "t.jsonl")
    text = (tmp_path / "t.jsonl").read_bytes()
    want = run("analyze", tmp_path / "t.jsonl", "--json").out
    for data in (text, gzip.compress(text)):
        done = spawn("analyze", "-", "--json", stdin=data)
        assert (done.code, done.out) == (0, want)
    done = spawn("analyze", "-", stdin=b"")
    assert (done.code, done.out) == (3, "")
    assert "error: " in done.err


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ("token_hit_ratio < 0.99", 5),
        ("token_hit_ratio < 1%", 0),
        ("ceiling.token_hit_ratio >= 0.01", 5),
        ("tier.gpu.hit_blocks == 0", 0),
        ("tier.gpu.capacity_blocks == 1000", 5),
        ("no_such_thing < 1", 4),
        ("tier.ssd.hit_blocks < 1", 4),
        ("tier.gpu.no_such < 1", 4),
        ("tier.gpu.policy < 1", 4),
        ("tier.gpu.saved_us < 1", 4),
        ("token_hit_ratio", 4),
        ("token_hit_ratio < 1.2.3", 4),
        ("", 4),
    ],
)
def test_gates(run: Run, native: Path, expression: str, code: int) -> None:
    done = run("analyze", native, *TIERS, "--fail-if", "token_hit_ratio < 0", "--fail-if", expression)
    assert done.code == code
    match code:
        case 5:
            assert f"failed: {expression}" in done.err
        case 4:
            assert "error:" in done.err
            assert "hint:" in done.err


def test_a_gate_on_tiers_needs_tiers(run: Run, native: Path) -> None:
    done = run("analyze", native, "--fail-if", "token_hit_ratio < 0.5")
    assert (done.code, "ceiling.token_hit_ratio" in done.err) == (4, True)


def test_configuration_files(run: Run, native: Path, tmp_path: Path) -> None:
    path = tmp_path / "kvreplay.toml"
    path.write_text('[analyze]\nwarmup = "50%"\n')
    assert run("analyze", native, "--config", path).code == 4
    path.write_text('[analyze]\nkv_bytes_per_token = 100\n[[tier]]\nname = "gpu"\ncapacity = "1000 blocks"\n')
    tiers = json.loads(run("analyze", native, "--config", path, "--json").out)["tiers"]
    assert [(t["tier"], t["capacity_blocks"], t["capacity_bytes"]) for t in tiers] == [
        ("gpu", 1000, 1_600_000)
    ]
    tiers = json.loads(run("analyze", native, "--config", path, "--json", "--tier", "gpu=70 blocks").out)[
        "tiers"
    ]
    assert [(t["tier"], t["capacity_blocks"]) for t in tiers] == [("gpu", 70)]
    for text, says in (
        ("[analyse]\n", "analyse"),
        ("[[tier]]\ncapacity = 5\n", "no name"),
        ('[[tier]]\nname = "a"\ncapacity = 5\nsize = 1\n', "size"),
    ):
        path.write_text(text)
        done = run("analyze", native, "--config", path)
        assert (done.code, says in done.err) == (4, True), done.err
