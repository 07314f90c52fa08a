"""Generalised linear rewards: the fit is the maximum it claims to be, and what its Gaussian costs is measured."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime
from scipy.special import expit

import manyarms as ma
from brute_force import MIXINGS, covariance_matrix, random_case
from manyarms._base.typing import Array, Ints
from manyarms.beliefs import Belief, Logistic, Poisson
from manyarms.beliefs.likelihoods.base import TOLERANCE

GLM = Logistic | Poisson


def rewards(likelihood: GLM, u: Array, rng: np.random.Generator) -> Array:
    if isinstance(likelihood, Logistic):
        return np.asarray(rng.random(u.shape) < expit(u), dtype=np.float64)
    return rng.poisson(np.exp(u)).astype(np.float64)


def log_likelihood(likelihood: GLM, X: Array, r: Array, theta: Array) -> Array:
    """Up to a constant, for one parameter (d,) or many (m, d)."""
    u = theta @ X.T
    potential = np.logaddexp(0.0, u) if isinstance(likelihood, Logistic) else np.exp(u)
    return np.asarray((r * u - potential).sum(axis=-1))


def gradient(likelihood: GLM, X: Array, r: Array, theta: Array) -> Array:
    """Of the log-likelihood."""
    u = X @ theta
    return (r - (expit(u) if isinstance(likelihood, Logistic) else np.exp(u))) @ X


def assert_is_the_maximum(likelihood: GLM, X: Array, r: Array, theta: Array, G: Array) -> None:
    """The ridge-penalised gradient vanishes, measured by the curvature: less than 1e-5 of a standard deviation is left."""
    slope = gradient(likelihood, X, r, theta) - likelihood.ridge * theta
    hessian = G + likelihood.ridge * np.eye(len(theta))
    assert slope @ np.linalg.solve(hessian, slope) <= 2 * TOLERANCE


@given(
    seed=st.integers(0, 10**6),
    likelihood=st.sampled_from((Logistic(), Poisson(), Logistic(0.3), Poisson(0.3))),
    d=st.integers(1, 4),
    n=st.integers(1, 60),
    warm=st.sampled_from((0.0, 1.0, 30.0)),
)
def test_a_fit_is_the_maximum_and_its_curvature(seed: int, likelihood: GLM, d: int, n: int, warm: float) -> None:
    """From cold, warm and absurd starts; G is minus the Hessian of the log-likelihood, the ridge left out."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    r = rewards(likelihood, X @ rng.standard_normal(d), rng)
    theta, G = likelihood.fit(X, r, warm * rng.standard_normal(d))
    assert_is_the_maximum(likelihood, X, r, theta, G)
    for i in range(d):
        column = -approx_fprime(theta, lambda t, i=i: gradient(likelihood, X, r, t)[i], 1e-6)
        assert_allclose(G[i], column, rtol=1e-4, atol=1e-4 * max(1e-3, np.abs(G).max()))
    assert (G == G.T).all() or np.abs(G - G.T).max() <= 1e-12 * np.abs(G).max()


HARD: dict[str, tuple[GLM, Array, Array]] = {
    "all clicks": (Logistic(), np.ones((50, 1)), np.ones(50)),
    "no clicks": (Logistic(), np.ones((50, 1)), np.zeros(50)),
    "separable": (Logistic(), np.array([[-2.0, 1], [-1, 1], [1, 1], [2, 1]]), np.array([0.0, 0, 1, 1])),
    "separable, large contexts": (
        Logistic(),
        1e4 * np.array([[-2.0, 1], [-1, 1], [1, 1], [2, 1]]),
        np.array([0.0, 0, 1, 1]),
    ),
    "one direction only": (Logistic(), np.ones((20, 3)), np.tile([0.0, 1.0], 10)),
    "context of zeros": (Logistic(), np.zeros((3, 2)), np.array([1.0, 0, 1])),
    "no counts": (Poisson(), np.ones((50, 1)), np.zeros(50)),
    "no counts, large contexts": (Poisson(), 50 * np.ones((5, 2)), np.zeros(5)),
    "large counts": (Poisson(), np.ones((5, 1)), np.array([1e6, 2e6, 1e6, 3e6, 1e6])),
    "large counts, small contexts": (Poisson(), 0.05 * np.ones((5, 1)), np.full(5, 1e6)),
    "counts of zero and a million": (Poisson(), np.array([[1.0, 0], [0, 1], [1, 1]]), np.array([0.0, 1e6, 5])),
}


@pytest.mark.parametrize("start", [0.0, 5.0, 1000.0])
@pytest.mark.parametrize(("likelihood", "X", "r"), HARD.values(), ids=HARD.keys())
def test_hard_data_have_a_finite_fit(likelihood: GLM, X: Array, r: Array, start: float) -> None:
    """Where the maximum likelihood is infinite the ridge keeps it in reach; wherever the fit starts, it ends there."""
    theta, G = likelihood.fit(X, r, np.full(X.shape[1], start))
    assert np.isfinite(theta).all() and np.isfinite(G).all()
    assert np.linalg.eigvalsh(G).min() >= -1e-9 * max(1e-300, np.abs(G).max())
    slope = gradient(likelihood, X, r, theta) - likelihood.ridge * theta
    hessian = G + likelihood.ridge * np.eye(len(theta))
    # with sums as large as 1e7 the likelihood itself has only so many digits
    digits = 1e-15 * float(np.abs(r @ X).max() + len(r))
    assert slope @ np.linalg.solve(hessian, slope) <= 2 * TOLERANCE + 1e3 * digits


def test_large_counts_are_fitted_exactly() -> None:
    theta, G = Poisson().fit(np.ones((4, 1)), np.full(4, 1e6), np.zeros(1))
    assert_allclose(theta, np.log(1e6), rtol=1e-9)
    assert_allclose(G, 4e6, rtol=1e-6)


def glm_rows(likelihood: GLM, seed: int, n: int, K: int, d: int) -> tuple[Array, Ints, Array]:
    rng = np.random.default_rng(seed)
    X, A = rng.uniform(-1, 1, (n, d)), rng.integers(K, size=n)
    theta = rng.standard_normal((K, d))
    return X, A, rewards(likelihood, np.einsum("nd,nd->n", X, theta[A]), rng)


@given(
    seed=st.integers(0, 10**6),
    mixing=st.sampled_from(MIXINGS),
    root=st.sampled_from(("known", "gaussian")),
    shared=st.booleans(),
    likelihood=st.sampled_from((Logistic(), Poisson())),
)
def test_beliefs_are_exact_once_the_likelihood_is_a_gaussian(
    seed: int, mixing: str, root: str, shared: bool, likelihood: GLM
) -> None:
    """Thesis, Section 3.2.3: G and B = G mu take the place of the linear statistics, and all else is as in the linear case."""
    K, d = 4, 2
    case = random_case(seed, mixing, root, shared=shared, actions=K, dim=d)
    belief = Belief(case.belief.root, case.belief.leaves, likelihood)
    X, A, r = glm_rows(likelihood, seed, 25, K, d)
    for start in range(0, 25, 5):
        belief.observe(X[start : start + 5], A[start : start + 5], r[start : start + 5])
    G, B = np.zeros((K, d, d)), np.zeros((K, d))
    for a, slot in belief.leaves.catalogue.slot_of.items():
        mine = a == A
        mode, G[a] = likelihood.fit(X[mine], r[mine], belief._modes.rows[slot].copy())
        B[a] = G[a] @ mode
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


@pytest.mark.parametrize("likelihood", [Logistic(), Poisson()])
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


# ---- how good the approximation is ------------------------------------------------------------------------------------


def by_quadrature(likelihood: GLM, X: Array, r: Array, covariance: Array) -> tuple[Array, Array]:
    """Posterior mean and covariance for the prior N(0, covariance), on a grid of eight standard deviations around the mode."""
    d = X.shape[1]
    precision = np.linalg.inv(covariance)
    mode = np.zeros(d)
    for _ in range(200):
        u = X @ mode
        slope = expit(u) * expit(-u) if isinstance(likelihood, Logistic) else np.exp(u)
        hessian = (X * slope[:, None]).T @ X + precision
        mode = mode + 0.5 * np.linalg.solve(hessian, gradient(likelihood, X, r, mode) - precision @ mode)
    lower = np.linalg.cholesky(np.linalg.inv(hessian))
    axis = np.linspace(-8, 8, 41)  # on smooth densities equal steps converge like Gauss's
    grid = mode + np.stack(np.meshgrid(*[axis] * d, indexing="ij"), -1).reshape(-1, d) @ lower.T
    logs = log_likelihood(likelihood, X, r, grid) - 0.5 * np.einsum("nd,de,ne->n", grid, precision, grid)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    mean = weights @ grid
    return mean, (grid - mean).T @ ((grid - mean) * weights[:, None])


def laplace_errors(likelihood: GLM, d: int, n: int, runs: int) -> tuple[Array, Array]:
    """For each of so many data sets: error of the mean in standard deviations, largest relative error of a deviation."""
    means, deviations = np.empty(runs), np.empty(runs)
    for run in range(runs):
        rng = np.random.default_rng([run, n, d])
        X = rng.uniform(-1, 1, (n, d))
        r = rewards(likelihood, X @ rng.standard_normal(d), rng)
        agent = ma.agents.GLMTS(ma.ActionPrior(1, np.zeros(d), np.eye(d)), likelihood)
        agent.observe(X, np.zeros(n, dtype=np.int64), r)
        mean, covariance = agent.posterior(0)
        exact_mean, exact = by_quadrature(likelihood, X, r, np.eye(d))
        lower = np.linalg.cholesky(exact)
        means[run] = np.linalg.norm(np.linalg.solve(lower, mean - exact_mean))
        ratio = np.linalg.eigvalsh(np.linalg.solve(lower, np.linalg.solve(lower, covariance).T))
        deviations[run] = np.abs(np.sqrt(ratio) - 1).max()
    return means, deviations


# likelihood, d, n: measured median and worst error of the mean (in standard deviations), and measured worst relative error
# of a standard deviation, over ten data sets with a standard normal prior
MEASURED = [
    (Logistic(), 1, 100, 0.025, 0.067, 0.022),
    (Logistic(), 1, 1000, 0.012, 0.026, 0.004),
    (Logistic(), 2, 100, 0.051, 0.251, 0.107),
    (Logistic(), 2, 1000, 0.025, 0.040, 0.004),
    (Poisson(), 1, 100, 0.029, 0.042, 0.008),
    (Poisson(), 1, 1000, 0.011, 0.013, 0.001),
    (Poisson(), 2, 100, 0.054, 0.067, 0.011),
    (Poisson(), 2, 1000, 0.019, 0.023, 0.001),
]


@pytest.mark.parametrize(("likelihood", "d", "n", "typical", "worst", "spread"), MEASURED)
def test_the_laplace_posterior_with_many_rows(
    likelihood: GLM, d: int, n: int, typical: float, worst: float, spread: float
) -> None:
    """Against quadrature. The error falls like 1/sqrt(n), as it should where the likelihood turns Gaussian.

    With *few* rows it is poor, and that is the method and not this code: it is the likelihood that is replaced by a
    Gaussian around its own maximum, and as long as all rewards of an action agree (one click, or none in ten) that maximum
    lies far out, at the ridge's mercy, where the likelihood is flat. Such rows then count for almost nothing: the posterior
    stays near the prior. See the next test for how far off that is.
    """
    means, deviations = laplace_errors(likelihood, d, n, 10)
    assert np.median(means) < 1.2 * typical
    assert means.max() < 1.2 * worst
    assert deviations.max() < 1.2 * spread


def test_the_laplace_posterior_with_few_rows_is_poor() -> None:
    """Stated, so that nobody is surprised: with three rows the mean may be off by a standard deviation of the posterior."""
    for d, worst in ((1, 1.2), (2, 2.0)):
        means, deviations = laplace_errors(Logistic(), d, 3, 20)
        assert 0.3 < means.max() < worst
        assert deviations.max() < 0.4


def test_one_click_teaches_almost_nothing() -> None:
    """One row of reward 1: exactly, the mean moves by 0.4 standard deviations; here by less than a thousandth."""
    agent = ma.agents.GLMTS(ma.ActionPrior(1, np.zeros(1), np.eye(1)))
    agent.observe([1.0], 0, 1.0)
    mean, _ = agent.posterior(0)
    exact, _ = by_quadrature(Logistic(), np.ones((1, 1)), np.ones(1), np.eye(1))
    assert 0 < mean[0] < 1e-3
    assert 0.35 < exact[0] < 0.45


def hierarchical_quadrature(
    likelihood: GLM, X: Array, A: Ints, r: Array, K: int, root_variance: float, own_variance: float
) -> tuple[float, float]:
    """Mean and sd of the root for d = 1: p(m | data) is proportional to N(m) prod_a int L_a(theta) N(theta; m, own) dtheta."""
    m = np.linspace(-6, 6, 601)
    theta = np.linspace(-9, 9, 1801)
    logs = -0.5 * m**2 / root_variance
    kernel = np.exp(-0.5 * (theta[None, :] - m[:, None]) ** 2 / own_variance)
    for a in range(K):
        own = log_likelihood(likelihood, X[a == A], r[a == A], theta[:, None])
        logs = logs + np.log(kernel @ np.exp(own - own.max()))
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    mean = float(weights @ m)
    return mean, float(np.sqrt(weights @ (m - mean) ** 2))


@pytest.mark.parametrize(("likelihood", "worst"), [(Logistic(), 0.25), (Poisson(), 0.12)])
def test_the_approximation_carried_up_to_the_root(likelihood: GLM, worst: float) -> None:
    """A hierarchy with d = 1, six actions of eighty rows each: the root's mean and sd against nested quadrature."""
    K, n = 6, 480
    for seed in range(5):
        rng = np.random.default_rng(seed)
        theta = rng.standard_normal() + 0.6 * rng.standard_normal(K)
        X, A = rng.uniform(-1, 1, (n, 1)), np.arange(n) % K
        r = rewards(likelihood, X[:, 0] * theta[A], rng)
        agent = ma.HierTS(ma.HierarchicalPrior(K, np.zeros(1), np.eye(1), 0.36 * np.eye(1)), likelihood)
        agent.observe(X, A, r)
        mean, sd = hierarchical_quadrature(likelihood, X, A, r, K, 1.0, 0.36)
        root = agent.belief.root
        assert abs(root.mean()[0] - mean) < worst * sd
        assert abs(abs(root.factor()[0, 0]) / sd - 1) < 0.06


def test_priors_matter_less_and_less() -> None:
    """Any prior, many rows: the posterior is the likelihood's Gaussian."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (5000, 2))
    r = rewards(Logistic(), X @ np.array([1.0, -2.0]), rng)
    theta, G = Logistic().fit(X, r, np.zeros(2))
    agent = ma.agents.GLMTS(ma.ActionPrior(1, np.array([3.0, 3.0]), covariance_matrix(rng, 2, 4.0)))
    agent.observe(X, np.zeros(5000, dtype=np.int64), r)
    mean, covariance = agent.posterior(0)
    assert_allclose(mean, theta, atol=0.02)
    assert_allclose(covariance, np.linalg.inv(G), rtol=0.02)
