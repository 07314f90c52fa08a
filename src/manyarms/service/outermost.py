"""What surrounds every request: an id, a line in the log, figures, headers for browsers; nothing unexpected gets out."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from manyarms.service.problems import Problem, unexpected
from manyarms.service.request_log import logger

Observer = Callable[[str, str, int, float], None]
"""Told of every answer: route, method, status, seconds."""

HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
GONE = 499  # as other servers log it: the client hung up before there was an answer
NO_STORE = (b"cache-control", b"no-store")


class Outermost:
    """The outermost layer of the application."""

    def __init__(
        self, app: ASGIApp, observers: list[Observer], refuse: Callable[[Scope, Problem], ASGIApp], log_requests: bool
    ) -> None:
        self._app, self._observers, self._refuse, self._log = app, observers, refuse, log_requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0
        name = scope["manyarms.request"] = _request_id(scope)

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                given = list(message.get("headers", []))
                known = {header for header, _ in given}
                added = [header for header in (*HEADERS, NO_STORE) if header[0] not in known]
                message = {**message, "headers": [*given, *added, (b"x-request-id", name.encode())]}
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except ClientDisconnect:  # in the middle of its request: nobody is there to be answered
            status = status or GONE
        except Exception:  # whatever it was: the log has it, and the client is told no more than its request's id
            logger().error("unexpected", extra={"request": name, "route": _route(scope)}, exc_info=True)
            if status:  # half of an answer is out: the server closes the connection
                raise
            await self._refuse(scope, unexpected(name))(scope, receive, watched)
        finally:
            self._tell(scope, name, status, time.perf_counter() - began)

    def _tell(self, scope: Scope, name: str, status: int, seconds: float) -> None:
        route, method = _route(scope), scope["method"]
        for observer in self._observers:
            observer(route, method, status, seconds)
        if self._log:
            logger().info(
                "request",
                extra={
                    "request": name,
                    "method": method,
                    "route": route,
                    "status": status,
                    "ms": round(1e3 * seconds, 3),
                    "caller": scope.get("manyarms.caller"),
                    **({"contexts": scope["manyarms.contexts"]} if scope.get("manyarms.contexts") else {}),
                },
            )


def _route(scope: Scope) -> str:
    """The route's pattern: a path may hold ids."""
    return str(getattr(scope.get("route"), "path", None) or "unmatched").replace(":path}", "}")


def _request_id(scope: Scope) -> str:
    """The caller's own, if it is a sane one."""
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            text: str = value.decode("latin-1")
            if re.fullmatch(r"[A-Za-z0-9._-]{1,64}", text):
                return text
    return uuid.uuid4().hex


__all__ = ["Observer", "Outermost"]
