"""How likely a reward was, given the rows before it: the one-step predictive density of a belief.

**Linear rewards**, in closed form. What a row tells the root (filtering.py) has the leaf integrated out: u^T m is seen as `value`
with `variance`, where u = W_a^T A^T x and value = r - x^T c. With the root N(mu, F F^T) beforehand, r is Gaussian, and

    r - E[r] = value - u^T mu,    Var(r) = variance + |F^T u|^2

**Others**, by quadrature: with x^T theta ~ N(m, v) beforehand,

    p(r) = integral of exp(r u - A(u)) N(u; m, v) du,    times what depends on r alone (1 for clicks, 1 / r! for counts)

over Gauss-Hermite nodes around the mode, scaled by the curvature there; the probabilities of a click and of none then sum to 1
within 4e-6 at a standard deviation of 3, and 1e-3 at 10. The mode is also where the likelihood is expanded (drift_memory.py).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from manyarms._base.typing import Array
from manyarms.beliefs.drift.filtering import Told
from manyarms.beliefs.likelihoods.base import Likelihood
from manyarms.beliefs.roots import Root

NEWTON_STEPS = 50
NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(24)
LOG_WEIGHTS = np.log(_WEIGHTS) - 0.5 * math.log(2 * math.pi) + NODES**2 / 2


def log_density(root: Root, u: Array, told: Told) -> float:
    """log p of a linear row that tells the root this about u^T m, which it has not learned yet."""
    away, variance = told.value, told.variance
    if not root.known:
        w = u @ root.factor()
        away -= float(u @ root.mean())
        variance += float(w @ w)
    return -0.5 * (math.log(2 * math.pi * variance) + away * away / variance)


class Expanded(NamedTuple):
    """A reward r, of a score u ~ N(mean, variance) beforehand: the mode of u, and A''(u) there."""

    reward: float
    mean: float
    variance: float
    mode: float
    slope: float

    def linear(self, likelihood: Likelihood) -> tuple[float, float]:
        """The value and the variance of the linear row that stands for it."""
        g = float(likelihood.mean(np.array([self.mode]))[0])
        return self.mode + (self.reward - g) / self.slope, 1 / self.slope

    def log_density(self, likelihood: Likelihood) -> float:
        """log p(r), but for what depends on r alone."""
        if not self.variance > 0:
            return self.reward * self.mean - float(likelihood.potential(np.array([self.mean]))[0])
        scale = 1 / math.sqrt(1 / self.variance + self.slope)
        u = self.mode + scale * NODES
        with np.errstate(over="ignore"):  # a density of 0
            logs = self.reward * u - likelihood.potential(u) - (u - self.mean) ** 2 / (2 * self.variance) + LOG_WEIGHTS
        most = float(logs.max())
        return most + math.log(float(np.exp(logs - most).sum())) + math.log(scale) - 0.5 * math.log(self.variance)


def expanded(likelihood: Likelihood, reward: float, mean: float, variance: float) -> Expanded:
    """The mode of N(u; mean, variance) p(r | u), by Newton's method."""
    u = np.array([mean])
    for _ in range(NEWTON_STEPS if variance > 0 else 0):
        slope = float(likelihood.slope(u)[0])
        gradient = float(likelihood.mean(u)[0]) - reward + (u[0] - mean) / variance
        step = gradient / (slope + 1 / variance)
        limit = 1.0 + abs(u[0])  # far from the mode, curvature says little about how far to go
        u = u - np.clip(step, -limit, limit)
        if abs(step) <= 1e-10 * limit:
            break
    return Expanded(reward, mean, variance, float(u[0]), max(float(likelihood.slope(u)[0]), 1e-12))


__all__ = ["Expanded", "expanded", "log_density"]
