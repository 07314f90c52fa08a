"""The calls of every second, answered without a framework: read, check the key, check the form, call, write.

They are the ones of `calls/decide.py`; anything else goes on to the application, and so does another method on their paths.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from manyarms.errors import ManyArmsError
from manyarms.service import problems
from manyarms.service.calls.decide import CALLS
from manyarms.service.runtime import Service

Answering = Callable[[Request, problems.Refusal], ASGIApp]
GUARDED = ("/v1/", "/personalizer/", "/metrics")
"""Whatever begins so needs a key, where there are keys; routes ask for scopes besides."""
_BY_PATH = {call.path: call for call in CALLS}


@dataclass(frozen=True)
class _Route:
    """What the log and the figures call a request by."""

    path: str


_ROUTES = {path: _Route(path) for path in _BY_PATH}


class HotCalls:
    """Answers these calls itself."""

    def __init__(self, app: ASGIApp, service: Service, refuse: Answering) -> None:
        """refuse: the response to a request with this problem."""
        self._app, self._service, self._refuse = app, service, refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        call = _BY_PATH.get(scope.get("path", "")) if scope["type"] == "http" else None
        if call is None or scope["method"] != "POST":
            await self._other(scope, receive, send)
            return
        scope["route"] = _ROUTES[call.path]
        request = Request(scope, receive)
        response: ASGIApp
        try:
            self._service.admit(request, call.scope)
            body = call.form.model_validate_json(await _read(request))
            if self._service.config.log_contexts:
                scope["manyarms.contexts"] = call.contexts(body)
            if (cost := call.cost(body)) > 1:
                self._service.admit(request, call.scope, cost - 1)
            response = await call.run(self._service, body)
        except ValidationError as error:
            response = self._refuse(request, problems.of_form(error.errors(include_url=False, include_input=False)))
        except ManyArmsError as error:
            response = self._refuse(request, problems.of_error(error, scope.get("manyarms.request")))
        except HTTPException as error:
            response = self._refuse(request, problems.of_http(error))
        await response(scope, receive, send)

    async def _other(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Any other call: the framework reads a body before it asks who sends it, so that strangers are refused here."""
        if scope["type"] == "http" and scope["path"].startswith(GUARDED):
            request = Request(scope)
            try:
                self._service.recognise(request)
            except HTTPException as error:
                await self._refuse(request, problems.of_http(error))(scope, receive, send)
                return
        await self._app(scope, receive, send)


async def _read(request: Request) -> bytes:
    """The body, if it is said to be JSON."""
    problems.require_json(request.headers.get("content-type"))
    return await request.body()


__all__ = ["HotCalls"]
