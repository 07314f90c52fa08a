"""Numbered draws: the seed and a number give the decision again, whatever happened before, meanwhile or since."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import manyarms as ma
from manyarms.agents import Agent, NumberedDecision
from manyarms.agents.draws import NumberedDraws

K, D = 12, 3
EYE = np.eye(D)
X = np.random.default_rng(1).uniform(-1, 1, (40, D))


def lints(seed: int | np.random.Generator | None = 0) -> Agent:
    agent = ma.LinTS(ma.ActionPrior(K, np.zeros(D), EYE), seed=seed)
    agent.observe(X[:10], np.arange(10), np.linspace(-1, 1, 10))
    return agent


def test_a_number_gives_its_decision_again() -> None:
    agent = lints()
    taken = [agent.decide(X[0]) for _ in range(30)]
    assert agent.draws == 30
    assert [agent.decide(X[0], draw=n) for n in reversed(range(30))] == taken[::-1]
    assert agent.draws == 30  # a replay takes no number
    assert len(set(taken)) > 1
    fresh = lints()
    assert fresh.decide(X[0], draw=17) == taken[17] and fresh.draws == 0


def test_a_numbered_decision_says_what_makes_it_again() -> None:
    agent = lints()
    agent.decide(X)
    choice = agent.decide_numbered(X, k=2, exclude=[3])
    assert (choice.draw, choice.version) == (1, 1)
    np.testing.assert_array_equal(agent.decide(X, k=2, exclude=[3], draw=1), choice.actions)
    replayed = agent.decide_numbered(X[0], draw=7)
    assert (replayed.draw, agent.draws) == (7, 2)
    brought = agent.decide_numbered(X[0], rng=4)
    assert brought == NumberedDecision(agent.decide(X[0], rng=4), None, 1)
    assert agent.draws == 2


def test_a_batch_has_one_number_and_a_draw_for_each_context() -> None:
    agent = lints()
    many = np.asarray(agent.decide(np.tile(X[0], (200, 1))))
    assert agent.draws == 1 and len(np.unique(many)) > 1


def test_the_key_is_the_seeds() -> None:
    assert lints(5).key == lints(5).key == lints(np.random.default_rng(5)).key
    assert len({lints(5).key, lints(6).key, lints(None).key, lints(None).key}) == 4
    one = np.random.default_rng(5)
    assert lints(one).key != lints(one).key  # each takes bits of its own


def test_streams_of_other_numbers_keys_and_purposes_are_others() -> None:
    """Normals of 400 streams: none is another's, and they are uncorrelated as independent ones are."""
    rows = []
    for key in (bytes(16), bytes(15) + b"\1"):
        draws = NumberedDraws(key)
        for start in (draws.decision, draws.question):
            for number in range(100):
                stream = start(number)
                rows.append(stream.generator.standard_normal(1000))
                draws.release(stream)
    values = np.array(rows)
    correlations = np.corrcoef(values)[np.triu_indices(len(values), 1)]
    # 79,800 correlations of standard deviation 1/sqrt(1000): the largest of normals is near 4.4 of them
    assert np.abs(correlations).max() < 7 / np.sqrt(1000)
    assert abs(values.mean()) < 6 / np.sqrt(values.size)
    assert abs(values.var() - 1) < 6 * np.sqrt(2 / values.size)


def test_what_is_drawn_stays_the_same() -> None:
    """Decisions that were recorded can be replayed by later releases."""
    draws = NumberedDraws(bytes(range(16)))
    assert draws.decision(0).generator.bit_generator.random_raw(2).tolist() == [
        8584099255003883812,
        2612555785951729105,
    ]
    assert draws.decision(2**40 + 3).generator.bit_generator.random_raw(2).tolist() == [
        13998247414557423426,
        2428041026938840184,
    ]
    assert draws.question(0).generator.bit_generator.random_raw(2).tolist() == [
        12845462965308996091,
        10885163208365782709,
    ]


def test_a_stream_starts_anew_whatever_was_drawn_from_it() -> None:
    draws = NumberedDraws(bytes(16))
    stream = draws.decision(1)
    first = stream.generator.integers(2**31, size=3, dtype=np.int32)  # leaves half a word behind
    draws.release(stream)
    again = draws.decision(1)
    assert again is stream
    np.testing.assert_array_equal(again.generator.integers(2**31, size=3, dtype=np.int32), first)


def test_streams_in_use_are_apart() -> None:
    draws = NumberedDraws(bytes(16))
    first, second = draws.decision(1), draws.decision(1)
    assert first is not second
    np.testing.assert_array_equal(first.generator.random(5), second.generator.random(5))


def test_asking_changes_nothing_and_repeats_nothing() -> None:
    agent = lints()
    p = agent.propensity(X[0], 3, draws=50)
    assert agent.draws == 0
    assert agent.propensity(X[0], 3, draws=50) == p == agent.propensity(X[0], 3, draws=50, draw=0)
    assert agent.propensity(X[0], 3, draws=50, draw=1) != p
    likely = [agent.propensity(X[0], a, draws=50, draw=1) for a in range(K)]
    assert abs(sum(p.value for p in likely) - 1) < 5 * sum(p.standard_error for p in likely)


@pytest.mark.parametrize("again", [Agent.copy, lambda a: pickle.loads(pickle.dumps(a)), None])
def test_key_number_and_version_are_kept(again: Callable[[Agent], Agent] | None, tmp_path: Path) -> None:
    agent = lints()
    agent.retire(3)
    for _ in range(5):
        agent.decide(X[0])
    agent.save(tmp_path)
    other = ma.load(tmp_path) if again is None else again(agent)
    assert (other.key, other.draws, other.version) == (agent.key, 5, 2)
    np.testing.assert_array_equal(other.decide(X), agent.decide(X))
    assert other.draws == agent.draws == 6


def test_a_decision_that_fails_takes_no_number() -> None:
    def features(x: np.ndarray) -> np.ndarray:
        if x[0] > 1:
            raise RuntimeError("no features")
        return np.outer(np.arange(4), x)

    agent = ma.agents.jointTS(ma.ActionPrior(1, np.zeros(2), np.eye(2)), 4, feature_map=features, context_shape=(2,))
    agent.decide([0.5, 0.5])
    with pytest.raises(RuntimeError):
        agent.decide([2.0, 0.5])
    with pytest.raises(ma.errors.InvalidInput):
        agent.decide([0.5, 0.5], k=9)
    assert agent.draws == 1


def test_a_number_that_is_given_back_leaves_later_ones_alone() -> None:
    draws = NumberedDraws(bytes(16))
    first, second = draws.take(), draws.take()
    draws.give_back(first)
    assert draws.take() == 2
    draws.give_back(2)
    assert (second, draws.take()) == (1, 2)


def test_agents_of_one_save_are_told_apart_by_another_seed(tmp_path: Path) -> None:
    agent = lints()
    agent.save(tmp_path)
    first, second, third = (ma.load(tmp_path, ma.Agent) for _ in range(3))
    x = np.ones(agent.belief.dim)
    assert [first.decide(x) for _ in range(5)] == [second.decide(x) for _ in range(5)]
    first.reseed(7)
    second.reseed(7)
    third.reseed()
    assert first.key == second.key == lints(7).key and len({agent.key, first.key, third.key}) == 3
    assert first.draws == 0 and first.version == agent.version
    assert [first.decide(x) for _ in range(5)] == [second.decide(x) for _ in range(5)]
