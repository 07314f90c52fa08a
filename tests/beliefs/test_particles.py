"""Posteriors by particles against brute force: the mixture of Gaussians that the particles and Sigma_1 are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

import manyarms as ma
from manyarms import checks
from manyarms.beliefs import IdentityMixing, Leaves, MixingWeights, ParticleBelief, belief_of
from manyarms.beliefs.particles import joined, largest_of_mixture
from manyarms.errors import InvalidInput

D, K, NOISE = 2, 6, 0.6
Arrays = tuple[np.ndarray, ...]


def roll(actions: int = K, particles: int = 300, likelihood: ma.beliefs.Likelihood | None = None) -> ParticleBelief:
    """Actions near a Swiss roll: a cloud that is no Gaussian."""
    covariance = np.array([[0.05, 0.01], [0.01, 0.03]])
    centres = ma.worlds.SwissRoll(1).sample(particles, 3)
    return ParticleBelief(centres, Leaves(IdentityMixing(), covariance, actions), likelihood or ma.Linear(NOISE))


def rows_of(seed: int, n: int) -> Arrays:
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (n, D)), rng.integers(K - 2, size=n), rng.standard_normal(n)


def brute_force(belief: ParticleBelief, X: np.ndarray, r: np.ndarray) -> Arrays:
    """Weights (N,), means (N, d) and the covariance of theta given rows, by conditioning each component on all rows at once."""
    C, prior = belief.centres, belief.leaves.covariance
    if not len(X):
        return np.full(len(C), 1 / len(C)), C, prior
    V = X @ prior @ X.T + NOISE**2 * np.eye(len(X))
    gaps = r - C @ X.T
    logs = -np.einsum("nr,nr->n", gaps, np.linalg.solve(V, gaps.T).T) / 2
    weights = np.exp(logs - logs.max())
    gain = np.linalg.solve(V, X @ prior).T
    return weights / weights.sum(), C + gaps @ gain.T, prior - gain @ X @ prior


@pytest.mark.parametrize("one_by_one", [True, False])
def test_the_posterior_is_that_of_the_mixture(one_by_one: bool) -> None:
    belief, (X, A, R) = roll(), rows_of(0, 30)
    for some in [[i] for i in range(30)] if one_by_one else [slice(None)]:
        belief.observe(X[some], A[some], R[some])
    mean, covariance = belief.action_posterior(np.arange(K))
    x = np.array([0.7, -0.4])
    offer = belief.catalogue.offer()
    scores, variances = belief.played_moments(x[None], offer, spread=True)
    for a in range(K):
        w, m, S = brute_force(belief, X[a == A], R[a == A])
        wanted = w @ m
        spread = S + (w[:, None] * (m - wanted)).T @ (m - wanted)
        np.testing.assert_allclose(mean[a], wanted, atol=1e-10)
        np.testing.assert_allclose(covariance[a], spread, atol=1e-10)
        if a in belief.catalogue.slot_of:
            slot = belief.catalogue.slot_of[a]
            assert scores[0, slot] == pytest.approx(x @ wanted, abs=1e-10)
            assert variances[0, slot] == pytest.approx(x @ spread @ x, abs=1e-10)
        else:
            for found, expected in zip(
                belief.unplayed_moments(x, offer, spread=True), (x @ wanted, x @ spread @ x), strict=True
            ):
                np.testing.assert_allclose(found, expected, atol=1e-10)


def test_draws_have_the_law_of_the_mixture() -> None:
    belief, (X, A, R) = roll(), rows_of(1, 12)
    belief.observe(X, A, R)
    x = np.array([0.9, 0.5])
    rng = np.random.default_rng(2)
    scores, _ = belief.draw_scores(np.tile(x, (4_000, 1)), belief.catalogue.offer(), rng)
    for a, slot in belief.catalogue.slot_of.items():
        w, m, S = brute_force(belief, X[a == A], R[a == A])

        def cdf(
            t: np.ndarray, w: np.ndarray = w, means: np.ndarray = m @ x, sd: float = float(np.sqrt(x @ S @ x))
        ) -> np.ndarray:
            return np.array([w @ ndtr((v - means) / sd) for v in np.atleast_1d(t)])

        assert stats.kstest(scores[:, slot], cdf).pvalue > 1e-6
    correlations = np.corrcoef(scores.T)[np.triu_indices(scores.shape[1], 1)]
    assert np.abs(correlations).max() < 6 / np.sqrt(4_000)  # actions are independent


def test_decisions_have_the_law_of_the_textbook() -> None:
    """Drawing theta for every action, played or not, from its mixture and taking the best."""
    belief, (X, A, R) = roll(), rows_of(3, 12)
    agent = ma.Agent(belief, ma.Thompson(), 0)
    agent.observe(X, A, R)
    x, n, rng = np.array([0.9, 0.5]), 4_000, np.random.default_rng(4)
    scores = np.empty((n, K))
    for a in range(K):
        w, m, S = brute_force(belief, X[a == A], R[a == A])
        theta = m[rng.choice(len(w), size=n, p=w)] + rng.standard_normal((n, D)) @ np.linalg.cholesky(S).T
        scores[:, a] = theta @ x
    wanted = np.bincount(scores.argmax(axis=1), minlength=K)
    found = np.bincount(agent.decide(np.tile(x, (n, 1))), minlength=K)
    assert stats.chi2_contingency(np.stack([wanted, found]) + 1).pvalue > 1e-6


def test_many_particles_of_a_gaussian_are_LinTS() -> None:
    """Draws of N(0, C) blurred by Sigma_1 tend to N(0, C + Sigma_1): 40,000 of them, by six standard errors."""
    rng = np.random.default_rng(5)
    blur, n = 0.5, 40_000
    belief = ParticleBelief(
        rng.standard_normal((n, D)), Leaves(IdentityMixing(), blur * np.eye(D), K), ma.Linear(NOISE)
    )
    lints = belief_of(ma.ActionPrior(K, np.zeros(D), (1 + blur) * np.eye(D)), ma.Linear(NOISE))
    X, A, R = rows_of(6, 10)
    for each in (belief, lints):
        each.observe(X, A, R)
    (m, S), (mean, covariance) = (each.action_posterior(np.arange(K)) for each in (belief, lints))
    few = n / 20  # effective draws, by far, after some three rows an action
    assert np.abs(m - mean).max() < 6 * np.sqrt((1 + blur) / few)
    assert np.abs(S - covariance).max() < 6 * (1 + blur) * np.sqrt(2 / few)


@pytest.mark.parametrize("actions", [400, 10**6])
def test_the_best_unplayed_action_whatever_their_number(actions: int) -> None:
    """Fewer actions than particles are drawn, more are one draw of the mixture's largest: P(largest <= t) = F(t)^K."""
    belief, x, rng = roll(actions, 500), np.array([0.6, 0.7]), np.random.default_rng(7)
    offer, sd = (
        belief.catalogue.offer(),
        np.sqrt(np.array([0.6, 0.7]) @ belief.leaves.covariance @ np.array([0.6, 0.7])),
    )
    draws = np.array([belief.best_unplayed(x, np.zeros(1), offer, -np.inf, 1, rng)[0][0] for _ in range(500)])
    tail = ndtr(-(draws[:, None] - belief.centres @ x) / sd).mean(axis=1)
    assert stats.kstest(np.exp(actions * np.log1p(-tail)), "uniform").pvalue > 1e-6


@pytest.mark.parametrize(("count", "k"), [(1, 1), (7, 3), (1000, 2), (10**9, 3)])
def test_largest_of_a_mixture(count: int, k: int) -> None:
    """Ordered, and the largest has distribution function F(t)^count."""
    rng = np.random.default_rng(9)
    means, sd = rng.standard_normal(50), 0.4
    draws = np.array([largest_of_mixture(means, sd, count, k, rng) for _ in range(400)])
    assert (np.diff(draws, axis=1) <= 0).all() and np.isfinite(draws).all()
    tail = ndtr(-(draws[:, 0, None] - means) / sd).mean(axis=1)
    uniform = np.exp(count * np.log1p(-np.minimum(tail, 1 - 1e-16)))
    assert stats.kstest(uniform, "uniform").pvalue > 1e-6


def test_draws_that_lie_apart_are_joined_by_a_wider_blur() -> None:
    """Mean and covariance stay; on a curve nothing changes, in many dimensions a Gaussian comes out, and rank may be lacking."""
    rng = np.random.default_rng(10)
    curve = ma.worlds.SwissRoll(1).sample(1_000, 0)
    flat = rng.standard_normal((300, 1)) @ np.ones((1, 3))
    for draws, least, most in (
        (curve, 0.0, 1e-3),
        (rng.standard_normal((300, 30)), 0.8, 1.0),
        (flat, 0.0, 1e-3),
        (np.ones((4, 2)), 0.0, 0.0),
        (np.eye(2), 1.0, 1.0),
    ):
        centres, blur = joined(draws)
        C = np.atleast_2d(np.cov(draws.T, bias=True))
        np.testing.assert_allclose(centres.mean(axis=0), draws.mean(axis=0), atol=1e-12)
        np.testing.assert_allclose(np.atleast_2d(np.cov(centres.T, bias=True)) + blur, C, atol=1e-12)
        assert least * np.trace(C) <= np.trace(blur) * (1 + 1e-12) <= most * np.trace(C) * (1 + 1e-9)
    constant = ma.DiffusionPrior(4, 2, [lambda z: np.ones_like(z)], [0.5, 1.0], shared=False)
    agent = ma.dTS(constant, seed=0)
    agent.observe([1.0, 0.0], 0, 2.0)
    np.testing.assert_allclose(agent.posterior(0)[0], [1 + 0.5 / 1.5, 1.0], atol=1e-9)


def own_chains(actions: int = K) -> ma.DiffusionPrior:
    links = [ma.priors.NetworkLink.random(D, 8, np.random.default_rng(0), scaled=True) for _ in range(2)]
    return ma.DiffusionPrior(actions, D, links, [0.2, 0.8, 1.0], shared=False)


@pytest.mark.parametrize("decision", [ma.Thompson(), ma.agents.UCB(1.5), ma.Greedy()], ids=lambda d: type(d).__name__)
@pytest.mark.parametrize("likelihood", [ma.Linear(NOISE), ma.Logistic()], ids=lambda p: p.kind)
def test_agents_with_particles_are_agents(decision: ma.agents.Decision, likelihood: ma.beliefs.Likelihood) -> None:
    """Variances are sums over particles: decisions that need them are not refused."""
    checks.check_agent(
        lambda seed: ma.Agent(belief_of(own_chains(30), likelihood, approximation="particles"), decision, seed)
    )


def test_a_saved_cloud_decides_as_before(tmp_path: Path) -> None:
    """Links that are functions cannot be saved; the particles that were drawn of them can."""
    prior = ma.DiffusionPrior(50, D, [np.tanh], [0.2, 1.0], shared=False)
    agent = ma.dTS(prior, approximation="particles", seed=0)
    agent.observe(*rows_of(8, 20))
    agent.save(str(tmp_path))
    loaded = ma.load(str(tmp_path))
    for x, a, r in zip(*rows_of(9, 20), strict=True):
        assert agent.decide(x, k=3).tolist() == loaded.decide(x, k=3).tolist()
        agent.observe(x, a, r)
        loaded.observe(x, a, r)


def test_what_makes_no_cloud_is_refused() -> None:
    with pytest.raises(InvalidInput, match="one chain per action"):
        ma.dTS(own_chains().with_actions(4, shared=True), approximation="particles")
    with pytest.raises(InvalidInput, match="centres"):
        ParticleBelief(np.zeros((5, 3)), Leaves(IdentityMixing(), np.eye(2), 4), ma.Linear())
    with pytest.raises(InvalidInput, match="leaves"):
        ParticleBelief(np.zeros((5, 2)), Leaves(MixingWeights(np.ones((4, 1))), np.eye(2)), ma.Linear())
    with pytest.raises(InvalidInput, match="particles"):
        ParticleBelief.of_prior(own_chains(), ma.Linear(), 1)
