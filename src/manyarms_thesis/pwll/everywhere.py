"""Statements about all instances, such as bounds: an error over the instances, and one counterexample refutes.

A bound that is computed and not estimated has no chance in it; what can be doubted is whether the instances tried are typical. So
the room below the bound is given as a mean with its standard error over instances (drawn logs, starts, sizes), and where there is
none on a single instance, that instance is the figure: it refutes the statement without an error.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from manyarms._base.typing import Array
from manyarms_thesis.harness.claims import Measured, measured


def for_all(room: Array, tolerance: float = 0.0) -> Measured:
    """The room that instances leave, which the statement says is above zero on each; rounding may take `tolerance` of it."""
    values = np.asarray(room, dtype=np.float64).ravel()
    worst = float(values.min())
    return Measured(worst, 0.0) if worst < -tolerance else measured(values + tolerance)


def extremes(values: Array, form: str = ".3g") -> str:
    """From the least to the largest, in words."""
    low, high = float(np.min(values)), float(np.max(values))
    return f"{low:{form}}" if low == high else f"{low:{form}} to {high:{form}}"


def by_panel(values: Mapping[str, object]) -> str:
    """Panels and what was found there, for a detail."""
    return "; ".join(f"{panel}: {value}" for panel, value in values.items())


__all__ = ["by_panel", "extremes", "for_all"]
