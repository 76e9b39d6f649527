"""Least squares with non-negative coefficients, for the handful of unknowns that a calibration has.

The active-set method of Lawson and Hanson (1974) on the normal equations. Columns are scaled by the caller to
about 1, so the equations of fewer than a dozen unknowns keep enough digits; it saves a dependency on scipy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_TINY = 1e-12


class Normal:
    """Normal equations, built row by row: minimise ``sum w (row . x - value)^2`` for ``x >= 0``.

    Parameters
    ----------
    unknowns
        Number of coefficients.
    """

    def __init__(self, unknowns: int) -> None:
        self.matrix = [[0.0] * unknowns for _ in range(unknowns)]
        self.right = [0.0] * unknowns

    def add(self, row: Sequence[float], value: float, weight: float) -> None:
        """Add an equation."""
        for i, left in enumerate(row):
            if left:
                self.right[i] += weight * left * value
                line = self.matrix[i]
                for j, other in enumerate(row):
                    line[j] += weight * left * other

    def solve(self) -> list[float]:
        """The non-negative least-squares solution.

        Examples
        --------
        >>> from kvreplay.cost.nnls import Normal
        >>> normal = Normal(2)
        >>> for row, value in (((1, 1), 3), ((1, 2), 5), ((1, 3), 7)):
        ...     normal.add(row, value, 1.0)
        >>> [round(x, 9) for x in normal.solve()]
        [1.0, 2.0]
        """
        count = len(self.right)
        used: list[int] = []
        x = [0.0] * count
        for _ in range(3 * count + 3):  # each pass takes one coefficient in; the bound only guards round-off
            slope = self._gradient(x)
            free = [i for i in range(count) if i not in used]
            best = max(free, key=lambda i: (slope[i], -i), default=None)
            if best is None or slope[best] <= _TINY * (1.0 + abs(self.right[best])):
                break
            used = sorted([*used, best])
            used, x = self._inner(used, x)
        return x

    def _gradient(self, x: list[float]) -> list[float]:
        return [
            right - sum(a * b for a, b in zip(line, x, strict=True))
            for line, right in zip(self.matrix, self.right, strict=True)
        ]

    def _inner(self, used: list[int], x: list[float]) -> tuple[list[int], list[float]]:
        """Solve for the coefficients in use, and drop those that would turn negative, one by one."""
        while used:
            part = _solve([[self.matrix[i][j] for j in used] for i in used], [self.right[i] for i in used])
            full = [0.0] * len(x)
            for i, value in zip(used, part, strict=True):
                full[i] = value
            if all(full[i] > 0 for i in used):
                return used, full
            steps = {i: x[i] / (x[i] - full[i]) for i in used if full[i] <= 0}
            first = min(steps, key=lambda i: (steps[i], i))
            step = steps[first]
            x = [old + step * (new - old) for old, new in zip(x, full, strict=True)]
            x[first] = 0.0
            used = [i for i in used if x[i] > _TINY]
        return used, [0.0] * len(x)


def _solve(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Gaussian elimination with pivots; a coefficient without a pivot is 0."""
    count = len(right)
    rows = [[*line, value] for line, value in zip(matrix, right, strict=True)]
    pivots: list[int] = []
    for at in range(count):
        best = max(range(at, count), key=lambda i: abs(rows[i][at]))
        rows[at], rows[best] = rows[best], rows[at]
        if abs(rows[at][at]) <= _TINY:
            continue
        pivots.append(at)
        for i in range(count):
            if i != at and rows[i][at]:
                factor = rows[i][at] / rows[at][at]
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[at], strict=True)]
    return [rows[i][-1] / rows[i][i] if i in pivots else 0.0 for i in range(count)]
