"""Transports of httpx that call an ASGI application. Imported where httpx is known to be there."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from manyarms.client.in_process import Application, Message


class _Lifespan:
    """An application from its startup to its shutdown, in one event loop."""

    def __init__(self, app: Application) -> None:
        self._app = app
        self._state: dict[str, object] = {}
        self._starting: asyncio.Task[None] | None = None
        self._running: asyncio.Task[None] | None = None
        self._to_app: asyncio.Queue[Message] = asyncio.Queue()
        self._from_app: asyncio.Queue[Message] = asyncio.Queue()
        # an error of the application is an answer with status 500, as it would be over a socket
        self.transport = httpx.ASGITransport(self._with_state, raise_app_exceptions=False)

    async def _with_state(self, scope: Message, receive: object, send: object) -> None:
        await self._app({**scope, "state": dict(self._state)}, receive, send)  # type: ignore[arg-type]

    async def start(self) -> None:
        """Begin, once; those who come meanwhile wait for it."""
        if self._starting is None:
            self._starting = asyncio.ensure_future(self._start())
        await asyncio.shield(self._starting)

    async def _start(self) -> None:
        self._running = asyncio.ensure_future(self._run())
        said = await self._ask("lifespan.startup")
        if said is not None and said["type"] == "lifespan.startup.failed":
            raise httpx.ConnectError(f"the application did not start: {said.get('message', '')}")

    async def _run(self) -> None:
        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": self._state}
        await self._app(scope, self._to_app.get, self._from_app.put)

    async def _ask(self, what: str) -> Message | None:
        """What the application says to that; None where it has ended: it knows no lifespan."""
        assert self._running is not None
        await self._to_app.put({"type": what})
        saying = asyncio.ensure_future(self._from_app.get())
        await asyncio.wait({saying, self._running}, return_when=asyncio.FIRST_COMPLETED)
        if not saying.done() and self._from_app.empty():
            saying.cancel()
            return None
        return await saying

    async def stop(self) -> None:
        """Shut down what was started."""
        running = self._running
        if running is None:
            return
        if not running.done():
            await self._ask("lifespan.shutdown")
        await asyncio.wait({running})
        self._running = None
        if not running.cancelled():
            running.exception()  # looked at: an application without a lifespan, or one that did not start, may end by an error


class InProcessAsync(httpx.AsyncBaseTransport):
    """Calls an application in the event loop of the caller."""

    def __init__(self, app: Application) -> None:
        self._app = app
        self._lifespan: _Lifespan | None = None
        self._closed = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """One request."""
        if self._closed:
            raise httpx.ConnectError("the application was shut down")
        if self._lifespan is None:
            self._lifespan = _Lifespan(self._app)
        await self._lifespan.start()
        seconds = _patience(request)
        try:
            return await asyncio.wait_for(self._lifespan.transport.handle_async_request(request), seconds)
        except TimeoutError:
            raise httpx.ReadTimeout(f"no answer within {seconds:g} s", request=request) from None

    async def aclose(self) -> None:
        """Shut the application down."""
        self._closed = True
        if self._lifespan is not None:
            await self._lifespan.stop()


class InProcess(httpx.BaseTransport):
    """Calls an application in an event loop and a thread of its own."""

    def __init__(self, app: Application) -> None:
        self._inner = InProcessAsync(app)
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """One request, from any thread."""
        loop = self._started()
        if loop.is_closed():
            raise httpx.ConnectError("the application was shut down")
        return asyncio.run_coroutine_threadsafe(self._answered(request), loop).result()

    async def _answered(self, request: httpx.Request) -> httpx.Response:
        whole = httpx.Request(request.method, request.url, headers=request.headers, content=request.read(),
                              extensions=request.extensions)  # fmt: skip
        answer = await self._inner.handle_async_request(whole)
        return httpx.Response(answer.status_code, headers=answer.headers, content=await answer.aread())

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="manyarms-in-process", daemon=True)
                self._thread.start()
            return self._loop

    def close(self) -> None:
        """Shut the application down, and end its thread."""
        with self._lock:
            loop, thread = self._loop, self._thread
            if loop is None or thread is None or loop.is_closed():
                self._inner._closed = True
                return
            try:
                asyncio.run_coroutine_threadsafe(self._inner.aclose(), loop).result()
            finally:
                loop.call_soon_threadsafe(loop.stop)
                thread.join()
                loop.close()


def _patience(request: httpx.Request) -> float | None:
    """Seconds that the caller waits for an answer."""
    found = request.extensions.get("timeout", {}).get("read")
    return None if found is None else float(found)


__all__ = ["InProcess", "InProcessAsync"]
