"""One parameter for all actions at its edges: equal features tie fairly, and maps and shapes of the user's do no harm."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import manyarms as ma
from brute_force import matches
from manyarms.beliefs import joint_belief_of
from manyarms.errors import InvalidInput


def joint(actions: int, dim: int, **options: object) -> ma.Agent:
    return ma.agents.jointTS(ma.ActionPrior(1, np.zeros(dim), np.eye(dim)), actions, seed=0, **options)


def alike(chosen: np.ndarray, ids: list[int]) -> bool:
    """Were some ids chosen equally often?"""
    counts = np.bincount(chosen, minlength=max(ids) + 1)[ids]
    return matches(counts, np.full(len(ids), 1 / len(ids))) > 1e-6


@pytest.mark.parametrize(
    ("actions", "dim"), [(6, 2), (1001, 8)]
)  # the product computes the last of 1,001 rows in another way
def test_equal_features_are_chosen_alike(actions: int, dim: int) -> None:
    agent, rng = joint(actions, dim), np.random.default_rng(1)
    features = 0.01 * rng.standard_normal((actions, dim))
    ids = [0, 3, actions - 2, actions - 1]
    features[ids] = np.ones(dim)
    chosen = agent.decide(np.broadcast_to(features, (1000, *features.shape)))
    assert np.isin(chosen, ids).mean() > 0.3  # wherever the drawn parameter points their way
    assert alike(chosen, ids)
    agent.retire([0])
    chosen = agent.decide(np.broadcast_to(features, (1000, *features.shape)))
    assert 0 not in chosen and alike(chosen, ids[1:])
    listed = agent.decide(action_contexts=np.broadcast_to(features[ids[1:]], (1000, 3, dim)), candidates=ids[1:])
    assert alike(listed, ids[1:])


def test_without_ties_nothing_more_is_drawn() -> None:
    features = np.random.default_rng(2).standard_normal((5, 3))
    rng, again = np.random.default_rng(3), np.random.default_rng(3)
    scores = joint(5, 3).belief.draw_listed(features[None], np.arange(5), rng)
    theta = again.standard_normal((1, 3))  # the prior is N(0, I)
    assert np.allclose(scores[0], features @ theta[0])
    assert rng.bit_generator.state == again.bit_generator.state


def test_a_feature_map_may_write_on_what_it_gets() -> None:
    def doubled(x: np.ndarray) -> np.ndarray:
        return np.multiply(x, 2.0, out=x)

    agent = joint(4, 2, feature_map=doubled, context_shape=(4, 2))
    plain = joint(4, 2)
    x = np.random.default_rng(0).standard_normal((4, 2))
    before = x.copy()
    assert agent.decide(x) == plain.decide(2 * x)
    agent.observe(x, 1, 0.5)
    plain.observe(2 * x, 1, 0.5)
    agent.propensity(x, 1, draws=5)
    assert np.array_equal(x, before)
    assert all(np.array_equal(a, b) for a, b in zip(agent.posterior(0), plain.posterior(0), strict=True))


PRIOR = ma.ActionPrior(1, np.zeros(2), np.eye(2))
BAD: dict[str, Callable[[], object]] = {
    "context_shape: an array": lambda: joint_belief_of(
        PRIOR, 4, ma.Linear(), feature_map=len, context_shape=np.zeros((2, 2))
    ),
    "context_shape: a number": lambda: joint(4, 2, feature_map=len, context_shape=3),
    "context_shape: nothing": lambda: joint(4, 2, feature_map=len, context_shape=()),
    "context_shape: below zero": lambda: joint(4, 2, feature_map=len, context_shape=(-1,)),
    "context_shape: without a map": lambda: joint(4, 2, context_shape=(4, 2)),
    "feature_map: no function": lambda: joint(4, 2, feature_map=3, context_shape=(4, 2)),
    "feature_map: another shape": lambda: joint(4, 2, feature_map=np.ravel, context_shape=(4, 2)).decide(
        np.ones((4, 2))
    ),
    "feature_map: NaN": lambda: joint(4, 2, feature_map=lambda x: x * np.nan, context_shape=(4, 2)).decide(
        np.ones((4, 2))
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_it_is_refused_by_name(what: str) -> None:
    with pytest.raises(InvalidInput, match=what.partition(":")[0]):
        BAD[what]()
