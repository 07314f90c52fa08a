"""The two clients. They differ in how they send and how they wait; everything else is described once, in `calls`."""

from __future__ import annotations

import ssl
import time
from collections.abc import Mapping
from inspect import isawaitable
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from manyarms._base import validate
from manyarms._base.tables import Cell, Shown, Table
from manyarms.client.address import checked_address, checked_key
from manyarms.client.arguments import encoded
from manyarms.client.call import Answer, Call
from manyarms.client.calls import Calls
from manyarms.client.conversation import Backoff, Failure, Wait, conversation
from manyarms.client.errors import ServiceError
from manyarms.errors import MissingExtra

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")


def the_httpx() -> ModuleType:
    """The package httpx."""
    try:
        import httpx
    except ImportError as error:
        raise MissingExtra("httpx", "client", "the client of the decision service") from error
    return httpx


class _Connected(Shown, Calls):
    """What both clients are made with."""

    _http: Any
    _transport: ClassVar[str]  # what httpx calls it

    def __init__(
        self,
        url: str,
        key: str | None,
        timeout: float,
        retries: int,
        backoff: Backoff,
        insecure: bool,
    ) -> None:
        self._url, self._here = checked_address(url, checked_key(key), validate.flag("insecure", insecure))
        self._timeout = validate.positive("timeout", timeout)
        self._retries = validate.count("retries", retries, least=0, most=100)
        self._backoff = validate.instance("backoff", backoff, Backoff, "a Backoff")
        self._with_key = key is not None

    def _options(
        self, key: str | None, transport: object, connections: int, tls: ssl.SSLContext | None
    ) -> dict[str, Any]:
        """The arguments of httpx's clients. Redirects are not followed: a key is for this address alone."""
        httpx = the_httpx()
        number = validate.count("connections", connections)
        if tls is not None:
            validate.instance("tls", tls, ssl.SSLContext, "a context of Python's ssl")
        if transport is not None:
            validate.instance("transport", transport, getattr(httpx, self._transport), f"httpx's {self._transport}")
        return {
            "headers": {
                "User-Agent": "manyarms-client",
                "Accept": "application/json",
                **({} if key is None else {"Authorization": f"Bearer {key}"}),
            },
            "timeout": self._timeout,
            "limits": httpx.Limits(max_connections=number, max_keepalive_connections=number),
            "transport": transport,
            "trust_env": not self._here,  # no proxy between a program and its own machine
            "verify": True if tls is None else tls,
            "follow_redirects": False,
        }

    def _request(self, call: Call[object]) -> dict[str, Any]:
        """The arguments of a request."""
        if self._http.is_closed:
            raise ServiceError(f"{call.method} {call.path}: this client is closed: make another one")
        found: dict[str, Any] = {"method": call.method, "url": self._url + call.path, "headers": dict(call.headers)}
        if call.query:
            found["params"] = dict(call.query)
        if call.body is not None:
            found["content"] = encoded(call.body)
            found["headers"]["Content-Type"] = "application/json"
        return found

    def _table(self) -> Table:
        rows: list[tuple[str, Cell]] = [
            ("timeout", f"{self._timeout:g} s"),
            ("retries", self._retries),
            ("key", self._with_key),
        ]
        return Table(f"{self._url}, {'closed' if self._http.is_closed else 'open'}", rows=rows)


class Client(_Connected):
    """A client of the decision service. Threads may share it.

    url: of the service. key: an API key; sent over https or to this machine only, unless insecure=True. timeout: seconds for each
    try, to connect, to send and to be answered. retries: how often a call is tried again that may be; backoff: how long it waits
    in between. connections: at most so many at once. tls: how the service's certificate is checked. transport: httpx's, for
    tests (`manyarms.client.in_process`).

        with Client("https://decide.example.org", key) as client:
            d = client.decide({"age": 31, "country": "FI"})
            client.reward(d.id, 1.0)
    """

    _transport = "BaseTransport"

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        timeout: float = 5.0,
        retries: int = 3,
        backoff: Backoff = Backoff(),  # noqa: B008 - it never changes
        connections: int = 32,
        insecure: bool = False,
        tls: ssl.SSLContext | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        super().__init__(url, key, timeout, retries, backoff, insecure)
        self._http = the_httpx().Client(**self._options(key, transport, connections, tls))

    def _send(self, call: Call[T]) -> T:
        talk = conversation(call, self._retries, self._backoff)
        came: Answer | Failure | None = None
        while True:
            try:
                step = talk.send(came)
            except StopIteration as end:
                result: T = end.value
                return result
            if isinstance(step, Wait):
                came = None
                (self._backoff.sleep or time.sleep)(step.seconds)
            else:
                came = self._exchange(step)

    def _exchange(self, call: Call[T]) -> Answer | Failure:
        httpx = the_httpx()
        request = self._http.build_request(**self._request(call))
        try:
            return _answer(self._http.send(request))
        except httpx.RequestError as error:
            return _failure(httpx, error)

    def close(self) -> None:
        """Let the connections go."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncClient(_Connected):
    """The same client, awaited: the arguments and calls of `Client`.

    async with AsyncClient("https://decide.example.org", key) as client:
        d = await client.decide({"age": 31, "country": "FI"})
        await client.reward(d.id, 1.0)
        async for action in client.catalogue(): ...
    """

    _transport = "AsyncBaseTransport"

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        timeout: float = 5.0,
        retries: int = 3,
        backoff: Backoff = Backoff(),  # noqa: B008 - it never changes
        connections: int = 32,
        insecure: bool = False,
        tls: ssl.SSLContext | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        super().__init__(url, key, timeout, retries, backoff, insecure)
        self._http = the_httpx().AsyncClient(**self._options(key, transport, connections, tls))

    async def _send_later(self, call: Call[T]) -> T:
        talk = conversation(call, self._retries, self._backoff)
        came: Answer | Failure | None = None
        while True:
            try:
                step = talk.send(came)
            except StopIteration as end:
                result: T = end.value
                return result
            if isinstance(step, Wait):
                came = None
                await _slept(self._backoff, step.seconds)
            else:
                came = await self._exchange(step)

    async def _exchange(self, call: Call[T]) -> Answer | Failure:
        httpx = the_httpx()
        request = self._http.build_request(**self._request(call))
        try:
            return _answer(await self._http.send(request))
        except httpx.RequestError as error:
            return _failure(httpx, error)

    async def close(self) -> None:
        """Let the connections go."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


async def _slept(backoff: Backoff, seconds: float) -> None:
    if backoff.sleep is None:
        import anyio  # httpx stands on it: whichever event loop runs

        await anyio.sleep(seconds)
        return
    waiting = backoff.sleep(seconds)
    if isawaitable(waiting):
        await waiting


def _answer(response: httpx.Response) -> Answer:
    headers: Mapping[str, str] = {name.lower(): value for name, value in response.headers.items()}
    return Answer(response.status_code, headers, response.content)


def _failure(httpx: ModuleType, error: Exception) -> Failure:
    never = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
    return Failure(error, connected=not isinstance(error, never))


__all__ = ["AsyncClient", "Client"]
