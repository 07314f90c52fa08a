"""Every call makes the request that it says, and its result of the answer; both clients do the same."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

import manyarms.client
from client.every_call import ACTION, CASES, EVENT, Case
from client.scripted import BOTH, URL, Async, Sync, decision
from manyarms._base.tables import Shown
from manyarms.client import AsyncClient, Client, ServiceError
from manyarms.client.calls import Calls
from manyarms.errors import InvalidInput


def answering(case: Case) -> Callable[[httpx.Request], httpx.Response]:
    def handler(request: httpx.Request) -> httpx.Response:
        if isinstance(case.answer, bytes):
            return httpx.Response(case.status, content=case.answer)
        return httpx.Response(case.status) if case.answer is None else httpx.Response(case.status, json=case.answer)

    return handler


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name} {case.path}")
def test_request_and_result(case: Case, kind: type[Sync] | type[Async]) -> None:
    seen: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return answering(case)(request)

    result = kind(handler)(case.name, *case.arguments, **case.given)
    assert case.says(result)
    (request,) = seen
    wanted = httpx.URL(f"{URL}{case.path}")
    assert (request.method, request.url.raw_path.partition(b"?")[0]) == (
        case.method,
        wanted.raw_path.partition(b"?")[0],
    )
    assert request.url.params == wanted.params
    assert (json.loads(request.content) if request.content else None) == case.body
    assert request.headers.get("Content-Type") == ("application/json" if case.body is not None else None)


def test_every_call_is_in_the_table() -> None:
    there = {name for name in dir(Calls) if not name.startswith("_")}
    assert {case.name for case in CASES} == there


def test_both_clients_have_the_same_calls_with_the_same_signatures() -> None:
    now, later = Client("http://localhost"), AsyncClient("http://localhost")
    public = {name for name in dir(Client) if not name.startswith("_")}
    assert public == {name for name in dir(AsyncClient) if not name.startswith("_")}
    for name in public:
        assert inspect.signature(getattr(now, name)) == inspect.signature(getattr(later, name)), name
        assert inspect.getdoc(getattr(Client, name)) == inspect.getdoc(getattr(AsyncClient, name)) != None, name  # noqa: E711
        assert not inspect.iscoroutinefunction(getattr(now, name))
        assert inspect.iscoroutinefunction(getattr(later, name)) or inspect.isasyncgenfunction(getattr(later, name))
    assert list(inspect.signature(Client).parameters) == list(inspect.signature(AsyncClient).parameters)


def test_a_call_says_what_it_takes_and_gives() -> None:
    assert str(inspect.signature(Client("http://localhost").event)) == "(event: 'str') -> 'ServiceEvent'"
    assert str(inspect.signature(Client.event)) == "(self, event: 'str') -> 'ServiceEvent'"
    assert Client.event.__name__ == "event"
    case = next(case for case in CASES if case.name == "event")
    assert Client.event(Sync(answering(case)).client, "e/1").id == "e/1"  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", BOTH)
def test_lists_are_read_page_by_page_and_only_as_far_as_they_are_wanted(kind: type[Sync] | type[Async]) -> None:
    asked = []

    def handler(request: httpx.Request) -> httpx.Response:
        query = dict(request.url.params)
        asked.append(query)
        if request.url.path == "/v1/events":
            before = int(query.get("before", 5))
            some = [{**EVENT, "id": str(number)} for number in range(before - 1, max(before - 3, 0) - 1, -1)]
            return httpx.Response(200, json={"events": some, "next": before - 2 if before > 2 else None})
        after = int(query.get("after", -1))
        some = [{**ACTION, "row": row, "id": row} for row in range(after + 1, min(after + 3, 5))]
        return httpx.Response(200, json={"actions": some, "next": after + 2 if after < 3 else None})

    client = kind(handler)
    assert [one.id for one in client("catalogue", page=2, search="x")] == [0, 1, 2, 3, 4]
    assert [query.get("after") for query in asked] == [None, "1", "3"] and {query["search"] for query in asked} == {"x"}
    asked.clear()
    assert [one.id for one in client("events", page=2)][:2] == ["4", "3"]
    assert [query.get("before") for query in asked] == [None, "3", "1"]
    if kind is Sync:
        asked.clear()
        next(iter(client.client.catalogue()))  # type: ignore[call-overload]
        assert len(asked) == 1


@pytest.mark.parametrize("kind", BOTH)
def test_empty_batches_ask_nobody(kind: type[Sync] | type[Async]) -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        raise AssertionError("nothing need be sent")

    client = kind(handler)
    assert client("decide_many", []) == () == client("reward_many", []) == client("upload_decisions", "agent", [])


def test_the_bundle_that_one_has_is_not_sent_again() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        if request.headers.get("If-None-Match") == '"v3"':
            return httpx.Response(304, headers={"ETag": '"v3"'})
        return httpx.Response(200, content=b"policy", headers={"ETag": '"v3"'})

    client = Sync(handler)
    first = client("edge_bundle", "agent")
    assert (first.data, first.etag) == (b"policy", '"v3"')
    again = client("edge_bundle", "agent", etag=first.etag)
    assert (again.data, again.etag) == (None, '"v3"')


def test_a_service_that_is_not_ready_says_so() -> None:
    client = Sync(lambda request: httpx.Response(503, json={"status": "not ready", "reasons": ["stopping"]}))
    found = client("health")
    assert not found.ready and found.reasons == ("stopping",) and client.pauses.seconds == []


def test_what_a_newer_service_adds_is_left_out_and_what_lacks_is_named() -> None:
    told = {**decision("e"), "tomorrow": [1], "learning": {"rows": 1, "lag": None, "version": 1, "speed": 3}}
    assert Sync(lambda request: httpx.Response(200, json=told))("decide", [1]).learning.lag is None
    del told["version"]
    with pytest.raises(ServiceError, match="no field 'version'"):
        Sync(lambda request: httpx.Response(200, json=told))("decide", [1])
    told = {**decision("e"), "learning": {"rows": "many", "lag": 0, "version": 1}}
    with pytest.raises(ServiceError, match=r'learning\.rows: expected an integer, got "many"'):
        Sync(lambda request: httpx.Response(200, json=told))("decide", [1])


def refused(request: httpx.Request) -> httpx.Response:
    raise AssertionError("this should not have been sent")


@pytest.mark.parametrize(
    ("name", "arguments", "given", "argument"),
    [
        ("decide", (), {}, "context"),
        ("decide", ([[1.0]],), {}, "context"),
        ("decide", ([float("nan")],), {}, "context"),
        ("decide", ({"age": float("inf")},), {}, "context['age']"),
        ("decide", ({3: 1},), {}, "context"),
        ("decide", ([1],), {"k": 0}, "k"),
        ("decide", ([1],), {"id": ""}, "id"),
        ("decide", ([1],), {"unit": "x" * 257}, "unit"),
        ("decide", ([1],), {"candidates": [1.5]}, "candidates"),
        ("decide", ([1],), {"exclude": 1.5}, "exclude"),
        ("decide", ([1],), {"baseline": True}, "baseline"),
        ("decide", ([1],), {"propensity": "yes"}, "propensity"),
        ("decide", ([1],), {"id": "\ud800"}, "id"),
        ("decide_many", ([{"contex": [1]}],), {}, "questions[0]"),
        ("decide_many", ([[1, 2]],), {}, "questions[0]"),
        ("reward", ("e", "much"), {}, "value"),
        ("reward", ("e", float("nan")), {}, "value"),
        ("reward", ("",), {}, "event"),
        ("reward_many", ([{"value": 1}],), {}, "event"),
        ("add_actions", (), {}, "number"),
        ("update_action", ("a",), {}, "weights"),
        ("deploy", ({"agent": "all"},), {}, "shares['agent']"),
        ("change_settings", (), {}, "settings"),
        ("change_settings", (), {"aggregate": "mean"}, "aggregate"),
        ("events", (), {"page": 0}, "page"),
    ],
)
@pytest.mark.parametrize("kind", BOTH)
def test_what_cannot_be_asked_is_refused_before_it_is_sent(
    kind: type[Sync] | type[Async], name: str, arguments: tuple[Any, ...], given: dict[str, Any], argument: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        kind(refused)(name, *arguments, **given)
    assert caught.value.argument == argument and not isinstance(caught.value, ServiceError)


def test_results_print_as_tables() -> None:
    for case in CASES:
        found = Sync(answering(case))(case.name, *case.arguments, **case.given)
        for one in found if isinstance(found, tuple | list) else [found]:
            if isinstance(one, Shown):
                assert "\n" not in repr(one) and len(repr(one)) <= 120 and "<" in one._repr_html_() and str(one)


def test_everything_public_is_explained() -> None:
    assert manyarms.client.__all__ == sorted(manyarms.client.__all__)
    for name in manyarms.client.__all__:
        assert inspect.getdoc(getattr(manyarms.client, name))
