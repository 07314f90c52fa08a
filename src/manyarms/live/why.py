"""Why an event was decided as it was: what made the score of its action, and what looked better, if anything did."""

from __future__ import annotations

from dataclasses import dataclass

from manyarms._base.explanation import Explanation
from manyarms._base.tables import Shown, Table
from manyarms._base.text import number
from manyarms._base.typing import JSON, Spec
from manyarms.errors import ManyArmsError, UnknownEvent
from manyarms.live import log, naming, snapshots
from manyarms.live.arms import ArmView, without
from manyarms.live.deployment import BASELINE
from manyarms.live.records import DecisionRecord, Question
from manyarms.live.state import View
from manyarms.live.stores.database import Database
from manyarms.logs.actions import ActionId


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Why(Shown):
    """What made the score of an event's first action.

    version: of the state that decided. explained_by: of the state that explains; the same, where it can still be folded.
    explanation: the score by feature, root and leaf; None where there is no score: `unexplained` says why. greedy: the action
    that looks best to the arm where that is another one, with its score; None where the action taken looks best.
    """

    event: str
    arm: str
    action: ActionId
    version: int
    explained_by: int
    explanation: Explanation | None
    unexplained: str | None
    propensity: float | None
    propensity_kind: str | None
    greedy: ActionId | None = None
    greedy_explanation: Explanation | None = None

    @property
    def exact(self) -> bool:
        """Whether the state that decided is the one that explains."""
        return self.version == self.explained_by

    def to_json(self) -> Spec:
        """As plain values."""
        best: JSON = None
        if self.greedy is not None:
            other = self.greedy_explanation
            best = {
                "action": self.greedy,
                "score": None if other is None else other.score,
                "sd": None if other is None else other.sd,
            }
        return {
            "event": self.event,
            "arm": self.arm,
            "action": self.action,
            "version": self.version,
            "explained_by": self.explained_by,
            "exact": self.exact,
            "propensity": self.propensity,
            "propensity_kind": self.propensity_kind,
            "explanation": None if self.explanation is None else self.explanation.to_json(),
            "unexplained": self.unexplained,
            "greedy": best,
        }

    def _table(self) -> Table:
        title = f"event {self.event}: {self.arm} took {self.action}"
        if self.propensity is not None:
            title += f" with probability {number(self.propensity)}"
        notes = []
        if self.greedy is not None:
            said = f"{self.greedy} looked best"
            if self.greedy_explanation is not None:
                said += f" ({self.greedy_explanation._said()})"
            notes.append(said + ": this was exploration.")
        if not self.exact:
            notes.append(
                f"By the state of version {self.explained_by}: that of version {self.version}, which decided, is gone."
            )
        if self.unexplained is not None:
            notes.append(self.unexplained)
        parts = [] if self.explanation is None else [self.explanation.table()]
        return Table(title, notes=notes, parts=parts)


def why(database: Database, now: View, event: str) -> Why:
    """Of an event, by the state that decided it; where it cannot be folded any more, by the view of now."""
    with database.reading() as reader:
        record = log.decision(reader, event)
        computed = log.propensities_of(reader, [record.position]).get(record.position)
    asked = record.question
    if record.erased or asked is None:
        raise UnknownEvent(f"event {event!r} was erased")
    propensity, kind = record.propensity, record.propensity_kind
    if propensity is None and computed is not None and computed[4]:
        propensity, kind = computed[0], "estimated"
    view = _view_of(database, now, record)
    found, unexplained, best, of_best = _explained(view, record, asked)
    return Why(
        event, record.arm, naming.name_of(_newer(view, now), record.actions[0]), record.version, view.version, found,
        unexplained, propensity, kind, None if best is None else naming.name_of(_newer(view, now), best), of_best,
    )  # fmt: skip


def _newer(one: View, other: View) -> View:
    """The one that knows the ids of more actions."""
    return one if one.version >= other.version else other


def _view_of(database: Database, now: View, record: DecisionRecord) -> View:
    """What decided, if it can be had; otherwise what there is now."""
    if now.version == record.version and not snapshots.erased_since(database, now.upto):
        return now
    try:
        state = snapshots.state_of(database, record.version)
    except snapshots.Compacted:
        return now
    # an event that had been learned by then and was erased since: what decided is gone
    if state.chunk.version != record.version or snapshots.erased_since(database, state.chunk.upto):
        return now
    return state.view()


def _explained(
    view: View, record: DecisionRecord, asked: Question
) -> tuple[Explanation | None, str | None, int | None, Explanation | None]:
    """The score of the action taken, why there is none, the action that looks best if it is another, and its score."""
    if record.arm == BASELINE:
        return None, "The application chose it, and keeps its reasons to itself.", None, None
    arm, action = view.arms.get(record.arm), record.actions[0]
    if arm is None:
        return None, f"There is no arm {record.arm} any more.", None, None
    names = None if asked.per_action or view.schema.encoder is None else view.schema.encoder.names
    try:
        found = arm.explain(asked, action)
    except ManyArmsError as error:
        return None, f"It has no score: {error}", None, None
    best = _best(view, arm, asked)
    if best is None or best == action:
        return _called(found, names), None, None, None
    return _called(found, names), None, best, _called(arm.explain(asked, best), names)


def _called(found: Explanation, names: list[str] | None) -> Explanation:
    return found if found.names else found.called(names)


def _best(view: View, arm: ArmView, asked: Question) -> int | None:
    """The action that looks best to an arm; None where it cannot tell."""
    try:
        return arm.favourite(without(asked, view.capped, arm))
    except ManyArmsError:  # of now, with other actions retired than when it was asked
        return None


__all__ = ["Why", "why"]
