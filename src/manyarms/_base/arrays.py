"""Elementary functions of floats, NumPy arrays and torch tensors, so that a formula is written once and can be differentiated.

Tensors bring their own methods: nothing here imports torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

X = TypeVar("X")


def exp(x: X) -> X:
    """e^x."""
    return _apply("exp", math.exp, x)


def expm1(x: X) -> X:
    """e^x - 1, exact near 0."""
    return _apply("expm1", math.expm1, x)


def log(x: X) -> X:
    """The natural logarithm."""
    return _apply("log", math.log, x)


def log1p(x: X) -> X:
    """log(1 + x), exact near 0."""
    return _apply("log1p", math.log1p, x)


def sqrt(x: X) -> X:
    """The square root."""
    return _apply("sqrt", math.sqrt, x)


def clip(x: X, low: float | None = None, high: float | None = None) -> X:
    """x, but at least `low` and at most `high`."""
    value: Any = x
    if isinstance(value, (int, float)):
        value = value if low is None else max(low, value)
        return cast(X, value if high is None else min(high, value))
    return cast(X, np.clip(value, low, high) if isinstance(value, np.ndarray) else value.clip(min=low, max=high))


def as_float(x: Any) -> float:
    """The number itself, cut off from any gradient."""
    return float(x.detach() if hasattr(x, "detach") else x)


def _apply(name: str, on_float: Callable[[float], float], x: X) -> X:
    value: Any = x
    if isinstance(value, (int, float)):
        return cast(X, on_float(value))
    return cast(X, getattr(np, name)(value) if isinstance(value, np.ndarray) else getattr(value, name)())


__all__ = ["as_float", "clip", "exp", "expm1", "log", "log1p", "sqrt"]
