"""An agent as a policy: where its probabilities are known, they are those of its decisions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import manyarms as ma
from manyarms.errors import InvalidInput


def test_agents_are_policies_where_their_probabilities_are_known(rng: np.random.Generator, tmp_path: Path) -> None:
    prior = ma.HierarchicalPrior(5, np.zeros(2), np.eye(2), np.eye(2))
    X = rng.standard_normal((30, 2))
    agent = ma.HierTS(prior, seed=0)
    agent.observe(X, rng.integers(5, size=30), rng.standard_normal(30))
    with pytest.raises(InvalidInput, match="thompson"):
        agent.as_policy()
    for decision in (ma.Greedy(), ma.agents.UCB(0.5), ma.agents.EpsilonGreedy(0.2), ma.agents.Uniform()):
        one = ma.Agent(agent.belief, decision, 0)
        one.save(tmp_path / decision.kind)
        policy = ma.load(tmp_path / decision.kind).as_policy()
        found = policy.probabilities_of_many(X, np.tile(np.arange(5), (30, 1)))
        truth = [[one.propensity(x, a).value for a in range(5)] for x in X]
        np.testing.assert_allclose(found, truth, atol=1e-12)
