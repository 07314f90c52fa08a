"""Keys travel to the service alone, over https or inside this machine, and stand in nothing that is printed."""

from __future__ import annotations

import logging
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from client.scripted import BOTH, Async, Scripted, Sync, decision
from manyarms.client import AsyncClient, Client, ServiceError, Unauthorised, Unreachable
from manyarms.errors import InvalidInput, MissingExtra

KEY = "ma_0123456789abcdef"


@pytest.mark.parametrize("kind", BOTH)
def test_the_key_is_in_one_header(kind: type[Sync] | type[Async]) -> None:
    seen: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json=decision("e"))

    kind(handler, key=KEY)("decide", [1])
    kind(handler)("decide", [1])
    assert seen[0].headers["Authorization"] == f"Bearer {KEY}"
    assert KEY not in str(seen[0].url) and KEY.encode() not in seen[0].content
    assert "Authorization" not in seen[1].headers


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize(
    ("url", "fits"),
    [
        ("https://decide.example.org", True),
        ("https://decide.example.org/under/here/", True),
        ("http://localhost:8080", True),
        ("http://127.0.0.1:8080", True),
        ("http://127.9.9.9", True),
        ("http://[::1]:80", True),
        ("http://shop.localhost", True),
        ("http://decide.example.org", False),
        ("http://10.0.0.1", False),
        ("http://localhost.example.org", False),
        ("http://127.0.0.1.example.org", False),
    ],
)
def test_a_key_does_not_travel_in_clear(kind: Any, url: str, fits: bool) -> None:
    assert kind(url) and kind(url, KEY, insecure=True)
    if fits:
        assert kind(url, KEY)
        return
    with pytest.raises(InvalidInput, match="https") as caught:
        kind(url, KEY)
    assert caught.value.argument == "url" and KEY not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    ["", "localhost:8080", "ftp://x", "http://", "https://user:pa55@x.org", "https://x.org?key=1", "https://x.org#a", 3,
     "http://[::1", "http://x:port"],
)  # fmt: skip
def test_addresses_that_are_none(url: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        Client(url)
    assert caught.value.argument == "url" and "pa55" not in str(caught.value)


@pytest.mark.parametrize("key", ["", "two words", "line\nbreak", "clé", 3, b"bytes"])
def test_a_key_that_is_none_is_not_repeated(key: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        Client("https://x.org", key)
    assert caught.value.argument == "key" and (not key or repr(key) not in str(caught.value))


@pytest.mark.parametrize("kind", BOTH)
def test_no_key_in_what_is_printed_or_logged(kind: type[Sync] | type[Async], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    refusals: list[httpx.Response | None] = [None, httpx.Response(401), httpx.Response(200, content=b"{")]

    def handler(request: httpx.Request) -> httpx.Response:
        answer = refusals.pop(0)
        if answer is None:
            raise httpx.ReadError("broke", request=request)
        return answer

    client = kind(handler, key=KEY, retries=0)
    for expected in (Unreachable, Unauthorised, ServiceError):
        with pytest.raises(expected) as caught:
            client("decide", [1])
        error: BaseException = caught.value
        story = traceback.TracebackException.from_exception(error, capture_locals=True)
        assert KEY not in str(error) + repr(error) + repr(vars(error)) + "".join(story.format())
    for text in (
        repr(client.client),
        str(client.client),
        client.client._repr_html_(),
        repr(vars(client.client)),
        caplog.text,
    ):
        assert KEY not in text


@pytest.mark.parametrize("kind", BOTH)
def test_the_path_of_the_address_is_kept(kind: type[Sync] | type[Async]) -> None:
    server = Scripted()
    with pytest.raises(ServiceError):
        kind(server, url="https://example.org/under/here/")("reward", "e")
    assert str(server.seen[0].url) == "https://example.org/under/here/v1/reward"


def test_a_closed_client_says_so() -> None:
    client = Client("http://localhost", transport=httpx.MockTransport(Scripted()))
    with client as same:
        assert same is client
    with pytest.raises(ServiceError, match="closed"):
        client.decide([1])
    assert "closed" in repr(client)


def test_threads_share_a_client() -> None:
    server, lock = Scripted(), threading.Lock()

    def handler(request: httpx.Request) -> httpx.Response:
        with lock:  # the script is no thread's own
            return server(request)

    with Client("http://localhost", transport=httpx.MockTransport(handler)) as client, ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda number: client.decide([1], id=str(number)), range(200)))
    assert [d.id for d in found] == [str(number) for number in range(200)]
    assert {d.id: d.action for d in found} == {event: told["action"] for event, (_, told) in server.decisions.items()}


def test_without_httpx_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingExtra, match=r"manyarms\[client\]"):
        Client("http://localhost")
