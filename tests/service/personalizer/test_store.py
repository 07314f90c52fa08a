"""What Personalizer's calls leave in the store: it can be verified, exported, opened again; and many may call at once."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import manyarms as ma
from live.making import Clock
from live.postgres import Server, postgres
from manyarms.service.personalizer import default_agent, open_store
from manyarms.service.personalizer.kept import Kept
from service.personalizer.calling import Personalizer, asking, calling, chances, serving

__all__ = ["postgres"]  # a server, for the slow test that asks for it


def _use(service: Personalizer) -> None:
    """A bit of everything."""
    slots = {**asking(), "slots": [{"id": "top", "baselineAction": "soup"}, {"id": "side", "baselineAction": "pasta"}]}
    for number in range(8):
        answer = service.rank(asking("pasta", "salad", f"new {number}", contextFeatures=[{"n": number}]))
        service.reward(answer["eventId"], number / 8)
        if number % 3 == 0:
            service.learned()
    event = service.call("POST", "/multislot/rank", {**slots, "deferActivation": True}, preview=True).json()["eventId"]
    told = {"reward": [{"slotId": "top", "value": 1.0}]}
    assert service.call("POST", f"/multislot/events/{event}/reward", told, preview=True).status_code == 204
    assert service.call("POST", f"/multislot/events/{event}/activate", preview=True).status_code == 204
    service.configure(explorationPercentage=0.5, rewardWaitTime="PT1H", rewardAggregation="sum")
    service.reward(service.rank(asking())["eventId"], 0.5)
    assert service.call("DELETE", "/model").status_code == 204
    service.configure(learningMode="Apprentice")
    service.reward(service.rank(asking())["eventId"], 0.5)
    service.learned()


def test_every_decision_can_be_made_again(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with open_store(path, default_agent(seed=0, dim=32), background=False) as live, calling(live) as service:
        _use(service)
    replayed = ma.live.replay(path)
    assert replayed.ok, replayed


def test_a_store_that_is_opened_again_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with open_store(path, default_agent(seed=0, dim=32), background=False) as live, calling(live) as service:
        _use(service)
        before = service.call("GET", "/configurations/service", preview=True).json()
        first = service.rank(asking(eventId="one"))
    with open_store(path, default_agent(seed=0, dim=32), background=False) as live, calling(live) as service:
        assert service.call("GET", "/configurations/service", preview=True).json() == before
        assert service.rank(asking(eventId="one")) == first
        service.reward("one", 1.0)


def test_an_evaluation_that_was_running_when_the_service_ended_has_failed(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with open_store(path, background=False) as live, calling(live) as service:
        service.rank(asking())
        running = {"name": "mine", "start": 0.0, "end": 1.0, "created": 1.0, "status": "Running"}
        Kept(live, "evaluations").change(lambda kept: kept.update({"e": running}))
    with open_store(path, background=False) as live, calling(live) as service:
        assert service.call("GET", "/evaluations/e", preview=True).json()["status"] == "Failed"


def test_many_calls_at_once_with_new_actions() -> None:
    with serving() as service:

        async def one(number: int) -> int:
            body = asking(*(f"a{place}" for place in range(number % 5, number % 5 + 6)), eventId=f"e{number}")
            answer = await service._client.post("/personalizer/v1.0/rank", json=body)
            return int(answer.status_code)

        async def all_of_them() -> list[int]:
            return await asyncio.gather(*(one(number) for number in range(40)))

        assert set(service._portal.call(all_of_them)) == {201}
        assert service.live.catalogue is not None
        assert len(set(service.live.catalogue)) == len(service.live.catalogue) == 11


@pytest.fixture(scope="module")
def service() -> Any:
    """One for many examples."""
    with serving(clock=Clock(1.8e9)) as found:
        yield found


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)
features = st.lists(st.dictionaries(st.text(max_size=5), anything, max_size=3) | anything, max_size=3)
ids = st.sampled_from(["a", "b", "c"]) | st.text(max_size=4)
actions = st.lists(st.fixed_dictionaries({"id": ids, "features": features}) | anything, max_size=4)
ranks = st.fixed_dictionaries(
    {"actions": actions},
    optional={
        "contextFeatures": features,
        "excludedActions": st.lists(ids, max_size=2) | anything,
        "eventId": ids | st.none() | anything,
        "deferActivation": st.booleans() | anything,
        "slots": st.lists(
            st.fixed_dictionaries({"id": ids, "baselineAction": ids}, optional={"features": features}) | anything,
            max_size=3,
        ),
    },
)


@settings(deadline=None, max_examples=80, suppress_health_check=list(HealthCheck))
@given(body=ranks | anything, slots=st.booleans())
def test_any_body_has_an_answer(service: Personalizer, body: Any, slots: bool) -> None:
    answer = service.call("POST", "/multislot/rank" if slots else "/rank", preview=True, content=_json(body))
    assert answer.status_code in (201, 400, 409), answer.text
    if answer.status_code == 201 and not slots:
        assert sum(chances(answer.json()).values()) == pytest.approx(1.0)
    elif answer.status_code != 201:
        assert answer.json()["error"]["code"] == "InvalidRankRequest"


def _json(body: Any) -> bytes:
    return json.dumps(body).encode()


@pytest.mark.slow
def test_the_same_on_postgresql(postgres: Server) -> None:
    with (
        open_store(postgres.new_database(), default_agent(seed=0, dim=32), background=False) as live,
        calling(live) as service,
    ):
        _use(service)
        assert service.call("GET", "/logs/properties").status_code == 200
        assert service.call("DELETE", "/logs").status_code == 204
