"""``kvreplay curve``: hits against capacity.

The JSON is made straight from the core's counts: loading Polars would take longer than the pass itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kvreplay import _core, calls, display, memory, units
from kvreplay.cli import console, interrupt, options as o
from kvreplay.points import curve_rows, log_spaced
from kvreplay.threads import threads
from kvreplay.warmup import warmup_requests

if TYPE_CHECKING:
    from kvreplay.calls import ProgressHook
    from kvreplay.trace import Trace

SCHEMA = "curve/1"


@o.reads_traces
def command(
    traces: o.Traces,
    policy: Annotated[
        list[str] | None,
        typer.Option(help="A policy, or opt for the bound. Repeatable. [default: lru]", metavar="NAME"),
    ] = None,
    capacity: Annotated[
        list[str] | None,
        typer.Option(
            help='"5000 blocks", "40GiB", "10%". Repeatable. [default: 32, log-spaced]', metavar="SIZE"
        ),
    ] = None,
    model: o.Model = None,
    kv_dtype: o.KvDtype = None,
    kv_bytes_per_token: o.KvBytes = None,
    warmup: o.Warmup = None,
    out: Annotated[
        str | None,
        typer.Option(help="Write the exact LRU curve (or the capacities given) as Parquet.", metavar="FILE"),
    ] = None,
    overwrite: o.Overwrite = None,
    json: o.Json = None,
    quiet: o.Quiet = None,
    *,
    reading: dict[str, Any],
) -> None:
    """Print hits against capacity, exact at every capacity for LRU from one pass."""
    given = dict(locals())
    given["model"] = o.chosen_model(model, kv_bytes_per_token, kv_dtype=kv_dtype)
    if out is not None:
        import kvreplay.curve  # noqa: F401 - loaded before the work: Ctrl-C then ends it cleanly

    interrupt.work_begins()
    progress = console.progress(quiet=bool(quiet))
    trace = o.read(traces, reading, progress)
    console.warn_of_quality(trace, quiet=bool(quiet))
    policies = list(dict.fromkeys(policy or ["lru"]))
    scale = trace.scale(given["model"])
    if out is not None:
        _write(trace, policies, given, out, progress)
    document = _document(trace, policies, capacity or [], scale, warmup, progress)
    if json:
        console.put_json(document)
    elif not (quiet and out is not None):
        console.put(_text(document, console.width()))


def _document(
    trace: Trace,
    policies: list[str],
    sizes: list[str],
    scale: units.Scale,
    warmup: str | None,
    progress: ProgressHook | None,
) -> dict[str, Any]:
    """The document of ``curve --json``."""
    warm = warmup_requests(trace, warmup)
    warm_tokens = None if warm is None else int(trace.requests()["input_tokens"].slice(warm).sum())
    totals = trace.core.totals()
    capacities = sorted({units.capacity_blocks(size, scale) for size in sizes})
    lru = None
    if "lru" in policies or not capacities:
        lru = calls.run(
            lambda p: _core.lru_curve(trace.core, warmup_requests=warm, progress=p),
            what="stack distances",
            hook=progress,
        )
        capacities = capacities or log_spaced(lru.last_capacity_blocks)
    curve: list[dict[str, Any]] = []
    for name in policies:
        if name == "lru" and lru is not None:
            table = lru.at(capacities)
        else:
            table = _policy(trace, name, capacities, warm, progress)
        curve += curve_rows(name, scale, totals=totals, table=table.to_pydict(), warm_tokens=warm_tokens)
    return {
        "schema": SCHEMA,
        "version": _core.__version__,
        "trace": trace.info,
        "breakpoints": None if lru is None else lru.breakpoints,
        "last_capacity_blocks": None if lru is None else lru.last_capacity_blocks,
        "curve": curve,
    }


def _policy(
    trace: Trace, name: str, capacities: list[int], warm: int | None, progress: ProgressHook | None
) -> _core.Table:
    workers = threads()
    memory.check_replays(trace.core.unique_blocks(), tiers=1, workers=min(workers, len(capacities)))
    return calls.run(
        lambda p: _core.policy_curve(
            trace.core,
            policy=name,
            capacities=capacities,
            warmup_requests=warm,
            threads=workers,
            progress=p,
        ),
        what=name,
        hook=progress,
    )


def _write(
    trace: Trace, policies: list[str], given: dict[str, Any], out: str, progress: ProgressHook | None
) -> None:
    """Write the exact curve: every step of LRU, or the capacities that were given."""
    import polars as pl

    from kvreplay.atomic import new_file
    from kvreplay.curve import hit_curve
    from kvreplay.tables import files, hit_curve as table

    with new_file(out, overwrite=bool(given["overwrite"])) as beside:
        frames = [
            hit_curve(
                trace,
                policy=name,
                capacities=given["capacity"] or None,
                warmup=given["warmup"],
                model=given["model"],
                progress=progress,
            )
            for name in policies
        ]
        files.write(
            table.TABLE.conform(pl.concat(frames)),
            beside,
            schema=table.TABLE.schema_name,
            spec=files.spec_text(
                {key: given[key] for key in ("policy", "capacity", "warmup")}
                | {"command": "curve", "kv_bytes_per_token": trace.scale(given["model"]).kv_bytes_per_token}
            ),
            trace_sha256=trace.core.sha256,
        )


def _text(document: dict[str, Any], width: int) -> str:
    from kvreplay.report.text import heading, section

    rows = [["policy", "blocks", "tokens", "tokens hit", "blocks hit", "bytes"]]
    rows += [
        [
            row["policy"],
            display.count(row["capacity_blocks"]),
            display.tokens(row["capacity_tokens"]),
            display.percent(row["token_hit_ratio"]),
            display.percent(row["block_hit_ratio"]),
            display.size(row["capacity_bytes"]),
        ]
        for row in document["curve"]
    ]
    parts = [heading(document["trace"], width)]
    parts.append(
        section("Hits by capacity", rows, width) if document["curve"] else "Nothing in this trace is reused."
    )
    if document["breakpoints"] is not None:
        parts.append(
            f"The exact LRU curve has {display.count(document['breakpoints'])} steps; --out FILE writes it."
        )
    return "\n\n".join(parts)
