"""Calibration: from a few measured times to a :class:`CostModel` with its error."""

from __future__ import annotations

import random
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Any

from kvreplay.cost import fitting
from kvreplay.cost.catalogue import model as find_model
from kvreplay.cost.coefficients import CostModel
from kvreplay.cost.devices import hardware as find_hardware
from kvreplay.cost.lengths import closed_form
from kvreplay.cost.measurements import Timed, read_rows
from kvreplay.cost.rates import bandwidth
from kvreplay.cost.transfer import Link, link as find_link
from kvreplay.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kvreplay.cost.devices import Hardware
    from kvreplay.cost.fitting import Problem, Solution
    from kvreplay.cost.measurements import Copied
    from kvreplay.cost.modelspec import ModelSpec

# `a` is fitted on its own only where lengths tell it from `b`.
_FREE_LENGTHS = 4
_FREE_SPREAD = 4
_RESAMPLES = 200
_RESAMPLED_ROUNDS = 4
_LEAST_ROWS_TO_RESAMPLE = 4
_MOST_HELD_OUT = 24
# Error assumed where too few lengths were measured to hold one out.
_ASSUMED_ERROR = 0.15
# What two careful benches of the same model and GPU differ by (docs/cost/validation.md).
_BETWEEN_BENCHES = 0.08
_MFU_RANGE = (0.02, 1.0)
_BANDWIDTH_AT_TOKENS = 8192
_DEFAULT_BLOCK_TOKENS = 16
# 10^15 bytes per second, more than any link: the rows say nothing of bytes.
_LEAST_US_PER_BYTE = 1e-9


def calibrate(
    rows: Iterable[Mapping[str, Any]] | Any,
    *,
    model: str | ModelSpec,
    hardware: str | Hardware,
    seed: int = 0,
) -> CostModel:
    """Fit the cost model to measured times.

    Parameters
    ----------
    rows
        Dicts or a DataFrame. ``input_tokens`` and ``ttft_ms`` (one request at a time, prefix cache cold);
        where a hit was measured also ``hit_tokens`` and ``tier`` (``gpu`` or a tier of yours); where a
        store delayed the request, ``stored_tokens`` and ``tier``. Bare transfers have ``tier``,
        ``block_bytes``, ``count`` and ``load_ms``.
    model, hardware
        Names or objects: they give the priors and the ratio of attention to the rest.
    seed
        Seed of the resampling.

    Returns
    -------
    CostModel
        ``origin`` is ``fitted``; ``links`` holds a link per tier; ``error``, ``low``, ``high``,
        ``intervals`` (90 %, of ``break_even_bandwidth_gb_s`` at 8,192 tokens, of ``mfu`` and of
        ``break_even_tokens:TIER``) and ``warnings`` say what it is worth.

    Raises
    ------
    ConfigError
        For no usable row, a bad value, or a model whose parameters are unknown.

    Examples
    --------
    >>> import kvreplay as kv
    >>> rows = [{"input_tokens": n, "ttft_ms": 20 + n * 0.022 + n * n * 4.7e-7} for n in (1000, 8000, 64000)]
    >>> cost = kv.calibrate(rows, model="llama-3.1-8b", hardware="h100-sxm")
    >>> cost.calibrated, abs(cost.recompute_us(8000) / (20e3 + 176e3 + 30.08e3) - 1) < 0.02
    (True, True)
    """
    spec, device = find_model(model), find_hardware(hardware)
    timed, copied = read_rows(rows)
    if not any(not row.loaded for row in timed) and timed:
        _need_computed(timed)
    problem = _problem(spec, device, timed, copied)
    solution = fitting.solve(problem, timed, copied)
    held_out = _held_out(solution, timed, copied)
    resampled = _resample(solution, timed, copied, seed=seed)
    # Bare transfers tell nothing of computing: that stays a prior.
    cost = _cost(solution) if timed else CostModel.prior(spec, device)
    lengths = [row.computed + row.resident for row in timed]
    cost = replace(cost, links=_links(solution, device))
    error = max(held_out) if held_out else _ASSUMED_ERROR
    return replace(
        cost,
        low=_scaled(cost, 1 / (1 + error)),
        high=_scaled(cost, 1 + error),
        longest_tokens=max(lengths, default=None),
        error=_error_text(solution, timed, copied, held_out),
        warnings=tuple(_warnings(spec, device, cost, timed)),
        intervals=_intervals(spec, device, resampled),
    )


def _need_computed(timed: Sequence[Timed]) -> None:
    """Hits of a tier alone do not tell computing from loading."""
    raise ConfigError(
        f"all {len(timed)} measurements are hits",
        hint="add at least one request that hits nothing: it fixes the time of computing",
    )


def _problem(spec: ModelSpec, device: Hardware, timed: Sequence[Timed], copied: Sequence[Copied]) -> Problem:
    prior = CostModel.prior(spec, device)
    priors = {"c0": prior.c0_us, "floor": prior.floor_us, "linear": prior.linear_us_per_token}
    lengths = sorted({row.computed for row in timed if not row.loaded})
    apart = len(lengths) >= _FREE_LENGTHS and lengths[-1] >= _FREE_SPREAD * lengths[0]
    if apart and prior.quadratic_us_per_token2 > 0:
        priors["quadratic"] = prior.quadratic_us_per_token2
    host = find_link(device.host_link)
    for tier in sorted({row.tier for row in timed if row.loaded} | {row.tier for row in copied}):
        priors[f"byte:{tier}"] = 1.0 / host.bytes_per_us
        if any(row.loaded and row.tier == tier for row in timed):
            priors[f"fixed:{tier}"] = host.fixed_us
        if any(row.tier == tier for row in copied):
            priors[f"copy:{tier}"] = host.copy_us
    for tier in sorted({row.tier for row in timed if row.stored}):
        priors[f"write:{tier}"] = 1.0 / host.write_bytes_per_us
    ratio = prior.quadratic_us_per_token2 / prior.linear_us_per_token
    return fitting.Problem(spec, priors, ratio, _copied_tokens(spec, copied))


def _copied_tokens(spec: ModelSpec, copied: Sequence[Copied]) -> dict[str, int]:
    """Tokens of the blocks that bare transfers moved, by their bytes."""
    sizes: dict[str, list[int]] = {}
    for row in copied:
        sizes.setdefault(row.tier, []).append(row.block_bytes)
    each = spec.rank_bytes_per_token
    return {tier: max(1, round(median(found) / each)) for tier, found in sorted(sizes.items())}


def _cost(solution: Solution) -> CostModel:
    return CostModel(
        c0_us=solution.values["c0"],
        floor_us=solution.values["floor"],
        linear_us_per_token=solution.linear(),
        quadratic_us_per_token2=solution.quadratic(),
        origin="fitted",
    )


def _scaled(cost: CostModel, factor: float) -> CostModel:
    return CostModel(
        c0_us=cost.c0_us * factor,
        floor_us=cost.floor_us * factor,
        linear_us_per_token=cost.linear_us_per_token * factor,
        quadratic_us_per_token2=cost.quadratic_us_per_token2 * factor,
        origin=cost.origin,
        error=f"{factor:.3f} times the fit",
    )


def _held_out(solution: Solution, timed: Sequence[Timed], copied: Sequence[Copied]) -> list[float]:
    """Relative errors at lengths that were left out of the fit, one length at a time."""
    problem = solution.problem
    on_floor = set(sorted(timed, key=problem.work)[: solution.split])
    lengths = sorted({row.computed + row.resident for row in timed})
    if len(lengths) < 3:  # noqa: PLR2004 - two lengths fit two coefficients whatever they are
        return []
    step = max(1, len(lengths) // _MOST_HELD_OUT)
    errors = []
    for length in lengths[::step]:
        kept = [row for row in timed if row.computed + row.resident != length]
        if not any(not row.loaded for row in kept):
            continue
        split = sum(1 for row in kept if row in on_floor)
        one = fitting.solve_split(problem, sorted(kept, key=problem.work), copied, split)
        out = [row for row in timed if row.computed + row.resident == length]
        errors += [abs(one.residual(row)) for row in out]
    return errors


def _resample(
    solution: Solution, timed: Sequence[Timed], copied: Sequence[Copied], *, seed: int
) -> list[Solution]:
    """Fits to rows drawn with replacement, at the split of the fit."""
    problem = solution.problem
    if len(timed) < _LEAST_ROWS_TO_RESAMPLE:
        return []
    draw = random.Random(seed)  # noqa: S311 - statistics, not secrets
    rows = sorted(timed, key=problem.work)
    out = []
    for _ in range(_RESAMPLES):
        chosen = sorted(draw.choices(range(len(rows)), k=len(rows)))
        split = sum(1 for at in chosen if at < solution.split)
        drawn = [rows[at] for at in chosen]
        out.append(fitting.solve_split(problem, drawn, copied, split, rounds=_RESAMPLED_ROUNDS))
    return out


def _links(solution: Solution, device: Hardware) -> dict[str, Link]:
    """A link per tier of the measurements."""
    values = solution.values
    tiers = sorted({name.partition(":")[2] for name in values if ":" in name})
    out = {}
    for tier in tiers:
        byte = values.get(f"byte:{tier}")
        write = values.get(f"write:{tier}")
        speed = byte or write
        if not speed or speed < _LEAST_US_PER_BYTE:
            raise ConfigError(
                f"the measurements of tier {tier} show no time per byte",
                hint="measure hits of different lengths, or bare transfers (block_bytes, count, load_ms)",
            )
        out[tier] = Link(
            tier,
            bandwidth=f"{1e-3 / speed:.6g} GB/s",
            write_bandwidth=None if not write else f"{1e-3 / write:.6g} GB/s",
            store="blocking" if write else "async",
            fixed=f"{values.get(f'fixed:{tier}', 0.0):.6f} us",
            copy=f"{values.get(f'copy:{tier}', 0.0):.6f} us",
            block_tokens=solution.problem.copied_tokens.get(tier, _DEFAULT_BLOCK_TOKENS),
            source=f"fitted to measurements on {device.name}",
        )
    return out


def _mfu(spec: ModelSpec, device: Hardware, linear_us_per_token: float) -> float:
    """Share of the dense bf16 peak that the fitted time per token means."""
    if linear_us_per_token <= 0:
        return float("inf")
    return spec.linear_flops_per_token / (device.bf16_tflops * 1e6 * spec.tp * linear_us_per_token)


def _warnings(spec: ModelSpec, device: Hardware, cost: CostModel, timed: Sequence[Timed]) -> list[str]:
    out = []
    lengths = {row.computed for row in timed if not row.loaded}
    if timed and len(lengths) == 1:
        out.append(
            "one length only: the scale is fitted, the share of attention is the model's and "
            "the step and floor are priors; measure short and long prompts too"
        )
    if timed:
        mfu = _mfu(spec, device, cost.linear_us_per_token)
        if not _MFU_RANGE[0] <= mfu <= _MFU_RANGE[1]:
            out.append(
                f"the fit means an MFU of {mfu:.3g} of {device.name}: was the prefix cache on, "
                "is it another GPU, or are the times in another unit?"
            )
    bus = find_link(device.host_link).bus
    for tier, one in cost.links.items():
        if bus is not None and one.bytes_per_us > bandwidth(bus) / 1e6:
            out.append(
                f"the fit means {one.bandwidth} from tier {tier}, more than {device.host_link} carries "
                f"({bus}): was it a GPU hit, or are the bytes of several ranks counted?"
            )
    return out


def _error_text(
    solution: Solution, timed: Sequence[Timed], copied: Sequence[Copied], held_out: Sequence[float]
) -> str:
    every: list[Timed | Copied] = [*timed, *copied]
    residuals = [abs(solution.residual(row)) for row in every]
    typical, worst = median(residuals), max(residuals)
    text = f"fitted to {len(residuals)} points: residual {typical:.1%} median, {worst:.1%} worst"
    if held_out:
        text += f"; at lengths left out {median(held_out):.1%} median, {max(held_out):.1%} worst"
    else:
        text += f"; too few lengths to leave one out, {_ASSUMED_ERROR:.0%} assumed"
    return f"{text}; another bench of the same model and GPU may differ by {_BETWEEN_BENCHES:.0%}"


def _intervals(
    spec: ModelSpec, device: Hardware, resampled: Sequence[Solution]
) -> dict[str, tuple[float, float]]:
    """90 % intervals of what people read off, over the resampled fits."""
    values: dict[str, list[float]] = {}
    for one in resampled:
        cost = _cost(one)
        size = spec.rank_loaded_bytes(_BANDWIDTH_AT_TOKENS)
        work = cost.work_us(_BANDWIDTH_AT_TOKENS)
        if work > 0:
            values.setdefault("break_even_bandwidth_gb_s", []).append(size / work / 1e3)
        values.setdefault("mfu", []).append(_mfu(spec, device, cost.linear_us_per_token))
        for tier in sorted({name.partition(":")[2] for name in one.values if name.startswith("byte:")}):
            slope = one.values[f"byte:{tier}"] * spec.rank_bytes_per_token
            slope += one.values.get(f"copy:{tier}", 0.0) / one.problem.copied_tokens.get(tier, 1)
            fixed = one.values.get(f"fixed:{tier}", 0.0)
            length = closed_form(cost, fixed_us=fixed, load_us_per_token=slope)
            values.setdefault(f"break_even_tokens:{tier}", []).append(length)
    return {name: _ninety(sorted(found)) for name, found in sorted(values.items())}


def _ninety(values: Sequence[float]) -> tuple[float, float]:
    last = len(values) - 1
    return values[round(0.05 * last)], values[round(0.95 * last)]
