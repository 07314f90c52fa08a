"""Gaussian rewards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import Array
from manyarms.beliefs.likelihoods.base import LIKELIHOODS, Expansion, Gaussian, Likelihood


@LIKELIHOODS.register("linear")
@dataclass(frozen=True)
class Linear(Likelihood):
    """Gaussian rewards, N(x^T theta, noise^2): everything is in closed form."""

    noise: float = 1.0

    def __post_init__(self) -> None:
        # squares, their inverses and products with a prior's variances are then all far from the ends of a double's range
        object.__setattr__(self, "noise", validate.number("noise", self.noise, least=1e-50, most=1e50))

    @property
    def noise_variance(self) -> float:
        """noise^2."""
        return self.noise**2

    def mean(self, u: Array) -> Array:
        return u

    def slope(self, u: Array) -> Array:
        return np.ones_like(u)

    def potential(self, u: Array) -> Array:
        return 0.5 * u**2

    def check(self, rewards: Array) -> None:
        """Any finite number is a reward."""

    def fit(self, X: Array, r: Array, start: Array, around: Gaussian | None = None) -> Expansion:
        """Exactly, wherever it is expanded: here at least squares (the shortest where rows leave it open)."""
        point = cast(Array, np.linalg.lstsq(X, r, rcond=None)[0])
        return Expansion(point, X.T @ X / self.noise_variance, r @ X / self.noise_variance)

    def predictive_mean(self, mean: Array, variance: Array) -> Array:
        return mean


__all__ = ["Linear"]
