"""From a parameter to a reward: R | x, a ~ p(. | x^T theta_a), a generalised linear model in canonical form,

    log p(r | u) = (r u - A(u)) / phi + const,    u = x^T theta,    mean g(u) = A'(u),    variance phi g'(u) = phi A''(u).

Gaussian rewards (`Linear`, phi the variance of the noise) have an exact posterior. For all others (phi = 1) the *likelihood*
(not the posterior) is replaced by a Gaussian around its maximum (thesis, Section 3.2.3):

    mu = argmax sum_i [r_i x_i^T theta - A(x_i^T theta)] - ridge/2 |theta|^2,    G = sum_i g'(x_i^T mu) x_i x_i^T,    B = G mu.

The ridge keeps the maximum finite where the rewards seen so far do not (all clicks, all zeros); it is no part of G.

A new likelihood is a frozen dataclass in a file of its own that derives from `GeneralisedLinear`, defines `mean`, `slope`,
`potential` and `check`, and registers its name with `LIKELIHOODS`; `manyarms.checks.check_likelihood` holds it to the formulas.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.linalg.lapack import dposv

from manyarms._base import validate
from manyarms._base.registry import Registry
from manyarms._base.typing import Array

MAX_NEWTON_STEPS = 100
TOLERANCE = 1e-10  # on the Newton decrement: the log-likelihood is then within 5e-11 of its maximum
QUADRATURE_NODES = 64


@dataclass(frozen=True)
class Likelihood(ABC):
    """The law of a reward given u = x^T theta. It states what it is; nobody asks it for its class."""

    binary: ClassVar[bool] = False
    """Rewards are 0 or 1."""

    @property
    def kind(self) -> str:
        """The name it is registered and saved under."""
        return LIKELIHOODS.name_of(type(self))

    @property
    def noise_variance(self) -> float | None:
        """The variance of Gaussian noise around u, which makes the posterior exact; None for any other law."""
        return None

    @property
    def exact(self) -> bool:
        """Whether posteriors are in closed form."""
        return self.noise_variance is not None

    @abstractmethod
    def mean(self, u: Array) -> Array:
        """g(u), the expected reward."""

    @abstractmethod
    def slope(self, u: Array) -> Array:
        """g'(u)."""

    @abstractmethod
    def potential(self, u: Array) -> Array:
        """A(u), whose derivative is g."""

    @abstractmethod
    def check(self, rewards: Array) -> None:
        """Raise InvalidInput where a reward is impossible."""

    @abstractmethod
    def fit(self, X: Array, r: Array, start: Array) -> tuple[Array, Array]:
        """The Gaussian that stands for the likelihood of rows X (n, d), r (n,): its centre mu (d,) and precision G (d, d)."""

    def predictive_mean(self, mean: Array, variance: Array) -> Array:
        """E[g(u)] for u ~ N(mean, variance), by Gauss-Hermite quadrature."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(QUADRATURE_NODES)
        return np.asarray(self.mean(mean[..., None] + np.sqrt(variance)[..., None] * nodes) @ (weights / weights.sum()))

    def options(self) -> dict[str, Any]:
        """What is needed to build it again."""
        return asdict(self)


LIKELIHOODS: Registry[type[Likelihood]] = Registry(
    "likelihood", package="manyarms.beliefs.likelihoods", group="manyarms.likelihoods"
)


def restore_likelihood(spec: Mapping[str, Any]) -> Likelihood:
    """The likelihood that its kind and options describe."""
    options = dict(spec)
    return LIKELIHOODS[options.pop("kind")](**options)


@dataclass(frozen=True)
class GeneralisedLinear(Likelihood):
    """What likelihoods without an exact posterior share: the ridge and the fit."""

    ridge: float = 1e-5

    def __post_init__(self) -> None:
        object.__setattr__(self, "ridge", validate.positive("ridge", self.ridge))

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


__all__ = ["LIKELIHOODS", "GeneralisedLinear", "Likelihood", "restore_likelihood"]
