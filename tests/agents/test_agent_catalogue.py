"""A catalogue that changes: actions come and go at any time, and nothing else is touched; state follows what is played."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import manyarms as ma
from manyarms._base.typing import Ints
from manyarms.agents.agent import Agent

D = 3
X = np.array([0.5, -0.5, 1.0])


def of_alike(K: int) -> list[Agent]:
    """Whose actions all have the same prior."""
    return [
        ma.LinTS(ma.ActionPrior(K, np.zeros(D), np.eye(D)), seed=0),
        ma.HierTS(ma.HierarchicalPrior(K, np.zeros(D), np.eye(D), np.eye(D)), seed=0),
    ]


def agents(K: int) -> list[Agent]:
    rng = np.random.default_rng(0)
    mixed = ma.MixedEffectPrior(rng.uniform(-1, 1, (K, 2)), np.zeros((2, D)), np.eye(2 * D), np.eye(D))
    return [
        *of_alike(K),
        ma.meTS(mixed, seed=0),
        ma.meTS(mixed, ma.Logistic(), seed=0),
        ma.LinTS(mixed, seed=0),
    ]


def add(agent: Agent, number: int) -> Ints:
    leaves = agent.belief.leaves
    weights = None if leaves.mixing.features is None else np.full((number, 2), 0.5)
    return agent.add_actions(number, weights=weights, covariance=None if leaves.shared else np.eye(D))


def test_counting() -> None:
    for agent in agents(5):
        assert (agent.actions, agent.played) == (5, 0)
        agent.observe([X, X, -X], [1, 3, 1], [1.0, 0.0, 1.0])
        assert (agent.actions, agent.played) == (5, 2)
        agent.retire(3)
        assert (agent.actions, agent.played) == (4, 2)
        assert add(agent, 2).tolist() == [5, 6]
        assert add(agent, 1).tolist() == [7]
        assert agent.actions == 7
        agent.retire([7, 0])
        assert add(agent, 1).tolist() == [8]  # numbers are not used again
        assert agent.actions == 6
        assert repr(agent).startswith(f"<{agent.name}: 6 actions, 2 played")


def test_what_a_retired_action_taught_stays() -> None:
    for agent in agents(5):
        agent.observe([X, X, -X], [1, 3, 1], [1.0, 0.0, 1.0])
        before = [agent.posterior(a) for a in (0, 1, 2, 4)]
        agent.retire(3)
        add(agent, 3)
        after = [agent.posterior(a) for a in (0, 1, 2, 4)]
        for (mean, covariance), (other_mean, other) in zip(before, after, strict=True):
            assert (mean == other_mean).all() and (covariance == other).all()


@pytest.mark.parametrize("batch", [False, True])
def test_late_rewards_teach_and_leave_their_actions_retired(batch: bool) -> None:
    """Of an action that had been played and of one that had not: as if they had come before it was retired."""
    contexts, ids, rewards = np.stack([X, -X, X]), [3, 2, 0], [1.0, 0.0, 1.0]
    for agent, other in zip(agents(5), agents(5), strict=True):
        for one in (agent, other):
            one.observe([X, X], [1, 3], [1.0, 0.0])
        agent.retire([3, 2])
        for one in (agent, other):
            if batch:
                one.observe(contexts, ids, rewards)
            else:
                for x, action, reward in zip(contexts, ids, rewards, strict=True):
                    one.observe(x, action, reward)
        other.retire([3, 2])
        assert (agent.actions, agent.played) == (other.actions, other.played) == (3, 4)
        for action in range(5):  # of retired ones, too
            for have, want in zip(agent.posterior(action), other.posterior(action), strict=True):
                assert (have == want).all()
        assert set(np.asarray(agent.decide(np.tile(X, (50, 1)))).tolist()) <= {0, 1, 4}
        agent.reinstate([2])
        assert sorted(np.asarray(agent.decide(X, k=4)).tolist()) == [0, 1, 2, 4]


def test_reinstated_actions_are_as_if_they_had_never_been_away() -> None:
    for agent, other in zip(agents(6), agents(6), strict=True):
        for one in (agent, other):
            one.observe([X, X, -X], [1, 3, 1], [1.0, 0.0, 1.0])
        agent.retire([3, 0, 5])
        agent.decide(np.tile(X, (5, 1)), rng=1)
        agent.reinstate(0)
        agent.reinstate([5, 3])
        assert agent.actions == 6
        batch = np.tile(X, (40, 1))
        assert (np.asarray(agent.decide(batch, k=3)) == np.asarray(other.decide(batch, k=3))).all()


def test_nothing_is_held_for_a_billion_actions_that_are_alike() -> None:
    for agent in of_alike(10**9):
        agent.retire(agent.decide(X))
        agent.retire([0, 10**9 - 1])
        agent.reinstate(0)
        assert agent.add_actions(3).tolist() == [10**9, 10**9 + 1, 10**9 + 2]
        assert agent.actions == 10**9 + 1 and agent.nbytes < 10_000


def test_new_actions_start_from_what_is_known_by_then() -> None:
    """A new action is not at its prior where it shares a root: it is where a founding one with the same row would be."""
    rng = np.random.default_rng(1)
    b = rng.uniform(-1, 1, (4, 2))
    prior = ma.MixedEffectPrior(b, rng.standard_normal((2, D)), np.eye(2 * D), np.eye(D))
    agent = ma.meTS(prior, seed=0)
    agent.observe(rng.uniform(-1, 1, (30, D)), rng.integers(3, size=30), rng.standard_normal(30))
    (new,) = agent.add_actions(weights=b[3])
    for have, want in zip(agent.posterior(int(new)), agent.posterior(3), strict=True):
        assert_allclose(have, want, rtol=1e-12)


def test_everything_retired() -> None:
    for agent in agents(3):
        agent.observe(X, 1, 1.0)
        agent.retire([0, 1, 2])
        assert agent.actions == 0
        asked: list[dict[str, Any]] = [{"x": X}, {"x": X, "exclude": [1]}, {"action_contexts": np.stack([X] * 3)}]
        for question in asked:
            with pytest.raises(ma.errors.InvalidInput, match=r"^actions: .* not retired, got none of 3$"):
                agent.decide(**question)
        with pytest.raises(ma.errors.InvalidInput, match=r"^candidates: .*, got an empty set$"):
            agent.decide(X, candidates=[])
        (new,) = add(agent, 1)
        assert agent.decide(X) == new


@pytest.mark.parametrize("number", [1, 2_000])
def test_many_additions(number: int) -> None:
    """One by one or all at once."""
    for agent in agents(50):
        for _ in range(2_000 // number):
            add(agent, number)
            if number == 1 and agent.actions > 60:
                break
        last = agent.actions - 1
        agent.observe(X, last, 1.0)
        agent.retire(last - 1)
        decided = np.asarray(agent.decide(np.tile(X, (30, 1)), k=2))
        assert decided.max() <= last and (decided != last - 1).all()


def test_state_grows_with_what_is_played() -> None:
    """A catalogue a thousand times larger costs the same, where actions are alike."""
    small, large = of_alike(1_000), of_alike(1_000_000)
    rng = np.random.default_rng(0)
    for agent, other in zip(small, large, strict=True):
        for _ in range(50):
            x, action = rng.uniform(-1, 1, D), int(rng.integers(1_000))
            agent.observe(x, action, 1.0)
            other.observe(x, action, 1.0)
        assert other.nbytes == agent.nbytes < 100_000


def test_shapes_of_what_is_decided() -> None:
    for agent in agents(6):
        agent.observe(X, 2, 1.0)
        batch = np.stack([X, -X, X])
        assert type(agent.decide(X)) is int
        for k, one, many in ((None, (), (3,)), (1, (1,), (3, 1)), (4, (4,), (3, 4))):
            assert np.shape(agent.decide(X, k=k)) == one
            decided = np.asarray(agent.decide(batch, k=k))
            assert decided.shape == many and decided.dtype == np.int64
        assert np.shape(agent.decide(batch[:1])) == (1,)
        assert sorted(np.asarray(agent.decide(X, k=6)).tolist()) == list(range(6))
