"""Every day: decide, reward, activate. All have ids, so that trying again is safe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar
from uuid import uuid4

from manyarms._base import validate
from manyarms._base.typing import JSON, ActionContexts
from manyarms.client.arguments import (
    ActionId,
    Actions,
    Context,
    DecideArguments,
    RewardArguments,
    a_context,
    a_name,
    actions,
    an_action,
    given,
    numbers,
)
from manyarms.client.call import Call, call
from manyarms.client.calls.answers import a, batch, nothing, some_unfinished
from manyarms.client.errors import ServiceError
from manyarms.client.reading import read
from manyarms.client.results import ServiceDecision
from manyarms.errors import InvalidInput

Entry = TypeVar("Entry", DecideArguments, RewardArguments)


class Deciding:
    """Decisions and their rewards."""

    @call
    def decide(
        self,
        context: Context | None = None,
        *,
        action_contexts: ActionContexts | None = None,
        candidates: Actions | None = None,
        exclude: Actions | None = None,
        k: int | None = None,
        unit: str | None = None,
        id: str | None = None,
        baseline: ActionId | None = None,
        propensity: bool = False,
        deferred: bool = False,
    ) -> Call[ServiceDecision]:
        """Decide; it is in the service's store when this returns.

        The arguments are those of `manyarms.live.Live.decide`. id: of the event, made here if it is not given, before the first
        try, so that a decision that is asked for again is the same decision. deferred: it may not be shown, and teaches
        nothing until `activate`.

            d = client.decide([0.2, 1.0], k=3, exclude=seen)
            d.id, d.action, d.learning.version
        """
        body = _question(
            DecideArguments(
                context=context, action_contexts=action_contexts, candidates=candidates, exclude=exclude, k=k, unit=unit,
                id=id, baseline=baseline, propensity=propensity, deferred=deferred,
            )
        )  # fmt: skip
        return Call("POST", "/v1/decide", a(ServiceDecision), body, again=True)

    @call
    def decide_many(self, questions: Sequence[DecideArguments]) -> Call[tuple[ServiceDecision | ServiceError, ...]]:
        """Many decisions at once, usually up to 1,000: for each question, the decision or the error that stands in its place.

            for answer in client.decide_many([{"context": x, "unit": user} for user, x in visitors]):
                if isinstance(answer, ServiceError): ...

        Where the service refuses some for now, all are sent again, with the same ids: those that were made are not made again.
        """
        asked: list[JSON] = [_question(one) for one in _some("questions", questions, DecideArguments.__annotations__)]
        reading = batch("decisions", len(asked), "POST /v1/decide/batch", _decision)
        return Call(
            "POST", "/v1/decide/batch", reading, {"decisions": asked}, again=True, unfinished=some_unfinished,
            known=None if asked else (),
        )  # fmt: skip

    @call
    def reward(self, event: str, value: float = 1.0, *, action: ActionId | None = None, id: str = "") -> Call[None]:
        """The reward of an event, in the service's store when this returns. Told twice, it counts once.

        action: of several actions decided together, which one earned it; the first unless said. id: of the reward, where an
        event has several: they count together as the service's `aggregate` says. The same id with another value is a Conflict.

            client.reward(d.id, 1.0)
        """
        body = _told(RewardArguments(event=event, value=value, action=action, id=id))
        return Call("POST", "/v1/reward", nothing, body, again=True)

    @call
    def reward_many(self, rewards: Sequence[RewardArguments]) -> Call[tuple[ServiceError | None, ...]]:
        """Many rewards at once, usually up to 1,000: for each None, or the error that it met.

        client.reward_many([{"event": d.id, "value": 1.0} for d in clicked])
        """
        told: list[JSON] = [_told(one) for one in _some("rewards", rewards, RewardArguments.__annotations__)]
        reading = batch("rewards", len(told), "POST /v1/reward/batch", lambda value, where: None)
        return Call(
            "POST", "/v1/reward/batch", reading, {"rewards": told}, again=True, unfinished=some_unfinished,
            known=None if told else (),
        )  # fmt: skip

    @call
    def activate(self, event: str) -> Call[None]:
        """A deferred decision was shown: it teaches from now on. Again, it changes nothing.

        d = client.decide(x, deferred=True)
        client.activate(d.id)
        """
        return Call("POST", "/v1/activate", nothing, {"event": a_name("event", event)}, again=True)


def _question(asked: DecideArguments) -> dict[str, JSON]:
    """The body of a decision, with an id."""
    context, contexts = asked.get("context"), asked.get("action_contexts")
    candidates, exclude, k = asked.get("candidates"), asked.get("exclude"), asked.get("k")
    unit, id, baseline = asked.get("unit"), asked.get("id"), asked.get("baseline")
    if context is None and contexts is None:
        raise InvalidInput("context", None, "a context, or `action_contexts`")
    return given(
        context=None if context is None else a_context(context),
        action_contexts=None if contexts is None else numbers("action_contexts", contexts, (2,)),
        candidates=None if candidates is None else actions("candidates", candidates),
        exclude=None if exclude is None else actions("exclude", exclude),
        k=None if k is None else validate.count("k", k),
        unit=None if unit is None else a_name("unit", unit),
        id=uuid4().hex if id is None else a_name("id", id),
        baseline=None if baseline is None else an_action("baseline", baseline),
        propensity=validate.flag("propensity", asked.get("propensity", False)) or None,
        deferred=validate.flag("deferred", asked.get("deferred", False)) or None,
    )


def _told(reward: RewardArguments) -> dict[str, JSON]:
    """The body of a reward."""
    action = reward.get("action")
    return given(
        event=a_name("event", reward.get("event")),
        value=validate.number("value", reward.get("value", 1.0)),
        action=None if action is None else an_action("action", action),
        id=a_name("id", reward.get("id", ""), empty=True) or None,
    )


def _decision(value: JSON, where: str) -> ServiceDecision:
    return read(ServiceDecision, value, where)


def _some(argument: str, entries: Sequence[Entry], known: Mapping[str, object]) -> list[Entry]:
    """Entries of a batch: dictionaries of arguments that there are."""
    found = list(entries)
    for i, one in enumerate(found):
        if not isinstance(one, Mapping):
            raise InvalidInput(f"{argument}[{i}]", validate.describe(one), "a dictionary of arguments")
        if wrong := [name for name in one if name not in known]:
            raise InvalidInput(f"{argument}[{i}]", f"{wrong[0]!r}", f"arguments among {', '.join(known)}")
    return found


__all__ = ["Deciding"]
