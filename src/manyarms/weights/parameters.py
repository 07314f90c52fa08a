"""The parameters that corrections take: nothing, or a number that can be divided by."""

from __future__ import annotations

import math
import numbers

from manyarms._base import validate
from manyarms.errors import InvalidInput


def zero_or_positive(name: str, value: object, most: float = validate.LARGEST) -> float:
    """0, which corrects nothing, or a number up to `most` that is not so small that its inverse has no meaning."""
    found = validate.number(name, value, least=0, most=most)
    if 0 < found < validate.SMALLEST:
        raise InvalidInput(name, validate.describe(value), f"0, or a number of at least {validate.SMALLEST:g}")
    return found


def positive_or_infinite(name: str, value: object) -> float:
    """A number above 0, or infinity, which corrects nothing."""
    if isinstance(value, numbers.Real) and value == math.inf:
        return math.inf
    return validate.positive(name, value)


__all__ = ["positive_or_infinite", "zero_or_positive"]
