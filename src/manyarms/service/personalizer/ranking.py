"""Rank: the actions of a call as candidates of a live decision, and the chances of all of them as the answer.

Two kinds of agents are behind it. One that knows nothing beforehand (`default_agent`) learns from hashed features; actions that
are new are added to its catalogue. One with a catalogue and an encoder of its own takes the ids as candidates and the context by
the names of its columns; it learns nothing from features of actions, and ids that it does not know are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Any

from manyarms._base.validate import describe
from manyarms.errors import InvalidInput, LiveError
from manyarms.live import Live, LiveDecision
from manyarms.live.state import View
from manyarms.logs.actions import ActionId
from manyarms.service.personalizer.bodies import RANK, Action, RankRequest, Slot, SlotsRequest
from manyarms.service.personalizer.configuration import Configuration
from manyarms.service.personalizer.errors import PersonalizerError
from manyarms.service.personalizer.explaining import explained, learns_hashed, own_features, shared_features
from manyarms.service.personalizer.features import flattened, phi
from manyarms.service.personalizer.slots import Filling, slot_event

if TYPE_CHECKING:
    from manyarms.service.runtime import Service

MOST_KNOWN = 1_000_000  # actions that calls may bring along, all together


def check_can_rank(live: Live) -> None:
    """Refuse a store whose agents can make nothing of Personalizer's contexts."""
    view = live.view
    if view.schema.encoder is None and not learns_hashed(view):
        came = "agents that take vectors"
        raise InvalidInput("agent", came, "the default agent of manyarms.service.personalizer, or one with an encoder")


class Ranker:
    """Decisions of a service, asked for in Personalizer's words."""

    def __init__(self, service: Service, configuration: Configuration) -> None:
        check_can_rank(service.live)
        self._service, self._live, self._configuration = service, service.live, configuration
        self._adding = Lock()

    # ---- one action

    async def rank(self, asked: RankRequest) -> dict[str, Any]:
        """The answer to a rank call."""
        question, mode, explain = await self._service.work(self._prepared, asked)
        active = is_active(mode, asked.deferred)
        decision = await self._service.decide(**question, id=asked.event, chances=True, active=active)
        chances = zip(question["candidates"], _chances(question, decision), strict=True)
        found = answer(asked, {str(name): chance for name, chance in chances}, decision)
        if explain:
            found["inferenceExplanation"] = await self._service.work(explained, self._live, asked, question)
        return found

    def _prepared(self, asked: RankRequest) -> tuple[dict[str, Any], str, bool]:
        """The question, the mode, and whether the answer is explained."""
        return self._question(asked.context, asked.offered, "", ()), *self._configuration.of_a_rank()

    # ---- several slots

    async def rank_slots(self, asked: SlotsRequest, event: str) -> dict[str, Any]:
        """The answer to a multi-slot rank call: each slot is an event of its own, decided after those before it."""
        mode, _ = await self._service.work(self._configuration.of_a_rank)
        active = is_active(mode, asked.deferred)
        by_id = {action.id: action for action in asked.actions}
        gone = self._retired([self._native(name) for name in by_id])
        retired = {str(name) for name in gone}
        for place, slot in enumerate(asked.slots):
            if slot.baseline in retired:
                raise PersonalizerError(400, RANK, "this action is retired", f"slots[{place}].baselineAction")
        filling = Filling(asked.slots, [name for name in by_id if name not in retired])
        filled: list[dict[str, str]] = []
        for place, slot in enumerate(asked.slots):
            names = filling.offered()
            # what the application would show comes first, unless a slot before has it
            ordered = sorted(names, key=lambda name: name != slot.baseline)
            question = await self._service.work(
                self._question, asked.context, [by_id[name] for name in ordered], f"slots[{place}].features", (slot,)
            )
            own = slot_event(event, slot.id)
            decision = await self._service.decide(**question, id=own, chances=True, active=active)
            filling.take(str(decision.action))
            filled.append({"id": slot.id, "rewardActionId": str(decision.action)})
        return {"slots": filled, "eventId": event}

    # ---- questions

    def _question(
        self, context: Sequence[Any], offered: Sequence[Action], target: str, slots: Sequence[Slot]
    ) -> dict[str, Any]:
        """What is asked of the store."""
        view = self._live.view
        hashed = learns_hashed(view)
        names = [self._native(action.id) for action in offered]
        if hashed:
            view = self._with(names)
        retired = self._retired(names)
        offered = [action for action, name in zip(offered, names, strict=True) if name not in retired]
        names = [name for name in names if name not in retired]
        if not names:
            raise PersonalizerError(400, RANK, "all actions are excluded, or retired", "actions")
        found: dict[str, Any] = {"candidates": names, "baseline": names[0]}
        if hashed:
            assert view.learning is not None
            dim, _ = view.learning
            found["action_contexts"] = phi(
                shared_features(context, slots, target), [own_features(action) for action in offered], dim
            )
            return found
        self._check_known(view, names)
        encoder = view.schema.encoder
        assert encoder is not None
        columns = flattened(context, "contextFeatures")
        for slot in slots:
            columns |= flattened([{"slot": {"id": slot.id}}, *({"slot": one} for one in slot.features)], target)
        found["x"] = {name: columns.get(name) for name in encoder.columns}
        return found

    def _native(self, name: str) -> ActionId:
        """An id as the store has it: a number, where its actions have numbers."""
        catalogue = self._live.catalogue
        if catalogue is None or catalogue.numbered:
            return int(name) if name.isascii() and name.isdigit() and len(name) < 18 else name
        return name

    def _retired(self, names: Sequence[ActionId]) -> set[ActionId]:
        view = self._live.view
        catalogue = view.schema.catalogue
        if catalogue is None:
            return {name for name in names if name in view.retired}
        return {name for name in names if catalogue.find(name) in view.retired}

    def _check_known(self, view: View, names: Sequence[ActionId]) -> None:
        catalogue, number = view.schema.catalogue, (view.learning or (0, 0))[1]
        for name in names:
            known = name in catalogue if catalogue is not None else isinstance(name, int) and name < number
            if not known:
                text = f"the action {describe(str(name))} is not in the catalogue: POST /v1/catalogue adds it"
                raise PersonalizerError(400, RANK, text, "actions")

    def _with(self, names: Sequence[ActionId]) -> View:
        """The view that knows these actions: new ones are added, all in one operation."""
        view = self._live.view
        if not _missing(view, names):
            return view
        with self._adding:
            view = self._live.view
            if new := _missing(view, names):
                if len(view.schema.catalogue or ()) + len(new) > MOST_KNOWN:
                    text = f"{MOST_KNOWN:,} actions are known by now, and no more are taken: ids are to name what comes again"
                    raise PersonalizerError(400, RANK, text, "actions")
                with suppress(LiveError):  # another process was faster with one of them
                    self._live.add_actions(ids=new)
                view = self._live.view
                if new := _missing(view, names):  # the others
                    self._live.add_actions(ids=new)
                    view = self._live.view
        return view


def is_active(mode: str, deferred: bool) -> bool:
    """Whether an event counts from the start; what is only logged never does."""
    return not deferred and mode != "LoggingOnly"


def _missing(view: View, names: Sequence[ActionId]) -> list[ActionId]:
    catalogue = view.schema.catalogue
    assert catalogue is not None
    return [name for name in names if name not in catalogue]


def _chances(question: dict[str, Any], decision: LiveDecision) -> tuple[float, ...]:
    if decision.chances is not None:
        return decision.chances
    # decided before by a call that did not ask for them: what is known is the chance of what was taken
    known = decision.propensity or 0.0
    return tuple(known if name == decision.action else 0.0 for name in question["candidates"])


def answer(asked: RankRequest, chances: dict[str, float], decision: LiveDecision) -> dict[str, Any]:
    """Most likely first; actions that are excluded stay where the application had them, with probability 0."""
    likely = iter(sorted(chances, key=lambda name: -chances[name]))
    order = [next(likely) if action.id in chances else action.id for action in asked.actions]
    return {
        "ranking": [{"id": name, "probability": chances.get(name, 0.0)} for name in order],
        "eventId": decision.id,
        "rewardActionId": str(decision.action),
    }


__all__ = ["Ranker", "check_can_rank"]
