"""How far rewards are from what a belief expected of them, in standard deviations.

A linear reward r = x^T theta_a + noise has, given what is known, the law N(mean, sigma^2 + variance) with the marginal moments of
x^T theta_a (`Belief.predictive`), whatever made the agent choose a. So

    z = (r - mean) / sqrt(sigma^2 + variance)

is standard normal if the model is right, and one z is independent of the next where each is computed before its row is learned.
Exactly so where the belief is exact: not for factored roots, chains and particles, whose moments are approximations.

For other likelihoods the same with the mean and the variance of the reward, u = x^T theta_a ~ N(mean, variance) integrated out by
quadrature:

    E[r] = E[g(u)],    Var[r] = E[phi g'(u)] + Var[g(u)]        (phi = 1)

An approximation, since u is not normal there; and z has mean 0 and variance 1, but is not normal (for clicks it has two values).

**Rows of one call.** Where n rows are judged by what was known before all of them, their z are correlated: two rows of one action
by up to kappa = variance / (sigma^2 + variance), the part of a row's variance that is not noise, as they share their error. It is
`own_doubt`: rows may be judged together as long as its sum over the rows of an action stays far below 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from manyarms._base.typing import Array, Ints
from manyarms.beliefs.belief import Belief
from manyarms.beliefs.likelihoods.base import QUADRATURE_NODES, Likelihood

LARGEST = 1e50  # of a standardised residual: further away is as far
LEAST_PART = 1e-9  # of the variance of a row that the row itself leaves to the others


class Residuals(NamedTuple):
    """Of n rows: standardised residuals, the rewards that were expected, and the part of their variance that is not noise."""

    z: Array
    mean: Array
    own_doubt: Array


def residuals(belief: Belief, X: Array, actions: Ints, rewards: Array, times: Array | None = None) -> Residuals:
    """Of checked rows that the belief has not learned: contexts (n, d), actions (n,), rewards (n,).

    times: of the rows, as `Belief.times` has them, where rewards drift; None: as of now. A time before that of the belief counts
    as now: of a reward that comes late this is an approximation.
    """
    u, variance = _predicted(belief, X, actions, times)
    noise_variance = belief.likelihood.noise_variance
    if noise_variance is None:
        mean, noise, spread = _moments(belief.likelihood, u, variance)
    else:
        mean, noise, spread = u, np.full(len(u), noise_variance), variance
    return Residuals(_standardised(rewards - mean, noise + spread), mean, spread / (noise + spread))


def left_out_residuals(belief: Belief, X: Array, actions: Ints, rewards: Array) -> Residuals:
    """Of checked rows that a linear belief *has* learned: as if each of them, by itself, had been left out.

    With h = variance / sigma^2, the variance with the row learned, and e = r - mean:  r - (mean without it) = e / (1 - h),
    and its variance is sigma^2 / (1 - h). Each z is standard normal; they are correlated with each other.
    """
    noise_variance = belief.likelihood.noise_variance
    assert noise_variance is not None
    u, variance = belief.predictive(X, actions)
    left = np.maximum(1 - variance / noise_variance, LEAST_PART)
    off = (rewards - u) / left
    return Residuals(_standardised(off, noise_variance / left), rewards - off, 1 - left)


def _predicted(belief: Belief, X: Array, actions: Ints, times: Array | None) -> tuple[Array, Array]:
    """Mean and variance of x^T theta_a at the time of each row."""
    memory = belief.memory
    if memory is None or times is None or not memory.ages:
        return belief.predictive(X, actions)
    mean, variance = np.empty(len(X)), np.empty(len(X))
    moments, which = np.unique(times, return_inverse=True)
    for number, moment in enumerate(moments.tolist()):
        rows = np.flatnonzero(which == number)
        aged = memory.at(belief, memory.clock.later(moment))
        mean[rows], variance[rows] = aged.predictive(X[rows], actions[rows])
    return mean, variance


def _standardised(off: Array, variance: Array) -> Array:
    return np.clip(off / np.sqrt(variance), -LARGEST, LARGEST)


def _moments(likelihood: Likelihood, u: Array, variance: Array) -> tuple[Array, Array, Array]:
    """Mean of the reward, variance of its noise, and variance of its mean, for u ~ N(u, variance)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(QUADRATURE_NODES)
    weights = weights / weights.sum()
    at = u[:, None] + np.sqrt(variance)[:, None] * nodes
    means = likelihood.mean(at)
    mean = means @ weights
    noise = likelihood.slope(at) @ weights
    return mean, np.maximum(noise, np.finfo(float).tiny), ((means - mean[:, None]) ** 2) @ weights


__all__ = ["Residuals", "left_out_residuals", "residuals"]
