"""Trying again is safe: whatever fails, each decision and each reward is stored once, and the client is told what was stored."""

from __future__ import annotations

import asyncio
import json
import random
from email.utils import format_datetime
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.every_call import CASES
from client.scripted import (
    AFTER,
    BEFORE,
    BOTH,
    DONE_STATUSES,
    FAILURES,
    NEVER_CONNECTED,
    UNDONE_STATUSES,
    Async,
    Pauses,
    Scripted,
    Sync,
    decision,
    problem,
)
from manyarms.client import AsyncClient, Backoff, Client, ServiceError, Unreachable
from manyarms.errors import Conflict, InvalidInput, Overloaded, UnknownEvent

X = [0.5, 1.0]


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("failure", FAILURES)
def test_a_decision_after_a_failure_is_the_one_that_was_stored(kind: type[Sync] | type[Async], failure: str) -> None:
    server = Scripted([failure])
    client = kind(server)
    d = client("decide", X)
    assert len(server.seen) == 2 and server.stored == {("decision", d.id): 1}
    assert server.seen[0].content == server.seen[1].content  # the same id, made before the first try
    assert d.action == server.decisions[d.id][1]["action"]
    assert len(client.pauses.seconds) == 1


calls = st.one_of(
    st.tuples(st.just("decide"), st.integers(0, 3)),
    st.tuples(st.just("decide anew"), st.just(0)),
    st.tuples(st.just("decide_many"), st.integers(1, 4)),
    st.tuples(st.just("reward"), st.integers(0, 3)),
    st.tuples(st.just("reward_many"), st.integers(1, 4)),
    st.tuples(st.just("activate"), st.integers(0, 3)),
)


@pytest.mark.parametrize("kind", BOTH)
@given(steps=st.lists(calls, max_size=8), failures=st.lists(st.none() | st.sampled_from(FAILURES), max_size=30))
def test_everything_is_stored_once_and_told_truly(
    kind: type[Sync] | type[Async], steps: list[tuple[str, int]], failures: list[str | None]
) -> None:
    server = Scripted(failures)
    client = kind(server, retries=2)
    told: dict[str, object] = {}

    def tried(name: str, *arguments: Any, **options: Any) -> Any:
        """The result of a call; where it fails for good, that of the same call once nothing fails any more."""
        try:
            return client(name, *arguments, **options)
        except UnknownEvent:
            return None
        except ServiceError as error:
            assert isinstance(error, Unreachable) or error.status in (429, 502, 503, 504)
            if name == "decide" and "id" not in options:
                return None  # nobody knows its id: stored once, or not at all
            rest, server.failures = server.failures, []
            try:
                return client(name, *arguments, **options)
            except UnknownEvent:
                return None
            finally:
                server.failures = rest

    for name, number in steps:
        if name == "decide":
            d = tried("decide", X, id=f"e{number}")
            assert told.setdefault(d.id, d.action) == d.action
        elif name == "decide anew":
            d = tried("decide", X)
            if d is not None:
                assert d.id not in told
                told[d.id] = d.action
        elif name == "decide_many":
            for i, d in enumerate(tried("decide_many", [{"context": X, "id": f"e{i}"} for i in range(number)])):
                assert d.id == f"e{i}" and told.setdefault(d.id, d.action) == d.action
        elif name == "reward":
            tried("reward", f"e{number}", float(number), id="click")
        elif name == "reward_many":
            found = tried("reward_many", [{"event": f"e{i}", "value": float(i), "id": "click"} for i in range(number)])
            for i, error in enumerate(found):
                assert error is None if f"e{i}" in server.decisions else isinstance(error, UnknownEvent)
        else:
            tried("activate", f"e{number}")

    assert set(server.stored.values()) <= {1}
    for event, action in told.items():
        assert server.decisions[event][1]["action"] == action
    for (event, _, _), value in server.rewards.items():
        assert value == float(event.removeprefix("e"))


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("failure", FAILURES)
def test_who_is_tried_again(kind: type[Sync] | type[Async], failure: str) -> None:
    """Operations have no ids: only where no connection was made."""
    for case in CASES:
        tries = []

        def handler(request: httpx.Request, tries: list[str] = tries) -> httpx.Response:
            tries.append(request.method)
            if len(tries) > 1:
                return httpx.Response(500)
            if failure in BEFORE | AFTER:
                raise (BEFORE | AFTER)[failure](request)
            return httpx.Response(int(failure), json=problem(int(failure), "overloaded"))

        with pytest.raises(ServiceError) as caught:
            kind(handler)(case.name, *case.arguments, **case.given)
        repeated = case.again or failure in NEVER_CONNECTED
        assert len(tries) == 1 + repeated, case
        assert (caught.value.status == 500) is repeated, case


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 413, 415, 421, 422, 500, 501, 301])
def test_what_is_refused_for_good_is_not_tried_again(kind: type[Sync] | type[Async], status: int) -> None:
    seen = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(status, headers={"Location": "https://elsewhere.example.org/"})

    with pytest.raises(ServiceError) as caught:
        kind(handler)("decide", X)
    assert len(seen) == 1 and caught.value.status == status


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("retries", [0, 1, 4])
def test_it_ends_and_says_why(kind: type[Sync] | type[Async], retries: int) -> None:
    for failure in (*BEFORE, *AFTER):
        server = Scripted([failure] * 9)
        with pytest.raises(Unreachable, match=failure) as caught:
            kind(server, retries=retries)("reward", "e")
        assert len(server.seen) == retries + 1 and caught.value.status is None
        assert isinstance(caught.value.__cause__, httpx.RequestError)
    for status in (*UNDONE_STATUSES, *DONE_STATUSES):
        server = Scripted([status] * 9)
        with pytest.raises(ServiceError) as refused:
            kind(server, retries=retries)("decide", X)
        assert len(server.seen) == retries + 1 and refused.value.status == int(status)
        if status in UNDONE_STATUSES:
            assert isinstance(refused.value, Overloaded) and refused.value.retry_after == 7.0


@pytest.mark.parametrize("kind", BOTH)
def test_entries_of_a_batch_that_are_refused_for_now_are_asked_for_again(kind: type[Sync] | type[Async]) -> None:
    server = Scripted()
    refusals = [1, 1, 0]

    def handler(request: httpx.Request) -> httpx.Response:
        answer = server(request)
        if refusals and refusals.pop(0):
            entries = json.loads(answer.content)["decisions"]
            entries[1] = {**problem(503, "store-unavailable")}
            return httpx.Response(200, json={"decisions": entries})
        return answer

    client = kind(handler)
    found = client("decide_many", [{"context": X} for _ in range(3)])
    assert [d.id for d in found] == list(server.decisions) and set(server.stored.values()) == {1}
    assert len(server.seen) == 3 and len(client.pauses.seconds) == 2
    refusals += [1] * 9
    found = client("decide_many", [{"context": X} for _ in range(3)])
    assert found[1].status == 503 and found[0].id in server.decisions  # the others are not lost with it


def test_pauses_grow_and_are_drawn_from_zero_on() -> None:
    rng = random.Random(0)
    backoff = Backoff(first=0.1, longest=1.0, random=rng.random)
    for tried in range(1, 20):
        ceiling = min(1.0, 0.1 * 2 ** (tried - 1))
        drawn = [backoff.wait(tried, None) for _ in range(200)]
        assert 0 <= min(drawn) < 0.1 * ceiling and 0.9 * ceiling < max(drawn) <= ceiling
    assert Backoff(random=lambda: 0.999).wait(10_000, None) <= 5.0


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(
    ("asked", "waited"),
    [
        ("3", 3.05),
        ("0", 0.05),
        ("100000", 30.0),
        ("soon", 0.05),
        ("", 0.05),
        ("-3", 0.05),
        ("9" * 400, 30.0),
        ("١", 0.05),
    ],
)
def test_the_service_says_how_long_to_wait_within_bounds(
    kind: type[Sync] | type[Async], asked: str, waited: float
) -> None:
    answers = [httpx.Response(503, headers=[(b"Retry-After", asked.encode())]), httpx.Response(200, json=decision("e"))]
    client = kind(lambda request: answers.pop(0))
    client("decide", X, id="e")
    assert client.pauses.seconds == pytest.approx([waited])


def test_a_date_to_wait_for() -> None:
    from datetime import UTC, datetime

    backoff = Backoff(now=lambda: 1_000_000.0)
    said = format_datetime(datetime.fromtimestamp(1_000_012.0, UTC), usegmt=True)
    answers = [httpx.Response(429, headers={"Retry-After": said}), httpx.Response(204)]
    pauses = Pauses()
    client = Client(
        "http://localhost", transport=httpx.MockTransport(lambda request: answers.pop(0)),
        backoff=Backoff(sleep=pauses, now=backoff.now, random=lambda: 0.0),
    )  # fmt: skip
    client.reward("e")
    assert pauses.seconds == [12.0]


def test_an_async_client_awaits_its_pauses() -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    async def go(backoff: Backoff) -> None:
        server = Scripted(["refused", "503"])
        async with AsyncClient("http://localhost", transport=httpx.MockTransport(server), backoff=backoff) as client:
            d = await client.decide(X)
            assert server.stored == {("decision", d.id): 1}

    asyncio.run(go(Backoff(sleep=sleep)))
    assert len(waited) == 2
    asyncio.run(go(Backoff(first=0.0, longest_asked=0.0)))  # the event loop's own sleep


def test_a_sync_client_sleeps_by_itself() -> None:
    server = Scripted(["refused", "late"])
    with Client("http://localhost", transport=httpx.MockTransport(server), backoff=Backoff(first=0.0)) as client:
        client.decide(X)
    assert len(server.seen) == 3


def test_conflicts_are_told_and_the_first_stands() -> None:
    client = Sync(server := Scripted())
    d = client("decide", X)
    client("reward", d.id, 1.0)
    client("reward", d.id, 1.0)
    with pytest.raises(Conflict):
        client("reward", d.id, 2.0)
    with pytest.raises(Conflict):
        client("decide", [9.0], id=d.id)
    assert list(server.rewards.values()) == [1.0] and len(server.decisions) == 1


@pytest.mark.parametrize(
    "wrong", [{"retries": -1}, {"retries": 1.5}, {"timeout": 0}, {"backoff": 3}, {"connections": 0}]
)
def test_wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as caught:
        Client("http://localhost", **wrong)
    assert caught.value.argument == next(iter(wrong))
    with pytest.raises(InvalidInput):
        Backoff(first=-1)
