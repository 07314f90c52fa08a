"""Why: an event's score is explained by the state that decided, or it is said by which other; in the store's own words."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from live.making import DIM, Clock, X, a_live, agent_of, an_agent, contexts, mixed
from manyarms.agents import Agent
from manyarms.errors import InvalidInput, UnknownEvent
from manyarms.live import Live
from manyarms.logs import Encoding
from manyarms.policies import EpsilonMixture, SoftmaxPolicy, UniformPolicy


def rewarded(live: Live, number: int, seed: int = 0) -> None:
    for i, x in enumerate(contexts(number, seed)):
        live.reward(live.decide(x, id=f"e{seed}.{i}").id, float(i % 3))
    live.learn()


def test_a_decision_is_explained_by_the_state_that_made_it() -> None:
    live = a_live(mixed())
    rewarded(live, 30)
    then = agent_of(live)
    taken = live.decide(X, id="then")
    rewarded(live, 30, seed=1)
    found = live.why("then")
    assert found.exact
    assert (found.action, found.arm, found.version) == (taken.action, "agent", taken.version)
    assert isinstance(taken.action, int)
    assert found.explanation is not None
    mean, covariance = then.posterior(taken.action)
    np.testing.assert_allclose(found.explanation.contributions, X * mean, atol=1e-9)
    np.testing.assert_allclose(found.explanation.variance, X @ covariance @ X, atol=1e-9)
    assert live.why(live.decide(X).id).exact  # by what is there
    live.close()


def test_what_looked_best_is_told_where_it_was_not_taken() -> None:
    live = a_live(an_agent(kind="epsilon"))
    rewarded(live, 30)
    explored = taken = 0
    for i in range(40):
        d = live.decide(X, id=f"q{i}")
        found = live.why(d.id)
        greedy = live.event(d.id).details["greedy"]
        assert (found.greedy is None) == greedy
        if found.greedy is not None:
            assert found.explanation is not None and found.greedy_explanation is not None
            assert found.greedy_explanation.score >= found.explanation.score
        explored, taken = explored + (not greedy), taken + greedy
        assert found.propensity == d.propensity
    assert explored and taken
    live.close()


def test_ids_names_and_plain_values() -> None:
    encoder = Encoding().fit({"age": [20.0, 30.0, 50.0], "town": ["a", "b", "a"]}, ["age", "town"])
    prior = ma.HierarchicalPrior(4, np.zeros(encoder.dim), np.eye(encoder.dim), np.eye(encoder.dim))
    live = a_live(ma.HierTS(prior, seed=0, catalogue=["p", "q", "r", "s"], encoder=encoder))
    d = live.decide({"age": 30.0, "town": "b"}, id="e")
    live.reward(d.id, 2.0)
    live.learn()
    live._worker.work()
    again = live.decide({"age": 30.0, "town": "b"}, candidates=[d.action], id="f")
    for event in ("e", "f"):
        told: Any = live.why(event).to_json()
        assert json.loads(json.dumps(told)) == told
        assert told["action"] == again.action
        assert {part["name"] for part in told["explanation"]["features"]} == set(encoder.names)
        assert "town" in str(live.why(event))
        assert "<table" in live.why(event)._repr_html_()
    assert live.why("e").propensity is not None and live.why("e").propensity_kind == "estimated"
    live.close()


def test_contexts_of_actions_are_those_of_the_one_taken() -> None:
    live = a_live(an_agent())
    Z = contexts(3)
    d = live.decide(action_contexts=Z, candidates=[4, 0, 2], id="e")
    found = live.why("e").explanation
    assert found is not None
    assert isinstance(d.action, int)
    np.testing.assert_array_equal(found.features, Z[[4, 0, 2].index(d.action)])
    live.close()


@pytest.mark.parametrize("mixture", [False, True])
def test_policies_are_explained_by_their_scores(mixture: bool) -> None:
    beta = contexts(6, seed=8)
    soft = SoftmaxPolicy(beta, temperature=0.5)
    live = a_live(EpsilonMixture(soft, 0.2) if mixture else soft)
    for i in range(20):
        d = live.decide(X, id=f"e{i}", exclude=[1])
        assert isinstance(d.action, int)
        found = live.why(d.id)
        assert found.explanation is not None
        np.testing.assert_allclose(found.explanation.contributions, X * beta[d.action] / 0.5)
        best = max((a for a in range(6) if a != 1), key=lambda a: float(X @ beta[a]))
        assert found.greedy == (None if d.action == best else best)
    live.close()


def test_what_has_no_score_says_so() -> None:
    live = a_live(UniformPolicy(6))
    live.decide(X, id="uniform")
    live.deploy("baseline", shadows=["agent"])
    live.decide(X, id="usual", baseline=3)
    for event, word in (("uniform", "linear"), ("usual", "application")):
        found = live.why(event)
        assert found.explanation is None
        assert found.unexplained is not None and word in found.unexplained
        assert word in str(found)
        json.dumps(found.to_json())
    live.close()


def test_a_state_that_is_gone_is_replaced_by_that_of_now_and_it_is_said() -> None:
    clock = Clock()
    live = a_live(an_agent(), clock, default=0.0, wait=10.0)
    live.decide(X, id="erased later")
    live.reward("erased later", 1.0)
    live.learn()
    live.decide(X, id="kept")
    assert live.why("kept").exact
    live.erase("erased later")
    live.learn()
    found = live.why("kept")
    assert not found.exact
    assert "gone" in str(found)
    assert found.explanation is not None
    with pytest.raises(UnknownEvent, match="erased"):
        live.why("erased later")
    live.close()


def test_an_arm_that_is_gone_with_its_state_is_said_to_be() -> None:
    live = a_live(an_agent())
    rewarded(live, 3)
    live.decide(X, id="e")
    live.add_arm("other", an_agent(seed=1))
    live.deploy("other")
    live.erase("e0.0")
    live.remove_arm("agent")
    live.learn()
    found = live.why("e")
    assert found.explanation is None
    assert found.unexplained is not None and "no arm agent" in found.unexplained
    live.close()


@pytest.mark.parametrize("wrong", [None, 3, "", "\0", "x" * 300])
def test_what_is_no_event_is_refused(wrong: Any) -> None:
    live = a_live()
    with pytest.raises(InvalidInput):
        live.why(wrong)
    with pytest.raises(UnknownEvent):
        live.why("never")
    live.close()


def test_one_parameter_for_all_actions() -> None:
    prior = ma.ActionPrior(1, np.zeros(DIM), np.eye(DIM))
    agent: Agent = ma.agents.jointTS(prior, 3, seed=0)
    live = a_live(agent)
    Z = contexts(3)
    d = live.decide(action_contexts=Z, id="e")
    live.reward("e", 1.0)
    live.learn()
    live.decide(action_contexts=Z, id="f")
    found = live.why("f").explanation
    assert found is not None
    action = live.event("f").actions[0]
    np.testing.assert_allclose(found.score, Z[action] @ agent_of(live).posterior(0)[0], atol=1e-9)
    assert d.id == "e"
    live.close()
