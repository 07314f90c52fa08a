"""Bodies of requests, checked: what is wrong is told with the place where it is (`target`) and Personalizer's own code."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from manyarms.service.personalizer.errors import PersonalizerError

LONGEST = 256  # characters of an id
MOST_ACTIONS = 1000  # Personalizer took 50
MOST_SLOTS = 50
RANK, REWARD, EVALUATION = "InvalidRankRequest", "InvalidRewardRequest", "InvalidEvaluationContract"
POLICY = "InvalidPolicyContract"


@dataclass(frozen=True)
class Action:
    """What can be shown: an id, and features, a list of objects."""

    id: str
    features: list[Any]


@dataclass(frozen=True)
class RankRequest:
    """What is asked by `rank`. event: None where the service makes an id."""

    actions: list[Action]
    context: list[Any]
    excluded: frozenset[str]
    event: str | None
    deferred: bool

    @property
    def offered(self) -> list[Action]:
        """Actions that are not excluded, in the application's order; the first is its own choice."""
        return [action for action in self.actions if action.id not in self.excluded]


@dataclass(frozen=True)
class Slot:
    """A place to fill; baseline: what the application would show there."""

    id: str
    baseline: str
    features: list[Any]
    excluded: frozenset[str]


@dataclass(frozen=True)
class SlotsRequest:
    """What is asked by `multislot/rank`."""

    actions: list[Action]
    slots: list[Slot]
    context: list[Any]
    event: str | None
    deferred: bool


async def json_of(request: Request, code: str) -> Any:
    """The body, whatever its media type says."""
    raw = await request.body()
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        raise PersonalizerError(400, code, "the body is not JSON", "body") from None


def rank_request(told: Any) -> RankRequest:
    """The body of a rank call."""
    body = an_object(told, RANK)
    actions = _actions(body)
    excluded = _ids(body.get("excludedActions"), "excludedActions")
    if excluded.issuperset(action.id for action in actions):
        raise PersonalizerError(400, RANK, "all actions are excluded: there is nothing to choose", "excludedActions")
    return RankRequest(actions, _objects(body, "contextFeatures", ""), excluded, _event(body), _deferred(body))


def slots_request(told: Any) -> SlotsRequest:
    """The body of a multi-slot rank call."""
    body = an_object(told, RANK)
    actions = _actions(body)
    known = {action.id for action in actions}
    listed = a_list(body, "slots", RANK)
    if not 1 <= len(listed) <= MOST_SLOTS:
        raise PersonalizerError(400, RANK, f"{len(listed)} slots, expected 1 to {MOST_SLOTS}", "slots")
    slots: list[Slot] = []
    for place, one in enumerate(listed):
        target = f"slots[{place}]"
        slot = an_object(one, RANK, target)
        name = _id(slot.get("id"), f"{target}.id")
        baseline = _id(slot.get("baselineAction"), f"{target}.baselineAction")
        excluded = _ids(slot.get("excludedActions"), f"{target}.excludedActions")
        if any(other.id == name for other in slots):
            raise PersonalizerError(400, RANK, "another slot has the same id", f"{target}.id")
        if baseline not in known or baseline in excluded:
            text = "the baseline action is not one of the actions, or is excluded from its own slot"
            raise PersonalizerError(400, RANK, text, f"{target}.baselineAction")
        if any(other.baseline == baseline for other in slots):
            raise PersonalizerError(400, RANK, "another slot has the same baseline action", f"{target}.baselineAction")
        slots.append(Slot(name, baseline, _objects(slot, "features", target), excluded))
    return SlotsRequest(actions, slots, _objects(body, "contextFeatures", ""), _event(body), _deferred(body))


def reward_value(told: Any) -> float:
    """The body of a reward call."""
    return _value(an_object(told, REWARD), "value")


def slot_rewards(told: Any) -> list[tuple[str, float]]:
    """The body of a multi-slot reward call."""
    found: dict[str, float] = {}
    for place, one in enumerate(a_list(an_object(told, REWARD), "reward", REWARD)):
        target = f"reward[{place}]"
        slot = an_object(one, REWARD, target)
        name = _id(slot.get("slotId"), f"{target}.slotId", REWARD)
        if name in found:
            raise PersonalizerError(400, REWARD, "another reward is of the same slot", f"{target}.slotId")
        found[name] = _value(slot, f"{target}.value")
    if not found:
        raise PersonalizerError(400, REWARD, "no slot is rewarded", "reward")
    return list(found.items())


def _value(body: dict[str, Any], target: str) -> float:
    value = a_number(body.get("value"))
    if value is None or not -1.0 <= value <= 1.0:
        raise PersonalizerError(400, REWARD, "a reward is a number from -1 to 1", target)
    return value


# ---- parts


def an_object(told: Any, code: str, target: str = "body") -> dict[str, Any]:
    """A JSON object."""
    if not isinstance(told, dict):
        raise PersonalizerError(400, code, "expected an object", target)
    return told


def a_list(body: dict[str, Any], name: str, code: str) -> list[Any]:
    """A member that is a list."""
    told = body.get(name)
    if not isinstance(told, list):
        raise PersonalizerError(400, code, f"{name} is required, a list", name)
    return told


def a_number(told: Any) -> float | None:
    """A finite number, or None where it is none."""
    if isinstance(told, bool) or not isinstance(told, int | float):
        return None
    try:
        return float(told) if math.isfinite(told) else None
    except OverflowError:
        return None


def _actions(body: dict[str, Any]) -> list[Action]:
    listed = a_list(body, "actions", RANK)
    if not 1 <= len(listed) <= MOST_ACTIONS:
        raise PersonalizerError(400, RANK, f"{len(listed)} actions, expected 1 to {MOST_ACTIONS:,}", "actions")
    found: dict[str, Action] = {}
    for place, one in enumerate(listed):
        target = f"actions[{place}]"
        action = an_object(one, RANK, target)
        name = _id(action.get("id"), f"{target}.id")
        if name in found:
            raise PersonalizerError(400, RANK, "another action has the same id", f"{target}.id")
        if action.get("features") is None:
            raise PersonalizerError(400, RANK, "features are required, a list of objects", f"{target}.features")
        found[name] = Action(name, _objects(action, "features", target))
    return list(found.values())


def _id(told: Any, target: str, code: str = RANK) -> str:
    if not isinstance(told, str) or not 1 <= len(told) <= LONGEST or not writable(told):
        raise PersonalizerError(400, code, f"expected a text of 1 to {LONGEST} characters", target)
    return told


def writable(text: str) -> bool:
    """Whether a database can keep it."""
    return "\0" not in text and not any("\ud800" <= one <= "\udfff" for one in text)


def _ids(told: Any, target: str) -> frozenset[str]:
    if told is None:
        return frozenset()
    if not isinstance(told, list) or not all(isinstance(one, str) for one in told):
        raise PersonalizerError(400, RANK, "expected a list of ids of actions", target)
    return frozenset(told)


def _objects(body: dict[str, Any], name: str, inside: str) -> list[Any]:
    target = f"{inside}.{name}" if inside else name
    told = body.get(name)
    if told is None:
        return []
    if not isinstance(told, list):
        raise PersonalizerError(400, RANK, "expected a list of objects", target)
    for place, one in enumerate(told):
        if not isinstance(one, dict):
            raise PersonalizerError(400, RANK, "expected an object of features", f"{target}[{place}]")
    return told


def _event(body: dict[str, Any]) -> str | None:
    told = body.get("eventId")
    return None if told is None else _id(told, "eventId")


def _deferred(body: dict[str, Any]) -> bool:
    told = body.get("deferActivation")
    if told is not None and not isinstance(told, bool):
        raise PersonalizerError(400, RANK, "expected true or false", "deferActivation")
    return bool(told)


__all__ = [
    "EVALUATION", "LONGEST", "MOST_ACTIONS", "POLICY", "RANK", "REWARD", "Action", "RankRequest", "Slot", "SlotsRequest",
    "a_list", "a_number", "an_object", "json_of", "rank_request", "reward_value", "slot_rewards", "slots_request", "writable",
]  # fmt: skip
