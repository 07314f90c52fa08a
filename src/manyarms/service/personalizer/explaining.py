"""Inference explanation: what each feature adds to the score of each action, by the agent as it is now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from manyarms.live import Live
from manyarms.live.agent_arm import AgentView
from manyarms.live.deployment import BASELINE
from manyarms.live.naming import asked as in_rows
from manyarms.live.naming import name_of
from manyarms.live.state import View
from manyarms.service.personalizer.bodies import Action, RankRequest, Slot
from manyarms.service.personalizer.features import Tokens, shares, tokens

MOST = 50  # features of an action that are told, those that add or take most first


def learns_hashed(view: View) -> bool:
    """Whether the agents of a store learn from hashed features: they share one parameter, and have no encoder."""
    agents = [arm.snapshot.belief for arm in view.arms.values() if isinstance(arm, AgentView)]
    return view.schema.encoder is None and bool(agents) and not any(belief.per_action for belief in agents)


def shared_features(context: Sequence[Any], slots: Sequence[Slot] = (), target: str = "") -> Tokens:
    """Features of a context, and of the slot that is to be filled."""
    found = tokens(context, "contextFeatures")
    for slot in slots:
        found |= tokens([{"id": slot.id}], target, "slot") | tokens(slot.features, target, "slot")
    return found


def own_features(action: Action) -> tuple[str, Tokens]:
    """The id and the features of an action."""
    return action.id, tokens(action.features, "actions")


def explained(live: Live, request: RankRequest, question: dict[str, Any]) -> list[dict[str, Any]]:
    """The features of every action that could be chosen, with their scores; actions that were explored are explained alike."""
    view = live.view
    deployment = view.deployment
    name = next((one for one in (*deployment.shares, *deployment.shadows) if one != BASELINE), None)
    arm = None if name is None else view.arms.get(name)
    if not isinstance(arm, AgentView):
        return []
    if learns_hashed(view):
        weights = arm.snapshot.posterior(0)[0]
        context, offered = shared_features(request.context), {str(one) for one in question["candidates"]}
        return [
            _told(action.id, shares(context, *own_features(action), weights))
            for action in request.actions
            if action.id in offered
        ]
    rows = in_rows(view, question["x"], question["candidates"], None, None, None)
    assert rows.candidates is not None and view.schema.encoder is not None
    found = []
    for row in rows.candidates:
        one = arm.explain(rows, row).called(view.schema.encoder.names)
        added = zip(map(one.name, range(len(one.features))), one.contributions.tolist(), strict=True)
        found.append(_told(str(name_of(view, row)), list(added)))
    return found


def _told(name: str, added: list[tuple[str, float]]) -> dict[str, Any]:
    most = sorted((one for one in added if one[1] != 0.0), key=lambda one: -abs(one[1]))[:MOST]
    return {"id": name, "features": [{"name": feature, "score": score} for feature, score in most]}


__all__ = ["explained", "learns_hashed", "own_features", "shared_features"]
