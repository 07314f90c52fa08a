"""From a parameter to a reward: R | x, a ~ p(. | x^T theta_a), a generalised linear model in canonical form,

    log p(r | u) = (r u - A(u)) / phi + const,    u = x^T theta,    mean g(u) = A'(u),    variance phi g'(u) = phi A''(u).

Gaussian rewards (`Linear`, phi the variance of the noise) have an exact posterior. For all others (phi = 1) the *likelihood* of
an action's rows, l(theta) = sum_i [r_i x_i^T theta - A(x_i^T theta)], is replaced by a Gaussian: its expansion at a point t,

    l(theta) ~ const - 1/2 theta^T G theta + B^T theta,    G = -l''(t) = sum_i g'(x_i^T t) x_i x_i^T,    B = G t + l'(t),

and t maximises l(theta) - 1/2 (theta - nu)^T P (theta - nu) for some Gaussian N(nu, P^-1), which keeps it finite where the
rewards seen so far do not (all clicks, all zeros). That Gaussian only says where to expand, and is no part of G and B: nothing is
counted twice. `expansion` names it:

    mode     the marginal prior of the action's parameter: for independent actions the textbook's Laplace approximation
    cavity   what is believed about the parameter now, the action's own rows left out; depends on the order of the rows
    mle      N(0, I / ridge), and B = G t without the gradient, ridge t, that is left there: the thesis's rule (Section 3.2.3)

A new likelihood is a frozen dataclass in a file of its own that derives from `GeneralisedLinear`, defines `mean`, `slope`,
`potential` and `check`, and registers its name with `LIKELIHOODS`; `manyarms.checks.check_likelihood` holds it to the formulas.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from manyarms._base import validate
from manyarms._base.registry import Registry
from manyarms._base.typing import Array, Spec
from manyarms.errors import InvalidInput

EXPANSIONS = ("mode", "cavity", "mle")
RIDGE = 1e-5  # of the authors' code
MAX_NEWTON_STEPS = 100
TOLERANCE = 1e-10  # on the Newton decrement: the log-likelihood is then within 5e-11 of its maximum
QUADRATURE_NODES = 64


class Gaussian(NamedTuple):
    """N(mean, precision^-1)."""

    mean: Array  # (d,)
    precision: Array  # (d, d)


class Expansion(NamedTuple):
    """The Gaussian that stands for a likelihood, exp(-1/2 theta^T G theta + B^T theta), and the point of the expansion."""

    point: Array  # (d,)
    G: Array  # (d, d)
    B: Array  # (d,)


@dataclass(frozen=True)
class Likelihood(ABC):
    """The law of a reward given u = x^T theta. It states what it is; nobody asks it for its class."""

    binary: ClassVar[bool] = False
    """Rewards are 0 or 1."""

    expansion = "mode"
    """Which Gaussian says where to expand (`EXPANSIONS`)."""

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
    def fit(self, X: Array, r: Array, start: Array, around: Gaussian | None = None) -> Expansion:
        """The Gaussian that stands for the likelihood of rows X (n, d), r (n,), expanded at the mode under `around`.

        start: where the search begins. around: the Gaussian that `expansion` names; None for "mle".
        """

    def predictive_mean(self, mean: Array, variance: Array) -> Array:
        """E[g(u)] for u ~ N(mean, variance), by Gauss-Hermite quadrature."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(QUADRATURE_NODES)
        return np.asarray(self.mean(mean[..., None] + np.sqrt(variance)[..., None] * nodes) @ (weights / weights.sum()))

    def options(self) -> Spec:
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
    """What likelihoods without an exact posterior share: where they are expanded, and how the mode is found.

    expansion: "mode", "cavity" or "mle" (see above). ridge: of "mle" alone, 1e-5 unless given.
    """

    ridge: float | None = None
    expansion: str = "mode"

    def __post_init__(self) -> None:
        if self.expansion not in EXPANSIONS:
            raise InvalidInput("expansion", validate.describe(self.expansion), f"one of {', '.join(EXPANSIONS)}")
        if self.expansion == "mle":
            ridge = validate.positive("ridge", RIDGE if self.ridge is None else self.ridge)
            object.__setattr__(self, "ridge", ridge)
        elif self.ridge is not None:
            raise InvalidInput(
                "ridge",
                self.ridge,
                f"none with expansion={self.expansion!r}, where the prior takes its place; expansion='mle' has one",
            )

    def fit(self, X: Array, r: Array, start: Array, around: Gaussian | None = None) -> Expansion:
        """The expansion at the mode, by damped Newton steps from a warm start."""
        if self.expansion == "mle":
            assert self.ridge is not None
            around = Gaussian(np.zeros(len(start)), self.ridge * np.eye(len(start)))
        if around is None:
            raise InvalidInput("around", "None", f"the Gaussian under which the {self.expansion} is meant")
        target = r @ X
        theta, u, G = self._mode(X, target, start, around)
        B = G @ theta
        if self.expansion != "mle":
            B += target - self.mean(u) @ X
        return Expansion(theta, G, B)

    def _mode(self, X: Array, target: Array, theta: Array, around: Gaussian) -> tuple[Array, Array, Array]:
        """The mode, X times it, and minus the Hessian of the log-likelihood there."""
        from scipy.linalg.lapack import dposv  # late: it takes a while to import, and linear rewards do not need it

        nu, P = around
        u = X @ theta
        value = self._loss(theta, u, target, around)
        at_zero = len(X) * float(self.potential(np.zeros(1))[0]) + 0.5 * float(nu @ (P @ nu))
        if not value <= at_zero:  # new rows may have made a bad start of the old mode
            theta, u, value = np.zeros_like(theta), np.zeros_like(u), at_zero
        for _ in range(MAX_NEWTON_STEPS):
            gradient = self.mean(u) @ X - target + P @ (theta - nu)
            G = (X * self.slope(u)[:, None]).T @ X
            hessian = G + P
            _, step, info = dposv(hessian, gradient)
            if info != 0:  # rounding left the Hessian indefinite: go along the gradient, scaled by its trace
                step = gradient / np.trace(hessian)
            decrement = float(gradient @ step)
            if decrement <= TOLERANCE:
                return theta, u, G
            size, moved = 1.0, False
            for _ in range(60):
                trial = theta - size * step
                trial_u = X @ trial
                trial_value = self._loss(trial, trial_u, target, around)
                if trial_value <= value - 1e-4 * size * decrement:
                    moved = True
                    break
                size *= 0.5
            if not moved:  # no decrease can be seen in floating point: this is the maximum
                return theta, u, G
            theta, u, value = trial, trial_u, trial_value
        return theta, u, (X * self.slope(u)[:, None]).T @ X

    def _loss(self, theta: Array, u: Array, target: Array, around: Gaussian) -> float:
        away = theta - around.mean
        with np.errstate(over="ignore"):
            loss = float(self.potential(u).sum() - theta @ target + 0.5 * (away @ (around.precision @ away)))
        return loss if loss == loss else np.inf


__all__ = [
    "EXPANSIONS",
    "LIKELIHOODS",
    "Expansion",
    "Gaussian",
    "GeneralisedLinear",
    "Likelihood",
    "restore_likelihood",
]
