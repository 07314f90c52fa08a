"""Where a likelihood is expanded, and what its Gaussian costs: textbook, brute force and quadrature."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize

import manyarms as ma
from brute_force import MIXINGS, covariance_matrix, random_case
from glm_reference import GLM, by_quadrature, glm_rows, gradient, log_likelihood, rewards
from manyarms._base.typing import Array, Ints
from manyarms.agents.agent import Agent
from manyarms.beliefs import Belief, Logistic, Poisson
from manyarms.beliefs.likelihoods.base import EXPANSIONS, Gaussian

MODES = (Logistic(), Poisson())


def textbook(likelihood: GLM, X: Array, r: Array, mean: Array, covariance: Array) -> tuple[Array, Array]:
    """The mode of the posterior and the inverse of minus its Hessian, by an optimiser and differences not our own."""
    precision = np.linalg.inv(covariance)

    def loss(t: Array) -> float:
        return 0.5 * float((t - mean) @ precision @ (t - mean)) - float(log_likelihood(likelihood, X, r, t))

    def slope(t: Array) -> Array:
        return precision @ (t - mean) - gradient(likelihood, X, r, t)

    mode = minimize(loss, mean, jac=slope, method="BFGS", options={"gtol": 1e-9}).x
    step = 1e-5 * np.eye(len(mean))
    return mode, np.linalg.inv(np.stack([(slope(mode + e) - slope(mode - e)) / 2e-5 for e in step]))


@pytest.mark.parametrize("likelihood", (*MODES, Logistic(expansion="cavity")))
def test_independent_actions_have_the_textbooks_laplace_posterior(likelihood: GLM) -> None:
    for seed, n in ((0, 1), (1, 3), (2, 10), (3, 60)):
        rng = np.random.default_rng(seed)
        mean, covariance = rng.standard_normal(3), covariance_matrix(rng, 3)
        X, A, r = glm_rows(likelihood, seed, 2 * n, 2, 3)
        agent = ma.agents.GLMTS(ma.ActionPrior(2, mean, covariance), likelihood)
        agent.observe(X, A, r)
        for a in (0, 1):
            mode, spread = textbook(likelihood, X[a == A], r[a == A], mean, covariance)
            have_mean, have = agent.posterior(a)
            assert_allclose(have_mean, mode, rtol=0, atol=1e-5)
            assert_allclose(have, spread, rtol=1e-4, atol=1e-5)


@given(
    seed=st.integers(0, 10**6),
    mixing=st.sampled_from(MIXINGS),
    shared=st.booleans(),
    likelihood=st.sampled_from((Logistic(expansion="cavity"), Poisson(expansion="cavity"))),
)
def test_a_cavity_is_the_belief_without_the_actions_own_evidence(
    seed: int, mixing: str, shared: bool, likelihood: GLM
) -> None:
    """Against the joint Gaussian of everything, times the Gaussians of all other actions. Nothing is counted twice."""
    K, d = 4, 2
    case = random_case(seed, mixing, "gaussian", shared=shared, actions=K, dim=d)
    belief = Belief(case.belief.root, case.belief.leaves, likelihood)
    X, A, r = glm_rows(likelihood, seed, 30, K, d)
    for x, a, y in zip(X, A.tolist(), r.tolist(), strict=True):
        belief.observe(x[None], np.array([a]), np.array([y]))
    leaves = belief.leaves
    G, B = np.zeros((K, d, d)), np.zeros((K, d))
    ids = leaves.catalogue.played.rows
    G[ids], B[ids] = leaves.packing.unpack(leaves.G.rows), leaves.B.rows
    for slot, (a, around) in enumerate(zip(ids.tolist(), belief._around(np.arange(len(ids))), strict=True)):
        assert around is not None
        others = np.arange(K) != a
        joint = case.joint.given_gaussians(G * others[:, None, None], B * others[:, None])
        mean, covariance = joint.action(a)
        scale = np.sqrt(np.diag(covariance)).max()
        assert_allclose(around.mean, mean, rtol=0, atol=1e-6 * max(1.0, scale))
        assert_allclose(np.linalg.inv(around.precision), covariance, rtol=0, atol=1e-6 * scale**2)
        if a == A[-1]:  # the last to be fitted: its expansion is the one at the mode under this cavity
            mine = a == A
            found = likelihood.fit(X[mine], r[mine], belief._modes.rows[slot].copy(), Gaussian(*around))
            assert_allclose(found.G, G[a], rtol=0, atol=1e-4 * (1 + np.abs(G[a]).max()))


# ---- every kind of belief ---------------------------------------------------------------------------------------------


def chain(shared: bool, linear: bool) -> ma.DiffusionPrior:
    W = np.random.default_rng(6).standard_normal((2, 2, 2))
    links: list[object] = [*W] if linear else [lambda z: np.tanh(z @ W[0]), lambda z: np.tanh(z @ W[1])]
    return ma.DiffusionPrior(6, 2, links, [0.5, 1.0, 1.0], shared)  # type: ignore[arg-type]


def mixed() -> ma.MixedEffectPrior:
    rng = np.random.default_rng(7)
    return ma.MixedEffectPrior(rng.uniform(-1, 1, (6, 2)), rng.standard_normal((2, 2)), 2 * np.eye(4), np.eye(2))


BELIEFS: dict[str, Callable[[GLM], Agent]] = {
    "independent": lambda p: ma.agents.GLMTS(mixed(), p, seed=1),
    "mixed": lambda p: ma.meTS(mixed(), p, seed=1),
    "mean-field": lambda p: ma.meTS(mixed(), p, factored=True, seed=1),
    "blockwise": lambda p: ma.meTS(mixed(), p, factored="blockwise", seed=1),
    "one chain, linear": lambda p: ma.dTS(chain(True, True), p, seed=1),
    "one chain": lambda p: ma.dTS(chain(True, False), p, seed=1),
    "own chains, linear": lambda p: ma.dTS(chain(False, True), p, seed=1),
    "own chains": lambda p: ma.dTS(chain(False, False), p, seed=1),
}


@pytest.mark.parametrize("likelihood", MODES)
@pytest.mark.parametrize("name", BELIEFS)
def test_what_stands_for_a_likelihood_does_not_depend_on_the_order(name: str, likelihood: GLM) -> None:
    """One by one, as one batch, shuffled in parts: the same G and B of every action, to the solver's tolerance."""
    X, A, r = glm_rows(likelihood, 5, 60, 6, 2)
    order = np.random.default_rng(0).permutation(60)
    agents = [BELIEFS[name](likelihood) for _ in range(4)]
    for x, a, y in zip(X, A.tolist(), r.tolist(), strict=True):
        agents[0].observe(x, a, y)
    agents[1].observe(X, A, r)
    for part in np.array_split(order, 7):
        agents[2].observe(X[part], A[part], r[part])
    agents[3].belief.fold((X[part], A[part], r[part]) for part in np.array_split(order, 3))

    def gaussians(agent: Agent) -> tuple[Array, Array]:
        by_id = np.argsort(agent.belief.leaves.catalogue.played.rows)
        return agent.belief.leaves.G.rows[by_id], agent.belief.leaves.B.rows[by_id]

    G, B = gaussians(agents[0])
    for agent in agents[1:]:
        other_G, other_B = gaussians(agent)
        assert_allclose(other_G, G, rtol=0, atol=1e-4 * np.abs(G).max())
        assert_allclose(other_B, B, rtol=0, atol=1e-4 * np.abs(B).max())


@pytest.mark.parametrize("expansion", EXPANSIONS)
@pytest.mark.parametrize("name", [name for name in BELIEFS if "linear" in name or "chain" not in name])
def test_saved_beliefs_learn_on_to_the_last_bit(name: str, expansion: str, tmp_path: Path) -> None:
    """The prior of the root is kept: an action that is first played after loading is expanded around the same."""
    likelihood = Logistic(expansion=expansion)
    agent = BELIEFS[name](likelihood)
    X, A, r = glm_rows(likelihood, 5, 40, 6, 2)
    early = A < 3
    agent.observe(X[early], A[early], r[early])
    agent.save(tmp_path)
    twin = ma.load(tmp_path)
    assert twin.belief.likelihood == likelihood
    for one in (agent, twin):
        one.observe(X[~early], A[~early], r[~early])
    for ours, theirs in zip(agent.belief.arrays().values(), twin.belief.arrays().values(), strict=True):
        assert np.array_equal(ours, theirs)
    assert agent.decide(X[0]) == twin.decide(X[0])


def test_the_one_parameter_of_a_joint_belief_has_the_textbooks_posterior_too() -> None:
    rng = np.random.default_rng(2)
    phi, A = rng.standard_normal((30, 5, 3)), rng.integers(5, size=30)
    rows = phi[np.arange(30), A]
    r = rewards(Logistic(), rows @ np.array([1.0, -1.0, 0.5]), rng)
    prior = ma.HierarchicalPrior(1, np.zeros(3), np.eye(3), 0.5 * np.eye(3))
    joint, alone = ma.agents.jointTS(prior, 5, Logistic()), ma.agents.GLMTS(prior, Logistic())
    joint.observe(phi, A, r)
    alone.observe(rows, np.zeros(30, dtype=np.int64), r)
    for ours, theirs in zip(joint.posterior(0), alone.posterior(0), strict=True):
        assert_allclose(ours, theirs, rtol=0, atol=1e-6)


def test_own_chains_with_linear_links_are_independent_actions() -> None:
    """A Gaussian chain of its own is no more than a prior: up to the moments' Monte Carlo, GLM-TS with the marginal."""
    X, A, r = glm_rows(Logistic(), 5, 60, 6, 2)
    own, alone = ma.dTS(chain(False, True), Logistic()), ma.agents.GLMTS(chain(False, True), Logistic())
    for agent in (own, alone):
        agent.observe(X, A, r)
    assert_allclose(own.belief.leaves.G.rows, alone.belief.leaves.G.rows, rtol=0, atol=1e-6)
    assert_allclose(own.belief.leaves.B.rows, alone.belief.leaves.B.rows, rtol=0, atol=1e-6)


# ---- how good the approximation is ------------------------------------------------------------------------------------


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


# likelihood, d, n: median and worst error of the mean (in standard deviations), and worst relative error of a standard
# deviation, over ten or twenty data sets with a standard normal prior, as measured
MEASURED = [
    (Logistic(), 1, 3, 0.005, 0.026, 0.017),
    (Logistic(), 1, 100, 0.024, 0.063, 0.008),
    (Logistic(), 2, 1, 0.008, 0.027, 0.023),
    (Logistic(), 2, 10, 0.040, 0.107, 0.031),
    (Logistic(), 2, 1000, 0.029, 0.049, 0.002),
    (Poisson(), 1, 3, 0.095, 0.147, 0.040),
    (Poisson(), 2, 10, 0.147, 0.199, 0.039),
    (Poisson(), 2, 1000, 0.019, 0.023, 0.001),
    (Logistic(expansion="mle"), 1, 1000, 0.010, 0.064, 0.027),
    (Logistic(expansion="mle"), 2, 1000, 0.029, 0.055, 0.014),
    (Poisson(expansion="mle"), 2, 1000, 0.019, 0.023, 0.001),
]


@pytest.mark.parametrize(("likelihood", "d", "n", "typical", "worst", "spread"), MEASURED)
def test_the_posterior_of_one_action(
    likelihood: GLM, d: int, n: int, typical: float, worst: float, spread: float
) -> None:
    """Against quadrature. At the mode few rows are no harder than many; at the maximum only many will do."""
    means, deviations = laplace_errors(likelihood, d, n, 20 if n < 1000 else 10)
    assert np.median(means) < 2 * typical
    assert means.max() < 2 * worst
    assert deviations.max() < 2 * spread


def test_the_thesis_rule_with_few_rows_is_poor() -> None:
    """As long as all rewards of an action agree, the likelihood's maximum lies where it is flat: the rows count for nothing."""
    for d in (1, 2):
        means, deviations = laplace_errors(Logistic(expansion="mle"), d, 3, 20)
        assert 0.3 < means.max() < 2.0
        assert deviations.max() < 0.5


@pytest.mark.parametrize(("expansion", "low", "high"), [("mode", 0.35, 0.45), ("mle", 0.0, 1e-3)])
def test_what_one_click_teaches(expansion: str, low: float, high: float) -> None:
    """One row of reward 1: exactly, the mean moves by 0.4; by the thesis's rule, by less than a thousandth."""
    agent = ma.agents.GLMTS(ma.ActionPrior(1, np.zeros(1), np.eye(1)), Logistic(expansion=expansion))
    agent.observe([1.0], 0, 1.0)
    exact, _ = by_quadrature(Logistic(), np.ones((1, 1)), np.ones(1), np.eye(1))
    assert low < agent.posterior(0)[0][0] < high
    assert 0.35 < exact[0] < 0.45


def hierarchical_quadrature(
    likelihood: GLM, X: Array, A: Ints, r: Array, K: int, root_variance: float, own_variance: float
) -> tuple[float, float]:
    """Mean and sd of the root for d = 1: p(m | data) is proportional to N(m) prod_a int L_a(theta) N(theta; m, own) dtheta."""
    m = np.linspace(-10, 10, 601)
    theta = np.linspace(-14, 14, 1801)
    logs = -0.5 * m**2 / root_variance
    kernel = np.exp(-0.5 * (theta[None, :] - m[:, None]) ** 2 / own_variance)
    for a in range(K):
        own = log_likelihood(likelihood, X[a == A], r[a == A], theta[:, None])
        logs = logs + np.log(kernel @ np.exp(own - own.max()))
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    mean = float(weights @ m)
    return mean, float(np.sqrt(weights @ (m - mean) ** 2))


def root_errors(likelihood: GLM, rows: int, runs: int) -> tuple[float, float]:
    """A hierarchy with d = 1, six actions of so many rows, observed one by one: mean errors of the root's mean and sd."""
    K, errors = 6, []
    for seed in range(runs):
        rng = np.random.default_rng([seed, rows])
        theta = 2.0 * rng.standard_normal() + 0.5 * rng.standard_normal(K)
        X, A = rng.uniform(-1, 1, (rows * K, 1)), rng.permutation(rows * K) % K
        r = rewards(likelihood, X[:, 0] * theta[A], rng)
        agent = ma.HierTS(ma.HierarchicalPrior(K, np.zeros(1), 4 * np.eye(1), 0.25 * np.eye(1)), likelihood)
        for x, a, y in zip(X, A.tolist(), r.tolist(), strict=True):
            agent.observe(x, a, y)
        mean, sd = hierarchical_quadrature(likelihood, X, A, r, K, 4.0, 0.25)
        root = agent.belief.root
        errors.append((abs(root.mean()[0] - mean) / sd, abs(abs(root.factor()[0, 0]) / sd - 1)))
    return tuple(np.mean(errors, axis=0).tolist())  # type: ignore[return-value]


@pytest.mark.parametrize("likelihood", [Logistic, Poisson])
def test_the_approximation_carried_up_to_the_root(likelihood: type[GLM]) -> None:
    """Nested quadrature, three rows an action: the mode is better than the maximum, the cavity better than the mode."""
    errors = {rule: root_errors(likelihood(expansion=rule), 3, 10) for rule in EXPANSIONS}
    assert errors["cavity"][0] < errors["mode"][0] < errors["mle"][0]
    assert errors["mode"][0] < 0.4 and errors["mode"][1] < 0.2
    assert errors["cavity"][0] < 0.3 and errors["cavity"][1] < 0.1


@pytest.mark.parametrize("expansion", EXPANSIONS)
def test_priors_matter_less_and_less(expansion: str) -> None:
    """Any prior, many rows: the posterior is the Gaussian around the maximum of the likelihood."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (5000, 2))
    r = rewards(Logistic(), X @ np.array([1.0, -2.0]), rng)
    theta, G, _ = Logistic(expansion="mle").fit(X, r, np.zeros(2))
    prior = ma.ActionPrior(1, np.array([3.0, 3.0]), covariance_matrix(rng, 2, 4.0))
    agent = ma.agents.GLMTS(prior, Logistic(expansion=expansion))
    agent.observe(X, np.zeros(5000, dtype=np.int64), r)
    mean, covariance = agent.posterior(0)
    assert_allclose(mean, theta, atol=0.02)
    assert_allclose(covariance, np.linalg.inv(G), rtol=0.02)
