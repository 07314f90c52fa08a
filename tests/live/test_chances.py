"""The chances of all candidates: they sum to 1, agree with the propensity of what was taken, and stay in the log."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import manyarms as ma
from live.making import DIM, X, a_live, an_agent
from manyarms.agents import Agent, Ensemble, EpsilonGreedy, EpsilonMixed
from manyarms.errors import InvalidInput
from manyarms.live.records import Question

RULES = [
    EpsilonGreedy(0.3),
    EpsilonMixed(ma.agents.UCB(1.0), 0.4),
    Ensemble(5, 0.2),
    ma.agents.Greedy(),
    ma.agents.Thompson(),
]


def _agent(rule: Any) -> Agent:
    prior = ma.ActionPrior(6, np.zeros(DIM), np.eye(DIM))
    return Agent(ma.beliefs.belief_of(prior, ma.Linear()), rule, 0)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.kind)
@pytest.mark.parametrize("contexts", ["one", "each"])
def test_chances_sum_to_1_and_agree_with_the_propensity(rule: Any, contexts: str) -> None:
    with a_live(_agent(rule)) as live:
        live.retire([3])
        rng = np.random.default_rng(0)
        candidates = [5, 0, 4, 2]
        asked: dict[str, Any] = {"x": X} if contexts == "one" else {"action_contexts": rng.normal(size=(4, DIM))}
        for number in range(10):
            made = live.decide(**asked, candidates=candidates, exclude=[0], chances=True, id=f"e{number}")
            assert made.chances is not None
            assert sum(made.chances) == pytest.approx(1.0)
            assert made.chances[1] == 0.0  # it is excluded
            if made.propensity is not None:
                assert made.chances[candidates.index(int(made.action))] == pytest.approx(made.propensity)
            live.reward(made.id, float(rng.normal()))
            live.learn()


def test_shares_and_the_baseline_have_their_part() -> None:
    with a_live(an_agent(kind="epsilon")) as live:
        live.deploy({"agent": 0.5, "baseline": 0.5})
        made = live.decide(X, candidates=[0, 1, 2, 3, 4], baseline=4, chances=True)
        assert made.chances is not None
        assert made.chances[4] >= 0.5
        assert sum(made.chances) == pytest.approx(1.0)


def test_asked_again_they_are_those_of_then() -> None:
    with a_live(an_agent(kind="epsilon")) as live:
        first = live.decide(X, candidates=[0, 1, 2], id="one", chances=True)
        for _ in range(5):
            live.reward(live.decide(X, candidates=[2]).id, 5.0)
        live.learn()
        assert live.decide(X, candidates=[0, 1, 2], id="one", chances=True).chances == first.chances
        assert live.decide(X, candidates=[0, 1, 2], id="two", chances=True).chances != first.chances
        assert live.decide(X, candidates=[0, 1, 2]).chances is None


def test_there_are_none_without_candidates() -> None:
    with a_live(an_agent(kind="epsilon")) as live, pytest.raises(InvalidInput, match="candidates"):
        live.decide(X, chances=True)


@pytest.mark.parametrize("sparse", [True, False])
def test_contexts_of_many_actions_are_packed_and_read_as_they_were(sparse: bool) -> None:
    context = np.zeros((20, 64)) if sparse else np.random.default_rng(0).normal(size=(20, 64))
    context[:, 3] = 0.1
    asked = Question(context, list(range(20)))
    stored = asked.stored()
    assert len(stored) < context.nbytes / 10 if sparse else len(stored) <= context.nbytes
    again = Question.read(stored, asked.text())
    np.testing.assert_array_equal(again.context, context)
    assert again.digest(None) == asked.digest(None)
