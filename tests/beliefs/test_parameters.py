"""Tables of parameters: means are those of the posterior, and draws have its law, the root's part in it included."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

import manyarms as ma
from manyarms.agents import Agent
from manyarms.beliefs.parameters import draw_parameters, posterior_means
from manyarms.errors import InvalidInput

K, D = 9, 3
SIX = 6.0  # standard errors


def mixed() -> Agent:
    """Actions that share effects, each with a covariance of its own."""
    rng = np.random.default_rng(0)
    covariance = np.stack([np.eye(D) * scale for scale in rng.uniform(0.2, 2.0, K)])
    return ma.meTS(ma.MixedEffectPrior(rng.normal(size=(K, 2)), np.zeros((2, D)), np.eye(2 * D), covariance), seed=0)


def independent() -> Agent:
    """Nothing is shared."""
    return ma.LinTS(ma.ActionPrior(K, np.ones(D), np.eye(D)), seed=0)


AGENTS: list[Callable[[], Agent]] = [mixed, independent]


def taught(make: Callable[[], Agent]) -> Agent:
    """Some actions are played, others are not."""
    agent, rng = make(), np.random.default_rng(1)
    agent.observe(rng.normal(size=(40, D)), rng.integers(5, size=40), rng.normal(size=40))
    return agent


@pytest.mark.parametrize("make", AGENTS)
def test_means_are_those_of_the_posterior(make: Callable[[], Agent]) -> None:
    belief = taught(make).belief
    ids = np.array([7, 0, 3, 8])
    np.testing.assert_allclose(posterior_means(belief, ids), belief.action_posterior(ids)[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("make", AGENTS)
def test_draws_have_the_moments_of_the_posterior_and_share_their_root(make: Callable[[], Agent]) -> None:
    belief, number = taught(make).belief, 20_000
    ids = np.array([0, 3, 7, 8])
    [(part, drawn)] = list(draw_parameters(belief, ids, number, np.random.default_rng(2)))
    assert part == slice(0, 4) and drawn.shape == (number, 4, D)
    means, covariances = belief.action_posterior(ids)
    for place in range(4):
        sd = np.sqrt(np.diagonal(covariances[place]))
        assert (np.abs(drawn[:, place].mean(axis=0) - means[place]) < SIX * sd / np.sqrt(number)).all()
        off = np.abs(np.cov(drawn[:, place].T) - covariances[place])
        assert (off < SIX * 2 * np.outer(sd, sd) / np.sqrt(number)).all()
    # of unplayed actions, what they have in common is the root's: W_a Cov(m) W_b^T
    factor, mixing = belief.root.factor(), belief.leaves.mixing
    one, other = (np.stack([mixing.apply(np.array([action]), column)[0] for column in factor.T]) for action in (7, 8))
    common = one.T @ other
    found = np.cov(drawn[:, 2].T, drawn[:, 3].T)[:D, D:]
    sds = [np.sqrt(np.diagonal(covariances[place])) for place in (2, 3)]
    assert (np.abs(found - common) < SIX * 2 * np.outer(*sds) / np.sqrt(number)).all()


@pytest.mark.parametrize(
    ("kind", "shared"), [("moments", True), ("jacobian", True), ("thesis", False), ("particles", False)]
)
def test_scores_of_draws_are_those_that_decisions_draw(kind: str, shared: bool) -> None:
    """Roots and centres that are not normal: against scores as decisions draw them, whose law is tested elsewhere."""
    links = [np.tanh, lambda m: m / 2]
    prior = ma.DiffusionPrior(K, D, links, [0.5, 0.8, 1.0], shared)
    agent = ma.dTS(prior, ma.Linear(0.7), approximation=kind, seed=0)
    rng = np.random.default_rng(1)
    agent.observe(rng.normal(size=(40, D)), rng.integers(5, size=40), rng.normal(size=40))
    belief, number, x = agent.belief, 4000, np.array([0.4, -1.0, 0.3])
    ids = np.array([0, 3, 7, 8])
    [(_, drawn)] = list(draw_parameters(belief, ids, number, rng))
    mine = drawn @ x
    Z = np.broadcast_to(x, (number, len(ids), D))
    theirs = belief.draw_listed(np.ascontiguousarray(Z), ids, rng)
    for place in range(4):
        assert stats.ks_2samp(mine[:, place], theirs[:, place]).pvalue > 1e-6
    assert posterior_means(belief, ids).shape == (4, D)


def test_blocks_cover_all_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manyarms.beliefs.parameters.FULL_AT_A_TIME", 60)
    belief = taught(mixed).belief
    parts = [part for part, _ in draw_parameters(belief, np.arange(K), 2, np.random.default_rng(0))]
    assert [place for part in parts for place in range(K)[part]] == list(range(K)) and len(parts) > 1
    np.testing.assert_allclose(
        posterior_means(belief, np.arange(K)), belief.action_posterior(np.arange(K))[0], atol=1e-9
    )


def test_one_parameter_for_all_is_refused() -> None:
    agent = ma.agents.jointTS(ma.ActionPrior(1, [0.0], [[1.0]]), 4, seed=0)
    with pytest.raises(InvalidInput, match="for each action"):
        posterior_means(agent.belief, np.arange(3))
