"""The application: routes, what surrounds them, and errors as problem details."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Unpack

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from manyarms import __version__
from manyarms._base.validate import instance
from manyarms.errors import ManyArmsError
from manyarms.live import Live
from manyarms.service import personalizer, problems
from manyarms.service.bodies import ProblemBody
from manyarms.service.calls import admin, agents, catalogue, dashboard, decide, edge, events, health
from manyarms.service.config import Config, make_config
from manyarms.service.documents import Json
from manyarms.service.hot import HotCalls
from manyarms.service.limits import BodyLimit
from manyarms.service.options import Options
from manyarms.service.outermost import Observer, Outermost
from manyarms.service.request_log import logger
from manyarms.service.runtime import Service

ABOUT = """Decisions among thousands to millions of actions, which learn from their rewards.

`POST /v1/decide` decides; `POST /v1/reward` tells what came of it. Both are in the store when they are answered, and both may be
sent again: an event and a reward have ids. Errors are problem details (RFC 9457)."""


class Application(FastAPI):
    """Routes, and what surrounds them: outermost first, the limit of bodies, the calls of every second."""

    _outer: ASGIApp | None = None

    def surround(self, service: Service) -> None:
        """Put the outer layers around the routes."""
        observers: list[Observer] = [
            service.metrics.count,
            lambda route, method, status, seconds: service.statistics.observe_latency(route, seconds),
        ]
        hot = HotCalls(super().__call__, service, _response)
        limited = BodyLimit(hot, service.config.most_body, _refuse)
        self._outer = Outermost(limited, observers, _refuse, service.config.log_requests)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the lifespan."""
        assert self._outer is not None
        await self._outer(scope, receive, send)


def create_app(service: Service | Live, config: Config | None = None, **options: Unpack[Options]) -> Application:
    """The application of a service; or, for tests and for use inside another program, that of a live store.

    config, or options by the names of `Config`: the settings, where a live store is given. It is not closed with the application.
    """
    if isinstance(service, Live):
        told = {"store": "in this process", **options}
        found = make_config({}, told) if config is None else instance("config", config, Config, "settings, or None")
        service = Service(service, found, owned=False)
    return _built(instance("service", service, Service, "a Service, or a live store"))


def _built(service: Service) -> Application:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.start()
        logger().info("started", extra={"release": __version__, "version": service.live.version})
        try:
            yield
        finally:
            service.close()
            logger().info("stopped")

    app = Application(
        title="manyarms", version=__version__, description=ABOUT, lifespan=lifespan, docs_url=None, redoc_url=None,
        openapi_url="/openapi.json", redirect_slashes=False,
    )  # fmt: skip
    _add_errors(app)
    for topic in (decide, dashboard, events, catalogue, agents, admin, edge, health):
        app.include_router(topic.routes(service))
    if service.config.personalizer:
        app.include_router(personalizer.routes(service))
    app.surround(service)
    _describe(app)
    return app


# ---- errors


def _add_errors(app: FastAPI) -> None:
    async def ours(request: Request, error: Exception) -> Response:
        assert isinstance(error, ManyArmsError)
        return _response(request, problems.of_error(error, request.scope.get("manyarms.request")))

    async def of_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return _response(request, problems.of_http(error))

    async def of_form(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        mistakes = error.errors()
        if any(tuple(one["loc"])[:1] == ("body",) for one in mistakes):
            try:
                problems.require_json(request.headers.get("content-type"))
            except problems.Problem as other:
                return _response(request, problems.of_http(other))
        return _response(request, problems.of_form(mistakes))

    async def unexpected(request: Request, error: Exception) -> Response:
        # Starlette answers with a text of its own otherwise, before `Outermost` hears of it; that logs it
        return _refuse(request.scope, problems.unexpected(request.scope.get("manyarms.request")))

    app.add_exception_handler(Exception, unexpected)
    app.add_exception_handler(ManyArmsError, ours)
    app.add_exception_handler(HTTPException, of_http)
    app.add_exception_handler(RequestValidationError, of_form)


def _response(request: Request, refusal: problems.Refusal) -> Response:
    status, body, headers = refusal
    name = request.scope.get("manyarms.request")
    if personalizer.is_personalizer(request.scope["path"]):
        return personalizer.error_response(request, status, body, headers)
    if name is not None:
        body = {**body, "instance": f"urn:manyarms:request:{name}"}
    return Json(body, status_code=status, headers=headers, media_type=problems.MEDIA_TYPE)


def _refuse(scope: Scope, problem: problems.Problem) -> Response:
    return _response(Request(scope), problems.of_http(problem))


def _describe(app: FastAPI) -> None:
    """The description of the API, with the form of problems and the keys."""
    plain = app.openapi

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = plain()
            parts = schema.setdefault("components", {})
            parts.setdefault("schemas", {})[ProblemBody.__name__] = ProblemBody.model_json_schema()
            parts["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
            schema["security"] = [{"key": []}]
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]


__all__ = ["create_app"]
