"""Decisions at the edge: a signed policy that clients evaluate themselves, its public key, and what they have decided with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Request
from pydantic import BaseModel, Field, ValidationError
from starlette.responses import Response

from manyarms.errors import InvalidInput, ManyArmsError, Overloaded, StoreUnavailable
from manyarms.live import Live, Uploaded
from manyarms.service.bodies import MOST_OF_AN_ID, ActionId, Body, Context, Id, Number
from manyarms.service.calls.checks import check_arm, check_size
from manyarms.service.documents import WITH_BODY, Json, names_tag, refusals
from manyarms.service.edge_bundles import EdgeBundles, NotKept
from manyarms.service.edge_policies import EdgeForm
from manyarms.service.problems import Problem, body_of, of_error, of_form
from manyarms.service.runtime import Service

MEDIA_TYPE = "application/vnd.manyarms.edge"
LIFETIME = 86_400.0  # seconds that a bundle may be used, at most
Agent = Annotated[str, Path(min_length=1, max_length=MOST_OF_AN_ID, description="The arm's name.")]


class EdgeUpload(Body):
    """A decision that a client has made with a bundle."""

    id: Id
    context: Context
    action: ActionId
    propensity: Annotated[Number, Field(ge=0, le=1)]
    bundle: Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
    at: Number | None = Field(None, description="When, in seconds since 1970, by the client's clock.")
    candidates: list[ActionId] | None = None
    exclude: list[ActionId] | None = None


class EdgeUploads(Body):
    """Several of them."""

    decisions: Annotated[
        list[dict[str, Any]],
        Field(
            min_length=1,
            description="Each with `id`, `context`, `action`, `propensity`, `bundle`, and where there are any `at`, `candidates` "
            "and `exclude`. One that does not have this form is refused by itself.",
        ),
    ]


class EdgeTold(BaseModel):
    """What became of each, in their order: 200 and what is stored, or a problem (409, 410, 422)."""

    decisions: list[dict[str, Any]]


class EdgeKey(BaseModel):
    """The public key of Ed25519 that bundles are signed with, and those before it, newest first; in hexadecimal."""

    public_key: str
    algorithm: str
    previous: list[str]


def routes(service: Service) -> APIRouter:
    """The router."""
    router = APIRouter(prefix="/v1/edge", tags=["edge"])
    may = Depends(service.access("edge"))
    bundles = bundles_of(service)

    @router.get("/key", dependencies=[may], response_model=EdgeKey, responses=refusals(409))
    async def key() -> Response:
        """The key that bundles are signed with."""
        current, previous = await service.work(bundles().keys.public)
        return Json({"public_key": current, "algorithm": "Ed25519", "previous": previous})

    @router.get(
        "/{agent}",
        dependencies=[may],
        response_class=Response,
        responses={
            200: {
                "description": "The bundle",
                "content": {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}},
            },
            304: {"description": "The bundle is the one that If-None-Match names"},
            **refusals(404, 409),
        },
    )
    async def bundle(agent: Agent, if_none_match: Annotated[str | None, Header()] = None) -> Response:
        """A policy that decides by itself: signed, with a version, good for a while. Ask again with If-None-Match."""
        made = bundles()
        check_arm(service.live, agent)
        found = made.ready(agent)
        if found is None:
            found = await service.labour(made.current, agent)
        headers = {"ETag": f'"{found.id}"', "Cache-Control": f"private, max-age={int(made.every)}"}
        if names_tag(if_none_match, f'"{found.id}"'):
            return Response(status_code=304, headers=headers)
        return Response(found.data, media_type=MEDIA_TYPE, headers=headers)

    @router.post("/{agent}/decisions", dependencies=[may], response_model=EdgeTold, responses=refusals(*WITH_BODY, 409))
    async def upload(agent: Agent, body: EdgeUploads, request: Request) -> Response:
        """Decisions that were made with bundles of this agent: checked, stored, and then rewarded as any other.

        May be sent again: what is stored is stored once, and answered with the same.
        """
        number = len(body.decisions)
        check_size(number, service.config.most_batch)
        if number > 1:  # the first has been counted
            service.admit(request, "edge", number - 1)
        told = await service.labour(taken_in, service.live, bundles(), agent, body.decisions)
        return Json({"decisions": told})

    return router


def bundles_of(service: Service) -> Callable[[], EdgeBundles]:
    """The bundles of a service, where its settings say where they are kept."""
    config = service.config
    if config.edge is None:

        def none() -> EdgeBundles:
            raise Problem(
                409,
                "this service has no edge bundles: edge.folder in its settings says where they are kept",
                name="refused",
            )

        return none
    form = EdgeForm(config.edge_draws, config.edge_epsilon, config.edge_bytes, min(LIFETIME, config.edge_keep))
    made = EdgeBundles(service.live, config.edge, every=config.edge_every, keep=config.edge_keep, form=form)
    return lambda: made


def taken_in(live: Live, bundles: EdgeBundles, agent: str, decisions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Check and store decisions; a status for each."""
    told: list[dict[str, Any]] = [{}] * len(decisions)
    good: list[tuple[int, Uploaded]] = []
    for place, given in enumerate(decisions):
        try:
            good.append((place, _checked(bundles, agent, EdgeUpload.model_validate(given))))
        except ValidationError as error:
            told[place] = of_form(error.errors())[1]
        except ManyArmsError as error:
            told[place] = _problem(error)
    stored = live.upload(agent, [decision for _, decision in good])
    for (place, decision), found in zip(good, stored, strict=True):
        if isinstance(found, ManyArmsError):
            told[place] = _problem(found)
        else:
            told[place] = {
                "status": 200, "id": found.id, "action": found.action, "propensity": found.propensity,
                "bundle": decision.bundle, "arm": found.arm, "version": found.version,
            }  # fmt: skip
    return told


def _checked(bundles: EdgeBundles, agent: str, given: EdgeUpload) -> Uploaded:
    """A decision, made again from its bundle."""
    policy = bundles.policy(given.bundle)
    if policy.header.agent != agent:
        raise InvalidInput("bundle", given.bundle, f"one of {agent!r}: this is one of {policy.header.agent!r}")
    made = policy.check(given.context, given.id, given.action, given.propensity, given.candidates, given.exclude)
    return Uploaded(
        made.id, made.context, made.action, made.propensity, made.version, made.bundle, given.at, made.greedy,
        made.candidates, made.exclude,
    )  # fmt: skip


def _problem(error: ManyArmsError) -> dict[str, Any]:
    if isinstance(error, StoreUnavailable | Overloaded):
        raise error  # of all of them: try again later
    if isinstance(error, NotKept):
        return body_of(410, str(error), name="bundle-gone", title="The bundle is not kept")
    return of_error(error)[1]


__all__ = ["MEDIA_TYPE", "bundles_of", "routes", "taken_in"]
