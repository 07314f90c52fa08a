"""The catalogue: which actions there are, new ones, changed ones, retired ones. Changes reach every arm, and are in the log."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query
from starlette.responses import Response

from manyarms.errors import UnknownAction
from manyarms.live import Live
from manyarms.service.bodies import MOST_OF_AN_ID, ActionChange, NewActions, SomeActions
from manyarms.service.documents import WITH_BODY, Json, empty, refusals
from manyarms.service.problems import Problem
from manyarms.service.runtime import Service

ActionText = Annotated[str, Path(min_length=1, max_length=MOST_OF_AN_ID, description="The action's id, or its number.")]


def routes(service: Service) -> APIRouter:
    """The router."""
    router = APIRouter(prefix="/v1/catalogue", tags=["catalogue"])
    may_read, may_change = Depends(service.access("read")), Depends(service.access("admin"))
    live = service.live

    @router.get("", dependencies=[may_read], responses=refusals())
    async def actions(
        after: Annotated[int, Query(ge=-1, le=2**53, description="Actions after this row.")] = -1,
        limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
        search: Annotated[str, Query(max_length=200, description="Only ids that contain this text.")] = "",
    ) -> Response:
        """The actions, in the order of their rows; `next` is the `after` of the next page, null at the end."""
        going = service.labour if search else service.work  # a search looks at every id
        found = await going(live.actions, after=after, limit=limit, search=search)
        following = found[-1].row if len(found) == limit else None
        return Json({"count": live.action_count, "actions": [asdict(one) for one in found], "next": following})

    @router.get("/{action:path}", dependencies=[may_read], responses=refusals(404))
    async def action(action: ActionText) -> Response:
        """One action."""
        return Json(asdict(found_action(live, action)))

    @router.post("", dependencies=[may_change], status_code=201, responses=refusals(*WITH_BODY, 409))
    async def add(body: NewActions) -> Response:
        """Add actions; the answer has their ids. They can be chosen when this returns."""
        if body.ids is None and body.number is None and body.weights is None:
            raise Problem(422, "expected ids, a number of actions, or their weights", name="invalid-input")
        ids = await service.work(
            live.add_actions, body.number, ids=body.ids, weights=body.weights, covariance=body.covariance
        )
        return Json({"ids": ids}, status_code=201)

    @router.patch("/{action:path}", dependencies=[may_change], responses=refusals(*WITH_BODY, 404, 409))
    async def update(action: ActionText, body: ActionChange) -> Response:
        """Change an action: its mixing weights (what was learned stays, seen through the new ones), or whether it is retired."""
        if body.weights is None and body.retired is None:
            raise Problem(422, "expected weights, retired, or both", name="invalid-input")
        known = found_action(live, action)
        if body.weights is not None:
            await service.work(live.update_actions, [known.id], weights=[body.weights])
        if body.retired is not None and body.retired is not known.retired:
            await service.work(live.retire if body.retired else live.reinstate, [known.id])
        return Json(asdict(live.action(known.id)))

    @router.post(
        "/retire", dependencies=[may_change], status_code=204, response_class=Response,
        responses=refusals(*WITH_BODY, 409),
    )  # fmt: skip
    async def retire(body: SomeActions) -> Response:
        """Do not choose these any more; rewards that come late are still learned."""
        await service.work(live.retire, body.actions)
        return empty()

    @router.post(
        "/reinstate", dependencies=[may_change], status_code=204, response_class=Response,
        responses=refusals(*WITH_BODY, 409),
    )  # fmt: skip
    async def reinstate(body: SomeActions) -> Response:
        """Choose these again."""
        await service.work(live.reinstate, body.actions)
        return empty()

    return router


def found_action(live: Live, text: str) -> Any:
    """The action of a path: by its id, which may be an integer."""
    names = live.catalogue
    integers = names is None or (len(names) > 0 and isinstance(names[0], int))
    try:
        if not integers:
            return live.action(text)
        if text.isdecimal() and text.isascii() and len(text) < 19:
            return live.action(int(text))
    except UnknownAction:
        pass
    raise Problem(404, "no action has this id", name="unknown-action")


__all__ = ["found_action", "routes"]
