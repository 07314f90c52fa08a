"""From a parameter to a reward: R | x, a ~ p(. | x^T theta_a).

`Linear` is Gaussian and exact. The others are generalised linear models in canonical form,

    log p(r | u) = r u - A(u) + const,    u = x^T theta,    mean g(u) = A'(u),    variance g'(u) = A''(u),

whose *likelihood* (not posterior) is replaced by a Gaussian around its maximum (thesis, lines 1088-1142):

    mu = argmax sum_i [r_i x_i^T theta - A(x_i^T theta)] - ridge/2 |theta|^2,    G = sum_i g'(x_i^T mu) x_i x_i^T,    B = G mu.

The ridge keeps the maximum finite where the rewards seen so far do not (all clicks, all zeros); it is no part of G.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
from scipy.linalg.lapack import dposv
from scipy.special import expit

from manyarms._base import validate
from manyarms._base.typing import Array
from manyarms.errors import InvalidInput

MAX_NEWTON_STEPS = 100
TOLERANCE = 1e-10  # on the Newton decrement: the log-likelihood is then within 5e-11 of its maximum


@dataclass(frozen=True)
class Linear:
    """Gaussian rewards, N(x^T theta, noise^2): everything is in closed form."""

    noise: float = 1.0
    kind: ClassVar[str] = "linear"
    exact: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise", validate.positive("noise", self.noise))
        if not 0 < self.variance < math.inf:
            raise InvalidInput("noise", self.noise, "a standard deviation whose square is neither 0 nor infinite")

    @property
    def variance(self) -> float:
        """Variance of the noise."""
        return self.noise**2

    def mean(self, u: Array) -> Array:
        """Expected reward at u = x^T theta."""
        return u

    def check(self, rewards: Array) -> None:
        """Any finite number is a reward."""

    def options(self) -> dict[str, float]:
        """What is needed to build it again."""
        return {"noise": self.noise}


@dataclass(frozen=True)
class _Canonical(ABC):
    """What the GLMs share: the ridge and the fit."""

    ridge: float = 1e-5
    exact: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "ridge", validate.positive("ridge", self.ridge))

    def options(self) -> dict[str, float]:
        """What is needed to build it again."""
        return {"ridge": self.ridge}

    @abstractmethod
    def mean(self, u: Array) -> Array:
        """g(u), the expected reward at u = x^T theta."""

    @abstractmethod
    def slope(self, u: Array) -> Array:
        """g'(u)."""

    @abstractmethod
    def potential(self, u: Array) -> Array:
        """A(u)."""

    def fit(self, X: Array, r: Array, start: Array) -> tuple[Array, Array]:
        """Ridge-regularised maximum likelihood from a warm start by damped Newton steps: (mu, G)."""
        theta = start
        target = r @ X
        u = X @ theta
        value = self._loss(theta, u, target)
        at_zero = len(X) * float(self.potential(np.zeros(1))[0])
        if not value <= at_zero:  # new rows may have made a bad start of the old mode
            theta, u = np.zeros_like(theta), np.zeros_like(u)
            value = self._loss(theta, u, target)
        for _ in range(MAX_NEWTON_STEPS):
            gradient = self.mean(u) @ X - target + self.ridge * theta
            G = (X * self.slope(u)[:, None]).T @ X
            hessian = G.copy()
            hessian.flat[:: len(theta) + 1] += self.ridge
            _, step, info = dposv(hessian, gradient)
            if info != 0:  # rounding left the Hessian indefinite: go along the gradient, scaled by its trace
                step = gradient / np.trace(hessian)
            decrement = float(gradient @ step)
            if decrement <= TOLERANCE:
                return theta, G
            size, moved = 1.0, False
            for _ in range(60):
                trial = theta - size * step
                trial_u = X @ trial
                trial_value = self._loss(trial, trial_u, target)
                if trial_value <= value - 1e-4 * size * decrement:
                    moved = True
                    break
                size *= 0.5
            if not moved:  # no decrease can be seen in floating point: this is the maximum
                return theta, G
            theta, u, value = trial, trial_u, trial_value
        G = (X * self.slope(u)[:, None]).T @ X
        return theta, G

    def _loss(self, theta: Array, u: Array, target: Array) -> float:
        with np.errstate(over="ignore"):
            loss = float(self.potential(u).sum() - theta @ target + 0.5 * self.ridge * (theta @ theta))
        return loss if loss == loss else np.inf


@dataclass(frozen=True)
class Logistic(_Canonical):
    """Rewards 0 or 1 with probability 1 / (1 + exp(-x^T theta)) of a 1."""

    kind: ClassVar[str] = "logistic"

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


@dataclass(frozen=True)
class Poisson(_Canonical):
    """Counts with mean exp(x^T theta)."""

    kind: ClassVar[str] = "poisson"

    def mean(self, u: Array) -> Array:
        return cast(Array, np.exp(np.minimum(u, 700.0)))

    def slope(self, u: Array) -> Array:
        return self.mean(u)

    def potential(self, u: Array) -> Array:
        return cast(Array, np.exp(u))

    def check(self, rewards: Array) -> None:
        """Rewards must be whole numbers of at least 0."""
        bad = (rewards < 0.0) | (rewards != np.floor(rewards))
        if bad.any():
            raise InvalidInput("reward", f"{rewards[bad][0]:g}", "a count 0, 1, 2, ... for a Poisson likelihood")


Likelihood = Linear | Logistic | Poisson

LIKELIHOODS: dict[str, type[Linear] | type[Logistic] | type[Poisson]] = {
    "linear": Linear,
    "logistic": Logistic,
    "poisson": Poisson,
}
