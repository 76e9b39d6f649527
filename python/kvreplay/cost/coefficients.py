"""The time to compute tokens instead of loading them: ``c0 + max(floor, b m + a (2 p m + m^2))``.

``m`` new tokens after ``p`` resident ones. ``b`` is the work of the matrices, ``a`` that of attention, which
grows with the position; below some length reading the weights takes longer than using them, hence the floor.
The form is additive over chunks of a prompt, so chunked prefill does not change it.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from kvreplay.cost import rates
from kvreplay.cost.catalogue import model as find_model
from kvreplay.cost.devices import hardware as find_hardware
from kvreplay.errors import ConfigError

if TYPE_CHECKING:
    import polars as pl

    from kvreplay.cost.devices import Hardware
    from kvreplay.cost.modelspec import ModelSpec
    from kvreplay.cost.transfer import Link

# Prior of the share of the peak rate that prefill reaches, as (low, middle, high). Fits of published curves
# on Hopper give 0.56-0.64 for 8-14 B models beyond 8k tokens, roofline tables 0.32-0.45 (docs/cost).
MFU = (0.35, 0.5, 0.65)
# Launches bound small models: 0.26 for Qwen3-0.6B on an H200.
MFU_SMALL = (0.2, 0.35, 0.65)
_SMALL_BODY = 3e9
# A GPU with little compute for its memory runs near its peak: 0.94 for a 30 B-A3B model on an H20.
MFU_STARVED = (0.6, 0.85, 0.95)
_STARVED_FLOPS_PER_BYTE = 100
# Attention reaches less of the peak than matrices do: 0.64 against 0.56 in the fit to the H100 curve.
ATTENTION_FACTOR = 1.15
# Share of the memory bandwidth that reading the weights reaches (aiconfigurator, systems/*.yaml).
HBM_SHARE = 0.8
# An engine step besides the GPU's work: half of what the H100 curve of CPU hits leaves at length 0 after
# the weights were read (9.8 ms - 6.0 ms); the other half is taken as the link's. An assumption.
PRIOR_C0_US = 2000.0
_WEIGHT_BYTES = 2.0
_MOST_US = 1e12


@dataclass(frozen=True)
class CostModel:
    """Time to compute the tokens of a prompt, microseconds.

    Parameters
    ----------
    c0_us
        Time of a step besides the work: scheduling, launches, the first token.
    floor_us
        Least time of the work: reading the weights once.
    linear_us_per_token
        ``b``: per token, at any position.
    quadratic_us_per_token2
        ``a``: per pair of tokens, ``a (2 p m + m^2)``.
    origin
        ``given`` (by hand), ``prior`` (from peak rates) or ``fitted`` (to measurements).
    error
        What is known of its error, for people.
    low, high
        The model at the two ends of what it may be: `low` gives the shorter times (a GPU near its peak),
        `high` the longer ones. ``None`` where no interval is known.
    links
        Links that were fitted with it, by tier.
    longest_tokens
        Longest prompt it was fitted to; ``None`` otherwise. Beyond 1.5 times that it extrapolates.
    warnings
        What looked wrong about the measurements.
    intervals
        90 % intervals of derived values by name, from resampled measurements.

    Raises
    ------
    ConfigError
        When a coefficient is negative or not finite.

    Examples
    --------
    >>> import kvreplay as kv
    >>> cost = kv.CostModel(c0_us=0, floor_us=0, linear_us_per_token=21.94, quadratic_us_per_token2=4.724e-4)
    >>> round(cost.recompute_us(10_000)), round(cost.recompute_us(1000, resident_tokens=64_000))
    (266640, 82880)
    """

    _: KW_ONLY
    c0_us: float
    floor_us: float
    linear_us_per_token: float
    quadratic_us_per_token2: float
    origin: str = "given"
    error: str = "given by hand: its error is unknown"
    low: CostModel | None = field(default=None, repr=False)
    high: CostModel | None = field(default=None, repr=False)
    links: dict[str, Link] = field(default_factory=dict, repr=False, hash=False)
    longest_tokens: int | None = None
    warnings: tuple[str, ...] = field(default=(), repr=False)
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict, repr=False, hash=False)

    def __post_init__(self) -> None:
        for name in ("c0_us", "floor_us", "linear_us_per_token", "quadratic_us_per_token2"):
            value = getattr(self, name)
            hint = "coefficients are microseconds, finite and not negative"
            object.__setattr__(self, name, rates.finite(value, what=name, hint=hint, most=_MOST_US))

    @property
    def calibrated(self) -> bool:
        """Whether it stands on measurements (or the user's word) instead of peak rates."""
        return self.origin != "prior"

    def work_us(self, tokens: float, resident_tokens: float = 0) -> float:
        """``b m + a (2 p m + m^2)``: the work alone, without step and floor."""
        return float(self._work(tokens, resident_tokens))

    def recompute_us(self, tokens: float, resident_tokens: float = 0) -> float:
        """Time of computing `tokens` tokens after `resident_tokens` in one request."""
        return float(self.c0_us + max(self.floor_us, self._work(tokens, resident_tokens)))

    def work_expr(self, tokens: pl.Expr, resident: pl.Expr) -> pl.Expr:
        """:meth:`work_us` of columns of whole numbers, Float64."""
        import polars as pl

        result: pl.Expr = self._work(tokens.cast(pl.Float64), resident.cast(pl.Float64))
        return result

    def recompute_expr(self, tokens: pl.Expr, resident: pl.Expr) -> pl.Expr:
        """:meth:`recompute_us` of columns of whole numbers, Float64."""
        import polars as pl

        return pl.max_horizontal(self.work_expr(tokens, resident), pl.lit(self.floor_us)) + self.c0_us

    def _work(self, m: Any, p: Any) -> Any:
        """The formula, once, for numbers and columns alike."""
        return m * self.linear_us_per_token + (p * 2.0 * m + m * m) * self.quadratic_us_per_token2

    def extrapolates(self, tokens: int) -> bool:
        """Whether a prompt of `tokens` tokens is far beyond what was measured."""
        return self.longest_tokens is not None and tokens > EXTRAPOLATION * self.longest_tokens

    @classmethod
    def prior(
        cls,
        model: str | ModelSpec,
        hardware: str | Hardware,
        *,
        mfu: float | None = None,
        gpus: int = 1,
    ) -> CostModel:
        """A model of peak rates: not measured, and wide (see :func:`prior_mfu`).

        Parameters
        ----------
        model, hardware
            Names or objects.
        mfu
            Share of the dense bf16 peak that prefill reaches, if you know it; then there is no interval.
        gpus
            GPUs that share the work of one prompt (the model's ranks unless it has one only).

        Raises
        ------
        ConfigError
            For unknown names, or a model whose parameters are unknown.
        """
        spec, device = find_model(model), find_hardware(hardware)
        ranks = spec.tp if gpus == 1 else gpus
        if mfu is not None:
            rates.finite(mfu, what="mfu", hint="a share of the peak between 0.01 and 1", least=0.01, most=1.0)
            return _prior(
                spec, device, mfu=mfu, ranks=ranks, error=f"prior at the given MFU of {mfu:g}: not measured"
            )
        least, middle, most = prior_mfu(spec, device)
        text = (
            f"prior, not measured: MFU {middle:g} of the dense peak, between {least:g} and {most:g}; "
            "calibrate with a few measured times"
        )
        return replace(
            _prior(spec, device, mfu=middle, ranks=ranks, error=text),
            low=_prior(spec, device, mfu=most, ranks=ranks, error=f"prior at MFU {most:g}"),
            high=_prior(spec, device, mfu=least, ranks=ranks, error=f"prior at MFU {least:g}"),
        )


EXTRAPOLATION = 1.5


def _starved(device: Hardware) -> bool:
    """Whether a GPU has little compute for its memory: everything then runs near the peak, attention too."""
    return device.bf16_tflops * 1e3 / device.hbm_gb_s < _STARVED_FLOPS_PER_BYTE


def prior_mfu(spec: ModelSpec, device: Hardware) -> tuple[float, float, float]:
    """Share of the dense 16-bit peak that prefill may reach: low, middle, high.

    Wide on purpose: one published point or two stand behind each case.
    """
    if _starved(device):
        return MFU_STARVED
    return MFU_SMALL if spec.params_body < _SMALL_BODY else MFU


def _prior(spec: ModelSpec, device: Hardware, *, mfu: float, ranks: int, error: str) -> CostModel:
    flops_per_us = device.bf16_tflops * 1e6 * ranks
    slower = 1.0 if _starved(device) else ATTENTION_FACTOR
    read_us = spec.params_total * _WEIGHT_BYTES / (device.hbm_gb_s * 1e3 * HBM_SHARE * ranks)
    return CostModel(
        c0_us=PRIOR_C0_US,
        floor_us=read_us,
        linear_us_per_token=spec.linear_flops_per_token / (flops_per_us * mfu),
        quadratic_us_per_token2=spec.attention_flops_coefficient * slower / (flops_per_us * mfu),
        origin="prior",
        error=error,
    )


def check_cost(cost: object) -> CostModel:
    """Refuse what is no cost model.

    Raises
    ------
    ConfigError
        Saying how to make one.
    """
    if not isinstance(cost, CostModel):
        raise ConfigError(
            f"cost must be a kv.CostModel, not {cost!r}", hint="kv.calibrate(rows, ...) makes one"
        )
    return cost
