"""Two objectives of a linear softmax policy on a finite problem, with exact gradients and Hessians.

pi_theta(a|x) ∝ exp(phi(x, a)ᵀ theta + offset(x, a)); a log enters through the weights that it adds up to,
w(x, a) = 1/n sum_i g_i 1[X_i = x, A_i = a]:

    likelihood   U(theta) = sum_{x,a} w(x, a) log pi_theta(a|x)     PWLL, thesis, Section 7.2
    value        V(theta) = sum_{x,a} w(x, a) pi_theta(a|x)         IPS-like, linear in pi, Appendix D.2

With phibar = E_pi phi in a context and W(x) = sum_a w(x, a), V(x) = sum_a w(x, a) pi(a|x):

    grad U = sum_{x,a} w (phi - phibar)              Hess U = -sum_x W(x) Cov_pi(phi)                    (Appendix D.2)
    grad V = sum_{x,a} pi (w - V(x)) (phi - phibar)   Hess V =  sum_{x,a} pi (w - V(x)) (phi - phibar)(phi - phibar)ᵀ

All methods take many parameters at once: theta has shape (s, d).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from manyarms._base.typing import Array, Bools
from manyarms.errors import InvalidInput

Objective = Literal["likelihood", "value"]


@dataclass(frozen=True, eq=False)
class FiniteSoftmax:
    """Contexts x actions with features (m, K, d), weights (m, K) and offsets (m, K) of the scores."""

    features: Array
    weights: Array
    offsets: Array | None = None

    def __post_init__(self) -> None:
        if self.features.ndim != 3 or self.weights.shape != self.features.shape[:2]:
            raise InvalidInput(
                "weights", f"shape {self.weights.shape}", f"one weight a context and action of {self.features.shape}"
            )

    def log_probabilities(self, theta: Array) -> Array:
        """(s, m, K) log pi(a|x)."""
        scores = np.einsum("mkd,sd->smk", self.features, theta)
        if self.offsets is not None:
            scores = scores + self.offsets
        scores -= scores.max(axis=-1, keepdims=True)
        return np.asarray(scores - np.log(np.exp(scores).sum(axis=-1, keepdims=True)))

    def probabilities(self, theta: Array) -> Array:
        """(s, m, K) pi(a|x)."""
        return np.exp(self.log_probabilities(theta))

    def of(self, theta: Array, objective: Objective) -> Array:
        """(s,) the objective."""
        log_pi = self.log_probabilities(theta)
        terms = log_pi if objective == "likelihood" else np.exp(log_pi)
        return np.asarray(np.einsum("mk,smk->s", self.weights, terms))

    def gradient(self, theta: Array, objective: Objective) -> Array:
        """(s, d)."""
        return np.asarray(np.einsum("smk,mkd->sd", self._slopes(theta, objective)[0], self.features))

    def hessian(self, theta: Array, objective: Objective) -> Array:
        """(s, d, d)."""
        slopes, pi = self._slopes(theta, objective)
        mass = -pi * self.weights.sum(axis=1)[:, None] if objective == "likelihood" else slopes
        centred = self.features - np.einsum("smk,mkd->smd", pi, self.features)[:, :, None]
        return np.asarray(np.einsum("smk,smkd,smke->sde", mass, centred, centred, optimize=True))

    def _slopes(self, theta: Array, objective: Objective) -> tuple[Array, Array]:
        """(s, m, K) derivatives with respect to the scores, and the probabilities."""
        pi = self.probabilities(theta)
        if objective == "likelihood":
            return self.weights - pi * self.weights.sum(axis=1)[:, None], pi
        values = (self.weights * pi).sum(axis=-1, keepdims=True)
        return pi * (self.weights - values), pi

    def best_policies(self, objective: Objective) -> Array:
        """(m, K): the policy that maximises the likelihood over all policies (w / W), or marks of the best actions.

        A context without weight has no preference: its row is uniform, or all marks.
        """
        if objective == "value":
            return np.asarray(self.weights == self.weights.max(axis=1, keepdims=True), dtype=np.float64)
        total = self.weights.sum(axis=1, keepdims=True)
        uniform = np.full(self.weights.shape, 1 / self.weights.shape[1])
        return np.asarray(np.where(total > 0, self.weights / np.where(total > 0, total, 1.0), uniform))

    def distance(self, theta: Array, objective: Objective) -> Array:
        """(s,) total variation between pi_theta and the nearest policy that maximises the objective, mean over contexts."""
        pi, best = self.probabilities(theta), self.best_policies(objective)
        if objective == "value":
            return np.asarray(1 - (pi * best).sum(axis=-1).mean(axis=-1))
        return np.asarray(np.abs(pi - best).sum(axis=-1).mean(axis=-1) / 2)

    def ascend(self, theta: Array, objective: Objective, step: float, steps: int) -> Array:
        """(s, d) where gradient ascent with a constant step arrives."""
        theta = theta.copy()
        for _ in range(steps):
            theta += step * self.gradient(theta, objective)
        return theta

    def path(self, theta: Array, objective: Objective, step: float, steps: int, most: int = 200) -> Array:
        """(most or fewer, s, d) places on the way of gradient ascent, dense at the beginning, the last one included."""
        wanted = set(np.unique(np.r_[0, np.geomspace(1, max(steps, 1), most)].astype(int)).tolist()) | {steps}
        theta, found = theta.copy(), []
        for t in range(steps + 1):
            if t in wanted:
                found.append(theta.copy())
            theta += step * self.gradient(theta, objective)
        return np.stack(found)


def lattice(low: float, high: float, points: int, dim: int = 2) -> Array:
    """(points^dim, dim) a regular grid on a cube."""
    axes = np.meshgrid(*[np.linspace(low, high, points)] * dim, indexing="ij")
    return np.stack([axis.ravel() for axis in axes], axis=1)


def climb(
    problem: FiniteSoftmax, theta: Array, objective: Objective, *, longest: float = 0.5, most: int = 500
) -> Array:
    """(s, d) local maxima by Newton's method with the absolute values of the Hessian's eigenvalues and bounded steps.

    The step |H|⁻¹ grad goes uphill wherever the gradient is not zero, and away from saddles.
    """
    theta = theta.copy()
    for _ in range(most):
        slope = problem.gradient(theta, objective)
        curvature, axes = np.linalg.eigh(problem.hessian(theta, objective))
        size = np.maximum(np.abs(curvature), 1e-6 * np.abs(curvature).max(axis=1, keepdims=True) + 1e-300)
        along = np.einsum("sde,sd->se", axes, slope) / size
        step = np.einsum("sde,se->sd", axes, along)
        length = np.linalg.norm(step, axis=1, keepdims=True)
        step *= np.minimum(1.0, longest / np.maximum(length, 1e-300))
        theta += step
        if np.abs(step).max() < 1e-9:
            break
    return theta


def strict_maxima(problem: FiniteSoftmax, theta: Array, objective: Objective, tolerance: float = 1e-9) -> Bools:
    """(s,) whether a place is a strict local maximum: no gradient beside the curvature, all of which is negative."""
    slope = np.linalg.norm(problem.gradient(theta, objective), axis=1)
    curvature = np.linalg.eigvalsh(problem.hessian(theta, objective))[:, -1]
    return np.asarray((curvature < 0) & (slope <= tolerance * np.abs(curvature)))


__all__ = ["FiniteSoftmax", "Objective", "climb", "lattice", "strict_maxima"]
