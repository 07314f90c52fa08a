"""The clients and the service together, without a socket: what a client is told is what the store has."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import manyarms as ma
from client.scripted import AFTER, BEFORE
from live.small_store import D, K, small_agent
from live.small_store import quick_disk as quick_disk
from manyarms.client import (
    AsyncClient,
    Backoff,
    Client,
    EdgeClient,
    ServiceDecision,
    ServiceError,
    Unauthorised,
    in_process,
    in_process_async,
)
from manyarms.errors import Conflict, InvalidInput, LiveError, UnknownAction, UnknownEvent
from manyarms.live import Live
from manyarms.service import Service, create_app, make_config
from manyarms.service.keys import Keys

X = np.array([0.5, -1.0, 0.25])
URL, PATIENT = "http://localhost", 120.0


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    with ma.live.open(
        tmp_path / "store.db", small_agent(), default=0.0, wait=3600.0, reward_range=(-9.0, 9.0)
    ) as found:
        yield found


@pytest.fixture
def client(live: Live, tmp_path: Path) -> Iterator[Client]:
    (tmp_path / "agents").mkdir()
    small_agent(2).save(tmp_path / "agents" / "second")
    app = create_app(
        live,
        agents_folder=tmp_path / "agents",
        backups=tmp_path / "backups",
        edge=tmp_path / "edge",
        log_requests=False,
    )
    with Client(URL, transport=in_process(app), timeout=PATIENT) as found:
        yield found


def test_decisions_and_rewards(client: Client, live: Live) -> None:
    d = client.decide(X, k=3, exclude=[0], unit="u", propensity=True)
    assert len(d.actions) == 3 and 0 not in d.actions and 0 <= (d.propensity or 0) <= 1 and d.learning.version >= 0
    assert client.decide(X, k=3, exclude=[0], unit="u", propensity=True, id=d.id).actions == d.actions
    assert live.decide(X, k=3, exclude=[0], unit="u", propensity=True, id=d.id).actions == d.actions
    client.reward(d.id, 0.5)
    client.reward(d.id, 0.5)
    client.reward(d.id, 2, action=d.actions[1], id="click")
    event = client.event(d.id)
    assert [(one.action, one.id, one.value) for one in event.rewards] == [
        (d.action, "", 0.5), (d.actions[1], "click", 2.0),
    ]  # fmt: skip
    assert (event.actions, event.unit, event.context) == (d.actions, "u", X.tolist())
    why = client.why(d.id)
    assert why.action == d.action and why.explanation is not None and len(why.explanation.features) == D
    assert d.id in str(why) and str(client.report()) and str(client.status())


def test_errors_are_those_of_a_store(client: Client) -> None:
    d = client.decide(X)
    client.reward(d.id, 1.0)
    with pytest.raises(Conflict):
        client.reward(d.id, 2.0)
    with pytest.raises(Conflict):
        client.decide(-X, id=d.id)
    for call in (lambda: client.reward("nobody"), lambda: client.event("nobody"), lambda: client.why("nobody"),
                 lambda: client.activate("nobody"), lambda: client.erase("nobody")):  # fmt: skip
        with pytest.raises(UnknownEvent) as unknown:
            call()
        assert isinstance(unknown.value, ServiceError) and unknown.value.status == 404 and unknown.value.request_id
    with pytest.raises(InvalidInput) as wrong:
        client.decide(X[:2])
    assert wrong.value.expected and isinstance(wrong.value, ServiceError)
    with pytest.raises(InvalidInput):
        client.reward(d.id, 10.0, id="too much")
    with pytest.raises(UnknownAction):
        client.decide(X, candidates=[K + 5])
    with pytest.raises(LiveError) as refused:
        client.remove_agent("agent")
    assert not isinstance(refused.value, Conflict)


def test_deferred_decisions(client: Client) -> None:
    d = client.decide(X, deferred=True)
    assert not d.active and not client.event(d.id).active
    client.activate(d.id)
    client.activate(d.id)
    assert client.event(d.id).active


def test_batches(client: Client) -> None:
    found = client.decide_many([{"context": X}, {"context": [1.0]}, {"context": X.tolist(), "id": "mine", "k": 2}])
    assert isinstance(found[0], ServiceDecision) and isinstance(found[2], ServiceDecision) and found[2].id == "mine"
    assert isinstance(found[1], InvalidInput)
    told = client.reward_many([{"event": found[0].id}, {"event": "nobody"}, {"event": "mine", "value": 3.0}])
    assert told[0] is None and isinstance(told[1], UnknownEvent) and told[2] is None
    assert [one.id for one in islice(client.events(page=1), 2)] == ["mine", found[0].id]
    client.decide(X, unit="mine, too")
    assert len(list(client.events(text="mine"))) == 2 and len(list(client.events(since=1e10))) == 0
    assert {one.id for one in client.events(rewarded=True, arm="agent")} == {"mine", found[0].id}
    assert all(one.action == found[2].action for one in client.events(action=found[2].action, text=found[0].id))


def test_the_catalogue(client: Client, live: Live) -> None:
    assert [one.id for one in client.catalogue(page=4)] == list(range(K))
    assert client.add_actions(2, weights=np.ones((2, 2))) == (K, K + 1)
    client.retire([1, 2])
    client.reinstate(2)
    assert client.update_action(3, retired=True).retired and client.action(3).retired
    assert client.update_action(4, weights=[0.5, 0.5]).id == 4
    assert [one.id for one in client.catalogue(page=3) if one.retired] == [1, 3] and live.action_count == K + 2
    d = client.decide(X, k=K)
    assert set(d.actions) == {0, 2, 4, 5, K, K + 1}


def test_arms_and_the_store(client: Client, live: Live) -> None:
    client.load_agent("second", "second")
    assert {one.name: one.share for one in client.agents()} == {"agent": 1.0, "second": 0.0}
    assert client.deploy({"agent": 0.5, "second": 0.5}).shares == {"agent": 0.5, "second": 0.5}
    assert client.promote("second").shares == {"second": 1.0} and live.deployment.champion == "second"
    assert client.roll_back().shares == {"agent": 0.5, "second": 0.5} == client.deployment().shares
    assert client.settings().wait == 3600.0
    changed = client.change_settings(wait=60.0, default=None)
    assert (changed.wait, changed.default, changed.reward_range) == (60.0, None, (-9.0, 9.0))
    assert client.compact(1e6).dry_run and client.backup().bytes > 0 and client.health().ready
    d = client.decide(X)
    client.erase(d.id)
    assert client.event(d.id).erased or not client.event(d.id).actions
    assert client.status().version >= 1 and client.report().body["version"] >= 1


def test_async(live: Live) -> None:
    async def go() -> None:
        app = create_app(live, log_requests=False)
        async with AsyncClient(URL, transport=in_process_async(app), timeout=PATIENT) as client:
            found = await asyncio.gather(*(client.decide(X, id=f"e{i}") for i in range(20)))
            await asyncio.gather(*(client.reward(d.id, 1.0) for d in found))
            events = [event async for event in client.events(page=7)]
            assert {event.id: event.actions for event in events} == {d.id: d.actions for d in found}
            assert all(event.rewards[0].value == 1.0 for event in events)
            with pytest.raises(Conflict):
                await client.reward("e0", 2.0)

    asyncio.run(go())


class Lossy(httpx.BaseTransport):
    """A line that breaks before or after the service was reached, a third of the time."""

    def __init__(self, inner: httpx.BaseTransport, seed: int) -> None:
        self.inner, self.random = inner, random.Random(seed)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        luck = self.random.random()
        if luck < 0.15:
            raise BEFORE[self.random.choice(sorted(BEFORE))](request)
        answer = self.inner.handle_request(request)
        if luck < 0.3:
            raise AFTER[self.random.choice(sorted(AFTER))](request)
        return answer if luck > 0.35 else httpx.Response(self.random.choice([502, 503, 504]))

    def close(self) -> None:
        self.inner.close()


def test_over_a_bad_line_everything_is_stored_once(live: Live) -> None:
    told: dict[str, Any] = {}
    lossy = Lossy(in_process(create_app(live, log_requests=False)), seed=0)
    backoff = Backoff(sleep=lambda seconds: None)
    with Client(URL, transport=lossy, timeout=PATIENT, retries=30, backoff=backoff) as client:
        for number in range(60):
            d = client.decide(X * number, unit=f"u{number % 7}")
            client.reward(d.id, float(number % 3))
            told[d.id] = d.actions, float(number % 3)
        stored = {event.id: event for event in client.events()}
    assert {event.id: (event.actions, event.rewards[0].value) for event in stored.values()} == told
    assert all(len(event.rewards) == 1 for event in stored.values())


def test_keys(live: Live, tmp_path: Path) -> None:
    keys = Keys.open(tmp_path / "keys.json", make=True)
    shop, boss = keys.add("shop", ["decide", "reward"]), keys.add("boss", ["admin", "read"])
    config = make_config({}, {"store": "here", "keys": tmp_path / "keys.json", "log_requests": False})
    app = create_app(Service(live, config, keys=keys, owned=False))
    transport = in_process(app)
    client = Client(URL, shop, transport=transport, timeout=PATIENT)
    d = client.decide(X)
    with pytest.raises(Unauthorised) as caught:
        client.erase(d.id)
    assert caught.value.status == 403 and shop not in str(caught.value)
    with pytest.raises(Unauthorised) as caught:
        Client(URL, transport=transport, timeout=PATIENT).decide(X)
    assert caught.value.status == 401
    with Client(URL, boss, transport=transport, timeout=PATIENT) as other:
        other.erase(d.id)


def test_the_edge(client: Client, live: Live, tmp_path: Path) -> None:
    keys = client.edge_key()
    with EdgeClient(client, "agent", keys.public_key, queue=tmp_path / "queue.db", background=False) as edge:
        assert not edge.refresh()  # the same bundle: 304
        made = [edge.decide(X, exclude=[0]) for _ in range(30)]
        for d in made[::2]:
            edge.reward(d.id, 1.0)
        assert edge.upload() == 45 and edge.waiting == 0 and edge.refused == ()
        for d in made:
            event = client.event(d.id)
            assert (event.actions, event.arm) == ((d.action,), "agent") and event.propensity == pytest.approx(
                d.propensity
            )
            assert [one.value for one in event.rewards] == ([1.0] if d in made[::2] else [])
        edge._queue.put("decision", {**made[0].as_json(), "id": "forged", "propensity": 1.0})
        assert edge.upload() == 1 and isinstance(edge.refused[0], InvalidInput)
