"""`agent.residuals`: what rewards are beside what was expected of them, before they are learned."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import manyarms as ma
from every_agent import EVERY, rows_for


@pytest.mark.parametrize("name", list(EVERY))
def test_a_batch_is_its_rows_and_asking_changes_nothing(name: str) -> None:
    agent = EVERY[name]()
    X, actions, rewards = rows_for(agent, 1, 12, [0, 1, 2])
    agent.observe(X, actions, rewards)
    before = agent.version
    X, actions, rewards = rows_for(agent, 2, 5, [1, 2, 3])
    many = agent.residuals(X, actions, rewards)
    assert agent.version == before
    for i in range(5):
        one = agent.residuals(X[i], int(actions[i]), float(rewards[i]))
        for whole, part in zip(many, one, strict=True):
            # chains of one's own are known by draws, which are others from call to call
            assert_allclose(part[0], whole[i], rtol=1e-9, atol=0.3 if "own chains" in name else 1e-9)
    assert np.isfinite(many.z).all() and ((many.own_doubt >= 0) & (many.own_doubt <= 1)).all()


def test_as_of_the_time_of_the_decision() -> None:
    agent = ma.LinTS(ma.ActionPrior(5, [0.0], [[3.0]]), drift=ma.Drift(half_life=10.0, clock="time"), seed=0)
    agent.observe([1.0], 2, 4.0, at=0.0)
    found = agent.residuals([1.0], 2, 4.0, at=10.0)
    mean, spread = agent.posterior(2, at=10.0)
    assert_allclose(found.z, (4.0 - mean) / np.sqrt(1 + spread[0]))
