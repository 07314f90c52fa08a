"""Single events: what was decided, what it earned, why, and forgetting it. Their list is the dashboard's (`dashboard.py`)."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path
from starlette.responses import Response

from manyarms.live import Live
from manyarms.service.bodies import MOST_OF_AN_ID
from manyarms.service.documents import Json, empty, refusals
from manyarms.service.runtime import Service

EventId = Annotated[str, Path(min_length=1, max_length=MOST_OF_AN_ID, description="The event's id.")]


def routes(service: Service) -> APIRouter:
    """The router. An id may hold slashes; one that ends in /why is found by the list, /v1/events?id=."""
    router = APIRouter(prefix="/v1/events", tags=["events"])
    may_read, may_change = Depends(service.access("read")), Depends(service.access("admin"))

    @router.get("/{id:path}/why", dependencies=[may_read], responses=refusals(404, 409))
    async def why(id: EventId) -> Response:
        """Which features made the score of the action that was taken, and which part of it comes from what all actions share."""
        return Json((await service.labour(service.live.why, id)).to_json())

    @router.get("/{id:path}", dependencies=[may_read], responses=refusals(404))
    async def event(id: EventId) -> Response:
        """What the log has of a decision, and its rewards."""
        return Json(await service.work(event_body, service.live, id))

    @router.delete(
        "/{id:path}", dependencies=[may_change], status_code=204, response_class=Response, responses=refusals(404, 409)
    )
    async def erase(id: EventId) -> Response:
        """Forget an event: its record is blanked, and what was learned from it is unlearned."""
        await service.labour(service.live.erase, id)
        return empty()

    return router


def event_body(live: Live, id: str) -> dict[str, Any]:
    """An event with its rewards."""
    record, rewards = live.event(id), live.rewards(id)
    asked = record.question
    return {
        "id": record.id,
        "at": record.at,
        "position": record.position,
        "arm": record.arm,
        "version": record.version,
        "unit": record.unit,
        "actions": record.actions,
        "context": None if asked is None else asked.context.tolist(),
        "candidates": None if asked is None else asked.candidates,
        "exclude": None if asked is None else asked.exclude,
        "k": None if asked is None else asked.k,
        "propensity": record.propensity,
        "propensity_given_arm": record.arm_propensity,
        "inclusion": record.inclusion,
        "propensity_kind": None if record.erased else record.propensity_kind,
        "active": record.active,
        "erased": record.erased,
        "details": record.details,
        "rewards": [{"action": one.action, "id": one.id, "value": one.value, "at": one.at} for one in rewards],
    }


__all__ = ["event_body", "routes"]
