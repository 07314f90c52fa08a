"""Errors are those of a store in this process, with what is known of the answer; damaged answers are errors of the service."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.every_call import CASES
from client.scripted import BOTH, Async, Sync, decision, problem
from manyarms.client import ServiceError, Unauthorised, Unreachable
from manyarms.errors import (
    Conflict,
    InvalidInput,
    LiveError,
    ManyArmsError,
    Overloaded,
    StoreUnavailable,
    UnknownAction,
    UnknownEvent,
)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(
    ("status", "name", "expected"),
    [
        (401, "key", Unauthorised),
        (401, None, Unauthorised),
        (403, "scope", Unauthorised),
        (404, "unknown-event", UnknownEvent),
        (404, None, ServiceError),
        (409, "conflict", Conflict),
        (409, None, Conflict),
        (422, "invalid-input", InvalidInput),
        (422, "unknown-action", UnknownAction),
        (422, None, InvalidInput),
        (429, None, Overloaded),
        (503, "overloaded", Overloaded),
        (503, "store-unavailable", StoreUnavailable),
        (503, None, Overloaded),
        (500, None, ServiceError),
        (418, "something-new", ServiceError),
    ],
)
def test_each_refusal_is_the_exception_that_it_would_be_here(
    kind: type[Sync] | type[Async], status: int, name: str | None, expected: type[ManyArmsError]
) -> None:
    told = problem(status, name, argument="k", expected="an integer")
    answer = httpx.Response(status, json=told, headers={"X-Request-Id": "r1", "Retry-After": "2"})
    with pytest.raises(expected) as caught:
        kind(lambda request: answer, retries=0)("reward", "e")
    error: Any = caught.value
    assert (
        isinstance(error, ServiceError | expected) and isinstance(error, LiveError) and isinstance(error, ServiceError)
    )
    assert (error.status, error.problem, error.request_id, error.retry_after) == (status, told, "r1", 2.0)
    assert "POST /v1/reward" in str(error) and str(status) in str(error) and "because" in str(error)
    if isinstance(error, InvalidInput):
        assert (error.argument, error.expected, error.came) == ("k", "an integer", None)  # type: ignore[unreachable]


def test_what_is_refused_as_things_are_is_no_conflict() -> None:
    client = Sync(lambda request: httpx.Response(409, json=problem(409, "refused")))
    with pytest.raises(ServiceError) as caught:
        client("promote", "careful")
    assert not isinstance(caught.value, Conflict) and caught.value.request_id == "urn:request:7"


def test_a_wrong_address_does_not_look_like_an_unknown_event() -> None:
    for answer in (httpx.Response(404, json=problem(404, None)), httpx.Response(404, text="<html>nothing here</html>")):
        with pytest.raises(ServiceError) as caught:
            Sync(lambda request, answer=answer: answer)("reward", "e")
        assert not isinstance(caught.value, UnknownEvent)


def test_errors_travel_between_processes() -> None:
    for status in (401, 404, 409, 422, 429, 500, 503):
        with pytest.raises(ServiceError) as caught:
            Sync(lambda request, status=status: httpx.Response(status, json=problem(status, None)), retries=0)(
                "reward", "e"
            )
        again = pickle.loads(pickle.dumps(caught.value))
        assert (
            type(again) is type(caught.value) and str(again) == str(caught.value) and vars(again) == vars(caught.value)
        )


def test_a_long_story_is_cut() -> None:
    told = {**problem(500, None), "detail": "x" * 100_000}
    with pytest.raises(ServiceError) as caught:
        Sync(lambda request: httpx.Response(500, json=told))("reward", "e")
    assert len(str(caught.value)) < 1000


BODIES = [
    b"", b"{", b"null", b"[]", b"3", b'"text"', b"<html>", b"\xff\xfe", b"[" * 100_000, b'{"id": NaN}', b"{}",
    b'{"decisions": {}}', b'{"decisions": [3]}', b'{"actions": [], "next": true}', b'{"type": 3, "title": [], "status": "x"}',
    b'{"version": ' + b"9" * 5000 + b"}", json.dumps(decision("e")).encode()[:-5],
    json.dumps({**decision("e"), "actions": []}).encode(), json.dumps({**decision("e"), "propensity": "a"}).encode(),
]  # fmt: skip


@pytest.mark.parametrize("status", [200, 204, 302, 400, 404, 409, 422, 503])
@pytest.mark.parametrize("body", BODIES, ids=lambda body: repr(body[:24]))
def test_damaged_answers(body: bytes, status: int) -> None:
    for case in CASES:
        client = Sync(
            lambda request: httpx.Response(status, content=body, headers={"Content-Type": "application/json"})
        )
        try:
            found = client(case.name, *case.arguments, **case.given)
        except ServiceError as error:
            assert error.status == status and not isinstance(error, Unreachable)
        else:  # a call that only has to be done, or whose answer may be anything
            assert found is None or case.name in {"report", "edge_bundle"} or found in ((), []), (
                case.name,
                body,
            )


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def damaged(value: Any, data: st.DataObject) -> Any:
    """The same with something else in one place of it, or without it."""
    value = copy.deepcopy(value)
    place, keys = value, []
    while isinstance(place, dict | list) and place and (not keys or data.draw(st.booleans())):
        keys.append(data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place)))))
        place = place[keys[-1]]
    if not keys:
        return data.draw(anything)
    inside = value
    for key in keys[:-1]:
        inside = inside[key]
    if data.draw(st.booleans()):
        inside[keys[-1]] = data.draw(anything)
    else:
        del inside[keys[-1]]
    return value


@pytest.mark.parametrize("kind", BOTH)
@given(data=st.data())
def test_answers_that_are_damaged_anywhere(kind: type[Sync] | type[Async], data: st.DataObject) -> None:
    case = data.draw(st.sampled_from([case for case in CASES if isinstance(case.answer, dict)]))
    answer = damaged(case.answer, data)
    content = json.dumps(answer).encode()
    cut = data.draw(st.integers(0, len(content)) | st.just(len(content)))
    answers = [httpx.Response(data.draw(st.sampled_from([200, 201, 422])), content=content[:cut])]
    last = httpx.Response(200, json={"actions": [], "events": [], "next": None})  # of a list whose end was damaged
    client = kind(lambda request: answers.pop() if answers else last, retries=0)
    try:
        client(case.name, *case.arguments, **case.given)
    except ServiceError as error:
        assert error.status in (200, 201, 422) or case.name in {"decide_many", "reward_many", "upload_decisions"}
