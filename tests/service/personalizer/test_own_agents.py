"""Agents with a catalogue and an encoder of their own behind the same paths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.agents import Agent, Ensemble, EpsilonGreedy
from manyarms.errors import InvalidInput
from service.personalizer.calling import asking, chances, serving

MEALS = ["pasta", "salad", "soup"]
TABLE = {"user.device": ["mobile", "desktop", "mobile", None], "user.age": [30.0, 40.0, 50.0, 20.0]}


def _agent(decision: Any = None, catalogue: Any = MEALS) -> Agent:
    encoder = ma.logs.Encoding(intercept=True).fit(TABLE, list(TABLE))
    prior = ma.ActionPrior(len(catalogue), np.zeros(encoder.dim), np.eye(encoder.dim))
    belief = ma.beliefs.belief_of(prior, ma.Linear(0.5))
    return Agent(belief, decision or EpsilonGreedy(0.3), 0, "mine", catalogue, encoder)


CONTEXT = [{"user": {"device": "mobile"}}, {"user": {"age": 31}}, {"other": {"colour": "red"}}]


def test_contexts_go_to_the_encoder_and_ids_are_candidates() -> None:
    with serving(_agent()) as service:
        body = asking(contextFeatures=CONTEXT, eventId="one")
        found = chances(service.rank(body))
        assert sorted(found.values()) == pytest.approx([0.1, 0.1, 0.8])
        context = service.live.event("one").question.context  # type: ignore[union-attr]
        assert service.live.encoder is not None
        expected = service.live.encoder.row({"user.device": "mobile", "user.age": 31.0})
        np.testing.assert_array_equal(context, expected)
        service.reward("one", 1.0)
        assert service.learned() == 1


def test_columns_that_do_not_come_are_missing_as_the_encoder_has_it() -> None:
    with serving(_agent()) as service:
        assert service.call("POST", "/rank", asking(contextFeatures=[{"user": {"age": 31}}])).status_code == 201
        answer = service.call("POST", "/rank", asking(contextFeatures=[{"user": {"device": "mobile"}}]), preview=True)
        assert answer.status_code == 400  # no age was missing when the encoder was fitted
        assert answer.json()["error"]["code"] == "InvalidRankRequest"
        assert "user.age" in answer.json()["error"]["message"]


def test_actions_that_it_does_not_know_are_refused() -> None:
    with serving(_agent()) as service:
        answer = service.call("POST", "/rank", asking("pasta", "fish", contextFeatures=CONTEXT), preview=True)
        assert answer.status_code == 400
        error = answer.json()["error"]
        assert (error["code"], error["target"]) == ("InvalidRankRequest", "actions")
        assert "fish" in error["message"]


@pytest.mark.parametrize("catalogue", [[10, 20, 30]], ids=["numbers"])
def test_ids_may_be_numbers(catalogue: list[int]) -> None:
    with serving(_agent(catalogue=catalogue)) as service:
        answer = service.rank(asking("10", "30", contextFeatures=CONTEXT))
        assert answer["rewardActionId"] in ("10", "30")
        assert service.call("POST", "/rank", asking("ten", contextFeatures=CONTEXT)).status_code == 400


@pytest.mark.parametrize("decision", [Ensemble(4, 0.2), ma.agents.Thompson()], ids=["ensemble", "thompson"])
def test_other_rules_have_probabilities_too(decision: Any) -> None:
    with serving(_agent(decision)) as service:
        answer = service.rank(asking(contextFeatures=CONTEXT))
        assert sum(chances(answer).values()) == pytest.approx(1.0)
        wanted = service.call("GET", "/configurations/service").json()["explorationPercentage"]
        assert wanted == (0.2 if isinstance(decision, Ensemble) else 0.0)


def test_a_rule_without_exploration_cannot_be_given_any() -> None:
    with serving(_agent(ma.agents.Thompson())) as service:
        now = service.call("GET", "/configurations/service", preview=True).json()
        told = {name: value for name, value in now.items() if value is not None} | {"explorationPercentage": 0.5}
        answer = service.call("PUT", "/configurations/service", told, preview=True)
        assert answer.status_code == 400
        assert answer.json()["error"]["target"] == "explorationPercentage"
        assert service.configure(defaultReward=-1.0)["defaultReward"] == -1.0


def test_several_slots() -> None:
    with serving(_agent()) as service:
        slots = [{"id": "top", "baselineAction": "soup"}, {"id": "side", "baselineAction": "pasta"}]
        body = {**asking(contextFeatures=CONTEXT), "slots": slots}
        answer = service.call("POST", "/multislot/rank", body, preview=True)
        assert answer.status_code == 201
        assert len({one["rewardActionId"] for one in answer.json()["slots"]}) == 2


def test_its_model_can_be_got_and_is_not_reset() -> None:
    with serving(_agent()) as service:
        assert service.call("GET", "/model").status_code == 200
        answer = service.call("DELETE", "/model", preview=True)
        assert answer.status_code == 400
        assert answer.json()["error"]["code"] == "OperationNotAllowed"


def test_an_agent_that_takes_vectors_cannot_serve_personalizer() -> None:
    prior = ma.ActionPrior(3, np.zeros(2), np.eye(2))
    with pytest.raises(InvalidInput, match="encoder"), serving(ma.LinTS(prior, catalogue=MEALS)):
        pass


def test_explanations_have_the_encoders_names() -> None:
    with serving(_agent()) as service:
        service.configure(isInferenceExplainabilityEnabled=True)
        for _ in range(5):
            service.reward(service.rank(asking(contextFeatures=CONTEXT))["eventId"], 1.0)
        service.learned()
        told = service.rank(asking(contextFeatures=CONTEXT))["inferenceExplanation"]
        assert [one["id"] for one in told] == MEALS
        assert any("user.device" in part["name"] for one in told for part in one["features"])
