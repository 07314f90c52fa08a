"""The API as a machine of states, against a model: what was answered before decides what must be answered now.

Events are decided, decided again, rewarded, activated, read, explained and erased; actions added, changed, retired and put back;
arms loaded, deployed, promoted, rolled back and removed, in any order. Afterwards the store replays.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import manyarms as ma
from live import tortured
from manyarms.client import in_process
from manyarms.service import create_app
from service.fuzz_checks import wrong_with
from service.server import save_agent

SAME = ("id", "action", "actions", "propensity", "propensity_kind", "arm", "version")


@dataclass
class Event:
    """What is known of an event."""

    question: dict[str, Any]
    answer: dict[str, Any]
    active: bool
    rewards: dict[tuple[int, str], float] = field(default_factory=dict)
    erased: bool = False


class Machine(RuleBasedStateMachine):
    """A service, and what it should say."""

    @initialize()
    def start(self) -> None:
        self.stack = ExitStack()
        self.folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        for name in tortured.OTHERS:
            save_agent(self.folder / "agents" / name, thompson=name == "third")
        live = self.stack.enter_context(
            ma.live.open(self.folder / "live.db", tortured.fresh_agent(), aggregate="sum", wait=3600.0, fold_every=0.05)
        )
        app = create_app(live, agents_folder=self.folder / "agents")
        self.client = self.stack.enter_context(
            httpx.Client(transport=in_process(app), base_url="http://localhost", timeout=60.0)
        )
        self.events: dict[str, Event] = {}
        self.retired = dict.fromkeys(range(tortured.ACTIONS), False)
        self.arms, self.shares = {"agent"}, {"agent"}
        self.ask_of_what_never_was()
        self.take_several(3)

    def ask_of_what_never_was(self) -> None:
        self.ask("POST", "/v1/reward", {"event": "never", "value": 1}, 404)
        self.ask("POST", "/v1/activate", {"event": "never"}, 404)
        for method, path in (
            ("GET", "/v1/events/never"),
            ("GET", "/v1/events/never/why"),
            ("DELETE", "/v1/events/never"),
        ):
            self.ask(method, path, None, 404)
        self.ask("GET", "/v1/catalogue/999", None, 404)
        self.ask("POST", "/v1/agents/never/promote", None, 404)
        self.ask("DELETE", "/v1/agents/never", None, 404)
        self.ask("POST", "/v1/agents", {"name": "never", "folder": "../agents/other"}, 422)
        self.ask("PUT", "/v1/deployment", {"shares": {"never": 1.0}}, 409, 422)

    def ask(self, method: str, path: str, body: object, *statuses: int) -> httpx.Response:
        """A request, answered with one of these statuses and as every request is."""
        answer = self.client.request(method, path, **({} if body is None else {"json": body}))
        assert answer.status_code in statuses, (method, path, body, answer.status_code, answer.text)
        assert wrong_with(answer) == []
        return answer

    def some(self, data: st.DataObject, *, erased: bool | None = None) -> Event:
        names = [name for name, event in self.events.items() if erased is None or event.erased is erased]
        return self.events[data.draw(st.sampled_from(names))]

    @property
    def left(self) -> list[int]:
        """Actions that can be chosen."""
        return [action for action, retired in self.retired.items() if not retired]

    # ---- events

    @rule(number=st.integers(1, 4))
    def decide_several(self, number: int) -> None:
        self.take_several(number)

    def take_several(self, number: int) -> None:
        """At once: the same as one by one."""
        names = [f"one of several {len(self.events) + n}" for n in range(number)]
        questions = [
            {"context": tortured.context_of(name).tolist(), "deferred": False, "id": name, "unit": None}
            for name in names
        ]
        told = self.ask("POST", "/v1/decide/batch", {"decisions": [*questions, {"context": [1.0]}]}, 200).json()[
            "decisions"
        ]
        assert [one["status"] for one in told] == [200] * number + [422]
        for question, answer in zip(questions, told, strict=False):
            assert answer["id"] == question["id"] and set(answer["actions"]) <= set(self.left)
            self.events[answer["id"]] = Event(question, answer, True)

    @rule(data=st.data(), named=st.booleans(), deferred=st.booleans(), k=st.sampled_from([None, None, 1, 2, 3, 50]))
    def decide(self, data: st.DataObject, named: bool, deferred: bool, k: int | None) -> None:
        name = f"event {len(self.events)}"
        question: dict[str, Any] = {"context": tortured.context_of(name).tolist(), "deferred": deferred}
        question |= {"id": name} if named else {}
        question |= {} if k is None else {"k": k}
        question["exclude"] = data.draw(st.lists(st.sampled_from(self.left), max_size=2, unique=True))
        question["unit"] = data.draw(st.sampled_from([None, "one", "two"]))
        chosen = [action for action in self.left if action not in question["exclude"]]
        if (k or 1) > len(chosen):
            self.ask("POST", "/v1/decide", question, 422)
            return
        answer = self.ask("POST", "/v1/decide", question, 200).json()
        assert len(answer["actions"]) == (k or 1) and set(answer["actions"]) <= set(chosen)
        assert answer["arm"] in self.shares and answer["active"] is not deferred and answer["logged"]
        assert answer["propensity"] is None or 0.0 < answer["propensity"] <= 1.0
        assert not named or answer["id"] == name
        self.events[answer["id"]] = Event({**question, "id": answer["id"]}, answer, not deferred)

    @precondition(lambda self: any("id" in e.question and not e.erased for e in self.events.values()))
    @rule(data=st.data())
    def decide_again(self, data: st.DataObject) -> None:
        event = self.some(data, erased=False)
        again = self.ask("POST", "/v1/decide", event.question, 200).json()
        assert {name: again[name] for name in SAME} == {name: event.answer[name] for name in SAME}
        assert again["active"] is event.active
        self.ask("POST", "/v1/decide", {**event.question, "context": [9.0, 9.0, 9.0]}, 409)

    @precondition(lambda self: self.events)
    @rule(data=st.data(), id=st.sampled_from(tortured.REWARD_IDS), value=st.sampled_from([0.0, 0.5, 1.0]))
    def reward(self, data: st.DataObject, id: str, value: float) -> None:
        event = self.some(data)
        action = data.draw(st.sampled_from(event.answer["actions"]))
        body = {"event": event.answer["id"], "action": action, "id": id, "value": value}
        if event.erased:
            self.ask("POST", "/v1/reward", body, 404)
        elif event.rewards.get((action, id), value) != value:
            self.ask("POST", "/v1/reward", body, 409)
        else:
            self.ask("POST", "/v1/reward", body, 204)
            event.rewards[action, id] = value
        other = next(one for one in range(99) if one not in event.answer["actions"])
        self.ask("POST", "/v1/reward", {**body, "action": other}, *((404,) if event.erased else (404, 409, 422)))

    @precondition(lambda self: self.events)
    @rule(data=st.data())
    def activate(self, data: st.DataObject) -> None:
        event = self.some(data)
        self.ask("POST", "/v1/activate", {"event": event.answer["id"]}, 404 if event.erased else 204)
        event.active = event.active or not event.erased

    @precondition(lambda self: self.events)
    @rule(data=st.data())
    def read(self, data: st.DataObject) -> None:
        event = self.some(data)
        told = self.ask("GET", f"/v1/events/{event.answer['id']}", None, 200).json()
        assert told["erased"] is event.erased
        if event.erased:  # that there was one, and nothing else
            assert (
                told["actions"] == told["rewards"] == []
                and told["context"] is told["unit"] is told["propensity"] is None
            )
            self.ask("GET", f"/v1/events/{event.answer['id']}/why", None, 404, 409)
            return
        assert told["actions"] == event.answer["actions"] and told["active"] is event.active
        assert told["context"] == event.question["context"] and told["unit"] == event.question["unit"]
        assert {(one["action"], one["id"]): one["value"] for one in told["rewards"]} == event.rewards
        self.ask("GET", f"/v1/events/{event.answer['id']}/why", None, 200)

    @precondition(lambda self: any(not event.erased for event in self.events.values()))
    @rule(data=st.data())
    def erase(self, data: st.DataObject) -> None:
        event = self.some(data, erased=False)
        self.ask("DELETE", f"/v1/events/{event.answer['id']}", None, 204)
        event.erased = True

    # ---- the catalogue

    @rule(number=st.integers(0, 8))
    def add(self, number: int) -> None:
        new = len(self.retired)
        told = self.ask("POST", "/v1/catalogue", {"weights": tortured.weights_of(number)}, 201).json()
        assert told["ids"] == [new]
        self.retired[new] = False

    @rule(data=st.data(), number=st.integers(0, 8))
    def change(self, data: st.DataObject, number: int) -> None:
        action = data.draw(st.sampled_from(sorted(self.retired)))
        told = self.ask("PATCH", f"/v1/catalogue/{action}", {"weights": tortured.weights_of(number)[0]}, 200).json()
        assert told["id"] == action and told["retired"] is self.retired[action]

    @rule(data=st.data(), retired=st.booleans(), patch=st.booleans())
    def retire_or_reinstate(self, data: st.DataObject, retired: bool, patch: bool) -> None:
        some = [action for action, is_now in self.retired.items() if is_now is not retired]
        if not some or (retired and len(some) <= 6):
            return
        action = data.draw(st.sampled_from(some))
        if patch:
            self.ask("PATCH", f"/v1/catalogue/{action}", {"retired": retired}, 200)
        else:
            self.ask("POST", f"/v1/catalogue/{'retire' if retired else 'reinstate'}", {"actions": [action]}, 204)
        self.retired[action] = retired
        assert self.ask("GET", f"/v1/catalogue/{action}", None, 200).json()["retired"] is retired

    @precondition(lambda self: any(self.retired.values()))
    @rule()
    def choose_among_the_retired(self) -> None:
        gone = [action for action, retired in self.retired.items() if retired]
        self.ask("POST", "/v1/decide", {"context": [0.0, 0.0, 1.0], "candidates": gone}, 422)

    # ---- arms

    @rule(name=st.sampled_from(tortured.OTHERS))
    def load(self, name: str) -> None:
        """An arm that knows as many actions as there are."""
        fits = name not in self.arms and len(self.retired) == tortured.ACTIONS
        self.ask("POST", "/v1/agents", {"name": name, "folder": name}, 201) if fits else self.ask(
            "POST", "/v1/agents", {"name": name, "folder": name}, 409, 422
        )
        self.arms |= {name} if fits else set()

    @precondition(lambda self: len(self.arms) > 1)
    @rule(data=st.data())
    def deploy(self, data: st.DataObject) -> None:
        names = data.draw(st.lists(st.sampled_from(sorted(self.arms)), min_size=1, max_size=2, unique=True))
        told = self.ask("PUT", "/v1/deployment", {"shares": {name: 1.0 / len(names) for name in names}}, 200).json()
        assert set(told["shares"]) == set(names)
        self.shares = set(names)

    @precondition(lambda self: len(self.arms) > 1)
    @rule(data=st.data())
    def promote(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.arms)))
        assert set(self.ask("POST", f"/v1/agents/{name}/promote", None, 200).json()["shares"]) == {name}
        self.shares = {name}

    @rule()
    def roll_back(self) -> None:
        """To what was deployed before, if anything was, and if its arms are still there."""
        answer = self.ask("POST", "/v1/agents/roll-back", None, 200, 409)
        if answer.status_code == 200:
            self.shares = set(answer.json()["shares"])
            assert self.shares <= self.arms

    @rule(name=st.sampled_from(tortured.OTHERS))
    def remove(self, name: str) -> None:
        answer = self.ask("DELETE", f"/v1/agents/{name}", None, *((204, 409) if name in self.arms else (404,)))
        if answer.status_code == 204:
            assert name not in self.shares
            self.arms.discard(name)

    # ---- always

    @invariant()
    def says_who_decides(self) -> None:
        if hasattr(self, "client"):
            assert set(self.ask("GET", "/v1/deployment", None, 200).json()["shares"]) == self.shares
            assert {one["name"] for one in self.ask("GET", "/v1/agents", None, 200).json()["agents"]} == self.arms
            assert self.ask("GET", "/v1/catalogue?limit=1", None, 200).json()["count"] == len(self.retired)

    def teardown(self) -> None:
        if hasattr(self, "client"):
            with self.stack:
                told = self.ask("GET", "/v1/events?limit=200", None, 200).json()["events"]
                self.client.close()
                found = ma.live.replay(self.folder / "live.db")
                assert found.ok, str(found)
                assert {one["id"] for one in told} <= set(self.events)


def run(examples: int, steps: int, *, always_the_same: bool) -> None:
    chosen = settings(
        max_examples=examples, stateful_step_count=steps, deadline=None, derandomize=always_the_same, database=None,
        suppress_health_check=list(HealthCheck), print_blob=False, phases=[Phase.generate],
    )  # fmt: skip
    machine: Callable[[], RuleBasedStateMachine] = Machine
    run_state_machine_as_test(machine, settings=chosen)  # type: ignore[no-untyped-call]


def test_the_api_is_what_its_model_says() -> None:
    run(8, 30, always_the_same=True)


@pytest.mark.slow
def test_the_api_is_what_its_model_says_for_long() -> None:
    run(150, 60, always_the_same=False)
