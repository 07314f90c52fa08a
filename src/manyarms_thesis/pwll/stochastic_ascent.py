"""Stochastic gradient ascent on PWLL on a small log, and the constants of its bounds (thesis, Appendix D.3).

f(theta) = 1/n sum_i f_i(theta) + lam/2 |theta|², f_i = -g_i log pi_theta(A_i|X_i), |phi| <= H, 0 <= g_i <= G:

    L = G H² (+ lam)                 every f_i is L-smooth
    sigma² = 4 G² H² / b             the variance of a mini-batch's gradient
    lam                              strong convexity
    lam = 0, eta <= 1/(4L):          E f(mean of theta_0 .. theta_{T-1}) - f* <= D²/(eta T) + 2 eta sigma²
    lam > 0, eta <= 1/(2L):          E |theta_t - theta*|² <= (1 - eta lam)^t D² + 2 eta sigma² / lam,   D = |theta_0 - theta*|

The cited theorems need sigma² at theta* only, which is what `noise_at` measures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from manyarms._base.typing import Array, Ints
from manyarms.errors import DataError
from manyarms_thesis.pwll.finite_softmax import FiniteSoftmax


@dataclass(frozen=True, eq=False)
class SmallLog:
    """Rows (context, action, weight g) of a finite problem."""

    features: Array  # (m, K, d)
    contexts: Ints
    actions: Ints
    weights: Array  # g_i

    @property
    def problem(self) -> FiniteSoftmax:
        """The log added up."""
        m, K, _ = self.features.shape
        total = np.bincount(self.contexts * K + self.actions, self.weights, m * K)
        return FiniteSoftmax(self.features, total.reshape(m, K) / len(self.weights))

    @property
    def bounds(self) -> tuple[float, float]:
        """H and G of this log."""
        return float(np.linalg.norm(self.features, axis=2).max()), float(self.weights.max())

    def row_gradients(self, theta: Array) -> Array:
        """(n, d) gradients of the f_i at one theta: -g_i (phi(X_i, A_i) - E phi(X_i, .))."""
        pi = self.problem.probabilities(theta[None])[0]
        centre = np.einsum("mk,mkd->md", pi, self.features)
        away = self.features[self.contexts, self.actions] - centre[self.contexts]
        return np.asarray(-self.weights[:, None] * away)

    def noise_at(self, theta: Array) -> float:
        """E|grad f_I - grad f|² for a row I drawn uniformly."""
        rows = self.row_gradients(theta)
        return float(np.square(rows - rows.mean(axis=0)).sum(axis=1).mean())


def drawn_log(*, contexts: int, K: int, dim: int, n: int, tau: float, seed: int) -> SmallLog:
    """Features uniform in the unit ball, a softmax logging policy, Bernoulli rewards, weights of cLPI."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((contexts, K, dim))
    features *= rng.random((contexts, K, 1)) ** (1 / dim) / np.linalg.norm(features, axis=2, keepdims=True)
    logits = features @ rng.standard_normal(dim)
    logging = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    means = 1 / (1 + np.exp(-2 * features @ rng.standard_normal(dim)))
    x = rng.integers(contexts, size=n)
    a = np.minimum((logging[x].cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), K - 1)
    rewards = rng.random(n) < means[x, a]
    return SmallLog(features, x, a, rewards / np.maximum(logging[x, a], tau))


def optimum(problem: FiniteSoftmax, lam: float, most: int = 25) -> Array:
    """(d,) the maximiser of U - lam/2 |theta|², by Newton's method; refused where there is none.

    Where the maximum lies at infinity, Newton's steps do not become shorter: a log whose steps have not vanished after
    `most` of them counts as one without a maximum.
    """
    d = problem.features.shape[2]
    theta = np.zeros((1, d))

    def of(where: Array) -> float:
        return float(problem.of(where, "likelihood")[0] - 0.5 * lam * np.square(where).sum())

    for _ in range(most):
        slope = problem.gradient(theta, "likelihood")[0] - lam * theta[0]
        step = np.linalg.lstsq(lam * np.eye(d) - problem.hessian(theta, "likelihood")[0], slope, rcond=None)[0]
        if np.linalg.norm(step) < 1e-8 * (1 + np.linalg.norm(theta)):
            return np.asarray(theta[0] + step)
        size = 1.0
        while of(theta + size * step) < of(theta) and size > 1e-9:
            size /= 2
        theta = theta + size * step
    raise DataError("this log's likelihood has no maximum at a finite place; the bound needs one (or lam > 0)")


def steepest_curvature(problem: FiniteSoftmax, seed: int, tries: int = 400) -> tuple[float, float]:
    """Largest and smallest eigenvalue of -Hess U over parameters drawn at scales from 0.01 to 1,000, by brute force."""
    rng = np.random.default_rng(seed)
    d = problem.features.shape[2]
    theta = rng.standard_normal((tries, d)) * np.geomspace(0.01, 1_000, tries)[:, None]
    eigenvalues = np.linalg.eigvalsh(-problem.hessian(theta, "likelihood"))
    return float(eigenvalues.max()), float(eigenvalues.min())


def largest_noise(log: SmallLog, seed: int, tries: int = 200) -> float:
    """The largest variance of a row's gradient over the same kind of parameters."""
    rng = np.random.default_rng(seed)
    d = log.features.shape[2]
    return max(log.noise_at(scale * rng.standard_normal(d)) for scale in np.geomspace(0.01, 1_000, tries))


def stochastic_ascent(
    log: SmallLog, step: float, batch: int, lam: float, checkpoints: Sequence[int], repeats: int, seed: int
) -> tuple[Array, Array]:
    """Iterates and averages of the iterates before, both (checkpoints, repeats, d), from theta = 0; rows are drawn with
    replacement."""
    rng = np.random.default_rng(seed)
    m, K, d = log.features.shape
    flat = log.features.reshape(m * K, d)
    logged = log.features[log.contexts, log.actions]
    theta, total = np.zeros((repeats, d)), np.zeros((repeats, d))
    wanted, iterates, averages = set(checkpoints), [], []
    repeat = np.arange(repeats)[:, None]
    for t in range(1, max(checkpoints) + 1):
        total += theta
        rows = rng.integers(len(log.weights), size=(repeats, batch))
        scores = (theta @ flat.T).reshape(repeats, m, K)
        pi = np.exp(scores - scores.max(axis=2, keepdims=True))
        pi /= pi.sum(axis=2, keepdims=True)
        centre = np.einsum("rmk,mkd->rmd", pi, log.features, optimize=True)
        uphill = log.weights[rows][:, :, None] * (logged[rows] - centre[repeat, log.contexts[rows]])
        theta = theta + step * (uphill.mean(axis=1) - lam * theta)
        if t in wanted:
            iterates.append(theta.copy())
            averages.append(total / t)
    return np.stack(iterates), np.stack(averages)


def convex_bound(start: float, step: float, steps: Array, variance: float) -> Array:
    """D²/(eta T) + 2 eta sigma² (thesis, Appendix D.3.2)."""
    return np.asarray(start**2 / (step * steps) + 2 * step * variance)


def strong_bound(start: float, step: float, steps: Array, variance: float, lam: float) -> Array:
    """(1 - eta lam)^t D² + 2 eta sigma² / lam (thesis, Appendix D.3.3)."""
    return np.asarray((1 - step * lam) ** steps * start**2 + 2 * step * variance / lam)


def balanced_step(start: float, variance: float, smoothness: float, steps: int) -> float:
    """The step that makes the convex bound least for a number of steps, or the largest admissible one."""
    return min(1 / (4 * smoothness), start / math.sqrt(2 * variance * steps))


__all__ = [
    "SmallLog", "balanced_step", "convex_bound", "drawn_log", "largest_noise", "optimum", "steepest_curvature",
    "stochastic_ascent", "strong_bound",
]  # fmt: skip
