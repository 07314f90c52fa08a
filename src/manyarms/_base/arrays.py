"""Elementary functions of floats, NumPy arrays and torch tensors, so that a formula is written once and can be differentiated.

Tensors bring their own methods: nothing here imports torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from manyarms._base.typing import Array

X = TypeVar("X")


def exp(x: X) -> X:
    """e^x."""
    return _apply("exp", math.exp, x)


def expm1(x: X) -> X:
    """e^x - 1, exact near 0."""
    return _apply("expm1", math.expm1, x)


def log(x: X) -> X:
    """The natural logarithm; of an array or a tensor, -inf at 0."""
    with np.errstate(divide="ignore"):
        return _apply("log", math.log, x)


def log1p(x: X) -> X:
    """log(1 + x), exact near 0."""
    return _apply("log1p", math.log1p, x)


def sqrt(x: X) -> X:
    """The square root."""
    return _apply("sqrt", math.sqrt, x)


def logaddexp(x: Array, y: Array) -> Array:
    """log(e^x + e^y), which cannot overflow."""
    return cast(Array, x.logaddexp(y) if hasattr(x, "logaddexp") else np.logaddexp(x, y))


def softmax(x: Array) -> Array:
    """exp(x) over its sum, along the first axis."""
    if hasattr(x, "softmax"):
        return cast(Array, x.softmax(0))
    mass = np.exp(x - x.max(axis=0))
    return cast(Array, mass / mass.sum(axis=0))


def clip(x: X, low: float | None = None, high: float | None = None) -> X:
    """x, but at least `low` and at most `high`."""
    value: Any = x
    if isinstance(value, (int, float)):
        value = value if low is None else max(low, value)
        return cast(X, value if high is None else min(high, value))
    return cast(X, np.clip(value, low, high) if isinstance(value, np.ndarray) else value.clip(min=low, max=high))


def at_least(values: Array, low: float) -> Array:
    """max(values, low), in the values' own precision, which torch would lower."""
    below = values < low
    return values * ~below + (0.0 * values + low) * below


def at_most(values: Array, high: float) -> Array:
    """min(values, high), in the values' own precision."""
    if high == math.inf:
        return values
    above = values > high
    return values * ~above + (0.0 * values + high) * above


def as_float(x: Any) -> float:
    """The number itself, cut off from any gradient."""
    return float(x.detach() if hasattr(x, "detach") else x)


def _apply(name: str, on_float: Callable[[float], float], x: X) -> X:
    value: Any = x
    if isinstance(value, (int, float)):
        return cast(X, on_float(value))
    ours = isinstance(value, (np.ndarray, np.generic))
    return cast(X, getattr(np, name)(value) if ours else getattr(value, name)())


__all__ = ["as_float", "at_least", "at_most", "clip", "exp", "expm1", "log", "log1p", "logaddexp", "softmax", "sqrt"]
