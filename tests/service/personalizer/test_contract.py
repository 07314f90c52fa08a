"""Every row of Personalizer's interface: paths, status codes, bodies, in the stable version and in the preview."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import manyarms as ma
from live.making import Clock
from service.personalizer.calling import STABLE, Personalizer, asking, chances, serving, until

BOTH = pytest.mark.parametrize("preview", [False, True], ids=["v1.0", "preview"])


@pytest.fixture
def clock() -> Clock:
    """Seconds, moved by hand."""
    return Clock(1.8e9)


@pytest.fixture
def service(clock: Clock) -> Iterator[Personalizer]:
    """A service that knows nothing beforehand."""
    with serving(clock=clock) as found:
        yield found


# ---- what an application calls


@BOTH
def test_rank(service: Personalizer, preview: bool) -> None:
    answer = service.call("POST", "/rank", asking("pasta", "salad", eventId="one"), preview)
    assert answer.status_code == 201
    body = answer.json()
    assert body.keys() == {"ranking", "eventId", "rewardActionId"}
    assert body["eventId"] == "one"
    assert body["rewardActionId"] in ("pasta", "salad")
    assert [one.keys() for one in body["ranking"]] == [{"id", "probability"}] * 2
    assert {one["id"] for one in body["ranking"]} == {"pasta", "salad"}


@pytest.mark.parametrize("version", ["v1.1-preview.1", "v1.1-preview.2", "v1.1-preview.3"])
def test_older_previews_have_their_version_in_the_path(service: Personalizer, version: str) -> None:
    base = f"/personalizer/{version}"
    assert service.request("POST", f"{base}/rank", json=asking(eventId="one")).status_code == 201
    assert service.request("POST", f"{base}/events/one/reward", json={"value": 1}).status_code == 204
    slots = {**asking(), "slots": [{"id": "top", "baselineAction": "soup"}]}
    assert service.request("POST", f"{base}/multislot/rank", json=slots).status_code == 201


@BOTH
def test_reward(service: Personalizer, preview: bool) -> None:
    event = service.rank(asking(), preview)["eventId"]
    answer = service.call("POST", f"/events/{event}/reward", {"value": 0.5}, preview)
    assert (answer.status_code, answer.content) == (204, b"")


@BOTH
def test_activate(service: Personalizer, preview: bool) -> None:
    event = service.rank(asking(deferActivation=True), preview)["eventId"]
    answer = service.call("POST", f"/events/{event}/activate", None, preview)
    assert (answer.status_code, answer.content) == (204, b"")


def test_several_slots(service: Personalizer) -> None:
    slots = [
        {"id": "top", "baselineAction": "soup", "features": [{"size": "large"}], "excludedActions": ["salad"]},
        {"id": "side", "baselineAction": "pasta"},
    ]
    answer = service.call("POST", "/multislot/rank", {**asking(), "slots": slots, "eventId": "one"}, preview=True)
    assert answer.status_code == 201
    body = answer.json()
    assert body.keys() == {"slots", "eventId"}
    assert body["eventId"] == "one"
    assert [one.keys() for one in body["slots"]] == [{"id", "rewardActionId"}] * 2
    assert [one["id"] for one in body["slots"]] == ["top", "side"]
    told = {"reward": [{"slotId": "top", "value": 1.0}, {"slotId": "side", "value": 0.0}]}
    answer = service.call("POST", "/multislot/events/one/reward", told, preview=True)
    assert (answer.status_code, answer.content) == (204, b"")
    answer = service.call("POST", "/multislot/events/one/activate", preview=True)
    assert (answer.status_code, answer.content) == (204, b"")


def test_several_slots_are_not_in_the_stable_version(service: Personalizer) -> None:
    assert service.call("POST", "/multislot/rank", {}).status_code == 404


# ---- configuration


CONFIGURATION: dict[str, Any] = {
    "rewardWaitTime": "PT4H", "defaultReward": -0.5, "rewardAggregation": "sum", "explorationPercentage": 0.3,
    "modelExportFrequency": "PT5M", "logRetentionDays": 7, "modelRetrainDays": 0,
}  # fmt: skip


@BOTH
def test_configuration(service: Personalizer, preview: bool) -> None:
    before = service.call("GET", "/configurations/service", preview=preview)
    assert before.status_code == 200
    assert {
        "rewardWaitTime": "PT10M",
        "defaultReward": 0,
        "rewardAggregation": "earliest",
    }.items() <= before.json().items()
    assert before.json()["explorationPercentage"] == 0.2
    assert before.json()["learningMode"] == "Online"
    answer = service.call("PUT", "/configurations/service", CONFIGURATION, preview)
    assert answer.status_code == 200
    assert answer.json().items() >= CONFIGURATION.items()
    assert service.call("GET", "/configurations/service", preview=preview).json() == answer.json()


@BOTH
def test_learning_settings(service: Personalizer, preview: bool) -> None:
    answer = service.call("GET", "/configurations/policy", preview=preview)
    assert answer.status_code == 200
    assert answer.json().keys() == {"name", "arguments"}
    assert len(answer.json()["arguments"]) <= 1024
    again = service.call("PUT", "/configurations/policy", answer.json(), preview)
    assert (again.status_code, again.json()) == (200, answer.json())
    reset = service.call("DELETE", "/configurations/policy", preview=preview)
    assert (reset.status_code, reset.json()) == (200, answer.json())


# ---- model and logs


@BOTH
def test_model(service: Personalizer, preview: bool, tmp_path: Path) -> None:
    service.reward(service.rank(asking(), preview)["eventId"], 1.0)
    service.learned()
    answer = service.call("GET", "/model", preview=preview)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/octet-stream")
    zipfile.ZipFile(io.BytesIO(answer.content)).extractall(tmp_path)
    agent = ma.load(tmp_path)
    assert list(agent.catalogue)[-3:] == ["pasta", "salad", "soup"]
    told = service.call("GET", "/model/properties", preview=preview)
    assert told.status_code == 200
    assert told.json().keys() == {"creationTime", "lastModifiedTime"}
    gone = service.call("DELETE", "/model", preview=preview)
    assert (gone.status_code, gone.content) == (204, b"")


@BOTH
def test_logs(service: Personalizer, preview: bool) -> None:
    service.rank(asking(), preview)
    answer = service.call("GET", "/logs/properties", preview=preview)
    assert answer.status_code == 200
    assert answer.json()["dateRange"].keys() == {"from", "to"}
    gone = service.call("DELETE", "/logs", preview=preview)
    assert (gone.status_code, gone.content) == (204, b"")


# ---- evaluations


def _some_events(service: Personalizer, clock: Clock) -> None:
    for number in range(20):
        service.reward(service.rank(asking(eventId=f"e{number}"))["eventId"], float(number % 2))
        clock.now += 60.0
    clock.now += 600.0
    service.rank(asking())  # the log's clock goes on by what is written
    service.learned()


CONTRACT = {"name": "mine", "startTime": "2027-01-15T00:00:00Z", "endTime": "2027-01-16T00:00:00Z", "policies": []}


def test_evaluations_of_the_stable_version(service: Personalizer, clock: Clock) -> None:
    _some_events(service, clock)
    begun = service.call("POST", "/evaluations", CONTRACT)
    assert begun.status_code == 201
    name = begun.json()["id"]
    assert begun.headers["location"] == f"{STABLE}/evaluations/{name}"
    assert begun.json()["status"] == "pending"
    until(lambda: service.call("GET", f"/evaluations/{name}").json()["status"] == "completed")
    body = service.call("GET", f"/evaluations/{name}").json()
    fields = {"id", "name", "startTime", "endTime", "jobId", "status", "policyResults", "featureImportance"}
    assert body.keys() == fields
    assert [one["name"] for one in body["policyResults"]] == ["Online Policy", "Baseline Policy", "Random Policy"]
    total = body["policyResults"][0]["totalSummary"]
    assert total.keys() == {
        "timeStamp", "ipsEstimatorNumerator", "ipsEstimatorDenominator", "snipsEstimatorDenominator", "aggregateTimeWindow",
        "nonZeroProbability", "confidenceInterval", "sumOfSquares",
    }  # fmt: skip
    assert (total["ipsEstimatorNumerator"], total["ipsEstimatorDenominator"]) == (10.0, 20.0)
    assert service.call("GET", "/evaluations").json() == [body]
    gone = service.call("DELETE", f"/evaluations/{name}")
    assert (gone.status_code, gone.content) == (204, b"")
    assert service.call("GET", "/evaluations").json() == []


def test_evaluations_of_the_preview(service: Personalizer, clock: Clock) -> None:
    _some_events(service, clock)
    begun = service.call("PUT", "/evaluations/mine", CONTRACT, preview=True)
    assert (begun.status_code, begun.content) == (200, b"")
    asked = {"startTime": CONTRACT["startTime"], "endTime": CONTRACT["endTime"], "intervalInMinutes": 5}

    def body() -> Any:
        return service.call("GET", "/evaluations/mine", preview=True, params=asked).json()

    until(lambda: bool(body()["status"] == "Succeeded"))
    content = body()["content"]
    assert content.keys() == {"startTime", "endTime", "intervalInMinutes", "value"}
    assert [one["policySource"] for one in content["value"]] == ["Online", "Baseline", "Random"]
    online = content["value"][0]
    assert online["summary"]["expectedReward"] == pytest.approx(0.5)
    low, high = online["summary"]["confidenceInterval"]
    assert -1 <= low <= 0.5 <= high <= 1
    assert len(online["timeseries"]["data"]) == 4  # twenty minutes
    listed = service.call("GET", "/evaluations", preview=True).json()
    assert [one["id"] for one in listed["value"]] == ["mine"]
    assert service.call("DELETE", "/evaluations/mine", preview=True).status_code == 204
    assert service.call("GET", "/evaluations", preview=True).json()["value"] == []


# ---- whoever asks for something else


def test_excluded_actions_are_listed_with_probability_0(service: Personalizer) -> None:
    answer = service.rank(asking("pasta", "salad", "soup", excludedActions=["pasta"]))
    assert answer["ranking"][0]["id"] == "pasta"
    assert chances(answer)["pasta"] == 0.0
    assert answer["rewardActionId"] != "pasta"
