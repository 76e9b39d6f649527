"""The fit behind :func:`kvreplay.calibrate`: relative, robust, non-negative, physics where data ends.

Every unknown is measured in units of its prior, from the model's size and the GPU's peak. Each measurement is
an equation between relative times; a weak equation "equals its prior" per unknown decides what the
measurements leave open, and nothing that they say. The floor makes the model a hinge: rows are sorted by
their work, and every split into rows on the floor and rows on the slope is tried.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log1p, sqrt
from typing import TYPE_CHECKING

from kvreplay.cost.measurements import Copied, Timed
from kvreplay.cost.nnls import Normal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvreplay.cost.modelspec import ModelSpec

# Weight of "equals its prior" against a measurement: work that is wrong by its own size weighs as much as one
# measurement that is off by 1 %, anything else ten times its size as much. Peak rates are known within a
# factor of two; the fixed times of an engine and how it copies hardly within one of ten.
_WORK_WEIGHT = 1e-4
_OTHER_WEIGHT = 1e-6
_WORK = ("linear", "quadratic")
# A prior that turns out to be wrong by several times its size loses its weight (Cauchy): times in the wrong
# unit must show, not be drawn back.
_FAR = {"work": 3.0, "other": 30.0}
# Relative residual beyond which a row counts less and less (soft L1).
_SOFT = 0.05
_ROUNDS = 8
_MOST_SPLITS = 24


@dataclass(frozen=True)
class Problem:
    """What is fitted.

    Parameters
    ----------
    spec
        The model, for the bytes of a hit.
    priors
        Prior of each unknown, all positive; its keys are the unknowns: ``c0``, ``floor``, ``linear``,
        ``quadratic`` (microseconds), and per tier ``fixed:T``, ``byte:T``, ``copy:T``, ``write:T``.
    ratio
        ``a / b`` of the prior, tokens^-1: used where `quadratic` is no unknown of its own.
    copied_tokens
        Tokens of a copied block, by tier with bare transfers.
    """

    spec: ModelSpec
    priors: dict[str, float]
    ratio: float
    copied_tokens: dict[str, int]

    @property
    def tied(self) -> bool:
        """Whether ``a`` follows ``b`` by the ratio of the prior."""
        return "quadratic" not in self.priors

    def work(self, row: Timed) -> float:
        """Work of a row in units of ``b`` and the prior's ratio: what rows are sorted by."""
        return row.computed + self.ratio * self.pairs(row)

    @staticmethod
    def pairs(row: Timed) -> float:
        """``2 p m + m^2``."""
        return float(2 * row.resident * row.computed + row.computed**2)

    def equation(self, row: Timed | Copied, *, on_floor: bool) -> dict[str, float]:
        """Coefficients of the unknowns in the time of a row."""
        if isinstance(row, Copied):
            return {f"copy:{row.tier}": row.count, f"byte:{row.tier}": row.count * row.block_bytes}
        terms = {"c0": 1.0}
        if on_floor:
            terms["floor"] = 1.0
        elif self.tied:
            terms["linear"] = self.work(row)
        else:
            terms["linear"], terms["quadratic"] = row.computed, self.pairs(row)
        if row.loaded:
            terms[f"fixed:{row.tier}"] = 1.0
            terms[f"byte:{row.tier}"] = self.spec.rank_loaded_bytes(row.loaded)
            if row.tier in self.copied_tokens:
                terms[f"copy:{row.tier}"] = -(-row.loaded // self.copied_tokens[row.tier])
        if row.stored:
            terms[f"write:{row.tier}"] = row.stored * self.spec.rank_bytes_per_token
        return terms


@dataclass(frozen=True)
class Solution:
    """Values of the unknowns, in microseconds (per token, pair, byte or copy)."""

    problem: Problem
    values: dict[str, float]
    split: int

    def linear(self) -> float:
        """``b``."""
        return self.values["linear"]

    def quadratic(self) -> float:
        """``a``."""
        tied = self.problem.ratio * self.values["linear"]
        return tied if self.problem.tied else self.values["quadratic"]

    def predict_us(self, row: Timed | Copied) -> float:
        """Time of a row."""
        if isinstance(row, Copied):
            return self._sum(self.problem.equation(row, on_floor=False))
        slope = self.problem.equation(row, on_floor=False)
        floor = self.problem.equation(row, on_floor=True)
        return max(self._sum(slope), self._sum(floor))

    def _sum(self, terms: dict[str, float]) -> float:
        return sum(self.values[name] * factor for name, factor in terms.items())

    def residual(self, row: Timed | Copied) -> float:
        """Relative error of a row: predicted / measured - 1."""
        return self.predict_us(row) / _measured(row) - 1.0


def _measured(row: Timed | Copied) -> float:
    return row.load_us if isinstance(row, Copied) else row.ttft_us


def solve(problem: Problem, timed: Sequence[Timed], copied: Sequence[Copied]) -> Solution:
    """Fit every split between floor and slope, and keep the one that explains the rows best."""
    rows = sorted(timed, key=problem.work)
    most = max(0, len(rows) - 1)
    splits = range(most + 1) if most <= _MOST_SPLITS else _spread(most, _MOST_SPLITS)
    solutions = [solve_split(problem, rows, copied, split) for split in splits]
    return min(solutions, key=lambda one: (_loss(one, rows, copied), one.split))


def _spread(most: int, count: int) -> list[int]:
    """`count` whole numbers from 0 to `most`, denser at the small end."""
    return sorted({round(most ** (i / (count - 1))) - 1 if i else 0 for i in range(count)} | {0})


def _loss(one: Solution, timed: Sequence[Timed], copied: Sequence[Copied]) -> float:
    every: list[Timed | Copied] = [*timed, *copied]
    total = sum(_soft(one.residual(row)) for row in every)
    drawn = (_drawn(name, one.values[name] / prior) for name, prior in one.problem.priors.items())
    return total + sum(drawn)


def _prior(name: str) -> tuple[float, float]:
    """Weight of a prior, and the distance at which it loses it."""
    return (_WORK_WEIGHT, _FAR["work"]) if name in _WORK else (_OTHER_WEIGHT, _FAR["other"])


def _drawn(name: str, value: float) -> float:
    """What a value (in units of its prior) costs for being away from it."""
    weight, far = _prior(name)
    return weight * far**2 * log1p(((value - 1.0) / far) ** 2)


def _prior_weight(name: str, value: float) -> float:
    """Weight of the equation "equals its prior" at a value."""
    weight, far = _prior(name)
    return weight / (1.0 + ((value - 1.0) / far) ** 2)


def _soft(residual: float) -> float:
    """Soft L1: quadratic near 0, linear far from it."""
    return 2 * _SOFT**2 * (sqrt(1 + (residual / _SOFT) ** 2) - 1)


def solve_split(
    problem: Problem,
    rows: Sequence[Timed],
    copied: Sequence[Copied],
    split: int,
    *,
    rounds: int = _ROUNDS,
) -> Solution:
    """Fit with the first `split` of `rows` (sorted by work) on the floor."""
    names = list(problem.priors)
    equations: list[tuple[list[float], Timed | Copied]] = []
    every: list[Timed | Copied] = [*rows, *copied]
    for at, row in enumerate(every):
        terms = problem.equation(row, on_floor=at < split)
        measured = _measured(row)
        scaled = [terms.get(name, 0.0) * problem.priors[name] / measured for name in names]
        equations.append((scaled, row))
    weights = [1.0] * len(equations)
    found = [1.0] * len(names)
    solution = Solution(problem, dict(problem.priors), split)
    for _ in range(rounds):
        normal = Normal(len(names))
        for at, name in enumerate(names):
            row_of_one = [1.0 if i == at else 0.0 for i in range(len(names))]
            normal.add(row_of_one, 1.0, _prior_weight(name, found[at]))
        for (scaled, _row), weight in zip(equations, weights, strict=True):
            normal.add(scaled, 1.0, weight)
        found = normal.solve()
        values = {name: x * problem.priors[name] for name, x in zip(names, found, strict=True)}
        solution = _with_floor(Solution(problem, values, split), rows)
        residuals = [sum(a * x for a, x in zip(scaled, found, strict=True)) - 1 for scaled, _row in equations]
        weights = [1.0 / sqrt(1.0 + (residual / _SOFT) ** 2) for residual in residuals]
    return solution


def _with_floor(one: Solution, rows: Sequence[Timed]) -> Solution:
    """Where no row lies on the floor, it cannot be higher than the least work that was seen."""
    if one.split or not rows:
        return one
    least = min(one.linear() * row.computed + one.quadratic() * one.problem.pairs(row) for row in rows)
    return Solution(one.problem, {**one.values, "floor": min(one.values["floor"], least)}, one.split)
