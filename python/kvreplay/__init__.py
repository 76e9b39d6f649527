"""Trace replay for LLM KV caches: what a cache tier of some size would serve of a trace.

The names below are loaded when first used: ``import kvreplay`` alone reads neither Polars nor pyarrow.

Examples
--------
>>> import kvreplay as kv
>>> trace = kv.generate("multi_turn", requests=100, seed=1)
>>> result = kv.replay(trace, [kv.Tier("gpu", capacity="50%")])
>>> result.tiers["tier"].to_list()
['gpu']
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kvreplay._core import __version__ as __version__
    from kvreplay.cost.breaking_even import break_even
    from kvreplay.cost.calibration import calibrate
    from kvreplay.cost.catalogue import model, models
    from kvreplay.cost.coefficients import CostModel
    from kvreplay.cost.devices import Hardware, hardware
    from kvreplay.cost.modelspec import ModelSpec
    from kvreplay.cost.transfer import Link, link, links
    from kvreplay.curve import ceiling, hit_curve, ratios, reuse_distance, reuse_runs, reuse_time
    from kvreplay.errors import ConfigError, KvreplayError, OutputError, TraceError
    from kvreplay.odds import reuse_odds
    from kvreplay.registries import (
        admissions,
        fill_rules,
        formats,
        generators,
        policies,
        quality_codes,
        writers,
    )
    from kvreplay.replaying import Tier, replay
    from kvreplay.report import Report, analyze
    from kvreplay.results import ReplayResult
    from kvreplay.scanning import scan_trace
    from kvreplay.sweeping import sweep
    from kvreplay.synthetic import generate
    from kvreplay.trace import Trace, read_trace

_HOME = {
    "__version__": "_core",
    "ConfigError": "errors",
    "CostModel": "cost.coefficients",
    "Hardware": "cost.devices",
    "KvreplayError": "errors",
    "Link": "cost.transfer",
    "ModelSpec": "cost.modelspec",
    "OutputError": "errors",
    "ReplayResult": "results",
    "Report": "report",
    "Tier": "replaying",
    "Trace": "trace",
    "TraceError": "errors",
    "admissions": "registries",
    "analyze": "report",
    "break_even": "cost.breaking_even",
    "calibrate": "cost.calibration",
    "ceiling": "curve",
    "fill_rules": "registries",
    "formats": "registries",
    "generate": "synthetic",
    "generators": "registries",
    "hardware": "cost.devices",
    "hit_curve": "curve",
    "link": "cost.transfer",
    "links": "cost.transfer",
    "model": "cost.catalogue",
    "models": "cost.catalogue",
    "policies": "registries",
    "profiles": "registries",
    "quality_codes": "registries",
    "ratios": "curve",
    "read_trace": "trace",
    "replay": "replaying",
    "reuse_distance": "curve",
    "reuse_odds": "odds",
    "reuse_runs": "curve",
    "reuse_time": "curve",
    "scan_trace": "scanning",
    "sweep": "sweeping",
    "writers": "registries",
}

__all__ = [
    "ConfigError",
    "CostModel",
    "Hardware",
    "KvreplayError",
    "Link",
    "ModelSpec",
    "OutputError",
    "ReplayResult",
    "Report",
    "Tier",
    "Trace",
    "TraceError",
    "admissions",
    "analyze",
    "break_even",
    "calibrate",
    "ceiling",
    "fill_rules",
    "formats",
    "generate",
    "generators",
    "hardware",
    "hit_curve",
    "link",
    "links",
    "model",
    "models",
    "policies",
    "profiles",
    "quality_codes",
    "ratios",
    "read_trace",
    "replay",
    "reuse_distance",
    "reuse_odds",
    "reuse_runs",
    "reuse_time",
    "scan_trace",
    "sweep",
    "writers",
]


def __getattr__(name: str) -> Any:
    """Load a public name from its module (PEP 562)."""
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'kvreplay' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"kvreplay.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted({*globals(), *__all__})
