"""What a hit is worth: models, hardware, links, prices, and the time that loading saves over recomputing.

The names are loaded when first used; the catalogues are TOML files beside this one, read on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kvreplay.cost.breaking_even import break_even
    from kvreplay.cost.calibration import calibrate
    from kvreplay.cost.catalogue import model, models
    from kvreplay.cost.coefficients import CostModel
    from kvreplay.cost.devices import Hardware, hardware
    from kvreplay.cost.modelspec import ModelSpec
    from kvreplay.cost.transfer import Link, link, links

_HOME = {
    "CostModel": "coefficients",
    "Hardware": "devices",
    "Link": "transfer",
    "ModelSpec": "modelspec",
    "break_even": "breaking_even",
    "calibrate": "calibration",
    "hardware": "devices",
    "link": "transfer",
    "links": "transfer",
    "model": "catalogue",
    "models": "catalogue",
}

__all__ = [
    "CostModel",
    "Hardware",
    "Link",
    "ModelSpec",
    "break_even",
    "calibrate",
    "hardware",
    "link",
    "links",
    "model",
    "models",
]


def __getattr__(name: str) -> Any:
    """Load a name from its module (PEP 562)."""
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'kvreplay.cost' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"kvreplay.cost.{home}"), name)
    globals()[name] = value
    return value
