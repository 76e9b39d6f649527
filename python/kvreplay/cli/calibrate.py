"""``kvreplay calibrate``: from measured times to a cost model that the other commands take."""

from __future__ import annotations

import csv
import io
import json as json_module
import textwrap
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kvreplay.cli import console, options as o
from kvreplay.errors import ConfigError

if TYPE_CHECKING:
    from kvreplay.cost.coefficients import CostModel

SCHEMA = "calibrate/1"
_MOST_FILE_BYTES = 64 * 2**20
_HINT = "a CSV file with input_tokens,ttft_ms, or the same as JSON rows"


def command(
    measurements: Annotated[
        str,
        typer.Argument(help="CSV or JSON: input_tokens, ttft_ms[, hit_tokens, tier].", metavar="FILE"),
    ],
    model: o.Model = None,
    hardware: o.Hardware = None,
    kv_dtype: o.KvDtype = None,
    tp: o.Ranks = None,
    out: Annotated[
        str | None, typer.Option(help="Write the cost model as TOML, for --cost.", metavar="FILE")
    ] = None,
    overwrite: o.Overwrite = None,
    json: o.Json = None,
    quiet: o.Quiet = None,
) -> None:
    """Fit the cost model to measured times to the first token.

    Send one request at a time to an engine with an empty prefix cache, at four lengths or more that differ
    by a factor of four or more; add hits (hit_tokens, tier) to fit the links.
    """
    from kvreplay.cost.calibration import calibrate
    from kvreplay.cost.files import to_toml

    spec = o.the_model(model, kv_dtype=kv_dtype, tp=tp)
    if hardware is None:
        raise ConfigError("no GPU is given", hint="give --hardware NAME; see kvreplay list hardware")
    cost = calibrate(read_measurements(measurements), model=spec, hardware=hardware)
    text = to_toml(cost, about=f"kvreplay calibrate: {spec.name} on {hardware}")
    if out is not None:
        from kvreplay.atomic import new_file

        with new_file(out, overwrite=bool(overwrite)) as beside:
            Path(beside).write_text(text, "utf-8")
    console.warn(({"code": "calibration", "text": one} for one in cost.warnings), quiet=bool(quiet))
    if json:
        console.put_json(_document(cost, spec.name, hardware))
    elif not (quiet and out is not None):
        console.put(_text(cost, spec.name, hardware, console.width()))


def read_measurements(path: str) -> list[dict[str, Any]]:
    """Read rows from a CSV file, a JSON array or JSON Lines; empty cells are absent.

    Raises
    ------
    ConfigError
        When the file cannot be read or holds no rows of this kind.
    """
    file = Path(path)
    try:
        if file.stat().st_size > _MOST_FILE_BYTES:
            raise ConfigError(f"{path} is too large for measurements", hint=_HINT)
        text = file.read_text("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}", hint=_HINT) from error
    except ValueError as error:  # not UTF-8, or a name with a NUL
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(f"{path}: not UTF-8 text", hint=_HINT) from error
    try:
        return _json_rows(text) if text.lstrip()[:1] in {"[", "{"} else _csv_rows(text)
    except (ValueError, csv.Error, RecursionError) as error:
        raise ConfigError(f"{path}: {error}", hint=_HINT) from error


def _json_rows(text: str) -> list[dict[str, Any]]:
    if text.lstrip().startswith("["):
        rows = json_module.loads(text)
    else:
        rows = [json_module.loads(line) for line in text.splitlines() if line.strip()]
    return list(rows)


def _csv_rows(text: str) -> list[dict[str, Any]]:
    """Rows of a CSV file with a heading, numbers as numbers."""
    reader = csv.DictReader(io.StringIO(text), restkey="cells behind the heading", skipinitialspace=True)
    return [{name.strip(): _value(cell) for name, cell in row.items()} for row in reader]


def _value(cell: Any) -> Any:
    text = str(cell or "").strip()
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _document(cost: CostModel, model: str, hardware: str) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "schema": SCHEMA,
        "model": model,
        "hardware": hardware,
        "c0_us": cost.c0_us,
        "floor_us": cost.floor_us,
        "linear_us_per_token": cost.linear_us_per_token,
        "quadratic_us_per_token2": cost.quadratic_us_per_token2,
        "origin": cost.origin,
        "error": cost.error,
        "longest_tokens": cost.longest_tokens,
        "intervals": {
            name: [end if isfinite(end) else None for end in pair] for name, pair in cost.intervals.items()
        },
        "links": {name: asdict(link) for name, link in cost.links.items()},
        "warnings": list(cost.warnings),
    }


def _text(cost: CostModel, model: str, hardware: str, width: int) -> str:
    from kvreplay.report.text import section

    rows = [
        ["coefficient", "value"],
        ["step c0", f"{cost.c0_us / 1e3:,.3f} ms"],
        ["floor", f"{cost.floor_us / 1e3:,.3f} ms"],
        ["linear b", f"{cost.linear_us_per_token:,.4g} us per token"],
        ["quadratic a", f"{cost.quadratic_us_per_token2:,.4g} us per token^2"],
    ]
    for tier, link in cost.links.items():
        rows += [
            [f"{tier}: bandwidth", link.bandwidth],
            [f"{tier}: fixed", f"{link.fixed_us / 1e3:,.3f} ms"],
            [f"{tier}: per copy", f"{link.copy_us:,.3f} us of {link.block_tokens} tokens"],
        ]
        if link.write_bandwidth is not None:
            rows.append([f"{tier}: writing", link.write_bandwidth])
    rows += [
        [f"90 % of {name}", f"{low:,.4g} to {high:,.4g}"] for name, (low, high) in cost.intervals.items()
    ]
    head = "\n".join(textwrap.wrap(f"{model} on {hardware}: {cost.error}", width))
    return "\n\n".join([head, section("Fit", rows, width)])
