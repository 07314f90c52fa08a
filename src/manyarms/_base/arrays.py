"""Elementary functions of NumPy arrays and torch tensors alike, so that a formula is written once for both.

Whatever brings a method of its own (`tensor.exp()`) is asked for it, and can then be differentiated; everything else is NumPy's.
Nothing here imports torch.
"""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from manyarms._base.typing import Array


def exp(x: Array) -> Array:
    """e^x."""
    return cast(Array, x.exp() if hasattr(x, "exp") else np.exp(x))


def log(x: Array) -> Array:
    """The natural logarithm, -inf at 0."""
    if hasattr(x, "log"):
        return cast(Array, x.log())
    with np.errstate(divide="ignore"):
        return cast(Array, np.log(x))


def log1p(x: Array) -> Array:
    """log(1 + x)."""
    return cast(Array, x.log1p() if hasattr(x, "log1p") else np.log1p(x))


def logaddexp(x: Array, y: Array) -> Array:
    """log(e^x + e^y), which cannot overflow."""
    return cast(Array, x.logaddexp(y) if hasattr(x, "logaddexp") else np.logaddexp(x, y))


def sqrt(x: Array) -> Array:
    """The square root."""
    return cast(Array, x.sqrt() if hasattr(x, "sqrt") else np.sqrt(x))


def softmax(x: Array) -> Array:
    """exp(x) over its sum, along the first axis."""
    if hasattr(x, "softmax"):
        return cast(Array, x.softmax(0))
    mass = np.exp(x - x.max(axis=0))
    return cast(Array, mass / mass.sum(axis=0))


def at_least(values: Array, low: float) -> Array:
    """max(values, low), in the values' own precision, which torch would lower."""
    below = values < low
    return values * ~below + (0.0 * values + low) * below


def at_most(values: Array, high: float) -> Array:
    """min(values, high)."""
    if high == math.inf:
        return values
    above = values > high
    return values * ~above + (0.0 * values + high) * above


__all__ = ["at_least", "at_most", "exp", "log", "log1p", "logaddexp", "softmax", "sqrt"]
