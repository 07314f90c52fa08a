"""What every belief with linear rewards must satisfy: it is the joint Gaussian of root and actions, conditioned on the rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from manyarms._base.typing import Array
from manyarms.beliefs import Belief
from manyarms.checks.base import CheckFailed, require_close

MakeBelief = Callable[[], Belief]


def check_belief(make: MakeBelief) -> None:
    """Run every check of a belief with linear rewards; `make()` gives a fresh one with two to fifty actions."""
    for check in BELIEF_CHECKS:
        check(make)


def no_data_gives_the_prior(make: MakeBelief) -> None:
    """Before any row, an action's posterior is its prior: N(W_a E[m], Sigma_a + W_a Cov(m) W_a^T)."""
    belief = make()
    ids = np.arange(belief.catalogue.size)
    joint_mean, joint_covariance = _joint_prior(belief)
    mean, covariance = belief.action_posterior(ids)
    d, p = belief.dim, belief.root.dim
    for a in ids.tolist():
        place = slice(p + a * d, p + (a + 1) * d)
        require_close(mean[a], joint_mean[place], "prior mean of an action")
        require_close(covariance[a], joint_covariance[place, place], "prior covariance of an action")


def posterior_is_joint_conditioning(make: MakeBelief) -> None:
    """Linear rewards: root and actions agree with conditioning the joint Gaussian of (m, theta_1, ..., theta_K)."""
    belief = make()
    noise_variance = belief.likelihood.noise_variance
    if noise_variance is None:
        raise CheckFailed(f"this check is for linear rewards; saw {belief.likelihood}")
    mean, covariance = _joint_prior(belief)
    d, p, K = belief.dim, belief.root.dim, belief.catalogue.size
    rng = np.random.default_rng(11)
    X, A, R = rng.uniform(-1, 1, (30, d)), rng.integers(K, size=30), rng.standard_normal(30)
    for x, a, r in zip(X[:10], A[:10], R[:10], strict=True):
        belief.observe(x[None], np.array([a]), np.array([r]))
    belief.observe(X[10:], A[10:], R[10:])
    H = np.zeros((30, len(mean)))
    for i in range(30):
        H[i, p + A[i] * d : p + (A[i] + 1) * d] = X[i]
    gain = np.linalg.solve(H @ covariance @ H.T + noise_variance * np.eye(30), H @ covariance).T
    mean, covariance = mean + gain @ (R - H @ mean), covariance - gain @ H @ covariance
    require_close(belief.root.mean(), mean[:p], "posterior mean of the root")
    require_close(belief.root.factor() @ belief.root.factor().T, covariance[:p, :p], "posterior covariance of the root")
    ours, spread = belief.action_posterior(np.arange(K))
    for a in range(K):
        place = slice(p + a * d, p + (a + 1) * d)
        require_close(ours[a], mean[place], "posterior mean of an action")
        require_close(spread[a], covariance[place, place], "posterior covariance of an action")


BELIEF_CHECKS: tuple[Callable[[MakeBelief], None], ...] = (no_data_gives_the_prior, posterior_is_joint_conditioning)


def _joint_prior(belief: Belief) -> tuple[Array, Array]:
    """Mean and covariance of (m, theta_1, ..., theta_K) of a belief that has seen nothing."""
    leaves, d, p = belief.leaves, belief.dim, belief.root.dim
    K = belief.catalogue.size
    W = np.zeros((K * d, p))
    for j, unit in enumerate(np.eye(p)):
        W[:, j] = np.asarray(leaves.mixing.apply(np.arange(K), unit)).ravel()
    spread = belief.root.factor() @ belief.root.factor().T
    up = np.vstack([np.eye(p), W])
    covariance = up @ spread @ up.T
    own = leaves.prior_covariance(np.arange(K))
    for a in range(K):
        place = slice(p + a * d, p + (a + 1) * d)
        covariance[place, place] += own[a]
    return up @ belief.root.mean(), covariance


__all__ = ["BELIEF_CHECKS", "MakeBelief", "check_belief", "no_data_gives_the_prior", "posterior_is_joint_conditioning"]
