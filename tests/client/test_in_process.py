"""An application in the process of its client: started once, shut down with it, called by many threads, without a socket."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from client.scripted import decision
from manyarms.client import AsyncClient, Backoff, Client, ServiceError, Unreachable, in_process, in_process_async

AT_ONCE = Backoff(first=0.0, longest_asked=0.0)


class Application:
    """An ASGI application that keeps a diary. starts: how its startup ends."""

    def __init__(self, starts: str = "complete") -> None:
        self.starts, self.diary = starts, []  # type: ignore[var-annotated]
        self.loops: set[int] = set()
        self.gate = threading.Event()
        self.gate.set()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.loops.add(id(asyncio.get_running_loop()))
        if scope["type"] == "lifespan":
            await self.lifespan(scope, receive, send)
            return
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        self.diary.append((scope["method"], scope["path"], scope["client"][0], scope["state"].get("opened")))
        while not self.gate.is_set():
            await asyncio.sleep(0.001)
        if scope["path"] == "/v1/status":
            raise RuntimeError("unexpected")
        answer = json.dumps(decision(json.loads(body)["id"])).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": answer[:10], "more_body": True})
        await send({"type": "http.response.body", "body": answer[10:]})

    async def lifespan(self, scope: Any, receive: Any, send: Any) -> None:
        if self.starts == "knows none":
            raise RuntimeError("no such scope")
        assert (await receive())["type"] == "lifespan.startup"
        self.diary.append("startup")
        if self.starts == "failed":
            await send({"type": "lifespan.startup.failed", "message": "no store"})
            return
        scope["state"]["opened"] = True
        await send({"type": "lifespan.startup.complete"})
        assert (await receive())["type"] == "lifespan.shutdown"
        self.diary.append("shutdown")
        await send({"type": "lifespan.shutdown.complete"})


@pytest.fixture(autouse=True)
def no_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*arguments: object) -> None:
        raise AssertionError("a socket")

    monkeypatch.setattr(socket.socket, "connect", refused)


def test_sync() -> None:
    app = Application()
    before = threading.active_count()
    with Client("http://localhost", transport=in_process(app)) as client:
        assert app.diary == []
        assert client.decide([1], id="e").id == "e"
        assert client.decide([1], id="f").id == "f"
    assert app.diary == ["startup", *[("POST", "/v1/decide", "127.0.0.1", True)] * 2, "shutdown"]
    assert len(app.loops) == 1 and threading.active_count() == before
    with pytest.raises(ServiceError, match="closed"):
        client.decide([1])


def test_threads() -> None:
    app = Application()
    with (
        Client("http://localhost", transport=in_process(app), timeout=60.0) as client,
        ThreadPoolExecutor(8) as threads,
    ):
        found = list(threads.map(lambda number: client.decide([1], id=str(number)).id, range(100)))
    assert found == [str(number) for number in range(100)]
    assert app.diary.count("startup") == 1 == len(app.loops) and app.diary[-1] == "shutdown"


def test_async() -> None:
    app = Application()

    async def go() -> None:
        async with AsyncClient("http://localhost", transport=in_process_async(app), timeout=60.0) as client:
            found = await asyncio.gather(*(client.decide([1], id=str(number)) for number in range(50)))
            assert [d.id for d in found] == [str(number) for number in range(50)]
            assert app.loops == {id(asyncio.get_running_loop())}

    asyncio.run(go())
    assert app.diary.count("startup") == 1 and app.diary[-1] == "shutdown"


def test_inside_an_event_loop_a_sync_client_has_its_own() -> None:
    app = Application()

    async def go() -> str:
        with Client("http://localhost", transport=in_process(app)) as client:
            return client.decide([1], id="e").id

    assert asyncio.run(go()) == "e"


def test_an_application_that_knows_no_lifespan_is_called_all_the_same() -> None:
    app = Application("knows none")
    with Client("http://localhost", transport=in_process(app)) as client:
        assert client.decide([1], id="e").id == "e"


def test_an_application_that_does_not_start() -> None:
    app = Application("failed")
    with (
        Client("http://localhost", transport=in_process(app), backoff=AT_ONCE) as client,
        pytest.raises(Unreachable, match="no store"),
    ):
        client.decide([1])
    assert app.diary == ["startup"]


def test_an_error_of_the_application_is_an_answer() -> None:
    with Client("http://localhost", transport=in_process(Application())) as client:
        with pytest.raises(ServiceError) as caught:
            client.status()
        assert caught.value.status == 500 and client.decide([1], id="e").id == "e"


def test_who_takes_too_long_is_not_waited_for() -> None:
    app = Application()
    with Client("http://localhost", transport=in_process(app), timeout=0.05, retries=1, backoff=AT_ONCE) as client:
        app.gate.clear()
        with pytest.raises(Unreachable, match="ReadTimeout"):
            client.decide([1])
        app.gate.set()
    assert app.diary[0] == "startup" and app.diary[-1] == "shutdown"


def test_what_was_shut_down_stays_so() -> None:
    transport = in_process(Application())
    with Client("http://localhost", transport=transport) as client:
        client.decide([1])
    with pytest.raises(Unreachable, match="shut down"):
        Client("http://localhost", transport=transport, retries=0).decide([1])


def test_never_used_never_started() -> None:
    app = Application()
    Client("http://localhost", transport=in_process(app)).close()
    asyncio.run(AsyncClient("http://localhost", transport=in_process_async(app)).close())
    assert app.diary == []
