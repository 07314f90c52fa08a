"""Is it there, is it ready, and its figures: for load balancers, orchestrators and Prometheus."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Depends
from starlette.responses import Response

from manyarms import __version__
from manyarms.live import Live
from manyarms.service import metrics
from manyarms.service.documents import Json, refusals
from manyarms.service.runtime import Service


def routes(service: Service) -> APIRouter:
    """The router."""
    router = APIRouter(tags=["health"])
    asking: asyncio.Future[bool] | None = None

    async def store_answers() -> bool:
        """One look at a time, however many ask: anybody may."""
        nonlocal asking
        if asking is None or asking.done():
            asking = asyncio.ensure_future(service.look(_answers, service.live))
        return await asyncio.shield(asking)

    @router.get("/healthz")
    async def alive() -> Response:
        """It runs."""
        return Json({"status": "ok", "version": __version__})

    @router.get("/readyz", responses={503: {"description": "Not ready: `reasons` says why"}})
    async def ready() -> Response:
        """It can decide and write: 503 while it stops, or while the store cannot be reached."""
        reasons = ["stopping"] if service.stopping else []
        if not reasons:
            reasons = [] if await store_answers() else ["the store cannot be reached"]
        answer = {"status": "not ready" if reasons else "ok", "reasons": reasons}
        return Json(answer, status_code=503 if reasons else 200, headers={"Retry-After": "1"} if reasons else None)

    @router.get(
        "/metrics", dependencies=[Depends(service.access("metrics"))], response_class=Response,
        responses={200: {"content": {"text/plain": {}}, "description": "Figures for Prometheus"}, **refusals()},
    )  # fmt: skip
    async def figures() -> Response:
        """Figures for Prometheus."""
        return Response(await service.look(service.metrics.text), headers={"Content-Type": metrics.MEDIA_TYPE})

    return router


def _answers(live: Live) -> bool:
    return live.status()["waiting"] is not None


__all__ = ["routes"]
