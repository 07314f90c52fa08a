"""Extremes of many standard normals, drawn without drawing them all.

The largest of m independent standard normals has the distribution function Phi(z)^m, so that it is one draw:
z = Phi^-1(U^(1/m)). With E = -log U a unit exponential, log Phi(z) = -E/m, and the upper tail 1 - Phi(z) = -expm1(-E/m)
keeps its digits where U^(1/m) would round to one. Given that the j largest lie above a ceiling c, the next of the
remaining m - j is the largest of m - j normals truncated at c: log Phi(z) = log Phi(c) - E/(m - j).
"""

from __future__ import annotations

import math
from typing import cast

import numpy as np
from scipy.special import ndtri_exp

from manyarms._base.typing import Array, Ints

TINY = float(np.finfo(np.float64).tiny)


def log_cdf_of_largest(count: Array | Ints, log_ceiling: Array | float, rng: np.random.Generator) -> Array:
    """log Phi of the largest of `count` standard normals below a ceiling given by log Phi(ceiling) (0: no ceiling)."""
    return log_ceiling - rng.standard_exponential(count.shape) / count


def normal_from_log_cdf(log_cdf: Array) -> Array:
    """z with log Phi(z) = log_cdf, accurate in both tails."""
    return cast(Array, ndtri_exp(log_cdf))


def above_normal(log_cdf: float) -> float:
    """What z with log Phi(z) = log_cdf does not exceed, for less than z costs: 1 - Phi(z) <= exp(-z^2 / 2) / 2 for z >= 0."""
    tail = max(-math.expm1(log_cdf), TINY)
    return math.sqrt(max(-2.0 * math.log(2.0 * tail), 0.0)) * (1 + 1e-12) + 1e-6


def below(ceiling: Array | float, log_ceiling: Array | float, number: int, rng: np.random.Generator) -> Array:
    """Standard normals below a ceiling, or one each, with log Phi of it: what comes out higher is drawn again."""
    z = rng.standard_normal(number)
    high = (z > ceiling).nonzero()[0]
    if len(high):  # as a rule the second is not
        z[high] = rng.standard_normal(len(high))
        high = (z > ceiling).nonzero()[0]
    if len(high):
        log_cdf = log_ceiling[high] if isinstance(log_ceiling, np.ndarray) else log_ceiling
        z[high] = normal_from_log_cdf(log_cdf - rng.standard_exponential(len(high)))
    return z
