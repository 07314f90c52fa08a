"""Several slots: none is left empty, none has what another has, each is an event of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from live.making import Clock
from manyarms.service.personalizer import default_agent
from manyarms.service.personalizer.bodies import Slot
from manyarms.service.personalizer.slots import Filling, SlotEvents, slot_event
from service.personalizer.calling import Personalizer, asking, serving

SLOTS: list[dict[str, Any]] = [
    {"id": "top", "baselineAction": "soup", "excludedActions": ["salad"]},
    {"id": "side", "baselineAction": "pasta", "features": [{"size": "small"}]},
]


@pytest.fixture
def clock() -> Clock:
    """Seconds, moved by hand."""
    return Clock(1.8e9)


@pytest.fixture
def service(clock: Clock) -> Iterator[Personalizer]:
    """A service that explores much."""
    with serving(default_agent(exploration=1.0, seed=0), clock) as found:
        yield found


def _ask(service: Personalizer, **more: Any) -> dict[str, Any]:
    answer = service.call("POST", "/multislot/rank", {**asking(), "slots": SLOTS, **more}, preview=True)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_slots_have_different_actions_and_none_that_they_exclude(service: Personalizer) -> None:
    seen = set()
    for _ in range(60):
        top, side = (one["rewardActionId"] for one in _ask(service)["slots"])
        assert top != side
        assert top != "salad"
        seen.add((top, side))
    assert seen == {("soup", "pasta"), ("soup", "salad"), ("pasta", "soup"), ("pasta", "salad")}


def test_every_slot_is_filled_whatever_is_drawn(service: Personalizer) -> None:
    """The last slot may have one action alone: nobody before it may take that."""
    slots = [
        {"id": "a", "baselineAction": "pasta"},
        {"id": "b", "baselineAction": "soup", "excludedActions": ["pasta", "salad"]},
    ]
    for _ in range(30):
        a, b = (one["rewardActionId"] for one in _ask(service, slots=slots)["slots"])
        assert b == "soup"
        assert a in ("pasta", "salad")


def test_a_slot_is_offered_exactly_what_lets_the_others_be_filled() -> None:
    """Against all ways to fill the slots, for random exclusions."""
    rng = np.random.default_rng(0)
    names = ["a", "b", "c", "d"]
    for _ in range(200):
        baselines = rng.permutation(names)[:3].tolist()
        slots = [
            Slot(str(place), own, [], frozenset(n for n in names if n != own and rng.random() < 0.5))
            for place, own in enumerate(baselines)
        ]
        ways = [
            way
            for way in itertools.permutations(names, 3)
            if all(name not in slot.excluded for name, slot in zip(way, slots, strict=True))
        ]
        filling, taken = Filling(slots, names), ()
        for place in range(3):
            offered = filling.offered()
            assert set(offered) == {way[place] for way in ways if way[:place] == taken}
            chosen = str(rng.choice(offered))
            filling.take(chosen)
            taken = (*taken, chosen)


def test_the_same_id_and_body_have_the_same_answer(service: Personalizer) -> None:
    first = _ask(service, eventId="one")
    assert _ask(service, eventId="one") == first
    answer = service.call(
        "POST", "/multislot/rank", {**asking("fish", "soup", "pasta"), "slots": SLOTS, "eventId": "one"}, True
    )
    assert answer.status_code == 409


def test_each_slot_has_its_own_reward(service: Personalizer, clock: Clock) -> None:
    event = _ask(service)["eventId"]
    told = {"reward": [{"slotId": "side", "value": 1.0}]}
    assert service.call("POST", f"/multislot/events/{event}/reward", told, preview=True).status_code == 204
    assert service.learned() == 1
    clock.now += 601.0
    service.rank(asking())
    assert service.learned() == 2  # the other one has the default


def test_slots_are_activated_together(service: Personalizer) -> None:
    event = _ask(service, deferActivation=True)["eventId"]
    told = {"reward": [{"slotId": "top", "value": 1.0}, {"slotId": "side", "value": 0.0}]}
    service.call("POST", f"/multislot/events/{event}/reward", told, preview=True)
    assert service.learned() == 0
    assert service.call("POST", f"/multislot/events/{event}/activate", preview=True).status_code == 204
    assert service.learned() == 2


def test_slots_are_found_by_a_process_that_did_not_rank_them(service: Personalizer, clock: Clock) -> None:
    _ask(service, eventId="100%_one/two", deferActivation=True)
    _ask(service, eventId="100%_ONE/two", deferActivation=True)
    assert SlotEvents(service.live).of("100%_one/two") == ["100%25_one%2Ftwo/side", "100%25_one%2Ftwo/top"]
    assert SlotEvents(service.live).of("100%_") == []
    clock.now += 601.0
    service.rank(asking())
    assert SlotEvents(service.live).of("100%_one/two") == []  # too late to activate it


def test_apprentice_slots_show_their_baselines(service: Personalizer) -> None:
    service.configure(learningMode="Apprentice")
    for _ in range(5):
        assert [one["rewardActionId"] for one in _ask(service)["slots"]] == ["soup", "pasta"]


def test_events_of_slots_have_ids_that_a_store_takes() -> None:
    names = ["a", "a/b", "a%2Fb", "b", "x" * 256, "x" * 255 + "y", "%"]
    found = {slot_event(event, slot) for event in names for slot in names}
    assert len(found) == len(names) ** 2
    assert max(map(len, found)) <= 256
