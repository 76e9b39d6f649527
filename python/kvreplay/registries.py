"""What there is to choose from: formats, generators, policies, filters, fill rules, codes.

The core keeps the registries; the command line, its help and the docs read them here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvreplay import _core

if TYPE_CHECKING:
    import polars as pl


def _frame(table: _core.Table) -> pl.DataFrame:
    from kvreplay.frames import frame  # keeps Polars out of `import kvreplay.registries`

    return frame(table)


def formats() -> pl.DataFrame:
    """Trace formats that :func:`kvreplay.read_trace` knows: ``name``, ``doc``, ``example``, ``source``."""
    return _frame(_core.formats())


def writers() -> pl.DataFrame:
    """Formats of :meth:`kvreplay.Trace.write`: ``name``, ``doc``, ``loses`` (not kept), ``source``."""
    return _frame(_core.writers())


def generators() -> pl.DataFrame:
    """Kinds of :func:`kvreplay.generate`: ``name``, ``doc``, ``parameters`` with defaults, ``source``."""
    return _frame(_core.generators())


def policies() -> pl.DataFrame:
    """Eviction policies: ``name``, ``doc``, ``parameters`` with defaults, ``source`` (paper or engine)."""
    return _frame(_core.policies())


def admissions() -> pl.DataFrame:
    """Admission filters: ``name``, ``doc``, ``parameters`` with defaults, ``source``."""
    return _frame(_core.admissions())


def fill_rules() -> pl.DataFrame:
    """Rules by which a lower tier is filled: ``name``, ``doc``, ``parameters``, ``source``."""
    return _frame(_core.fill_rules())


def profiles() -> pl.DataFrame:
    """Engine profiles of :func:`kvreplay.replay`.

    ``name`` (before the ``@``), ``doc``, ``parameters`` (options with defaults), ``releases`` (known ones),
    ``tiers`` (a line per tier: policies and filters), ``source``.
    """
    return _frame(_core.profiles())


def quality_codes() -> pl.DataFrame:
    """Codes that ``trace.quality`` can hold: ``code``, ``severity``, ``message``, ``hint``."""
    return _frame(_core.quality_codes())
