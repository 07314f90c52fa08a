"""The dashboard: its page, and the figures that it shows. The page itself holds no figures, and needs no key."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from manyarms.errors import InvalidInput
from manyarms.service.bodies import MOST_OF_AN_ID
from manyarms.service.documents import Json, names_tag, refusals
from manyarms.service.problems import Problem
from manyarms.service.runtime import Service
from manyarms.service.statistics.events import MOST
from manyarms.service.statistics.minutes import DAY

PAGE = "index.html"
ASSETS = {
    "style.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
    **dict.fromkeys(
        ("action.js", "api.js", "app.js", "charts.js", "dom.js", "events.js", "format.js", "overview.js"),
        "text/javascript; charset=utf-8",
    ),
}
"""Everything that is ever served, by name."""
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}

Text = Annotated[str | None, Query(min_length=1, max_length=MOST_OF_AN_ID)]


def routes(service: Service) -> APIRouter:
    """The router."""
    router = APIRouter()
    may_read = Depends(service.access("read"))
    statistics = service.statistics

    async def page(request: Request) -> Response:
        """The page."""
        return _file(request, PAGE, "text/html; charset=utf-8")

    async def asset(request: Request, name: str) -> Response:
        """What the page is made of."""
        if name not in ASSETS:
            raise Problem(404, "no such file")
        return _file(request, name, ASSETS[name])

    if service.config.dashboard:
        router.add_api_route("/", page, include_in_schema=False)
        router.add_api_route("/assets/{name}", asset, include_in_schema=False)

    @router.get("/v1/dashboard", tags=["dashboard"], dependencies=[may_read], responses=refusals())
    async def dashboard(
        minutes: Annotated[int, Query(ge=1, le=DAY, description="How far back its curves go.")] = 60,
    ) -> Response:
        """All that the dashboard shows at once: rates, values with their intervals, checks, coverage, latency, alarms."""
        return Json(await service.work(statistics.summary, minutes))

    @router.get("/v1/events", tags=["events"], dependencies=[may_read], responses=refusals(404))
    async def events(
        limit: Annotated[int, Query(ge=1, le=MOST)] = 50,
        before: Annotated[int | None, Query(ge=1, le=2**53, description="`next` of the page before.")] = None,
        arm: Text = None,
        action: Text = None,
        id: Annotated[
            str | None, Query(max_length=MOST_OF_AN_ID, description="A part of an event's id, or of its unit.")
        ] = None,
        since: Annotated[float | None, Query(ge=0, allow_inf_nan=False, description="Seconds since 1970.")] = None,
        rewarded: Annotated[bool, Query(description="Only events that have a reward.")] = False,
    ) -> Response:
        """Events with their rewards, newest first; `next` is the `before` of the next page, null at the end.

        A filter looks at a part of the log at a time: a page may be short, or empty, and yet not be the last.
        """
        if any(text is not None and "\0" in text for text in (arm, action, id)):
            return Json({"events": [], "next": None})  # in no id, and PostgreSQL does not know it
        try:
            found = await service.work(statistics.events, limit, before, arm, action, since, text=id, rewarded=rewarded)
        except InvalidInput:
            raise Problem(404, "no action has this id", name="unknown-action") from None
        return Json(found)

    @router.get(
        "/v1/catalogue/{action:path}/statistics",
        tags=["catalogue"],
        dependencies=[may_read],
        responses=refusals(404),
    )
    async def action_statistics(
        action: Annotated[
            str, Path(min_length=1, max_length=MOST_OF_AN_ID, description="The action's id, or its number.")
        ],
        minutes: Annotated[int, Query(ge=1, le=DAY)] = DAY,
    ) -> Response:
        """How often an action was played, what it earned, with an interval that is valid at any time, and its minutes."""
        try:
            return Json(await service.work(statistics.action, action, minutes))
        except InvalidInput:
            raise Problem(404, "no action has this id", name="unknown-action") from None

    return router


def _file(request: Request, name: str, kind: str) -> Response:
    body, tag = _content(name)
    headers = {**HEADERS, "ETag": tag}
    if names_tag(request.headers.get("if-none-match"), tag):
        return Response(status_code=304, headers=headers)
    return Response(body, media_type=kind, headers=headers)


_READ: dict[str, tuple[bytes, str]] = {}


def _content(name: str) -> tuple[bytes, str]:
    """A file of the package, and a tag that changes with it; read once."""
    if name not in _READ:
        body = files("manyarms.service.dashboard").joinpath(name).read_bytes()
        _READ[name] = body, f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    return _READ[name]


__all__ = ["ASSETS", "routes"]
