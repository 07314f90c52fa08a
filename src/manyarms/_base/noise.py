"""Extremes of many standard normals, drawn without drawing them all.

The largest of m independent standard normals has the distribution function Phi(z)^m, so that it is one draw:
z = Phi^-1(U^(1/m)). With E = -log U a unit exponential, log Phi(z) = -E/m, and the upper tail 1 - Phi(z) = -expm1(-E/m)
keeps its digits where U^(1/m) would round to one. Given that the j largest lie above a ceiling c, the next of the
remaining m - j is the largest of m - j normals truncated at c: log Phi(z) = log Phi(c) - E/(m - j).
"""

from __future__ import annotations

from typing import cast

import numpy as np
from scipy.special import ndtri, ndtri_exp

from manyarms._base.typing import Array, Ints


def log_cdf_of_largest(count: Array | Ints, log_ceiling: Array | float, rng: np.random.Generator) -> Array:
    """log Phi of the largest of `count` standard normals below a ceiling given by log Phi(ceiling) (0: no ceiling)."""
    return log_ceiling - rng.standard_exponential(count.shape) / count


def normal_from_log_cdf(log_cdf: Array) -> Array:
    """z with log Phi(z) = log_cdf, accurate in both tails."""
    z = -ndtri(-np.expm1(log_cdf))
    low = log_cdf < -10.0  # 1 - Phi(z) is so close to one there that it loses digits, at last all of them
    if low.any():
        z[low] = ndtri_exp(log_cdf[low])
    return cast(Array, z)
