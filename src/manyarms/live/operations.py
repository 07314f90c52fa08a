"""Operations: what is done to the arms, one function each. They are folded like everything else, in their place in the log.

An operation is checked when it is asked for and again here, against the state that it meets: it refuses before it changes
anything.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from manyarms._base import validate
from manyarms.agents.decisions import Decision, Ensemble, EpsilonGreedy, EpsilonMixed
from manyarms.errors import InvalidInput
from manyarms.live import packing
from manyarms.live.agent_arm import AgentArm
from manyarms.live.deployment import BASELINE, Deployment
from manyarms.live.exposure import Exposure
from manyarms.live.joining import check_joins
from manyarms.live.settings import Settings
from manyarms.live.stores.database import Reader
from manyarms.logs.actions import Actions

if TYPE_CHECKING:
    from manyarms.live.state import State

Fold = Callable[["State", Reader, int, dict[str, Any]], Any]
OPERATIONS: dict[str, Fold] = {}
DEPTH = 8  # deployments that can be rolled back


def operation(kind: str) -> Callable[[Fold], Fold]:
    """Register what is done by operations of this kind."""

    def registered(fold: Fold) -> Fold:
        OPERATIONS[kind] = fold
        return fold

    return registered


# ---- arms


@operation("add_arm")
def _add_arm(state: State, reader: Reader, position: int, body: dict[str, Any]) -> Any:
    name = body["name"]
    if name in state.arms:
        raise InvalidInput("name", name, "a name that no arm of this store has")
    arm = packing.read_arm(reader, body["writing"], since=position)
    check_joins(arm, state.arms.values(), state.settings.default)
    arm.take_over(next(iter(state.arms.values())).retired)  # all have the same
    state.arms[name] = arm
    return {}


@operation("remove_arm")
def _remove_arm(state: State, reader: Reader, position: int, body: dict[str, Any]) -> Any:
    name = body["name"]
    _known(state, name)
    if name in state.deployment.names:
        raise InvalidInput("name", name, "an arm that has no part in the deployment")
    if len(state.arms) == 1:
        raise InvalidInput("name", name, "an arm beside which there are others")
    del state.arms[name]
    state.watch.forget(name)
    return {}


@operation("deploy")
def _deploy(state: State, reader: Reader, position: int, body: dict[str, Any]) -> Any:
    wanted = Deployment.from_json(body)
    held_out = () if wanted.holdout_arm is None else (wanted.holdout_arm,)
    for argument, names in (("shares", wanted.shares), ("holdout_arm", held_out), ("shadows", wanted.shadows)):
        for name in names:
            if name != BASELINE:
                _known(state, name, argument)
    state.deploy(wanted)
    return {}


@operation("promote")
def _promote(state: State, reader: Reader, position: int, body: dict[str, Any]) -> Any:
    name = body["name"]
    if name != BASELINE:
        _known(state, name)
    state.deploy(promoted(state.deployment, name))
    return {}


@operation("roll_back")
def _roll_back(state: State, reader: Reader, position: int, body: dict[str, Any]) -> Any:
    state.roll_back()
    return {}


@operation("explore")
def _explore(state: State, reader: Reader, position: int, body: dict[str, Any]) -> Any:
    name = body["name"]
    _known(state, name, "arm")
    arm = state.arms[name]
    if not isinstance(arm, AgentArm):
        raise explores_not(name, f"is a {arm.kind}")
    arm.agent.decision = exploring(name, arm.agent.decision, body["epsilon"])
    return {}


def exploring(name: str, rule: Decision, epsilon: float) -> Decision:
    """The rule of an arm with another share of exploration."""
    if not isinstance(rule, EpsilonGreedy | EpsilonMixed | Ensemble):
        raise explores_not(name, f"decides by {rule.kind}")
    return replace(rule, epsilon=epsilon)


def explores_not(name: str, what: str) -> InvalidInput:
    """That an arm has no such share."""
    expected = "an agent that decides by EpsilonGreedy, EpsilonMixed or Ensemble: other rules have no epsilon"
    return InvalidInput("arm", f"{name}, which {what}", expected)


def promoted(now: Deployment, name: str) -> Deployment:
    """All the traffic, but for the hold-out, to one arm; the arms that had it look on."""
    shadows = [other for other in (*now.shares, *now.shadows) if other not in (name, BASELINE)]
    return replace(now, shares={name: 1.0}, shadows=tuple(shadows), previous=None)


def _known(state: State, name: str, argument: str = "name") -> None:
    if name not in state.arms:
        raise InvalidInput(argument, repr(name), f"an arm of this store ({', '.join(sorted(state.arms))})")


# ---- how rewards count


@operation("change_settings")
def _change_settings(state: State, reader: Reader, position: int, body: dict[str, Any]) -> Any:
    wanted = changed_settings(state.settings, body)
    for arm in state.arms.values():
        check_joins(arm, (), wanted.default)
    if wanted != state.settings:
        agreed = state.agreed.changed(position, wanted)
        state.settings, state.former = agreed.now, agreed.former
    return {"settings": json.loads(wanted.to_json())}


def changed_settings(now: Settings, told: dict[str, Any]) -> Settings:
    """The settings of now with some of them changed: all but the range of rewards can be."""
    for name in told:
        validate.one_of("settings", name, ("aggregate", "default", "wait"))
    return replace(now, **told)


# ---- the catalogue


@operation("add_actions")
def _add_actions(state: State, reader: Reader, position: int, body: dict[str, Any]) -> Any:
    for name in ("weights", "covariance"):
        if body.get(name) is not None and not any(name in arm.features for arm in state.arms.values()):
            raise InvalidInput(name, name, "nothing: no agent of this store knows its actions by that")
    for arm in state.arms.values():
        arm.check_catalogue("add_actions", body)
    longer = _longer(state, body)
    ids: list[int] = []
    for arm in state.arms.values():
        ids = arm.change_catalogue("add_actions", body) or ids
    state.catalogue += 1
    state.schema = replace(state.schema, catalogue=longer)
    return {"ids": ids}


def _longer(state: State, body: dict[str, Any]) -> Actions | None:
    """The ids of all actions with those of the new ones, which come where actions have ids, and only there."""
    names, ids = state.schema.catalogue, body.get("ids")
    if names is None:
        if ids is not None:
            raise InvalidInput("ids", ids, "nothing: the actions of this store have no ids")
        return None
    if not any(arm.dim is not None for arm in state.arms.values()):
        raise InvalidInput("ids", ids, "an agent in the store: policies learn no new actions")
    number = body.get("number")
    if ids is None:
        raise InvalidInput("ids", None, "ids for the new actions, as all the others have one")
    return names.longer(ids, len(ids) if number is None else number)


@operation("update_actions")
def _update_actions(state: State, reader: Reader, position: int, body: dict[str, Any]) -> Any:
    if not any("weights" in arm.features for arm in state.arms.values()):
        raise InvalidInput("weights", "weights", "nothing: no agent of this store knows its actions by that")
    return _change_all(state, "update_actions", body)


@operation("retire")
def _retire(state: State, reader: Reader, position: int, body: dict[str, Any]) -> Any:
    return _change_all(state, "retire", body)


@operation("reinstate")
def _reinstate(state: State, reader: Reader, position: int, body: dict[str, Any]) -> Any:
    return _change_all(state, "reinstate", body)


def _change_all(state: State, kind: str, body: dict[str, Any]) -> Any:
    for arm in state.arms.values():
        arm.check_catalogue(kind, body)
    for arm in state.arms.values():
        arm.change_catalogue(kind, body)
    state.catalogue += 1
    return {}


@operation("cap")
def _cap(state: State, reader: Reader, position: int, body: dict[str, Any]) -> Any:
    named = body["actions"]
    known = max(arm.actions for arm in state.arms.values())
    if named and named[-1] >= known:
        raise InvalidInput("actions", named[-1], f"actions of the store, below {known}")
    same = [e for e in state.exposures if (None if e.actions is None else sorted(e.actions)) == named]
    state.exposures = [e for e in state.exposures if e not in same]
    if body["most"] is not None:
        state.exposures.append(Exposure.from_json(body))
    return {}


@operation("erase")
def _erase(state: State, reader: Reader, position: int, body: dict[str, Any]) -> Any:
    return {}  # its record is blank: nothing of it is folded any more


__all__ = ["OPERATIONS", "changed_settings", "explores_not", "exploring", "operation", "promoted"]
