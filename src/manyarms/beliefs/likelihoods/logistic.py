"""Binary rewards."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
from scipy.special import expit

from manyarms._base.typing import Array
from manyarms.beliefs.likelihoods.base import LIKELIHOODS, GeneralisedLinear
from manyarms.errors import InvalidInput


@LIKELIHOODS.register("logistic")
@dataclass(frozen=True)
class Logistic(GeneralisedLinear):
    """Rewards 0 or 1 with probability 1 / (1 + exp(-x^T theta)) of a 1."""

    binary: ClassVar[bool] = True

    def mean(self, u: Array) -> Array:
        return cast(Array, expit(u))

    def slope(self, u: Array) -> Array:
        p = expit(u)
        return cast(Array, p * (1.0 - p))

    def potential(self, u: Array) -> Array:
        return np.logaddexp(0.0, u)

    def check(self, rewards: Array) -> None:
        """Rewards must be 0 or 1."""
        bad = (rewards != 0.0) & (rewards != 1.0)
        if bad.any():
            raise InvalidInput("reward", f"{rewards[bad][0]:g}", "a reward of 0 or 1 for a logistic likelihood")

    def predictive_mean(self, mean: Array, variance: Array) -> Array:
        """By the probit's closed form, whose error is below 0.02."""
        return cast(Array, expit(mean / np.sqrt(1 + math.pi / 8 * variance)))


__all__ = ["Logistic"]
