"""The tables of docs/cost/validation.md: what the cost model gives for published figures, with its errors.

``docs/refresh.py`` writes them into the page; ``tests/cost/test_published.py`` bounds the errors.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kvreplay as kv
from kvreplay.cost import wear
from kvreplay.cost.lengths import Comparison
from kvreplay.cost.money import HOUR_US, prices, rent, residency_us

PUBLISHED: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("published.toml").read_text(encoding="utf-8")
)
# From here on decimals say nothing.
_WHOLE = 100
# The coefficients that the worked examples use.
WORKED = kv.CostModel(c0_us=0, floor_us=0, linear_us_per_token=21.94, quadratic_us_per_token2=4.724e-4)
LLAMA = kv.model("llama-3.1-8b")


@dataclass(frozen=True)
class Row:
    """One figure: what it is, what was published, what we get."""

    name: str
    published: float | None
    ours: float | None
    unit: str

    @property
    def error(self) -> float | None:
        """Relative error, ``None`` where one of them is "never"."""
        return None if not self.published or self.ours is None else self.ours / self.published - 1


def _measurements(tokens: list[int], times: list[float]) -> list[dict[str, float]]:
    return [{"input_tokens": n, "ttft_ms": t} for n, t in zip(tokens, times, strict=True)]


def h100_fit() -> list[Row]:
    """The fit to the published H100 curve."""
    data = PUBLISHED["h100_prefill"]
    fit = kv.calibrate(_measurements(data["tokens"], data["miss_ms"]), model=LLAMA, hardware="h100-sxm")
    return [
        Row(f"{n:,} tokens", t, fit.recompute_us(n) / 1e3, "ms")
        for n, t in zip(data["tokens"], data["miss_ms"], strict=True)
    ]


def h100_held_out() -> list[Row]:
    """Every second length predicted from the others, both ways round."""
    data = PUBLISHED["h100_prefill"]
    pairs = list(zip(data["tokens"], data["miss_ms"], strict=True))
    rows = []
    for offset in (0, 1):
        kept = pairs[1 - offset :: 2]
        fit = kv.calibrate(
            [{"input_tokens": n, "ttft_ms": t} for n, t in kept], model=LLAMA, hardware="h100-sxm"
        )
        rows += [Row(f"{n:,} tokens", t, fit.recompute_us(n) / 1e3, "ms") for n, t in pairs[offset::2]]
    return sorted(rows, key=lambda row: row.published or 0)


def h100_again() -> list[Row]:
    """Another bench of the same model and GPU, predicted by the fit to the first."""
    first, again = PUBLISHED["h100_prefill"], PUBLISHED["h100_prefill_again"]
    fit = kv.calibrate(_measurements(first["tokens"], first["miss_ms"]), model=LLAMA, hardware="h100-sxm")
    return [
        Row(f"{n:,} tokens", t, fit.recompute_us(n) / 1e3, "ms")
        for n, t in zip(again["tokens"], again["miss_ms"], strict=True)
    ]


def h100_hits() -> list[Row]:
    """Hits from CPU memory on the same curve: link fitted together with the misses."""
    data = PUBLISHED["h100_prefill"]
    misses = _measurements(data["tokens"], data["miss_ms"])
    hits = [
        {"input_tokens": n, "hit_tokens": n - 16, "tier": "cpu", "ttft_ms": t}
        for n, t in zip(data["tokens"], data["hit_ms"], strict=True)
    ]
    fit = kv.calibrate([*misses, *hits], model=LLAMA, hardware="h100-sxm")
    link = fit.links["cpu"]
    return [
        Row(
            f"{n:,} tokens",
            t,
            (fit.recompute_us(16, n - 16) + link.load_us(n - 16, LLAMA.loaded_bytes(n - 16))) / 1e3,
            "ms",
        )
        for n, t in zip(data["tokens"], data["hit_ms"], strict=True)
    ]


def priors() -> list[Row]:
    """Priors against measurements of other models and GPUs, nothing fitted."""
    data, other = PUBLISHED["h200_prefill"], PUBLISHED["h20_prefill"]
    points = [
        (model, data["hardware"], n, t)
        for model, n, t in zip(data["models"], data["tokens"], data["miss_ms"], strict=True)
    ]
    points.append((other["model"], other["hardware"], other["tokens"], other["miss_ms"]))
    return [
        Row(
            f"{model} on {gpu}, {n:,} tokens",
            t,
            kv.CostModel.prior(model, gpu).recompute_us(n) / 1e3,
            "ms",
        )
        for model, gpu, n, t in points
    ]


def within_priors() -> list[bool]:
    """Whether each of these measurements lies between the ends of its prior."""
    out = []
    for row in priors():
        model, _, rest = row.name.partition(" on ")
        gpu, _, tokens = rest.partition(", ")
        cost = kv.CostModel.prior(model, gpu)
        count = int(tokens.split()[0].replace(",", ""))
        ends = [end.recompute_us(count) / 1e3 for end in (cost.low, cost.high) if end is not None]
        out.append(row.published is not None and ends[0] <= row.published <= ends[1])
    return out


def hinge() -> list[Row]:
    """A curve with a flat start: the floor is fitted."""
    data = PUBLISHED["mooncake_prefill"]
    fit = kv.calibrate(
        _measurements(data["tokens"], data["miss_ms"]), model=data["model"], hardware="h100-sxm"
    )
    return [
        Row(f"{n:,} tokens", t, fit.recompute_us(n) / 1e3, "ms")
        for n, t in zip(data["tokens"], data["miss_ms"], strict=True)
    ]


def copies(name: str) -> list[Row]:
    """A block-size curve: time per copy and bandwidth fitted."""
    data = PUBLISHED[name]
    sizes = [kib * 1024 for kib in data["block_kib"]]
    speeds = data["gb_s"] if "gb_s" in data else [mb / 1e3 for mb in data["mb_s"]]
    rows = [
        {"tier": "t", "block_bytes": size, "count": 1000, "load_ms": 1000 * size / (speed * 1e6)}
        for size, speed in zip(sizes, speeds, strict=True)
    ]
    link = kv.calibrate(rows, model=LLAMA, hardware="h100-sxm").links["t"]
    out = [
        Row("time per copy", data["fitted"]["copy_us"], link.copy_us, "us"),
        Row("bandwidth", data["fitted"]["gb_s"], link.bytes_per_us / 1e3, "GB/s"),
    ]
    return out + [
        Row(f"{size // 1024:,} KiB", speed, size / (link.copy_us + size / link.bytes_per_us) / 1e3, "GB/s")
        for size, speed in zip(sizes, speeds, strict=True)
    ]


def _link(name: str, gb_s: float, fixed_ms: float) -> kv.Link:
    return kv.Link(name, bandwidth=f"{gb_s} GB/s", fixed=f"{fixed_ms} ms")


def break_even_lengths() -> list[Row]:
    """``L*`` over ten media."""
    data = PUBLISHED["break_even_lengths"]
    rows = []
    for name, gb_s, fixed, want in zip(
        data["names"], data["gb_s"], data["fixed_ms"], data["tokens"], strict=True
    ):
        ours = Comparison(LLAMA, WORKED, _link(name, gb_s, fixed)).break_even_tokens()
        rows.append(Row(f"{name}, {gb_s:g} GB/s, {fixed:g} ms", want or None, ours, "tokens"))
    return rows


def break_even_bandwidths() -> list[Row]:
    """Bandwidth that makes loading and computing equal."""
    data = PUBLISHED["break_even_bandwidths"]
    comparison = Comparison(LLAMA, WORKED, _link("any", 1.0, 0.0))
    return [
        Row(f"{n:,} tokens", want, comparison.break_even_bandwidth_gb_s(n), "GB/s")
        for n, want in zip(data["tokens"], data["gb_s"], strict=True)
    ]


def splits() -> list[Row]:
    """Computing the front while the back loads."""
    data = PUBLISHED["splits"]
    rows = []
    for name, gb_s, fixed, load, split in zip(
        data["names"], data["gb_s"], data["fixed_ms"], data["load_ms"], data["split_ms"], strict=True
    ):
        comparison = Comparison(LLAMA, WORKED, _link(name, gb_s, fixed))
        rows.append(Row(f"{name}: load", load, comparison.load_us(32_768) / 1e3, "ms"))
        rows.append(Row(f"{name}: split", split, comparison.split(32_768)[1] / 1e3, "ms"))
    return rows


def five_minutes() -> list[Row]:
    """How long a prefix is worth its room."""
    data = PUBLISHED["five_minutes"]
    gpu = prices("h100-sxm", gpu_hour_usd=2.95).gpu_us_usd
    nvme = _link("NVMe", 6.5, 0.0)
    rows = []
    for name, medium, usd, tokens, blocking, hours in zip(
        *(data[key] for key in ("names", "medium", "usd_gb", "tokens", "blocking", "hours")), strict=True
    ):
        size = tokens * LLAMA.kv_bytes_per_token
        saved = WORKED.work_us(tokens) - (nvme.load_us(tokens, size) if blocking else 0.0)
        years = 3 if medium == "dram" else 5
        kept = residency_us(saved, size, gpu_us_usd=gpu, rent_usd=rent(usd, years))
        rows.append(Row(name, hours, kept / HOUR_US, "h"))
    return rows


def wears() -> list[Row]:
    """Uses a write needs to pay for its wear, and the life of a fleet's drives."""
    data = PUBLISHED["wear"]
    gpu = prices("h100-sxm", gpu_hour_usd=2.95).gpu_us_usd
    size = 10_000 * LLAMA.kv_bytes_per_token
    rows = []
    for name, dwpd, usd, want in zip(
        data["names"], data["dwpd"], data["usd_gb"], data["reuses"], strict=True
    ):
        byte = wear.usd_per_byte_written(usd, dwpd=dwpd, years=5, waf=1)
        uses = wear.reuses_to_pay(size, WORKED.work_us(10_000), gpu_us_usd=gpu, usd_per_byte_written=byte)
        rows.append(Row(name, want, uses, "uses"))
    capacity = data["fleet_drives"] * data["fleet_drive_bytes"]
    daily = data["fleet_bytes_per_s"] * 86_400
    days = 365 * wear.lifetime_years(capacity, daily, dwpd=1, years=5, waf=1)
    rows.append(Row("8 H100 writing 21 GB/s to 8 drives of 7.68 TB, 1 DWPD", data["fleet_days"], days, "d"))
    return rows


TABLES = {
    "Prefill curve, Llama 3.1 8B on H100: fit": ("h100_prefill", h100_fit),
    "The same, every second length left out of the fit": ("h100_prefill", h100_held_out),
    "Hits from CPU memory on the same curve": ("h100_prefill", h100_hits),
    "Another bench of the same model and GPU, predicted": ("h100_prefill_again", h100_again),
    "A curve with a floor": ("mooncake_prefill", hinge),
    "Priors alone, nothing fitted": ("h200_prefill h20_prefill", priors),
    "Host to device by DMA: block size and bandwidth": ("h2d_dma", lambda: copies("h2d_dma")),
    "Host to device by a copy kernel": ("h2d_kernel", lambda: copies("h2d_kernel")),
    "NVMe reads": ("nvme_read", lambda: copies("nvme_read")),
    "Break-even lengths": ("break_even_lengths", break_even_lengths),
    "Break-even bandwidths": ("break_even_bandwidths", break_even_bandwidths),
    "Compute the front, load the back": ("splits", splits),
    "Five-minute rule": ("five_minutes", five_minutes),
    "Wear": ("wear", wears),
}


def page() -> str:
    """Every table with its source."""
    sections = []
    for title, (key, make) in TABLES.items():
        data = PUBLISHED[key.split()[0]]
        source = "; ".join(PUBLISHED[one]["source"] for one in key.split())
        read = ", read off a figure by eye" if data.get("read") == "chart" else ""
        lines = [f"## {title}\n", f"Published: {source}{read}.\n"]
        lines += ["| | published | ours | error |", "|---|---|---|---|"]
        rows = make()
        lines += [
            f"| {row.name} | {_number(row.published, row)} | {_number(row.ours, row)} | {_error(row)} |"
            for row in rows
        ]
        worst = max((abs(row.error) for row in rows if row.error is not None), default=0.0)
        lines.append(f"\nWorst error: {100 * worst:.1f} %.")
        sections.append("\n".join(lines))
    return "\n\n".join(sections)


def _number(value: float | None, row: Row) -> str:
    if value is None:
        return "never"
    return f"{value:,.0f} {row.unit}" if abs(value) >= _WHOLE else f"{value:.3g} {row.unit}"


def _error(row: Row) -> str:
    return "-" if row.error is None else f"{100 * row.error:+.1f} %"


if __name__ == "__main__":
    print(page())
