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
    _actions_agree(belief, *_joint_prior(belief), "prior")


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
        H[i, _places(belief)[A[i]]] = X[i]
    gain = np.linalg.solve(H @ covariance @ H.T + noise_variance * np.eye(30), H @ covariance).T
    mean, covariance = mean + gain @ (R - H @ mean), covariance - gain @ H @ covariance
    require_close(belief.root.mean(), mean[:p], "posterior mean of the root")
    require_close(belief.root.factor() @ belief.root.factor().T, covariance[:p, :p], "posterior covariance of the root")
    _actions_agree(belief, mean, covariance, "posterior")


BELIEF_CHECKS: tuple[Callable[[MakeBelief], None], ...] = (no_data_gives_the_prior, posterior_is_joint_conditioning)


def _actions_agree(belief: Belief, mean: Array, covariance: Array, what: str) -> None:
    """The belief's marginals of all actions are those of a joint Gaussian of (m, theta_1, ..., theta_K)."""
    ours, spread = belief.action_posterior(np.arange(belief.catalogue.size))
    for a, place in enumerate(_places(belief)):
        require_close(ours[a], mean[place], f"{what} mean of an action")
        require_close(spread[a], covariance[place, place], f"{what} covariance of an action")


def _places(belief: Belief) -> list[slice]:
    """Where theta_1, ..., theta_K stand in (m, theta_1, ..., theta_K)."""
    d, p = belief.dim, belief.root.dim
    return [slice(p + a * d, p + (a + 1) * d) for a in range(belief.catalogue.size)]


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
    for a, place in enumerate(_places(belief)):
        covariance[place, place] += own[a]
    return up @ belief.root.mean(), covariance


__all__ = ["BELIEF_CHECKS", "MakeBelief", "check_belief", "no_data_gives_the_prior", "posterior_is_joint_conditioning"]
