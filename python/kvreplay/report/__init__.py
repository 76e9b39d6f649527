"""Reports: the analysis, its verdict, its files and its page.

The names are loaded when first used, so that its small modules can be had without Polars.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kvreplay.report.analysis import Report, analyze

__all__ = ["Report", "analyze"]


def __getattr__(name: str) -> Any:
    """Load the analysis when asked for."""
    if name not in __all__:
        raise AttributeError(f"module 'kvreplay.report' has no attribute {name!r}")
    from kvreplay.report import analysis

    return getattr(analysis, name)
