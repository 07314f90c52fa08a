"""Checks that learning from offline estimates shares: their variances become covariances, which must be numbers of use."""

from __future__ import annotations

import numpy as np

from manyarms._base.typing import Array
from manyarms.errors import InvalidInput

LARGEST, SMALLEST = 1e50, 1e-50  # of a coordinate, and of a spread: their squares are variances


def of_moderate_size(name: str, rows: Array) -> Array:
    """Rows (n, d) whose variances can be the variances of a prior: none huge, and none denormal unless it is 0."""
    largest = float(np.abs(rows).max(initial=0.0))
    if largest > LARGEST:
        raise InvalidInput(name, f"{largest:g} in size", f"numbers below {LARGEST:g}: rescale them")
    spread = float(np.ptp(rows, axis=0).max(initial=0.0)) if len(rows) else 0.0
    if 0 < spread < SMALLEST:
        raise InvalidInput(name, f"a spread of {spread:g}", f"at least {SMALLEST:g}: rescale them")
    return rows


__all__ = ["of_moderate_size"]
