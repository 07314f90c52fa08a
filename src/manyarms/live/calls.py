"""What an application calls every day: decisions, rewards and activations, each in the store when it is told so."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from manyarms._base import validate
from manyarms._base.tables import Shown
from manyarms._base.typing import ActionContexts, ContextLike
from manyarms.errors import LiveError, ManyArmsError, Overloaded, StoreUnavailable, UnknownAction, UnknownEvent
from manyarms.live import log, naming
from manyarms.live.activations import activate
from manyarms.live.arguments import a_name
from manyarms.live.chances import chances_of, kept_chances
from manyarms.live.deciding import decided
from manyarms.live.group_commit import GroupCommit
from manyarms.live.learner import Learner
from manyarms.live.new_entries import NewDecision, NewReward
from manyarms.live.records import DecisionRecord
from manyarms.live.settings import Settings
from manyarms.live.state import View
from manyarms.live.stores.database import Database, Work
from manyarms.live.uploads import Uploaded, upload
from manyarms.live.why import Why, why
from manyarms.logs.actions import ActionId
from manyarms.logs.filters import Filter

Told = TypeVar("Told")


@dataclass(frozen=True, slots=True, repr=False)
class LiveDecision(Shown):
    """What was decided.

    id: of the event, for its rewards. actions: best first. version: of the state that decided. arm: which agent or policy did.
    propensity: the chance of the first action, None where it is not known yet; propensity_kind: "exact" or "estimated".
    logged: False only where the store could not be reached and decisions go on without it. position: in the store's log, 0 where
    it is not logged. chances: of every candidate, in their order, where they were asked for. active: False where it
    was decided as one that may never be shown, and has not been activated.
    """

    id: str
    actions: tuple[ActionId, ...]
    version: int
    arm: str
    propensity: float | None
    propensity_kind: str | None
    logged: bool = True
    position: int = 0
    chances: tuple[float, ...] | None = None
    active: bool = True

    @property
    def action(self) -> ActionId:
        """The first action."""
        return self.actions[0]


class Calls(ABC):
    """What is asked of a live store every day. A call returns when what it has done is in the store; `submit_...` before that."""

    _database: Database
    _learner: Learner
    _commits: GroupCommit
    _salt: str
    _without_store: str
    _closed: bool

    @property
    @abstractmethod
    def settings(self) -> Settings:
        """How rewards count."""

    def decide(
        self,
        x: ContextLike | None = None,
        *,
        candidates: Filter = None,
        exclude: Filter = None,
        k: int | None = None,
        action_contexts: ActionContexts | None = None,
        unit: str | None = None,
        id: str | None = None,
        baseline: ActionId | None = None,
        propensity: bool = False,
        chances: bool = False,
        active: bool = True,
    ) -> LiveDecision:
        """Decide, and return when the decision is in the store.

        x, candidates, exclude, k, action_contexts: as `Agent.decide` takes them for one context. unit: a user or session that
        keeps its arm and, as long as nothing new is learned, its random numbers. id: of the event, made here if it is not given;
        the same id with the same question gives the same decision again, with another one a Conflict. baseline: the action that
        the application would take, where the deployment asks for it. propensity: estimate it now, where it is not known exactly.
        chances: compute, and keep in the log, how likely each of the candidates was. active: False for a decision that may never
        be shown: nothing is learned from it, and it does not settle, until `activate` says that it was.
        """
        record, known = self._considered(
            x, candidates, exclude, k, action_contexts, unit, id, baseline, propensity, chances, active
        )
        if known:
            return self._answer(record)
        try:
            return self._answer(self._submit(NewDecision(record, id is None)))
        except (StoreUnavailable, Overloaded):
            if self._without_store == "refuse":
                raise
            return self._answer(record, logged=False)

    def submit_decision(
        self,
        x: ContextLike | None = None,
        *,
        candidates: Filter = None,
        exclude: Filter = None,
        k: int | None = None,
        action_contexts: ActionContexts | None = None,
        unit: str | None = None,
        id: str | None = None,
        baseline: ActionId | None = None,
        propensity: bool = False,
        chances: bool = False,
        active: bool = True,
    ) -> Future[LiveDecision]:
        """`decide` for a caller that does not wait: it is decided here and now, and the future tells when it is in the store.

        What is refused before anything is written is raised here, a full queue (Overloaded) among it: this never waits.
        """
        record, known = self._considered(
            x, candidates, exclude, k, action_contexts, unit, id, baseline, propensity, chances, active
        )
        if known:
            return _kept(self._answer(record))
        unlogged = None if self._without_store == "refuse" else lambda: self._answer(record, logged=False)
        return self._promise(NewDecision(record, id is None), self._answer, unlogged)

    def _considered(
        self,
        x: ContextLike | None,
        candidates: Filter,
        exclude: Filter,
        k: int | None,
        action_contexts: ActionContexts | None,
        unit: str | None,
        id: str | None,
        baseline: ActionId | None,
        propensity: bool,
        chances: bool,
        active: bool,
    ) -> tuple[DecisionRecord, bool]:
        """The decision, and whether the store has it already."""
        view = self._learner.view
        asked = naming.asked(view, x, candidates, exclude, k, action_contexts)
        if view.timed:
            asked = replace(asked, at=self._database.now())
        event = uuid.uuid4().hex if id is None else a_name("id", id)
        unit = None if unit is None else a_name("unit", unit)
        usual = None if baseline is None else naming.row_of(view, "baseline", baseline)
        estimate, active = validate.flag("propensity", propensity), validate.flag("active", active)
        try:
            record = decided(view, self._salt, asked, event, unit, usual, estimate, active)
            if validate.flag("chances", chances):
                record.details["chances"] = chances_of(view, record)
            return record, False
        except ManyArmsError:
            if id is not None and (earlier := self._earlier(event, asked.digest(unit, active))) is not None:
                return earlier, True  # what can be decided no more was decided before
            raise

    def _earlier(self, event: str, digest: bytes) -> DecisionRecord | None:
        """The decision with this id, if it answers this question."""
        with suppress(UnknownEvent):
            found = self._record(event)
            return found if found.digest == digest else None
        return None

    def reward(self, event: str, value: float = 1.0, *, action: ActionId | None = None, id: str = "") -> None:
        """The reward of an event, in the store when this returns. Told twice, it counts once.

        action: of several actions decided together, which one earned it; the first unless said. id: of the reward, where an
        event has several (a click now, a purchase tomorrow): they count together as the store's `aggregate` says. The same id
        with another value is a Conflict.
        """
        self._submit(self._rewarded(event, value, action, id))

    def submit_reward(
        self, event: str, value: float = 1.0, *, action: ActionId | None = None, id: str = ""
    ) -> Future[None]:
        """`reward` for a caller that does not wait: the future tells when it is in the store."""
        return self._promise(self._rewarded(event, value, action, id), lambda _: None)

    def _rewarded(self, event: str, value: float, action: ActionId | None, id: str) -> Work:
        event = a_name("event", event)
        number = self.settings.check(value)
        which = None if action is None else self._row_of(action)
        return NewReward(event, which, a_name("id", id, empty=True), number, self._called)

    def _called(self, row: int) -> ActionId:
        """What callers call an action; one that another process has added, and that is not folded here yet, by its row."""
        view = self._learner.view
        return naming.name_of(view, row) if row < view.actions else row

    def activate(self, event: str) -> None:
        """A decision made with `active=False` was shown: it counts from now on, with the rewards that came before. Told again,
        it changes nothing.

        In the store when this returns. Refused (Conflict) where the waiting time of the event is over: it counts as never shown.
        """
        self._submit(self._activated(event))

    def submit_activation(self, event: str) -> Future[None]:
        """`activate` for a caller that does not wait: the future tells when it is in the store."""
        return self._promise(self._activated(event), lambda _: None)

    def _activated(self, event: str) -> Work:
        view = self._learner.view
        return activate(a_name("event", event), view.agreed, view.upto)

    def upload(self, arm: str, decisions: Sequence[Uploaded]) -> list[LiveDecision | ManyArmsError]:
        """Decisions that were made elsewhere, by bundles of an arm, with their exact propensities: written to the store.

        For each, what is in the store, or why it is not. Told twice, it counts once; under an id that was used for something else
        it is a Conflict. They wait for their rewards from now on, whenever they were decided (docs/edge.md).
        """
        stored = upload(arm, decisions, self._learner.view, self._learner.learn, self._submit)
        return [one if isinstance(one, ManyArmsError) else self._answer(one) for one in stored]

    def _submit(self, work: Work) -> Any:
        self._require_open()
        return self._commits.submit(work)

    def _promise(
        self, work: Work, shown: Callable[[Any], Told], unlogged: Callable[[], Told] | None = None
    ) -> Future[Told]:
        """What comes of a write, as it is shown; unlogged: what is told where the store cannot be written, if not the error."""
        self._require_open()
        told: Future[Told] = Future()

        def tell(written: Future[Any]) -> None:
            try:
                told.set_result(shown(written.result()))
            except (StoreUnavailable, Overloaded) as error:
                if unlogged is None:
                    told.set_exception(error)
                else:
                    told.set_result(unlogged())
            except BaseException as error:  # the caller's, as everything that a write raises
                told.set_exception(error)

        try:
            self._commits.promise(work).add_done_callback(tell)
        except Overloaded:
            if unlogged is None:
                raise
            told.set_result(unlogged())
        return told

    def _require_open(self) -> None:
        if self._closed:
            raise LiveError("this live store is closed: open it again")

    def _row_of(self, action: ActionId) -> int:
        """The row of an action that was decided: perhaps by another process, which knew of it first."""
        with suppress(UnknownAction):
            return naming.row_of(self._learner.view, "action", action)
        return naming.row_of(self._learner.learn(), "action", action)

    def _answer(self, record: DecisionRecord, logged: bool = True) -> LiveDecision:
        return LiveDecision(
            record.id, tuple(naming.named(self._view_of(record), record.actions)), record.version, record.arm,
            record.propensity, record.propensity_kind, logged, record.position, kept_chances(record),
            record.active,
        )  # fmt: skip

    def _view_of(self, record: DecisionRecord) -> View:
        """What knows the ids of a record's actions: the view that decided is as new, or another process was ahead of it."""
        view = self._learner.view
        return view if view.version >= record.version else self._learner.learn()

    def event(self, event: str) -> DecisionRecord:
        """What the log has of a decision."""
        record = self._record(a_name("event", event))
        return naming.shown(self._view_of(record), record)

    def why(self, event: str) -> Why:
        """What made the score of an event's action: by feature, from the root and from its own data, with what looked best.

        By the state that decided, folded again where it is not that of now; where it is gone (compacted, or something that it had
        learned was erased), by the state of now, and it says so. Print it, or take `to_json()`.
        """
        return why(self._database, self._learner.view, a_name("event", event))

    def _record(self, event: str) -> DecisionRecord:
        with self._database.reading() as reader:
            return log.decision(reader, event)


def _kept(value: Told) -> Future[Told]:
    """A future that is there already."""
    found: Future[Told] = Future()
    found.set_result(value)
    return found


__all__ = ["Calls", "LiveDecision"]
