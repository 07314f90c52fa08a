"""Arms: which agents and policies there are, who decides, and how another one takes over."""

from __future__ import annotations

import re
from pathlib import Path as FilePath
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path
from starlette.responses import Response

import manyarms as ma
from manyarms.errors import StorageError
from manyarms.live import Live
from manyarms.service.bodies import MOST_OF_AN_ID, ChallengeBody, NewAgent, Shares
from manyarms.service.calls.checks import check_arm
from manyarms.service.documents import WITH_BODY, Json, empty, refusals
from manyarms.service.problems import Problem
from manyarms.service.request_log import logger
from manyarms.service.runtime import Service

ArmName = Annotated[str, Path(min_length=1, max_length=MOST_OF_AN_ID, description="The arm's name.")]


def routes(service: Service) -> APIRouter:
    """The router."""
    router = APIRouter(prefix="/v1", tags=["agents"])
    may_read, may_change = Depends(service.access("read")), Depends(service.access("admin"))
    live = service.live

    @router.get("/agents", dependencies=[may_read], responses=refusals())
    async def agents() -> Response:
        """The arms of the store, and their part in the deployment."""
        return Json({"agents": arms_body(live), "deployment": deployment_body(live)})

    @router.post("/agents", dependencies=[may_change], status_code=201, responses=refusals(*WITH_BODY, 404, 409))
    async def load(body: NewAgent) -> Response:
        """Take in a saved agent or policy from the service's folder of agents; it decides nothing until it is deployed."""
        folder = saved_in(service.config.agents_folder, body.folder)
        try:
            arm = await service.labour(ma.load, folder)
        except StorageError as error:
            logger().warning("an agent cannot be loaded", extra={"reason": str(error)})
            text = (
                "what is saved there cannot be read: it is damaged, or of another version; the service's log says more"
            )
            raise Problem(409, text, name="refused") from None
        await service.labour(live.add_arm, body.name, arm, learns=body.learns)
        return Json({"name": body.name}, status_code=201)

    @router.delete(
        "/agents/{name}",
        dependencies=[may_change],
        status_code=204,
        response_class=Response,
        responses=refusals(404, 409),
    )
    async def remove(name: ArmName) -> Response:
        """Let go of an arm that has no part in the deployment."""
        check_arm(live, name)
        await service.work(live.remove_arm, name)
        return empty()

    @router.post("/agents/{name}/promote", dependencies=[may_change], responses=refusals(404, 409))
    async def promote(name: ArmName) -> Response:
        """All the traffic, but for the hold-out, to this arm; those that had it look on."""
        check_arm(live, name)
        await service.work(live.promote, name)
        return Json(deployment_body(live))

    @router.post("/agents/roll-back", dependencies=[may_change], responses=refusals(409))
    async def roll_back() -> Response:
        """Back to what was deployed before."""
        await service.work(live.roll_back)
        return Json(deployment_body(live))

    @router.post(
        "/agents/{name}/challenge", dependencies=[may_change], status_code=201, responses=refusals(*WITH_BODY, 404, 409)
    )
    async def challenge(name: ArmName, body: ChallengeBody) -> Response:
        """Promote this arm by itself, once it is certified to be better; roll back by itself, if it falls."""
        check_arm(live, name)
        await service.work(live.challenge, name, **body.model_dump())
        return Json({"challenges": live.challenges()}, status_code=201)

    @router.delete(
        "/agents/{name}/challenge",
        dependencies=[may_change],
        status_code=204,
        response_class=Response,
        responses=refusals(404, 409),
    )
    async def withdraw(name: ArmName) -> Response:
        """End a challenge, or the guard of an arm that was promoted; what is deployed stays."""
        check_arm(live, name)
        await service.work(live.withdraw, name)
        return empty()

    @router.get("/deployment", dependencies=[may_read], responses=refusals())
    async def deployment() -> Response:
        """Who decides, and how often."""
        return Json(deployment_body(live))

    @router.put("/deployment", dependencies=[may_change], responses=refusals(*WITH_BODY, 409))
    async def deploy(body: Shares) -> Response:
        """Who decides from now on: shares of the traffic, a hold-out, and arms that look on."""
        await service.work(
            live.deploy, body.shares, holdout=body.holdout, holdout_arm=body.holdout_arm, shadows=body.shadows
        )
        return Json(deployment_body(live))

    return router


def arms_body(live: Live) -> list[dict[str, Any]]:
    """The arms, and what each does."""
    now = live.deployment
    return [
        {
            "name": name,
            "share": now.shares.get(name, 0.0),
            "holdout": name == now.holdout_arm,
            "shadow": name in now.shadows,
            "exact_propensities": exact,
        }
        for name, exact in live.arms.items()
    ]


def deployment_body(live: Live) -> dict[str, Any]:
    """The deployment, without those before it."""
    return {name: value for name, value in live.deployment.to_json().items() if name != "previous"}


def saved_in(folder: FilePath | None, name: str) -> FilePath:
    """A saved agent in the folder of agents, by a plain name: nothing else of this machine can be named."""
    if folder is None:
        raise Problem(
            409, "this service has no folder of agents: agent.others names it in its settings", name="refused"
        )
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise Problem(422, "folder: expected a plain name of letters, digits, dots and dashes", name="invalid-input")
    found = folder / name
    if not found.is_dir() or found.resolve().parent != folder.resolve():
        raise Problem(404, "no agent is saved under this name", name="unknown-agent")
    return found


__all__ = ["arms_body", "deployment_body", "routes", "saved_in"]
