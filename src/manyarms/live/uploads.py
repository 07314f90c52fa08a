"""Decisions that were made elsewhere: at the edge, by a bundle of an arm, and told afterwards with their exact propensities.

They become decisions of the log, with the time of their upload: from then on their rewards are waited for. They have an arm and
no part in the deployment. So their propensity is that given the arm; they say nothing of the shares of the traffic or of the
lift over a hold-out; and nobody can make them again from a version and a draw: who has the bundle can (`manyarms.edge`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.tables import Shown
from manyarms.beliefs.drift.clock import LATEST
from manyarms.errors import Conflict, InvalidInput, ManyArmsError, UnknownAction
from manyarms.live import naming
from manyarms.live.arguments import a_name, a_question
from manyarms.live.deciding import ENCODED, VECTORS
from manyarms.live.deployment import BASELINE
from manyarms.live.new_entries import NewDecision
from manyarms.live.records import DECIDED_AT, DecisionRecord, draw_number
from manyarms.live.state import View
from manyarms.live.stores.database import Transaction, Work
from manyarms.logs.actions import ActionId

TOGETHER = 100  # decisions in one piece of work: others wait no longer than that takes


@dataclass(frozen=True, slots=True, repr=False)
class Uploaded(Shown):
    """A decision of a bundle.

    context: as numbers. propensity: exactly how likely the action was. version: of the state that the bundle was made from.
    bundle: its id. at: when it was decided, by the clock of who decided. greedy: whether the action looked best.
    """

    id: str
    context: npt.ArrayLike
    action: ActionId
    propensity: float
    version: int
    bundle: str
    at: float | None = None
    greedy: bool | None = None
    candidates: Sequence[ActionId] | None = None
    exclude: Sequence[ActionId] | None = None


def upload(
    arm: str,
    decisions: Sequence[Uploaded],
    view: View,
    newer: Callable[[], View],
    submit: Callable[[Work], Any],
) -> list[DecisionRecord | ManyArmsError]:
    """Write them; what is in the store for each, or why it is not. newer: folds what is new, and gives the view of it."""
    name = a_name("arm", arm)
    if name == BASELINE:
        raise InvalidInput("arm", name, "an agent or a policy: the baseline has no bundles")
    found: list[DecisionRecord | ManyArmsError] = []
    for decision in decisions:
        validate.instance("decisions", decision, Uploaded, "a list of Uploaded")
        try:
            found.append(_record(view, name, decision))
        except (UnknownAction, _TooNew):  # another process may have added it, or be ahead
            view = newer()
            try:
                found.append(_record(view, name, decision))
            except ManyArmsError as error:
                found.append(error)
        except ManyArmsError as error:
            found.append(error)
    good = [place for place, one in enumerate(found) if isinstance(one, DecisionRecord)]
    for start in range(0, len(good), TOGETHER):
        some = good[start : start + TOGETHER]
        written = submit(_written([found[place] for place in some]))
        for place, one in zip(some, written, strict=True):
            found[place] = one
    return found


class _TooNew(InvalidInput):
    """A version that has not been folded here."""


def _record(view: View, arm: str, told: Uploaded) -> DecisionRecord:
    """A decision as the log has it."""
    event, bundle = a_name("id", told.id), a_name("bundle", told.bundle)
    version = validate.count("version", told.version, least=0)
    if version > view.version:
        raise _TooNew("version", version, f"at most {view.version}, the newest there is")
    chance = validate.number("propensity", told.propensity, above=0, most=1)
    action = naming.row_of(view, "action", told.action)
    chosen = None if told.candidates is None else naming.rows_of(view, "candidates", told.candidates)
    barred = None if told.exclude is None else naming.known_rows(view, "exclude", told.exclude)
    asked = a_question(told.context, chosen, barred, None, None)
    if view.learning is not None:
        dim, number = view.learning
        if len(asked.context) != dim:
            raise InvalidInput("context", f"length {len(asked.context)}", f"contexts of length {dim}")
        if action >= number:
            raise UnknownAction("action", action, f"an action that the agents know, below {number}")
    if action in (barred or ()) or (chosen is not None and action not in chosen):
        raise InvalidInput("action", validate.describe(told.action), "an action that the filters leave on offer")
    details: dict[str, Any] = {
        "catalogue": view.catalogue, "encoding": VECTORS if view.schema.encoder is None else ENCODED, "edge": bundle,
    }  # fmt: skip
    if told.at is not None:
        details[DECIDED_AT] = validate.number("at", told.at, least=-LATEST, most=LATEST)
    if told.greedy is not None:
        details["greedy"] = validate.flag("greedy", told.greedy)
    return DecisionRecord(
        id=event, unit=None, arm=arm, version=version, draw=draw_number(event, None, version, arm), question=asked,
        actions=[action], digest=asked.digest(None), propensity=chance, arm_propensity=chance, inclusion=chance,
        propensity_kind="exact", details=details,
    )  # fmt: skip


def _written(records: Sequence[Any]) -> Work:
    """Write some in one transaction; each that is refused is refused before anything of it is written."""
    pieces = [NewDecision(record) for record in records]

    def work(tx: Transaction) -> list[DecisionRecord | ManyArmsError]:
        found: list[DecisionRecord | ManyArmsError] = []
        for told, stored in zip(records, NewDecision.all_of(tx, pieces), strict=True):
            try:
                found.append(stored if isinstance(stored, ManyArmsError) else _same(told, stored))
            except ManyArmsError as refusal:
                found.append(refusal)
        return found

    return work


def _same(told: DecisionRecord, stored: DecisionRecord) -> DecisionRecord:
    """What is stored under the id, unless it is another decision of the same question."""
    by_bundle = stored.details.get("edge") == told.details["edge"]
    if not by_bundle or (stored.arm, stored.actions) != (told.arm, told.actions):
        who = "by another bundle" if "edge" in stored.details else "by this service"
        raise Conflict(f"event {told.id!r} was decided before, {who if not by_bundle else 'with another action'}")
    return stored


def is_edge(record: DecisionRecord) -> bool:
    """Whether a decision was made elsewhere, and uploaded."""
    return "edge" in record.details


__all__ = ["Uploaded", "is_edge", "upload"]
