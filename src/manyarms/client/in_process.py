"""The service in the process of its client, without a socket: for tests of applications.

    app = create_app(config)
    with Client("http://localhost", transport=in_process(app)) as client:
        client.decide([0.2, 1.0])

The application starts with the first call, and is shut down when the client is closed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any, TypeAlias

from manyarms._base.validate import describe
from manyarms.client.client import the_httpx
from manyarms.errors import InvalidInput

if TYPE_CHECKING:
    import httpx

Message: TypeAlias = MutableMapping[str, Any]
Application: TypeAlias = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]
"""What ASGI calls an application."""


def in_process(app: Application) -> httpx.BaseTransport:
    """A transport for a `Client` that calls the application in an event loop of its own, in a thread of its own."""
    the_httpx()
    from manyarms.client.asgi import InProcess

    return InProcess(_checked(app))


def in_process_async(app: Application) -> httpx.AsyncBaseTransport:
    """A transport for an `AsyncClient` that calls the application in the event loop of the caller (asyncio's)."""
    the_httpx()
    from manyarms.client.asgi import InProcessAsync

    return InProcessAsync(_checked(app))


def _checked(app: Application) -> Application:
    if not callable(app):
        raise InvalidInput("app", describe(app), "an application of ASGI")
    return app


__all__ = ["in_process", "in_process_async"]
