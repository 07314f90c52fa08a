"""Decisions, rewards and activations: what an application calls all day."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from manyarms.errors import ManyArmsError
from manyarms.live import LiveDecision
from manyarms.service.bodies import Activation, Answer, Answers, Question, Questions, Reward, Rewards, Told
from manyarms.service.documents import WITH_BODY, Json, empty, refusals
from manyarms.service.problems import Problem, of_error
from manyarms.service.runtime import Service


def routes(service: Service) -> APIRouter:
    """The router."""
    router = APIRouter(prefix="/v1", tags=["decisions"])
    may_decide, may_reward = Depends(service.access("decide")), Depends(service.access("reward"))

    @router.post("/decide", dependencies=[may_decide], response_model=Answer, responses=refusals(*WITH_BODY, 404, 409))
    async def decide(body: Question) -> Response:
        """Decide. The answer comes when the decision is in the store: rewards may follow now, tomorrow, from anywhere."""
        return Json(answer(service, await service.decide(**body.arguments())))

    @router.post("/decide/batch", dependencies=[may_decide], response_model=Answers, responses=refusals(*WITH_BODY))
    async def decide_batch(body: Questions, request: Request) -> Response:
        """Decide several at once: one answer or problem for each, in their order."""
        _check_size(len(body.decisions), service.config.most_batch)
        service.charge(request, "decide", len(body.decisions))
        found = await service.decide_many([question.arguments() for question in body.decisions])
        return Json({"decisions": [_one_of_many(service, one) for one in found]})

    @router.post(
        "/reward", dependencies=[may_reward], status_code=204, responses=refusals(*WITH_BODY, 404, 409),
        response_class=Response,
    )  # fmt: skip
    async def reward(body: Reward) -> Response:
        """The reward of an event. Told twice, it counts once; it may come late, and in parts that have ids of their own."""
        await service.reward(body.event, body.value, body.action, body.id)
        return empty()

    @router.post("/reward/batch", dependencies=[may_reward], response_model=Told, responses=refusals(*WITH_BODY))
    async def reward_batch(body: Rewards, request: Request) -> Response:
        """Several rewards at once: a status for each, in their order."""
        _check_size(len(body.rewards), service.config.most_batch)
        service.charge(request, "reward", len(body.rewards))
        found = await service.reward_many([(one.event, one.value, one.action, one.id) for one in body.rewards])
        return Json({"rewards": [{"status": 204} if one is None else _problem(one) for one in found]})

    @router.post(
        "/activate", dependencies=[may_reward], status_code=204, responses=refusals(*WITH_BODY, 404, 409),
        response_class=Response,
    )  # fmt: skip
    async def activate(body: Activation) -> Response:
        """A deferred decision was shown: from now on it counts."""
        await service.activate(body.event)
        return empty()

    return router


def answer(service: Service, decision: LiveDecision) -> dict[str, Any]:
    """A decision as clients get it."""
    return {
        "id": decision.id, "action": decision.action, "actions": decision.actions, "propensity": decision.propensity,
        "propensity_kind": decision.propensity_kind, "arm": decision.arm, "version": decision.version,
        "logged": decision.logged, "active": decision.active, "learning": service.live.learning(decision.position),
    }  # fmt: skip


def _one_of_many(service: Service, found: LiveDecision | Exception) -> dict[str, Any]:
    return {"status": 200, **answer(service, found)} if isinstance(found, LiveDecision) else _problem(found)


def _problem(error: Exception) -> dict[str, Any]:
    if not isinstance(error, ManyArmsError):
        raise error
    return of_error(error)[1]


def _check_size(number: int, most: int) -> None:
    if number > most:
        raise Problem(422, f"{number:,} at once: expected at most {most:,}", name="invalid-input")


__all__ = ["answer", "routes"]
