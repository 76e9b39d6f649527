"""``--fail-if``: a comparison that turns a result into an exit code, for pipelines."""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kvreplay.errors import ConfigError, unknown

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvreplay.report import Report

EXIT_CODE = 5
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_GATE = re.compile(
    r"\s*([A-Za-z][\w.\-]*)\s*(<=|>=|==|!=|<|>)\s*([-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)\s*(%?)\s*"
)


@dataclass(frozen=True)
class Gate:
    """One comparison: a name of the report, an operator, a number."""

    text: str
    name: str
    operator: str
    value: float

    def holds(self, report: Report) -> bool:
        """Whether the comparison is true of a report.

        Raises
        ------
        ConfigError
            When the report has no such name, or no value for it.
        """
        value = _look_up(self.name, report)
        if value is None:
            raise ConfigError(
                f"{self.name} has no value in this report",
                hint="its denominator is zero, or it is not computed",
            )
        return _OPERATORS[self.operator](value, self.value)


def parse(text: str) -> Gate:
    """Read ``NAME OPERATOR NUMBER``; the number may be a percentage.

    Raises
    ------
    ConfigError
        When the text is something else.

    Examples
    --------
    >>> from kvreplay.cli.gate import parse
    >>> parse("ceiling.token_hit_ratio < 30%").value
    0.3
    """
    match = _GATE.fullmatch(text)
    try:
        value = float(match[3]) if match else None
    except ValueError:
        value = None
    if match is None or value is None:
        raise ConfigError(
            f"--fail-if {text!r} is not NAME OPERATOR NUMBER", hint="for example 'token_hit_ratio < 0.3'"
        )
    return Gate(text.strip(), match[1], match[2], value / 100 if match[4] else value)


def _look_up(name: str, report: Report) -> float | None:
    """The value of a name: a ratio of the tiers, ``ceiling.NAME`` or ``tier.NAME.COLUMN``."""
    if name.startswith("tier."):
        return _look_up_tier(name, report)
    table = report.tables["ratios"]
    scope, ratio = (
        ("ceiling", name.removeprefix("ceiling.")) if name.startswith("ceiling.") else ("tiers", name)
    )
    values: dict[str, float | None] = dict(table.filter(scope=scope).select("name", "value").iter_rows())
    if not values:
        raise ConfigError(
            f"{name} is a ratio of the tiers, and there are none", hint=f"give --tier, or use ceiling.{name}"
        )
    if ratio not in values:
        raise unknown(
            "name in --fail-if",
            name,
            [*values, *(f"ceiling.{known}" for known in values), "tier.NAME.COLUMN"],
        )
    return values[ratio]


def _look_up_tier(name: str, report: Report) -> float | None:
    rest = name.removeprefix("tier.")
    rows = (
        {}
        if "tiers" not in report.tables
        else {row["tier"]: row for row in report.tables["tiers"].iter_rows(named=True)}
    )
    tier, _, column = rest.rpartition(".")  # a tier's name may hold dots, a column's does not
    if tier not in rows:
        raise unknown("tier in --fail-if", tier or rest, list(rows))
    row: dict[str, float | str | None] = rows[tier]
    numbers = {key: value for key, value in row.items() if not isinstance(value, str)}
    if column not in numbers:
        raise unknown("column in --fail-if", column, list(numbers))
    return numbers[column]
