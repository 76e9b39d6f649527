"""A hit curve drawn as SVG: log scale of capacity, share of input tokens. No library, no script."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

from kvreplay import display

if TYPE_CHECKING:
    from collections.abc import Sequence

_WIDTH, _HEIGHT = 720, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 16, 44


class Axes:
    """Where values fall on the picture."""

    def __init__(self, last_capacity: int, top: float) -> None:
        self._decades = max(math.log10(max(last_capacity, 1)), 1.0)
        self.top = top if top > 0 else 1.0

    def x(self, capacity: int) -> float:
        """Pixel of a capacity in blocks."""
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * math.log10(max(capacity, 1)) / self._decades

    def y(self, value: float) -> float:
        """Pixel of a ratio."""
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * value / self.top

    def grid(self) -> list[str]:
        """Lines and labels: powers of ten across, fifths of the top upwards."""
        out = []
        for exponent in range(int(self._decades + 1e-9) + 1):
            x = self.x(10**exponent)
            out.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}"/>')
            out.append(_label(x, _HEIGHT - _BOTTOM + 16, display.count(10**exponent), "middle"))
        for i in range(6):
            value = self.top * i / 5
            y = self.y(value)
            out.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
            out.append(_label(_LEFT - 6, y + 4, f"{100 * value:.1f} %", "end"))
        out.append(
            _label((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 8, "capacity in blocks (log scale)", "middle")
        )
        return out


def _label(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def hit_curve(
    points: Sequence[tuple[int, float]], *, ceiling: float, marks: Sequence[tuple[str, int]]
) -> str:
    """Draw a curve with its ceiling and the capacities of tiers.

    Parameters
    ----------
    points
        Capacity in blocks and token hit ratio, by capacity.
    ceiling
        The ratio of an infinite cache.
    marks
        Name and capacity in blocks of what is to be marked on the capacity axis.
    """
    last = max([capacity for capacity, _ in points] + [capacity for _, capacity in marks] + [10])
    axes = Axes(last, ceiling)
    parts = axes.grid()
    y = axes.y(ceiling)
    parts.append(f'<line class="ceiling" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
    for name, capacity in marks:
        x = axes.x(capacity)
        parts.append(f'<line class="mark" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}"/>')
        parts.append(_label(x - 4, _TOP + 12, name, "end"))
    path = " ".join(f"{axes.x(capacity):.1f},{axes.y(value):.1f}" for capacity, value in points)
    parts.append(f'<polyline class="curve" points="{path}"/>')
    title = f"Token hit ratio of one LRU cache; the ceiling is {display.percent(ceiling)}"
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>{''.join(parts)}</svg>"
    )
