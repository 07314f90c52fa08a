"""What is refused, with which status, code and target; and that every refusal has Personalizer's form."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from manyarms.service.personalizer import default_agent
from service.personalizer.calling import Personalizer, asking, serving
from service.personalizer.test_contract import CONFIGURATION, CONTRACT

LONG = "x" * 257
SLOTS = {**asking(), "slots": [{"id": "top", "baselineAction": "soup"}, {"id": "side", "baselineAction": "pasta"}]}


@pytest.fixture(scope="module")
def service() -> Iterator[Personalizer]:
    """A service that refuses all of this, and so is as it was."""
    with serving(default_agent(seed=0)) as found:
        found.rank(asking(eventId="there"))
        found.rank(asking(eventId="deferred", deferActivation=True))
        found.call("POST", "/multislot/rank", {**SLOTS, "eventId": "slots"}, preview=True)
        yield found


def refused(answer: Any, status: int, code: str, target: str | None, preview: bool) -> None:
    """A refusal in Personalizer's form."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"].startswith("application/json")
    error = answer.json()["error"]
    assert answer.json().keys() == {"error"}
    assert error.keys() == {"code", "message", "target", "details", "innerError"}
    assert error["message"]
    assert error["target"] == target
    if preview:
        assert error["code"] == code == answer.headers["x-ms-error-code"]
    else:
        assert "x-ms-error-code" not in answer.headers
        usual = "ResourceNotFound" if status == 404 else "BadRequest"
        assert error["code"] == usual
        assert error["innerError"] == (None if code == usual else {"code": code})


def _with(body: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {name: value for name, value in (body | changes).items() if value is not ...}


def _action(**changes: Any) -> dict[str, Any]:
    return _with(asking(), actions=[_with({"id": "one", "features": []}, **changes)])


RANKS: list[tuple[Any, str]] = [
    ([], "body"),
    (_with(asking(), actions=...), "actions"),
    (_with(asking(), actions=None), "actions"),
    (_with(asking(), actions=[]), "actions"),
    (_with(asking(), actions=[{"id": str(n), "features": []} for n in range(1001)]), "actions"),
    (_with(asking(), actions=["pasta"]), "actions[0]"),
    (_action(id=...), "actions[0].id"),
    (_action(id=7), "actions[0].id"),
    (_action(id=""), "actions[0].id"),
    (_action(id=LONG), "actions[0].id"),
    (_action(id="a\0b"), "actions[0].id"),
    (_action(features=...), "actions[0].features"),
    (_action(features="kind"), "actions[0].features"),
    (_action(features=["kind"]), "actions[0].features[0]"),
    (asking("pasta", "pasta"), "actions[1].id"),
    (asking(contextFeatures={"user": {}}), "contextFeatures"),
    (asking(contextFeatures=[1]), "contextFeatures[0]"),
    (asking(excludedActions="pasta"), "excludedActions"),
    (asking(excludedActions=["pasta", "salad", "soup"]), "excludedActions"),
    (asking(eventId=LONG), "eventId"),
    (asking(eventId=""), "eventId"),
    (asking(eventId=1), "eventId"),
    (asking(deferActivation="yes"), "deferActivation"),
]


@pytest.mark.parametrize("preview", [False, True], ids=["v1.0", "preview"])
@pytest.mark.parametrize(("body", "target"), RANKS, ids=[f"{n}-{one[1]}" for n, one in enumerate(RANKS)])
def test_rank_calls_that_are_refused(service: Personalizer, body: Any, target: str, preview: bool) -> None:
    refused(service.call("POST", "/rank", body, preview), 400, "InvalidRankRequest", target, preview)


@pytest.mark.parametrize("preview", [False, True], ids=["v1.0", "preview"])
def test_a_body_that_is_not_json(service: Personalizer, preview: bool) -> None:
    answer = service.call("POST", "/rank", preview=preview, content=b"{not json")
    refused(answer, 400, "InvalidRankRequest", "body", preview)
    deep = b'{"a":' * 100_000
    refused(service.call("POST", "/rank", preview=preview, content=deep), 400, "InvalidRankRequest", "body", preview)


def test_features_that_are_nested_too_deep_or_no_numbers(service: Personalizer) -> None:
    deep: Any = 1
    for _ in range(60):
        deep = {"a": deep}
    answer = service.call("POST", "/rank", asking(contextFeatures=[deep]))
    refused(answer, 400, "InvalidRankRequest", "contextFeatures[0]", preview=False)
    for number in ("NaN", "Infinity", "1" + "0" * 400):
        content = json.dumps(asking(contextFeatures=[{"a": 0.5}])).replace("0.5", number)
        answer = service.call("POST", "/rank", content=content.encode())
        refused(answer, 400, "InvalidRankRequest", "contextFeatures[0]", preview=False)


def test_more_features_than_can_be_crossed(service: Personalizer) -> None:
    many = {f"f{number}": 1 for number in range(3000)}
    actions = [{"id": f"a{number}", "features": [many]} for number in range(2)]
    answer = service.call("POST", "/rank", {"actions": actions, "contextFeatures": [many]}, preview=True)
    refused(answer, 413, "PayloadSizeExceeded", "contextFeatures", preview=True)


@pytest.mark.parametrize("preview", [False, True], ids=["v1.0", "preview"])
def test_a_used_event_id_with_another_body(service: Personalizer, preview: bool) -> None:
    for body in (asking("pasta", "soup"), asking(contextFeatures=[]), asking(deferActivation=True)):
        answer = service.call("POST", "/rank", body | {"eventId": "there"}, preview)
        refused(answer, 409, "InvalidRankRequest", "eventId", preview)


@pytest.mark.parametrize("preview", [False, True], ids=["v1.0", "preview"])
@pytest.mark.parametrize("value", [..., None, 1.5, -1.01, "1", True, [1]], ids=str)
def test_rewards_that_are_refused(service: Personalizer, value: Any, preview: bool) -> None:
    answer = service.call("POST", "/events/there/reward", _with({}, value=value), preview)
    refused(answer, 400, "InvalidRewardRequest", "value", preview)


@pytest.mark.parametrize("preview", [False, True], ids=["v1.0", "preview"])
def test_events_that_nobody_knows(service: Personalizer, preview: bool) -> None:
    answer = service.call("POST", "/events/nobody/reward", {"value": 1}, preview)
    refused(answer, 404, "ResourceNotFound", "eventId", preview)
    answer = service.call("POST", "/events/nobody/activate", None, preview)
    refused(answer, 404, "ResourceNotFound", "eventId", preview)
    answer = service.call("POST", f"/events/{LONG}/reward", {"value": 1}, preview)
    refused(answer, 400, "BadRequest", "eventId", preview)


BAD_SLOTS: list[tuple[Any, str]] = [
    (_with(SLOTS, slots=...), "slots"),
    (_with(SLOTS, slots=[]), "slots"),
    (_with(SLOTS, slots=["top"]), "slots[0]"),
    (_with(SLOTS, slots=[{"baselineAction": "soup"}]), "slots[0].id"),
    (_with(SLOTS, slots=[{"id": "top"}]), "slots[0].baselineAction"),
    (_with(SLOTS, slots=[{"id": "top", "baselineAction": "fish"}]), "slots[0].baselineAction"),
    (
        _with(SLOTS, slots=[{"id": "top", "baselineAction": "soup", "excludedActions": ["soup"]}]),
        "slots[0].baselineAction",
    ),
    (_with(SLOTS, slots=[SLOTS["slots"][0], {"id": "side", "baselineAction": "soup"}]), "slots[1].baselineAction"),
    (_with(SLOTS, slots=[SLOTS["slots"][0], {"id": "top", "baselineAction": "pasta"}]), "slots[1].id"),
]


@pytest.mark.parametrize(("body", "target"), BAD_SLOTS, ids=[f"{n}-{one[1]}" for n, one in enumerate(BAD_SLOTS)])
def test_slots_that_are_refused(service: Personalizer, body: Any, target: str) -> None:
    answer = service.call("POST", "/multislot/rank", body, preview=True)
    refused(answer, 400, "InvalidRankRequest", target, preview=True)


def test_rewards_of_slots_that_are_refused(service: Personalizer) -> None:
    where = "/multislot/events/slots/reward"
    fine = {"slotId": "top", "value": 1.0}
    for told, target in (
        ({}, "reward"),
        ({"reward": []}, "reward"),
        ({"reward": [{"value": 1.0}]}, "reward[0].slotId"),
        ({"reward": [fine, {"slotId": "side", "value": 2}]}, "reward[1].value"),
        ({"reward": [fine, fine]}, "reward[1].slotId"),
    ):
        answer = service.call("POST", where, told, preview=True)
        refused(answer, 400, "InvalidRewardRequest", target, preview=True)
    answer = service.call("POST", where, {"reward": [fine, {"slotId": "nowhere", "value": 1.0}]}, preview=True)
    refused(answer, 404, "ResourceNotFound", "reward[1].slotId", preview=True)
    answer = service.call("POST", "/multislot/events/nobody/activate", preview=True)
    refused(answer, 404, "ResourceNotFound", "eventId", preview=True)


@pytest.mark.parametrize("asked", [{}, {"api-version": "2019-01-01"}], ids=["none", "another"])
def test_versions_that_are_not_known(service: Personalizer, asked: dict[str, str]) -> None:
    answer = service.request("POST", "/personalizer/rank", params=asked, json=asking())
    refused(answer, 400, "BadRequest", "api-version", preview=True)


def test_paths_and_methods_that_are_not_there(service: Personalizer) -> None:
    for path in ("/featureImportances", "/logs/interactions", "/nothing"):
        refused(service.call("GET", path, preview=True), 404, "ResourceNotFound", None, preview=True)
        refused(service.call("GET", path), 404, "ResourceNotFound", None, preview=False)
    answer = service.call("GET", "/rank")
    refused(answer, 405, "BadRequest", None, preview=False)


BAD_SETTINGS: list[tuple[str, Any, str]] = [
    ("rewardWaitTime", ..., "InvalidServiceConfiguration"),
    ("rewardWaitTime", "ten minutes", "InvalidRewardWaitTime"),
    ("rewardWaitTime", "PT4S", "InvalidRewardWaitTime"),
    ("rewardWaitTime", "P2DT1S", "InvalidRewardWaitTime"),
    ("rewardWaitTime", 600, "InvalidRewardWaitTime"),
    ("defaultReward", ..., "InvalidServiceConfiguration"),
    ("defaultReward", 1.5, "InvalidServiceConfiguration"),
    ("rewardAggregation", ..., "InvalidServiceConfiguration"),
    ("rewardAggregation", "mean", "InvalidServiceConfiguration"),
    ("explorationPercentage", ..., "InvalidServiceConfiguration"),
    ("explorationPercentage", 20, "InvalidServiceConfiguration"),
    ("modelExportFrequency", ..., "InvalidServiceConfiguration"),
    ("modelExportFrequency", "often", "InvalidServiceConfiguration"),
    ("logRetentionDays", ..., "InvalidServiceConfiguration"),
    ("logRetentionDays", 1, "InvalidLogRetentionDays"),
    ("logRetentionDays", -2, "InvalidLogRetentionDays"),
    ("logRetentionDays", 7.5, "InvalidLogRetentionDays"),
    ("modelRetrainDays", ..., "InvalidServiceConfiguration"),
    ("modelRetrainDays", 8, "InvalidModelRetrainDays"),
    ("modelRetrainDays", -1, "InvalidModelRetrainDays"),
    ("learningMode", "Offline", "InvalidServiceConfiguration"),
    ("logMirrorEnabled", True, "InvalidServiceConfiguration"),
    ("isAutoOptimizationEnabled", True, "InvalidServiceConfiguration"),
    ("isInferenceExplainabilityEnabled", "yes", "InvalidServiceConfiguration"),
]


@pytest.mark.parametrize(("name", "value", "code"), BAD_SETTINGS, ids=[f"{one[0]}-{one[1]}" for one in BAD_SETTINGS])
def test_configurations_that_are_refused(service: Personalizer, name: str, value: Any, code: str) -> None:
    before = service.call("GET", "/configurations/service", preview=True).json()
    answer = service.call("PUT", "/configurations/service", _with(CONFIGURATION, **{name: value}), preview=True)
    refused(answer, 400, code, name, preview=True)
    assert service.call("GET", "/configurations/service", preview=True).json() == before


def test_learning_settings_of_vowpal_wabbit_are_refused(service: Personalizer) -> None:
    told = {"name": "mine", "arguments": "--cb_explore_adf --epsilon 0.2"}
    answer = service.call("PUT", "/configurations/policy", told, preview=True)
    refused(answer, 400, "InvalidPolicyConfiguration", "arguments", preview=True)
    answer = service.call("PUT", "/configurations/policy", {"name": "mine"}, preview=True)
    refused(answer, 400, "InvalidPolicyContract", "arguments", preview=True)


BAD_EVALUATIONS: list[tuple[dict[str, Any], str, str]] = [
    ({"name": ...}, "InvalidEvaluationContract", "name"),
    ({"name": LONG}, "InvalidEvaluationContract", "name"),
    ({"startTime": ...}, "InvalidEvaluationContract", "startTime"),
    ({"endTime": "later"}, "InvalidEvaluationContract", "endTime"),
    ({"endTime": CONTRACT["startTime"]}, "InvalidEvaluationContract", "endTime"),
    ({"policies": ...}, "InvalidEvaluationContract", "policies"),
    ({"policies": [{"name": "a", "arguments": "--x"}]}, "InvalidEvaluationContract", "policies"),
    ({"policies": [{"name": "a", "arguments": "--x"}] * 2}, "DuplicateCustomPolicyNames", "policies"),
    ({"startTime": "2001-01-01T00:00:00Z", "endTime": "2001-01-02T00:00:00Z"}, "NoLogsExistInDateRange", "startTime"),
]


@pytest.mark.parametrize(
    ("changes", "code", "target"), BAD_EVALUATIONS, ids=[f"{n}" for n in range(len(BAD_EVALUATIONS))]
)
def test_evaluations_that_are_refused(service: Personalizer, changes: Any, code: str, target: str) -> None:
    answer = service.call("PUT", "/evaluations/mine", _with(CONTRACT, **changes), preview=True)
    refused(answer, 400, code, target, preview=True)
    answer = service.call("POST", "/evaluations", _with(CONTRACT, **changes))
    refused(answer, 400, code, target, preview=False)


def test_evaluations_that_are_not_there(service: Personalizer) -> None:
    for method in ("GET", "DELETE"):
        answer = service.call(method, "/evaluations/nothing", preview=True)
        refused(answer, 404, "EvaluationNotFound", "evaluationId", preview=True)
        refused(service.call(method, "/evaluations/nothing"), 404, "EvaluationNotFound", "evaluationId", preview=False)


def test_no_logs_have_no_properties() -> None:
    with serving() as service:
        answer = service.call("GET", "/logs/properties", preview=True)
        refused(answer, 404, "LogsPropertiesNotFound", None, preview=True)
