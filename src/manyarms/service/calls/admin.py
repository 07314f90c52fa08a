"""The store: how it is, what its monitors say, its settings, making it smaller, and copying it."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Depends
from starlette.responses import Response

from manyarms.live import Live
from manyarms.service.bodies import Compact, NewSettings
from manyarms.service.documents import WITH_BODY, Json, refusals
from manyarms.service.problems import Problem
from manyarms.service.runtime import Service


def routes(service: Service) -> APIRouter:
    """The router."""
    router = APIRouter(prefix="/v1", tags=["store"])
    may_read, may_change = Depends(service.access("read")), Depends(service.access("admin"))
    live = service.live

    @router.get("/status", dependencies=[may_read], responses=refusals())
    async def status() -> Response:
        """How it is going: the version, what waits to be folded, what was learned, what fails behind the decisions."""
        return Json(await service.look(service.status))

    @router.get("/report", dependencies=[may_read], responses=refusals())
    async def report() -> Response:
        """What is watched: values, lift, sample ratio, propensities, shadows, challenges; intervals hold at all times at once."""
        return Json((await service.work(live.report)).body)

    @router.get("/settings", dependencies=[may_read], responses=refusals())
    async def settings() -> Response:
        """How rewards count."""
        return Json(settings_body(live))

    @router.patch("/settings", dependencies=[may_change], responses=refusals(*WITH_BODY, 409))
    async def change_settings(body: NewSettings) -> Response:
        """How events that are decided from now on count. Nothing is reset, and earlier events count as they did."""
        wanted = body.model_dump(exclude_unset=True)
        if not wanted:
            raise Problem(422, "expected aggregate, default or wait", name="invalid-input")
        await service.work(live.change_settings, **wanted)
        return Json(settings_body(live))

    @router.post("/admin/compact", dependencies=[may_change], responses=refusals(*WITH_BODY, 409))
    async def compact(body: Compact) -> Response:
        """Delete what happened more than `keep` seconds ago; a dry run, unless told otherwise, says what would go."""
        return Json(asdict(await service.maintain(live.compact, body.keep, dry_run=body.dry_run)))

    @router.post("/admin/backup", dependencies=[may_change], status_code=201, responses=refusals(409))
    async def backup() -> Response:
        """Copy the store, as it is now, into the service's folder of backups."""
        from manyarms.live.backup import backup as copy

        folder = service.config.backups
        if folder is None:
            raise Problem(
                409, "this service has no folder for backups: backups.folder names it in its settings", name="refused"
            )
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        target = folder / time.strftime("backup-%Y%m%dT%H%M%SZ.db", time.gmtime())
        if target.exists():
            raise Problem(409, "a backup was made within this second", name="refused")
        await service.maintain(copy, live.database, target)
        return Json({"file": target.name, "bytes": target.stat().st_size}, status_code=201)

    return router


def settings_body(live: Live) -> dict[str, Any]:
    """The settings in force."""
    return asdict(live.settings)


__all__ = ["routes", "settings_body"]
