"""Sweeps: many replays of one trace, each distinct one computed once."""

from kvreplay.sweeping.grid import Point, expand
from kvreplay.sweeping.run import SWEEP_SCHEMA, sweep

__all__ = ["SWEEP_SCHEMA", "Point", "expand", "sweep"]
