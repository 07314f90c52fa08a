"""A parameter that all actions share: new actions are known by their features, and nothing else changes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import manyarms as ma
from manyarms.agents import Agent, EpsilonGreedy
from manyarms.beliefs import joint_belief_of
from manyarms.errors import InvalidInput

DIM = 3


def _agent(actions: int, catalogue: list[str] | None = None) -> Agent:
    prior = ma.ActionPrior(1, np.zeros(DIM), np.eye(DIM))
    return Agent(joint_belief_of(prior, actions, ma.Linear(0.5)), EpsilonGreedy(0.2), 0, catalogue=catalogue)


def test_a_grown_belief_is_the_one_that_knew_them_all_along() -> None:
    rng = np.random.default_rng(0)
    grown, whole = _agent(2), _agent(5)
    for agent in (grown, whole):
        rng = np.random.default_rng(0)
        agent.observe(rng.normal(size=(6, DIM)), np.arange(6) % 2, rng.normal(size=6))
    assert grown.add_actions(3).tolist() == [2, 3, 4]
    X = rng.normal(size=(5, DIM))
    for agent in (grown, whole):
        agent.observe(X, np.arange(5), np.ones(5))
    np.testing.assert_array_equal(grown.posterior(4)[0], whole.posterior(4)[0])
    assert grown.decide(X, draw=3) == whole.decide(X, draw=3)
    assert grown.decide(action_contexts=X[:2], candidates=[4, 1], draw=3) == whole.decide(
        action_contexts=X[:2], candidates=[4, 1], draw=3
    )


def test_new_ids_are_known_kept_and_can_be_retired(tmp_path: Path) -> None:
    agent = _agent(1, ["a"])
    agent.add_actions(ids=["b", "c"])
    agent.retire(["b"])
    agent.save(tmp_path / "agent")
    again = ma.load(tmp_path / "agent")
    assert list(again.catalogue) == ["a", "b", "c"]
    Z = np.eye(3)
    chosen = {again.decide(action_contexts=Z[:2], candidates=["a", "c"]) for _ in range(50)}
    assert chosen == {"a", "c"}
    with pytest.raises(InvalidInput, match="retired"):
        again.decide(action_contexts=Z[:1], candidates=["b"])


def test_a_snapshot_does_not_grow() -> None:
    agent = _agent(2)
    before = agent.snapshot()
    agent.add_actions(2)
    assert (before.actions, agent.actions) == (2, 4)


def test_what_new_actions_cannot_have_is_refused() -> None:
    agent = _agent(2)
    with pytest.raises(InvalidInput, match="weights"):
        agent.add_actions(weights=np.ones((1, DIM)))
    with pytest.raises(InvalidInput, match="covariance"):
        agent.add_actions(1, covariance=np.eye(DIM)[None])
    prior = ma.ActionPrior(1, np.zeros(DIM), np.eye(DIM))
    mapped = ma.agents.jointTS(prior, 2, feature_map=lambda x: np.stack([x, -x]), context_shape=(DIM,))
    with pytest.raises(InvalidInput, match="feature map"):
        mapped.add_actions(1)


def test_greedy_scores_are_the_posterior_mean_whether_or_not_spread_is_asked_for() -> None:
    agent = _agent(4)
    rng = np.random.default_rng(1)
    Z, ids = rng.normal(size=(2, 4, DIM)), np.arange(4)
    for _ in range(2):
        plain = agent.belief.listed_moments(Z, ids, spread=False)[0]
        np.testing.assert_allclose(plain, agent.belief.listed_moments(Z, ids, spread=True)[0], atol=1e-12)
        agent.observe(rng.normal(size=(3, DIM)), [0, 1, 2], rng.normal(size=3))
