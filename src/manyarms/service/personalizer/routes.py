"""The paths of Azure Personalizer: an application that was written for it needs another base address and key, and nothing else.

/personalizer/v1.0/...                              the stable version
/personalizer/...?api-version=2022-09-01-preview    the newest preview, with several slots
/personalizer/v1.1-preview.n/...                    rank, reward and activate of older previews
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from manyarms.errors import Conflict, ManyArmsError, UnknownEvent
from manyarms.service.personalizer import bodies, described, evaluations
from manyarms.service.personalizer.configuration import CODE as CONFIGURATION
from manyarms.service.personalizer.configuration import Configuration
from manyarms.service.personalizer.durations import time_of
from manyarms.service.personalizer.errors import PersonalizerError, of_exception
from manyarms.service.personalizer.evaluations import INTERVALS, Evaluations
from manyarms.service.personalizer.models import Models
from manyarms.service.personalizer.ranking import Ranker
from manyarms.service.personalizer.slots import SlotEvents, slot_event
from manyarms.service.personalizer.versions import IN_PATHS, PREFIX, PREVIEW, STABLE

if TYPE_CHECKING:
    from manyarms.service.runtime import Service

ACTIVATION = "InvalidEventIdToActivate"


@dataclass(frozen=True)
class Call:
    """A request to one of the paths, and which version it speaks."""

    request: Request
    preview: bool

    @property
    def event(self) -> str:
        """The id in the path."""
        return self._name("eventId")

    @property
    def evaluation(self) -> str:
        """The id in the path."""
        return self._name("evaluationId")

    def _name(self, name: str) -> str:
        found: str = self.request.path_params[name]
        if not 1 <= len(found) <= bodies.LONGEST or not bodies.writable(found):
            text = f"expected a text of 1 to {bodies.LONGEST} characters"
            raise PersonalizerError(400, "BadRequest", text, name)
        return found

    async def json(self, code: str) -> Any:
        """The body."""
        return await bodies.json_of(self.request, code)

    def query(self, name: str) -> str | None:
        """A parameter of the address."""
        return self.request.query_params.get(name)


Handler = Callable[[Call], Awaitable[Response]]


@dataclass(frozen=True)
class Path:
    """A path and method, what may call it, what a refusal is called, and what answers."""

    method: str
    path: str
    scope: str
    code: str
    handler: Handler
    body: dict[str, Any] | None = None
    status: int = 200
    query: tuple[str, ...] = ()
    empty: bool = False  # whether the answer has no body, although its status is not 204


class Calls:
    """What the paths do."""

    def __init__(self, service: Service) -> None:
        self._service, self._live = service, service.live
        self._configuration = Configuration(service.live)
        self._ranker = Ranker(service, self._configuration)
        self._models = Models(service.live, self._configuration)
        self._evaluations = Evaluations(service.live, lambda: not service.stopping)
        self._slots = SlotEvents(service.live)

    # ---- what an application calls

    async def rank(self, call: Call) -> Response:
        """Choose one of the actions."""
        asked = bodies.rank_request(await call.json(bodies.RANK))
        return JSONResponse(await self._ranker.rank(asked), 201)

    async def reward(self, call: Call) -> Response:
        """What an event earned."""
        value = bodies.reward_value(await call.json(bodies.REWARD))
        await self._service.reward(call.event, value, id=_reward_id(call, value))
        return Response(status_code=204)

    async def activate(self, call: Call) -> Response:
        """A deferred event was shown."""
        await self._activate([call.event])
        return Response(status_code=204)

    async def _activate(self, events: list[str]) -> None:
        mode, _ = await self._service.work(self._configuration.of_a_rank)
        if mode == "LoggingOnly":
            return  # nothing is learned, whatever was shown
        for event in events:
            try:
                await self._service.activate(event)
            except Conflict as error:
                raise PersonalizerError(400, ACTIVATION, str(error), "eventId") from None

    async def rank_slots(self, call: Call) -> Response:
        """Choose an action for each slot."""
        asked = bodies.slots_request(await call.json(bodies.RANK))
        event = uuid.uuid4().hex if asked.event is None else asked.event
        found = await self._ranker.rank_slots(asked, event)
        self._slots.remember(event, asked.slots)
        return JSONResponse(found, 201)

    async def reward_slots(self, call: Call) -> Response:
        """What slots of an event earned."""
        rewards = bodies.slot_rewards(await call.json(bodies.REWARD))
        events = [slot_event(call.event, slot) for slot, _ in rewards]
        await self._service.work(self._check_known, events)
        for event, (_, value) in zip(events, rewards, strict=True):
            await self._service.reward(event, value, id=_reward_id(call, value))
        return Response(status_code=204)

    def _check_known(self, events: list[str]) -> None:
        """All slots or none: refused before the first is rewarded."""
        for place, event in enumerate(events):
            if not self._live.database.read("SELECT 1 FROM decisions WHERE id = ? AND erased = 0", (event,)):
                text = "there is no such slot of this event: never ranked here, or its log was deleted since"
                raise PersonalizerError(404, "ResourceNotFound", text, f"reward[{place}].slotId")

    async def activate_slots(self, call: Call) -> Response:
        """All slots of a deferred event were shown."""
        events = await self._service.work(self._slots.of, call.event)
        if not events:
            raise UnknownEvent(f"no event {call.event!r} with slots that still wait")
        await self._activate(events)
        return Response(status_code=204)

    # ---- configuration

    async def get_configuration(self, call: Call) -> Response:
        """The configuration."""
        return JSONResponse(await self._service.work(self._configuration.body))

    async def put_configuration(self, call: Call) -> Response:
        """Change it; nothing is reset."""
        told = await call.json(CONFIGURATION)
        return JSONResponse(await self._service.work(self._configuration.change, told, call.preview))

    async def get_policy(self, call: Call) -> Response:
        """Learning settings."""
        return JSONResponse(await self._service.work(self._models.policy))

    async def put_policy(self, call: Call) -> Response:
        """The same ones again."""
        return JSONResponse(await self._service.work(self._models.check_policy, await call.json(bodies.POLICY)))

    # ---- model and log

    async def get_model(self, call: Call) -> Response:
        """The agent, as a zip file."""
        content = await self._service.labour(self._models.file)
        return Response(content, media_type="application/octet-stream")

    async def model_properties(self, call: Call) -> Response:
        """Since when there is a model, and when it last learned."""
        return JSONResponse(await self._service.work(self._models.properties))

    async def delete_model(self, call: Call) -> Response:
        """A fresh agent decides."""
        await self._service.labour(self._models.reset)
        return Response(status_code=204)

    async def log_properties(self, call: Call) -> Response:
        """From when to when something is logged."""
        return JSONResponse(await self._service.work(self._models.log_properties))

    async def delete_logs(self, call: Call) -> Response:
        """Delete what was learned from."""
        await self._service.maintain(self._models.delete_logs)
        return Response(status_code=204)

    # ---- evaluations

    async def post_evaluation(self, call: Call) -> Response:
        """Begin an evaluation."""
        found = await self._service.work(self._evaluations.create, await call.json(bodies.EVALUATION))
        where = f"{PREFIX}/{STABLE}/evaluations/{found['id']}"
        return JSONResponse(evaluations.stable_form(found), 201, {"Location": where})

    async def put_evaluation(self, call: Call) -> Response:
        """Begin an evaluation under an id."""
        told = await call.json(bodies.EVALUATION)
        await self._service.work(self._evaluations.create, told, call.evaluation)
        return Response(status_code=200)

    async def get_evaluation(self, call: Call) -> Response:
        """An evaluation, with what was found as soon as it is there."""
        found = await self._service.work(self._evaluations.get, call.evaluation)
        if not call.preview:
            return JSONResponse(evaluations.stable_form(found))
        return JSONResponse(evaluations.preview_form(found, **_series(call)))

    async def list_evaluations(self, call: Call) -> Response:
        """All of them."""
        found = await self._service.work(self._evaluations.list)
        if not call.preview:
            return JSONResponse([evaluations.stable_form(one) for one in found])
        skip, top = (_count(call, name) for name in ("skip", "top"))
        chosen = found[skip or 0 :][: len(found) if top is None else top]
        return JSONResponse({"value": [evaluations.details(one) for one in chosen], "nextLink": None})

    async def delete_evaluation(self, call: Call) -> Response:
        """Forget one."""
        await self._service.work(self._evaluations.delete, call.evaluation)
        return Response(status_code=204)


def _reward_id(call: Call, value: float) -> str:
    """A reward has an id of its own, so that several of an event can be added; sent again by a client that numbers its requests
    (x-ms-client-request-id), it is the same one and counts once."""
    request = call.request.headers.get("x-ms-client-request-id", "")
    return f"{request[:200]}/{value!r}" if request and bodies.writable(request) else uuid.uuid4().hex


def _count(call: Call, name: str) -> int | None:
    text = call.query(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise PersonalizerError(400, "InvalidRequest", "expected a whole number from 0", name)
    return int(text)


def _series(call: Call) -> dict[str, Any]:
    """What the preview's time series is to show."""
    found: dict[str, Any] = {}
    minutes = _count(call, "intervalInMinutes")
    if minutes is not None:
        if minutes not in INTERVALS:
            text = f"one of {', '.join(map(str, INTERVALS))}"
            raise PersonalizerError(400, "InvalidRequest", text, "intervalInMinutes")
        found["minutes"] = minutes
    window = call.query("window")
    if window is not None:
        if window not in ("Expanding", "Rolling"):
            raise PersonalizerError(400, "InvalidRequest", "Expanding or Rolling", "window")
        found["window"] = window
    for name, ours in (("startTime", "start"), ("endTime", "end")):
        said = call.query(name)
        if said is not None:
            at = time_of(said.replace(" ", "+"))  # a plus that was not escaped
            if at is None:
                raise PersonalizerError(400, "InvalidRequest", "expected a time, such as 2026-10-01T00:00:00Z", name)
            found[ours] = at
    return found


def _application(calls: Calls) -> list[Path]:
    """What an application calls."""
    rank, reward, activate = bodies.RANK, bodies.REWARD, ACTIVATION
    return [
        Path("POST", "/rank", "decide", rank, calls.rank, described.RANK, 201),
        Path("POST", "/events/{eventId:path}/reward", "reward", reward, calls.reward, described.REWARD, 204),
        Path("POST", "/events/{eventId:path}/activate", "reward", activate, calls.activate, None, 204),
    ]


def _slots(calls: Calls) -> list[Path]:
    """The same with several slots, in previews alone."""
    reward = bodies.REWARD
    where = "/multislot/events/{eventId:path}"
    return [
        Path("POST", "/multislot/rank", "decide", bodies.RANK, calls.rank_slots, described.SLOTS, 201),
        Path("POST", f"{where}/reward", "reward", reward, calls.reward_slots, described.SLOT_REWARDS, 204),
        Path("POST", f"{where}/activate", "reward", ACTIVATION, calls.activate_slots, None, 204),
    ]


def _management(calls: Calls) -> list[Path]:
    """What its owner calls, in both versions."""
    one, form = "/evaluations/{evaluationId}", described.CONFIGURATION
    settings, policy = "/configurations/service", "/configurations/policy"
    return [
        Path("GET", settings, "read", CONFIGURATION, calls.get_configuration),
        Path("PUT", settings, "admin", CONFIGURATION, calls.put_configuration, form),
        Path("GET", policy, "read", bodies.POLICY, calls.get_policy),
        Path("PUT", policy, "admin", bodies.POLICY, calls.put_policy, described.POLICY),
        Path("DELETE", policy, "admin", bodies.POLICY, calls.get_policy),
        Path("GET", "/model", "read", "BadRequest", calls.get_model),
        Path("DELETE", "/model", "admin", "ModelResetFailed", calls.delete_model, None, 204),
        Path("GET", "/model/properties", "read", "BadRequest", calls.model_properties),
        Path("GET", "/logs/properties", "read", "BadRequest", calls.log_properties),
        Path("DELETE", "/logs", "admin", "OperationNotAllowed", calls.delete_logs, None, 204),
        Path("DELETE", one, "admin", bodies.EVALUATION, calls.delete_evaluation, None, 204),
    ]


def _evaluations(calls: Calls, preview: bool) -> list[Path]:
    """Where the versions differ: who names an evaluation, and what can be asked of it."""
    one, code, form = "/evaluations/{evaluationId}", bodies.EVALUATION, described.EVALUATION
    if not preview:
        return [
            Path("POST", "/evaluations", "admin", code, calls.post_evaluation, form, 201),
            Path("GET", "/evaluations", "read", code, calls.list_evaluations),
            Path("GET", one, "read", code, calls.get_evaluation),
        ]
    asked = ("startTime", "endTime", "intervalInMinutes", "window")
    return [
        Path("PUT", one, "admin", code, calls.put_evaluation, form, empty=True),
        Path("GET", "/evaluations", "read", code, calls.list_evaluations, query=("skip", "top")),
        Path("GET", one, "read", code, calls.get_evaluation, query=asked),
    ]


def routes(service: Service) -> APIRouter:
    """All paths, of all versions."""
    calls = Calls(service)
    router = APIRouter(tags=["personalizer"])
    management = _management(calls)
    for path in (*_application(calls), *management, *_evaluations(calls, preview=False)):
        _add(router, service, f"{PREFIX}/{STABLE}", path, preview=False)
    for version in IN_PATHS:
        for path in (*_application(calls), *_slots(calls)):
            _add(router, service, f"{PREFIX}/{version}", path, preview=True)
    for path in (*_application(calls), *_slots(calls), *management, *_evaluations(calls, preview=True)):
        _add(router, service, PREFIX, path, preview=True, asks_version=True)
    return router


def _add(
    router: APIRouter, service: Service, prefix: str, path: Path, *, preview: bool, asks_version: bool = False
) -> None:
    async def endpoint(request: Request) -> Response:
        try:
            if asks_version:
                _check_version(request)
            return await path.handler(Call(request, preview))
        except (PersonalizerError, ManyArmsError) as error:
            return of_exception(request, error, path.code)

    kind = "application/octet-stream" if path.path == "/model" and path.method == "GET" else "application/json"
    bare = path.status == 204 or path.empty
    fine: dict[str, Any] = {"description": "Done"} if bare else {"description": "Done", "content": {kind: {}}}
    router.add_api_route(
        f"{prefix}{path.path}",
        endpoint,
        methods=[path.method],
        status_code=path.status,
        name=f"{path.handler.__name__} {prefix}",
        summary=(path.handler.__doc__ or "").rstrip("."),
        dependencies=[Depends(service.access(path.scope))],
        responses={**described.refusals(), path.status: fine},
        response_class=Response,
        openapi_extra=described.extra(path.path, path.body, asks_version, path.query),
    )


def _check_version(request: Request) -> None:
    told = request.query_params.get("api-version")
    if told != PREVIEW:
        came = "no api-version" if told is None else "an api-version that is not known here"
        text = f"{came}: ?api-version={PREVIEW}, or the stable version under {PREFIX}/{STABLE}/"
        raise PersonalizerError(400, "BadRequest", text, "api-version")


__all__ = ["routes"]
