"""Decisions, rewards and activations: what an application calls all day.

Each call is a form of its body and a function of it. The framework describes them like any other (OpenAPI); their requests are
answered by `hot.py`, in a few lines: at hundreds a second the way through a framework takes longer than deciding does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Depends
from pydantic import BaseModel
from starlette.responses import JSONResponse, Response

from manyarms.errors import ManyArmsError
from manyarms.live import LiveDecision
from manyarms.service.bodies import Activation, Answer, DecisionAnswers, Question, Questions, Reward, Rewards, Told
from manyarms.service.calls.checks import check_size
from manyarms.service.documents import WITH_BODY, Json, empty, refusals
from manyarms.service.problems import of_error
from manyarms.service.runtime import Service

MOST_CHOSEN = 100_000  # actions that the decisions of a batch may ask for, all together


async def _decide(service: Service, body: Question) -> Response:
    """Decide. The answer comes when the decision is in the store: rewards may follow now, tomorrow, from anywhere."""
    return Json(answer(service, await service.decide(**body.arguments())))


async def _decide_batch(service: Service, body: Questions) -> Response:
    """Decide several at once: one answer or problem for each, in their order."""
    check_size(len(body.decisions), service.config.most_batch)
    check_size(sum(question.k or 1 for question in body.decisions), MOST_CHOSEN, "actions ")
    found = await service.decide_many([question.arguments() for question in body.decisions])
    return Json({"decisions": [_one_of_many(service, one) for one in found]})


async def _reward(service: Service, body: Reward) -> Response:
    """The reward of an event. Told twice, it counts once; it may come late, and in parts that have ids of their own."""
    await service.reward(body.event, body.value, body.action, body.id)
    return empty()


async def _reward_batch(service: Service, body: Rewards) -> Response:
    """Several rewards at once: a status for each, in their order."""
    check_size(len(body.rewards), service.config.most_batch)
    found = await service.reward_many([(one.event, one.value, one.action, one.id) for one in body.rewards])
    return Json({"rewards": [{"status": 204} if one is None else _problem(one) for one in found]})


async def _activate(service: Service, body: Activation) -> Response:
    """A deferred decision was shown: from now on it counts."""
    await service.activate(body.event)
    return empty()


@dataclass(frozen=True)
class Call:
    """A call: who may, the form of its body, what it does, and what it answers. several: the part of the body that is a batch."""

    path: str
    scope: str
    form: type[BaseModel]
    run: Callable[[Service, Any], Awaitable[Response]]
    answer: type[BaseModel] | None
    refuses: tuple[int, ...] = (404, 409)
    several: str | None = None

    def cost(self, body: Any) -> int:
        """How many requests it counts for."""
        return 1 if self.several is None else len(getattr(body, self.several))

    def contexts(self, body: Any) -> list[Any]:
        """What it was asked to decide from, where it decides."""
        asked = [body] if self.several is None else getattr(body, self.several)
        return [one.context for one in asked if isinstance(one, Question)]


CALLS = (
    Call("/v1/decide", "decide", Question, _decide, Answer),
    Call("/v1/decide/batch", "decide", Questions, _decide_batch, DecisionAnswers, (), "decisions"),
    Call("/v1/reward", "reward", Reward, _reward, None),
    Call("/v1/reward/batch", "reward", Rewards, _reward_batch, Told, (), "rewards"),
    Call("/v1/activate", "reward", Activation, _activate, None),
)


def routes(service: Service) -> APIRouter:
    """The router."""
    router = APIRouter(tags=["decisions"])
    for call in CALLS:
        router.add_api_route(
            call.path,
            _endpoint(service, call),
            methods=["POST"],
            name=call.run.__name__.strip("_"),
            description=call.run.__doc__,
            dependencies=[Depends(service.access(call.scope))],
            status_code=200 if call.answer else 204,
            response_model=call.answer,
            response_class=JSONResponse if call.answer else Response,  # what the description is made of
            responses=refusals(*WITH_BODY, *call.refuses),
        )
    return router


def _endpoint(service: Service, call: Call) -> Callable[..., Awaitable[Response]]:
    async def endpoint(body: Any) -> Response:
        return await call.run(service, body)

    endpoint.__annotations__["body"] = call.form  # what the framework reads the form off
    return endpoint


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


__all__ = ["CALLS", "Call", "answer", "routes"]
