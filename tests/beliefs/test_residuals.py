"""Predictions of rows, and how far rewards are from them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, special, stats

import every_agent
import manyarms as ma
from manyarms.agents import Agent
from manyarms.beliefs.residuals import left_out_residuals, residuals


def taught(name: str, n: int = 60) -> Agent:
    agent = every_agent.EVERY[name]()
    agent.observe(*every_agent.rows_for(agent, 5, n, [0, 1, 4, 7]))
    return agent


@pytest.mark.parametrize("name", every_agent.EVERY)
def test_predictions_are_the_posteriors_of_the_actions(name: str) -> None:
    belief = taught(name).belief
    X, actions, _ = every_agent.rows_for(taught(name, 1), 6, 30, [0, 1, 2, 4, 9])  # 2 and 9 were never played
    mean, variance = belief.predictive(X, actions)
    if not belief.per_action:
        actions = np.zeros_like(actions)
    ids, rows = np.unique(actions, return_inverse=True)
    means, covariances = belief.action_posterior(ids)
    scale = np.einsum("ni,nij,nj->n", X, covariances[rows], X)
    np.testing.assert_allclose(mean, np.einsum("nd,nd->n", X, means[rows]), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(variance, scale, rtol=1e-6, atol=1e-8)


def test_residuals_of_a_right_model_are_independent_standard_normal_numbers() -> None:
    """Whatever is chosen: here the action that looks best, so that rewards rise and residuals do not."""
    rng, found, prior = np.random.default_rng(0), [], ma.HierarchicalPrior(5, np.zeros(2), np.eye(2), np.eye(2))
    for run in range(60):
        agent, theta = ma.HierTS(prior, ma.Linear(0.5), seed=run), rng.normal(size=2) + rng.normal(size=(5, 2))
        one = []
        for _ in range(40):
            x = rng.normal(size=(1, 2))
            action = np.array([agent.decide(x[0])])
            reward = x @ theta[action[0]] + rng.normal(scale=0.5)
            one.append(float(residuals(agent.belief, x, action, reward).z[0]))
            agent.observe(x, action, reward)
        found.append(one)
    z = np.array(found)
    assert stats.kstest(z.ravel(), "norm").pvalue > 1e-6
    assert abs((z[:, 1:] * z[:, :-1]).sum()) < 5 * np.sqrt(z[:, 1:].size)  # one is independent of the next
    assert (z.sum(axis=1) ** 2 / 40).sum() < stats.chi2.isf(1e-6, 60)


@pytest.mark.parametrize("name", ["LinTS", "HierTS", "meTS", "meTS, own covariances", "matrices", "jointTS"])
def test_a_row_left_out_is_a_row_that_was_not_learned(name: str) -> None:
    X, actions, rewards = every_agent.rows_for(every_agent.EVERY[name](), 7, 20, [0, 1, 4])
    whole = every_agent.EVERY[name]()
    whole.observe(X, actions, rewards)
    found = left_out_residuals(whole.belief, X, actions, rewards)
    for row in range(len(X)):
        others = np.arange(len(X)) != row
        without, one = every_agent.EVERY[name](), slice(row, row + 1)
        without.observe(X[others], actions[others], rewards[others])
        expected = residuals(without.belief, X[one], actions[one], rewards[one])
        np.testing.assert_allclose(
            [found.z[row], found.mean[row]], [expected.z[0], expected.mean[0]], rtol=1e-6, atol=1e-8
        )


def test_moments_of_clicks_and_counts_are_those_of_their_laws() -> None:
    """Against integrals over u ~ N(mean, variance): a click is a coin with E[g(u)]."""
    for likelihood, g in ((ma.Logistic(), special.expit), (ma.beliefs.Poisson(), np.exp)):
        agent = ma.agents.GLMTS(ma.ActionPrior(2, [0.3, -0.2], 0.5 * np.eye(2)), likelihood, seed=0)
        x, action = np.array([[1.0, 0.5]]), np.array([1])
        mean, variance = (float(one[0]) for one in agent.belief.predictive(x, action))

        def over(f, mean=mean, variance=variance):  # type: ignore[no-untyped-def]
            law = stats.norm(mean, np.sqrt(variance))
            return integrate.quad(lambda u: f(u) * law.pdf(u), mean - 9, mean + 9)[0]

        first, second = over(g), over(lambda u, g=g: g(u) ** 2)
        total = first * (1 - first) if likelihood.binary else first + second - first**2
        found = residuals(agent.belief, x, action, np.array([1.0]))
        assert found.mean[0] == pytest.approx(first, rel=1e-6)
        assert found.z[0] == pytest.approx((1 - first) / np.sqrt(total), rel=1e-6)
        assert found.own_doubt[0] == pytest.approx((second - first**2) / total, rel=1e-5)
