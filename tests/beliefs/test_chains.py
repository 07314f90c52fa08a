"""Diffusion chains against brute force: the joint Gaussian over all latents and all actions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import log_ndtr

import manyarms as ma
from manyarms import checks
from manyarms.beliefs.messages import Chain
from manyarms.errors import InvalidInput

Arrays = tuple[np.ndarray, ...]


def random_chain(
    rng: np.random.Generator, *, K: int = 5, d: int = 3, L: int = 3, linear: bool = True, shared: bool = True
) -> ma.DiffusionPrior:
    links = [
        rng.uniform(-1, 1, (d, d)) if linear else ma.priors.NetworkLink.random(d, 8, rng, scaled=True) for _ in range(L)
    ]
    spread = []
    for kind in rng.integers(3, size=L + 1):
        if kind == 0:
            spread.append(rng.uniform(0.3, 2))
        elif kind == 1:
            spread.append(rng.uniform(0.3, 2, d))
        else:
            A = rng.standard_normal((d, d))
            spread.append(A @ A.T / d + 0.3 * np.eye(d))
    return ma.DiffusionPrior(K, d, links, spread, shared)


def joint_posterior(prior: ma.DiffusionPrior, X: np.ndarray, A: np.ndarray, R: np.ndarray, noise: float) -> Arrays:
    """Mean and covariance of (psi_L, ..., psi_1, theta_1, ..., theta_K) given the rows, for linear links."""
    d, L, K = prior.dim, prior.depth, prior.actions
    size = (L + K) * d
    # each variable is a linear map of independent noises: psi_l = W_(l+1) psi_(l+1) + e_l
    maps = np.zeros((size, size))
    spread = np.zeros((size, size))
    for place, level in enumerate(range(L, 0, -1)):
        here = slice(place * d, (place + 1) * d)
        if place:
            maps[here] = prior.matrices[level] @ maps[(place - 1) * d : place * d]
        maps[here, here] += np.eye(d)
        spread[here, here] = prior.covariances[level]
    for a in range(K):
        here = slice((L + a) * d, (L + a + 1) * d)
        maps[here] = prior.matrices[0] @ maps[(L - 1) * d : L * d]
        maps[here, here] += np.eye(d)
        spread[here, here] = prior.covariances[0]
    covariance = maps @ spread @ maps.T
    H = np.zeros((len(X), size))
    for i, (x, a) in enumerate(zip(X, A, strict=True)):
        H[i, (L + a) * d : (L + a + 1) * d] = x
    gain = np.linalg.solve(H @ covariance @ H.T + noise**2 * np.eye(len(X)), H @ covariance).T
    return gain @ R, covariance - gain @ H @ covariance


@given(seed=st.integers(0, 10_000), L=st.integers(1, 4), rows=st.integers(0, 25))
def test_linear_chains_equal_joint_conditioning(seed: int, L: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    prior = random_chain(rng, L=L)
    d, K = prior.dim, prior.actions
    X, A, R = rng.uniform(-1, 1, (rows, d)), rng.integers(K, size=rows), rng.standard_normal(rows)
    mean, covariance = joint_posterior(prior, X, A, R, 0.6)
    belief, moments = (ma.beliefs.belief_of(prior, ma.Linear(0.6), approximation=r) for r in ("thesis", "moments"))
    for x, a, r in zip(X, A, R, strict=True):
        for each in (belief, moments):
            each.observe(x[None], np.array([a]), np.array([r]))
    # the recursion: conditionals psi_l | psi_(l+1) put together again give every latent's posterior
    chain = belief.root.chain
    layers = chain.up(belief.root._precision[None], belief.root._information[None])
    now_mean, now_cov = layers.offset[0, L - 1], layers.factor[0, L - 1] @ layers.factor[0, L - 1].T
    scale = np.abs(covariance).max()
    for level in range(L, 0, -1):
        here = slice((L - level) * d, (L - level + 1) * d)
        if level < L:
            step = layers.towards[0, level - 1] @ prior.matrices[level]
            now_mean = step @ now_mean + layers.offset[0, level - 1]
            now_cov = step @ now_cov @ step.T + layers.factor[0, level - 1] @ layers.factor[0, level - 1].T
        np.testing.assert_allclose(now_mean, mean[here], atol=1e-8 * max(1, np.abs(mean).max()))
        np.testing.assert_allclose(now_cov, covariance[here, here], atol=1e-8 * scale)
    for each in (belief, moments):
        ours, spread = each.action_posterior(np.arange(K))
        for a in range(K):
            here = slice((L + a) * d, (L + a + 1) * d)
            np.testing.assert_allclose(ours[a], mean[here], atol=1e-8 * max(1, np.abs(mean).max()))
            np.testing.assert_allclose(spread[a], covariance[here, here], atol=1e-8 * scale)


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_two_level_marginalisation(keep: int) -> None:
    """HierTS-2 (keep = 1) has the chain's own marginals and correlations; HierTS-1 (keep = L) the marginals only."""
    prior = random_chain(np.random.default_rng(3))
    two = prior.two_level(keep)
    spread = two.matrix @ two.covariance @ two.matrix.T
    np.testing.assert_allclose(spread + two.action_covariance, prior.marginal().covariance, rtol=1e-10)
    checks.check_belief(lambda: ma.beliefs.belief_of(two, ma.Linear(0.5)))
    if keep == 1:
        rng = np.random.default_rng(0)
        X, A, R = rng.uniform(-1, 1, (12, 3)), rng.integers(5, size=12), rng.standard_normal(12)
        a, b = ma.beliefs.belief_of(prior, ma.Linear()), ma.beliefs.belief_of(two, ma.Linear())
        a.observe(X, A, R)
        b.observe(X, A, R)
        for ours, theirs in zip(a.action_posterior(np.arange(5)), b.action_posterior(np.arange(5)), strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-9)


@pytest.mark.parametrize("rule", ["thesis", "jacobian"])
def test_no_data_gives_back_the_prior_for_any_links(rule: str) -> None:
    prior = random_chain(np.random.default_rng(5), linear=False)
    chain = Chain(prior, rule)
    layers = chain.up(np.zeros((1, 3, 3)), np.zeros((1, 3)))
    np.testing.assert_allclose(layers.towards[0], np.broadcast_to(np.eye(3), (3, 3, 3)), atol=1e-12)
    assert not layers.offset.any()
    np.testing.assert_allclose(
        layers.factor[0] @ np.swapaxes(layers.factor[0], 1, 2), prior.covariances[1:], atol=1e-12
    )


def test_the_jacobian_rule_is_exact_for_linear_links_in_disguise() -> None:
    """Links that are linear but not known to be: the jacobian rule agrees with the exact path, the thesis's does not."""
    rng = np.random.default_rng(8)
    exact = random_chain(rng)
    assert exact.matrices is not None
    hidden = [ma.priors.FunctionLink(lambda z, W=W: z @ W.T) for W in exact.matrices]
    for link in hidden:  # as_link would find out; a chain built from FunctionLinks by hand must not
        assert isinstance(ma.DiffusionPrior(2, 3, [link], [1.0, 1.0]).links[0], ma.priors.LinearLink)
    disguised = ma.DiffusionPrior(5, 3, exact.matrices, list(exact.covariances))
    object.__setattr__(disguised, "links", tuple(hidden))
    G, B = np.diag([3.0, 1.0, 0.5])[None], rng.standard_normal((1, 3))
    wanted = Chain(exact).up(G, B)
    found = Chain(disguised, "jacobian").up(G, B)
    for name in ("towards", "offset"):
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), atol=1e-7)
    assert np.abs(Chain(disguised, "thesis").up(G, B).offset - wanted.offset).max() > 0.05


def test_linear_functions_take_the_exact_path() -> None:
    W = np.random.default_rng(0).standard_normal((3, 3))
    assert ma.DiffusionPrior(4, 3, [lambda z: z @ W.T, W], [1.0, 1.0, 1.0]).matrices is not None
    bent = [lambda z: np.maximum(z, 0), lambda z: z + 1.0, lambda z: z + 1e-4 * z**3, np.tanh]
    for function in bent:
        assert ma.DiffusionPrior(4, 3, [function], [1.0, 1.0]).matrices is None


@pytest.mark.parametrize("shared", [True, False])
def test_much_data_goes_to_the_least_squares_estimate(shared: bool) -> None:
    rng = np.random.default_rng(2)
    prior = random_chain(rng, linear=False, shared=shared)
    belief = ma.beliefs.belief_of(prior, ma.Linear(0.5))
    theta = np.array([1.0, -2.0, 0.5])
    X = rng.uniform(-1, 1, (20_000, 3))
    R = X @ theta + 0.5 * rng.standard_normal(20_000)
    belief.observe(X, np.full(20_000, 2), R)
    mean, covariance = belief.action_posterior(np.array([2]))
    fit = np.linalg.lstsq(X, R, rcond=None)[0]
    np.testing.assert_allclose(mean[0], fit, atol=2e-3)
    np.testing.assert_allclose(covariance[0], 0.25 * np.linalg.inv(X.T @ X), rtol=0.05, atol=1e-6)


def test_own_chains_with_linear_links_are_independent_gaussians() -> None:
    """One linear chain per action is LinTS with the chain's marginal: posterior moments and decisions agree."""
    rng = np.random.default_rng(4)
    prior = random_chain(rng, K=6, shared=False)
    rows = rng.uniform(-1, 1, (15, 3)), rng.integers(4, size=15), rng.standard_normal(15)
    ours, theirs = ma.dTS(prior, seed=0), ma.LinTS(prior, seed=1)
    ours.observe(*rows)
    theirs.observe(*rows)
    for a in range(6):
        (m, S), (mean, covariance) = ours.posterior(a), theirs.posterior(a)
        assert (np.abs(m - mean) < 5 * np.sqrt(np.diag(covariance) / 4096)).all()
        np.testing.assert_allclose(S, covariance, atol=0.15 * np.abs(covariance).max())
    X = np.tile(rng.uniform(-1, 1, 3), (6000, 1))
    table = np.stack([np.bincount(agent.decide(X), minlength=6) for agent in (ours, theirs)])
    assert stats.chi2_contingency(table + 1).pvalue > 1e-6


def best_unplayed(belief: ma.beliefs.Belief, x: np.ndarray, rng: np.random.Generator, times: int) -> np.ndarray:
    offer = belief.catalogue.offer()
    draws = belief.root.draw(rng, times)
    return np.array([belief.best_unplayed(x, m, offer, -np.inf, 1, rng)[0][0] for m in draws])


def test_the_best_of_many_unplayed_own_chains_has_the_law_of_the_prior() -> None:
    """20,000 actions and a small Sigma_1: the tail that only fresh draws of the chain have.

    A bank of 8,192 draws once stood in for them: the largest score then lies at the top of the bank (p = 8e-16).
    """
    rng = np.random.default_rng(6)
    links = [ma.priors.NetworkLink.random(2, 8, rng, scaled=True) for _ in range(2)]
    prior = ma.DiffusionPrior(20_000, 2, links, [1e-4, 1.0, 1.0], shared=False)
    x = np.array([0.8, -0.6])
    ours = best_unplayed(ma.beliefs.belief_of(prior, ma.Linear(), approximation="thesis"), x, rng, 150)
    fresh = np.random.default_rng(7)
    sd = np.sqrt(x @ prior.covariances[0] @ x)
    wanted = [(prior.draw_centres(fresh, 20_000) @ x + sd * fresh.standard_normal(20_000)).max() for _ in range(150)]
    assert stats.ks_2samp(ours, wanted).pvalue > 1e-6
    bank = prior.draw_centres(np.random.default_rng(0), 8_192) @ x
    banked = [(bank[fresh.integers(8_192, size=20_000)] + sd * fresh.standard_normal(20_000)).max() for _ in range(150)]
    assert stats.ks_2samp(banked, wanted).pvalue < 1e-9  # the test would catch it


@pytest.mark.parametrize("actions", [20_000, 10**9])
def test_the_best_of_many_unplayed_linear_chains_is_one_order_statistic(actions: int) -> None:
    """With linear links x^T theta ~ N(0, s^2) whatever the chain: P(largest <= t) = Phi(t / s)^K."""
    rng = np.random.default_rng(8)
    prior = random_chain(rng, K=5, shared=False).with_actions(actions)
    x = rng.uniform(-1, 1, 3)
    draws = best_unplayed(ma.dTS(prior).belief, x, rng, 1_000)
    s = np.sqrt(x @ prior.marginal().covariance @ x)
    assert stats.kstest(np.exp(actions * log_ndtr(draws / s)), "uniform").pvalue > 1e-6


def test_joint_belief_is_one_linear_regression() -> None:
    """A shared parameter with a Gaussian prior: posterior in closed form, dependent scores, filters, saving."""
    rng = np.random.default_rng(7)
    prior = ma.ActionPrior(1, rng.standard_normal(4), 2 * np.eye(4))
    agent = ma.agents.jointTS(prior, 6, ma.Linear(0.5), seed=0)
    X, A, R = rng.standard_normal((20, 6, 4)), rng.integers(6, size=20), rng.standard_normal(20)
    agent.observe(X[:1], A[:1], R[:1])
    agent.observe(X[1:], A[1:], R[1:])
    phi = X[np.arange(20), A]
    precision = np.eye(4) / 2 + phi.T @ phi / 0.25
    mean, covariance = agent.posterior(3)
    np.testing.assert_allclose(covariance, np.linalg.inv(precision), atol=1e-10)
    np.testing.assert_allclose(mean, np.linalg.solve(precision, prior.mean / 2 + phi.T @ R / 0.25), atol=1e-10)
    x = rng.standard_normal((6, 4))
    theta = mean + rng.standard_normal((20_000, 4)) @ np.linalg.cholesky(covariance).T
    wanted = np.bincount((theta @ x.T).argmax(axis=1), minlength=6)
    found = np.bincount(agent.decide(np.tile(x, (20_000, 1, 1))), minlength=6)
    keep = wanted + found > 20
    assert stats.chi2_contingency(np.stack([wanted, found])[:, keep]).pvalue > 1e-6
    assert set(agent.decide(x, candidates=[1, 4], k=2).tolist()) == {1, 4}
    # a context is a matrix here, and so is each of its copies
    likely = [agent.propensity(x, a, draws=4_000) for a in range(6)]
    for found_of_a, count in zip(likely, wanted, strict=True):
        error = np.hypot(found_of_a.standard_error, np.sqrt(0.25 / 20_000)) + 1 / 4_000
        assert abs(found_of_a.value - count / 20_000) < 6 * error


def test_joint_diffusion_agents_satisfy_what_agents_must(tmp_path: object) -> None:
    rng = np.random.default_rng(1)
    prior = random_chain(rng, K=1, linear=False)
    agent = ma.agents.jointTS(prior, 5, ma.Logistic(), seed=3)
    X, A = rng.standard_normal((30, 5, 3)), rng.integers(5, size=30)
    agent.observe(X, A, rng.integers(2, size=30).astype(float))
    agent.retire([2])
    agent.save(str(tmp_path))
    loaded = ma.load(str(tmp_path))
    for x in X[:8]:
        assert agent.decide(x, k=3).tolist() == loaded.decide(x, k=3).tolist()
    mapped = ma.agents.jointTS(prior, 5, feature_map=lambda z: np.outer(np.arange(5), z), context_shape=(3,), seed=0)
    assert 0 <= mapped.decide(np.ones(3)) < 5
    with pytest.raises(InvalidInput, match="cannot be saved"):
        mapped.save(str(tmp_path))


BAD = [
    ("no links", lambda: ma.DiffusionPrior(3, 2, [], [1.0]), "links"),
    ("too few covariances", lambda: ma.DiffusionPrior(3, 2, [np.eye(2)], [1.0]), "covariances"),
    ("layers that do not chain", lambda: ma.DiffusionPrior(3, 2, [np.eye(3)], [1.0, 1.0]), "links"),
    ("a link that returns NaN", lambda: ma.DiffusionPrior(3, 2, [lambda z: z * np.nan], [1.0, 1.0]), "NaN"),
    ("a link of the wrong shape", lambda: ma.DiffusionPrior(3, 2, [lambda z: z[:, :1]], [1.0, 1.0]), "shape"),
    ("a covariance that is not positive", lambda: ma.DiffusionPrior(3, 2, [np.eye(2)], [1.0, -1.0]), "covariances"),
    ("a matrix that is not definite", lambda: ma.DiffusionPrior(3, 2, [np.eye(2)], [1.0, np.ones((2, 2))]), "definite"),
    ("an unknown rule", lambda: ma.dTS(random_chain(np.random.default_rng(0)), approximation="other"), "approximation"),
    ("not a diffusion", lambda: ma.dTS(ma.ActionPrior(3, np.zeros(2), np.eye(2))), "DiffusionPrior"),
    (
        "marginalising links that are not linear",
        lambda: random_chain(np.random.default_rng(0), linear=False).two_level(1),
        "linear",
    ),
]


@pytest.mark.parametrize(("make", "says"), [(m, s) for _, m, s in BAD], ids=[n for n, _, _ in BAD])
def test_bad_input(make: object, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        make()  # type: ignore[operator]
