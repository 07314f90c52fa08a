"""Counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from manyarms._base.typing import Array
from manyarms.beliefs.likelihoods.base import LIKELIHOODS, GeneralisedLinear
from manyarms.errors import InvalidInput


@LIKELIHOODS.register("poisson")
@dataclass(frozen=True)
class Poisson(GeneralisedLinear):
    """Counts with mean exp(x^T theta)."""

    def mean(self, u: Array) -> Array:
        return cast(Array, np.exp(np.minimum(u, 700.0)))

    def slope(self, u: Array) -> Array:
        return self.mean(u)

    def potential(self, u: Array) -> Array:
        return cast(Array, np.exp(u))

    def check(self, rewards: Array) -> None:
        """Rewards must be integers of at least 0."""
        bad = (rewards < 0.0) | (rewards != np.floor(rewards))
        if bad.any():
            raise InvalidInput("reward", f"{rewards[bad][0]:g}", "a count 0, 1, 2, ... for a Poisson likelihood")


__all__ = ["Poisson"]
