"""Generalised linear rewards: the fit is the mode it claims to be, and beliefs take its Gaussian for the likelihood."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime

import manyarms as ma
from brute_force import MIXINGS, covariance_matrix, random_case
from glm_reference import GLM, glm_rows, gradient, rewards
from manyarms._base.typing import Array
from manyarms.beliefs import Belief, Logistic, Poisson
from manyarms.beliefs.likelihoods.base import TOLERANCE, Expansion, Gaussian


def regulariser(likelihood: GLM, around: Gaussian) -> Gaussian:
    """The Gaussian under which the fit is a mode: for the thesis's rule that of the ridge."""
    if likelihood.expansion != "mle":
        return around
    assert likelihood.ridge is not None
    d = len(around.mean)
    return Gaussian(np.zeros(d), likelihood.ridge * np.eye(d))


def decrement(likelihood: GLM, X: Array, r: Array, found: Expansion, around: Gaussian) -> float:
    """How much of the penalised gradient is left, measured by the curvature: twice what the objective can still gain."""
    mean, precision = regulariser(likelihood, around)
    slope = gradient(likelihood, X, r, found.point) - precision @ (found.point - mean)
    return float(slope @ np.linalg.solve(found.G + precision, slope))


RULES = (
    Logistic(), Poisson(), Logistic(expansion="mle"), Poisson(expansion="mle"), Logistic(0.3, "mle"), Poisson(0.3, "mle"),
)  # fmt: skip


@given(
    seed=st.integers(0, 10**6),
    likelihood=st.sampled_from(RULES),
    d=st.integers(1, 4),
    n=st.integers(1, 60),
    warm=st.sampled_from((0.0, 1.0, 30.0)),
)
def test_a_fit_is_the_mode_and_the_expansion_there(seed: int, likelihood: GLM, d: int, n: int, warm: float) -> None:
    """From cold, warm and absurd starts; G is minus the Hessian of the log-likelihood, whatever it is regularised with."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    r = rewards(likelihood, X @ rng.standard_normal(d), rng)
    around = Gaussian(rng.standard_normal(d), np.linalg.inv(covariance_matrix(rng, d)))
    found = likelihood.fit(X, r, warm * rng.standard_normal(d), around)
    theta, G, B = found
    assert decrement(likelihood, X, r, found, around) <= 2 * TOLERANCE
    for i in range(d):
        column = -approx_fprime(theta, lambda t, i=i: gradient(likelihood, X, r, t)[i], 1e-6)
        assert_allclose(G[i], column, rtol=1e-4, atol=1e-4 * max(1e-3, np.abs(G).max()))
    assert (G == G.T).all() or np.abs(G - G.T).max() <= 1e-12 * np.abs(G).max()
    slope = 0.0 if likelihood.expansion == "mle" else gradient(likelihood, X, r, theta)
    assert_allclose(B, G @ theta + slope, rtol=1e-9, atol=1e-9 * (1 + np.abs(r @ X).max()))


HARD: dict[str, tuple[type[GLM], Array, Array]] = {
    "all clicks": (Logistic, np.ones((50, 1)), np.ones(50)),
    "no clicks": (Logistic, np.ones((50, 1)), np.zeros(50)),
    "separable": (Logistic, np.array([[-2.0, 1], [-1, 1], [1, 1], [2, 1]]), np.array([0.0, 0, 1, 1])),
    "separable, large contexts": (
        Logistic,
        1e4 * np.array([[-2.0, 1], [-1, 1], [1, 1], [2, 1]]),
        np.array([0.0, 0, 1, 1]),
    ),
    "one direction only": (Logistic, np.ones((20, 3)), np.tile([0.0, 1.0], 10)),
    "context of zeros": (Logistic, np.zeros((3, 2)), np.array([1.0, 0, 1])),
    "no counts": (Poisson, np.ones((50, 1)), np.zeros(50)),
    "no counts, large contexts": (Poisson, 50 * np.ones((5, 2)), np.zeros(5)),
    "large counts": (Poisson, np.ones((5, 1)), np.array([1e6, 2e6, 1e6, 3e6, 1e6])),
    "large counts, small contexts": (Poisson, 0.05 * np.ones((5, 1)), np.full(5, 1e6)),
    "counts of zero and a million": (Poisson, np.array([[1.0, 0], [0, 1], [1, 1]]), np.array([0.0, 1e6, 5])),
}


AROUND: dict[str, Callable[[int], Gaussian | None]] = {
    "the ridge": lambda d: None,
    "N(0, I)": lambda d: Gaussian(np.zeros(d), np.eye(d)),
    "a wide prior": lambda d: Gaussian(np.zeros(d), 1e-6 * np.eye(d)),
    "a narrow prior": lambda d: Gaussian(np.full(d, 0.3), 1e8 * np.eye(d)),
    "a prior far away": lambda d: Gaussian(np.full(d, 300.0), 0.1 * np.eye(d)),
}


@pytest.mark.parametrize("start", [0.0, 5.0, 1000.0])
@pytest.mark.parametrize("prior", AROUND)
@pytest.mark.parametrize(("likelihood", "X", "r"), HARD.values(), ids=HARD.keys())
def test_hard_data_have_a_finite_fit(likelihood: type[GLM], X: Array, r: Array, prior: str, start: float) -> None:
    """Where the likelihood has no maximum, ridge or prior keeps the mode in reach; wherever the fit starts, it ends there."""
    around = AROUND[prior](X.shape[1])
    rule = likelihood(expansion="mle" if around is None else "mode")
    found = rule.fit(X, r, np.full(X.shape[1], start), around)
    assert all(np.isfinite(part).all() for part in found)
    assert np.linalg.eigvalsh(found.G).min() >= -1e-9 * max(1e-300, np.abs(found.G).max())
    # with sums as large as 1e7, or penalties that large, the objective itself has only so many digits
    around = regulariser(rule, around or Gaussian(found.point, found.G))
    sizes = (
        np.abs(r @ X).max() * max(1.0, np.abs(found.point).max())
        + len(r)
        + around.mean @ around.precision @ around.mean
    )
    assert decrement(rule, X, r, found, around) <= 2 * TOLERANCE + 1e-12 * float(sizes)


def test_large_counts_are_fitted_exactly() -> None:
    theta, G, _ = Poisson(expansion="mle").fit(np.ones((4, 1)), np.full(4, 1e6), np.zeros(1))
    assert_allclose(theta, np.log(1e6), rtol=1e-9)
    assert_allclose(G, 4e6, rtol=1e-6)


@given(
    seed=st.integers(0, 10**6),
    mixing=st.sampled_from(MIXINGS),
    root=st.sampled_from(("known", "gaussian")),
    shared=st.booleans(),
    likelihood=st.sampled_from(RULES),
)
def test_beliefs_are_exact_once_the_likelihood_is_a_gaussian(
    seed: int, mixing: str, root: str, shared: bool, likelihood: GLM
) -> None:
    """Thesis, Section 3.2.3: G and B take the place of the linear statistics, and all else is as in the linear case.

    The mode is that under the marginal prior, whatever has been learned about the root and from other actions.
    """
    K, d = 4, 2
    case = random_case(seed, mixing, root, shared=shared, actions=K, dim=d)
    belief = Belief(case.belief.root, case.belief.leaves, likelihood)
    X, A, r = glm_rows(likelihood, seed, 25, K, d)
    for start in range(0, 25, 5):
        belief.observe(X[start : start + 5], A[start : start + 5], r[start : start + 5])
    G, B = np.zeros((K, d, d)), np.zeros((K, d))
    for a, slot in belief.leaves.catalogue.slot_of.items():
        mine = a == A
        mean, covariance = case.joint.action(a)
        around = Gaussian(mean, np.linalg.inv(covariance))
        _, G[a], B[a] = likelihood.fit(X[mine], r[mine], belief._modes.rows[slot].copy(), around)
        assert belief.leaves.counts.rows[slot] == np.count_nonzero(mine)
    if root == "known":  # the joint covariance is singular then, and the actions are independent
        for a in range(K):
            mean, covariance = case.joint.action(a)
            precision = np.linalg.inv(covariance)
            have_mean, have = belief.action_posterior(np.array([a]))
            want = np.linalg.inv(precision + G[a])
            assert_allclose(have[0], want, rtol=0, atol=1e-8 * np.abs(want).max())
            assert_allclose(have_mean[0], want @ (precision @ mean + B[a]), rtol=0, atol=1e-7)
        return
    joint = case.joint.given_gaussians(G, B)
    means, covariances = belief.action_posterior(np.arange(K))
    assert_allclose(belief.root.mean(), joint.root()[0], rtol=0, atol=1e-7)
    assert_allclose(belief.root.factor() @ belief.root.factor().T, joint.root()[1], rtol=0, atol=1e-7)
    for a in range(K):
        assert_allclose(means[a], joint.action(a)[0], rtol=0, atol=1e-7)
        assert_allclose(covariances[a], joint.action(a)[1], rtol=0, atol=1e-7)


@pytest.mark.parametrize("likelihood", RULES[:4])
@pytest.mark.parametrize("factored", [False, "mean-field", "blockwise"])
def test_rows_batches_and_order_agree_to_the_solvers_tolerance(likelihood: GLM, factored: bool | str) -> None:
    """Warm starts differ, so the fits end at different points of the same tiny neighbourhood of the maximum."""
    rng = np.random.default_rng(4)
    K, L, d, n = 5, 2, 2, 120
    prior = ma.MixedEffectPrior(rng.uniform(-1, 1, (K, L)), rng.standard_normal((L, d)), 2 * np.eye(L * d), np.eye(d))
    X, A, r = glm_rows(likelihood, 8, n, K, d)
    agents = [ma.meTS(prior, likelihood, factored=factored) for _ in range(4)]
    order = rng.permutation(n)
    for i in range(n):
        agents[0].observe(X[i], int(A[i]), r[i])
        agents[1].observe(X[order[i]], int(A[order[i]]), r[order[i]])
    agents[2].observe(X, A, r)
    for part in np.array_split(order, 7):
        agents[3].observe(X[part], A[part], r[part])
    mean, covariance = agents[2].belief.action_posterior(np.arange(K))
    sd = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    for agent in agents:
        other_mean, other = agent.belief.action_posterior(np.arange(K))
        assert np.abs((other_mean - mean) / sd).max() < 1e-4
        assert_allclose(other, covariance, rtol=0, atol=1e-4 * covariance.max())


def test_only_the_played_action_is_refitted() -> None:
    rng = np.random.default_rng(0)
    prior = ma.MixedEffectPrior(rng.uniform(-1, 1, (4, 2)), np.zeros((2, 2)), np.eye(4), np.eye(2))
    agent = ma.meTS(prior, ma.Logistic(), seed=0)
    agent.observe(*glm_rows(Logistic(), 1, 30, 3, 2))
    leaves = agent.belief.leaves
    before = {name: getattr(leaves, name).rows.copy() for name in ("G", "B", "S", "c")}
    agent.observe([0.5, 0.5], 1, 1.0)
    slot = leaves.catalogue.slot_of[1]
    others = [s for s in range(3) if s != slot]
    for name, rows in before.items():
        assert (getattr(leaves, name).rows[others] == rows[others]).all()
        assert (getattr(leaves, name).rows[slot] != rows[slot]).any()
