"""One decision: which arm, which actions, how likely they were. All follows from the view, the question and the event's id."""

from __future__ import annotations

from typing import Any

from manyarms.agents.decisions import Propensity
from manyarms.errors import InvalidInput, ManyArmsError
from manyarms.live.arms import without
from manyarms.live.deployment import BASELINE
from manyarms.live.records import DECIDED_AT, DecisionRecord, Question, draw_number
from manyarms.live.state import View

VECTORS, ENCODED = 0, 1  # contexts are vectors as they were given, or made by the store's encoder


def decided(
    view: View,
    salt: str,
    asked: Question,
    event: str,
    unit: str | None,
    baseline: int | None,
    estimate: bool,
    active: bool = True,
) -> DecisionRecord:
    """The decision of a view. estimate: propensities that are not known exactly are estimated here and now. active: whether it
    counts from the first, or only once it is activated.
    """
    name, held_out = view.deployment.route(salt, event if unit is None else unit)
    draw = draw_number(event, unit, view.version, name)
    _check_all_can_answer(view, asked, baseline)
    _check_can_be_learned(view, asked, baseline)
    if name == BASELINE:
        assert baseline is not None
        actions, sure = [baseline], None
    else:
        arm = view.arms[name]
        actions, sure = arm.decide_with_propensity(without(asked, view.capped, arm), draw)
    details: dict[str, Any] = {
        "catalogue": view.catalogue,
        "encoding": VECTORS if view.schema.encoder is None else ENCODED,
    }
    if asked.at is not None:  # to the last bit: by it the same is decided again
        details[DECIDED_AT] = asked.at
    if held_out:
        details["held_out"] = True
    if baseline is not None:
        details["baseline"] = baseline
    record = DecisionRecord(
        id=event, unit=unit, arm=name, version=view.version, draw=draw, question=asked, actions=actions,
        digest=asked.digest(unit, active), details=details, active=active,
    )  # fmt: skip
    known = all(arm == BASELINE or view.arms[arm].exact for _, arm in view.deployment.laws)
    found: dict[str, Any] = {}
    if known or estimate:
        found = propensities(view, record, sure=sure)
        if view.deployment.holdout:
            details["treated"] = found["treated"]
        if name == BASELINE or not known:
            greedy = None
        else:
            greedy = view.arms[name].greedy(without(asked, view.capped, view.arms[name]))
        if greedy is not None:
            details["greedy"] = greedy == actions[0]
    if view.deployment.shadows:
        details["shadows"] = {
            shadow: _seen_by(view, shadow, asked, actions[0], draw_number(event, unit, view.version, shadow))
            for shadow in view.deployment.shadows
        }
    for field in ("propensity", "arm_propensity", "inclusion", "propensity_kind"):
        object.__setattr__(record, field, found.get(field))
    return record


def propensities(
    view: View, record: DecisionRecord, draws: int | None = None, sure: Propensity | None = None
) -> dict[str, Any]:
    """How likely the first action was: over all arms with their shares, given the arm, and given that it is not held out
    (treated); and how well that is known.

    Exactly, only if every arm knows its propensities whatever is taken: events are chosen for certificates by that, and must not
    be chosen by their actions (an action that is not on offer has the chance 0 exactly, where others are estimated).
    sure: that of the arm which decided, where it is known already.
    """
    assert record.question is not None
    action = record.actions[0]
    total = given = inclusion = variance = treated = 0.0
    exact, number = True, 0
    baseline = record.details.get("baseline")
    for place, (share, name) in enumerate(view.deployment.laws):
        if name == BASELINE:
            value = among = float(baseline == action)
            error = 0.0
        else:
            arm = view.arms[name]
            draw = draw_number(record.id, record.unit, record.version, name)
            if sure is not None and name == record.arm:
                found = sure
            else:
                found = arm.propensity(without(record.question, view.capped, arm), action, draw, draws)
            value, among, error = found.value, found.inclusion, found.standard_error
            exact, number = exact and arm.exact, max(number, found.draws)
        total, inclusion, variance = total + share * value, inclusion + share * among, variance + (share * error) ** 2
        if name == record.arm:
            given = value
        if place < len(view.deployment.shares):
            treated += share / (1.0 - view.deployment.holdout) * value
    return {
        "propensity": total, "arm_propensity": given, "treated": treated, "inclusion": inclusion,
        "propensity_kind": "exact" if exact else "estimated", "error": variance**0.5, "draws": number,
    }  # fmt: skip


def _check_all_can_answer(view: View, asked: Question, baseline: int | None) -> None:
    """Refuse what one of the arms could not answer, whichever it goes to: else who is asked decides which events there are."""
    for _, name in view.deployment.laws:
        if name != BASELINE:
            view.arms[name].check(asked)
        elif baseline is None:
            raise InvalidInput(
                "baseline", None, "the action that the application would take: the deployment asks for it"
            )


def _check_can_be_learned(view: View, asked: Question, baseline: int | None) -> None:
    """Refuse what the agents could not learn from, whoever decides it."""
    listed = asked.candidates
    if baseline is not None and listed is not None and baseline not in listed:
        raise InvalidInput("baseline", baseline, "one of the candidates")
    if view.learning is None:
        return
    dim, number = view.learning
    name = "action_contexts" if asked.per_action else "x"
    if asked.context.shape[-1] != dim:
        raise InvalidInput(name, f"length {asked.context.shape[-1]}", f"contexts of length {dim}")
    if asked.per_action and len(asked.context) != (number if listed is None else len(listed)):
        raise InvalidInput(name, f"{len(asked.context)} contexts", "one for each of the candidates, or of all actions")
    if baseline is not None and baseline >= number:
        raise InvalidInput("baseline", baseline, f"an action that the agents know, below {number}")


def _seen_by(view: View, name: str, asked: Question, action: int, draw: int) -> list[Any]:
    """What a shadow would have done, and how likely the action taken is to it (None where it cannot tell)."""
    arm = view.arms[name]
    asked = without(asked, view.capped, arm)
    try:
        would, known = arm.decide_with_propensity(asked, draw, of=action)
        if known is None and arm.exact:
            known = arm.propensity(asked, action, draw)
        return [would[0], None if known is None else known.value]
    except ManyArmsError:  # who only looks on never stands in the way
        return [None, None]


__all__ = ["decided", "propensities"]
