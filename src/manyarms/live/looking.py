"""Looking at a live store: its actions, and the rewards of an event. Nothing here changes anything."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass

from manyarms._base import validate
from manyarms._base.tables import Shown
from manyarms.errors import UnknownAction
from manyarms.live import log, naming
from manyarms.live.arguments import a_name
from manyarms.live.learner import Learner
from manyarms.live.records import RewardRecord
from manyarms.live.state import View
from manyarms.live.stores.database import Database
from manyarms.logs.actions import ActionId


@dataclass(frozen=True, slots=True, repr=False)
class ListedAction(Shown):
    """An action of the store: its row, its id (the row where actions have none), and whether it may be chosen.

    capped: it rests because it was taken often enough (`live.cap`).
    """

    row: int
    id: ActionId
    retired: bool
    capped: bool


class Looking(ABC):
    """What can be seen of a live store beside its decisions."""

    _database: Database
    _learner: Learner

    @property
    def view(self) -> View:
        """What decides here, as it is now: it never changes, and another one takes its place with every version."""
        return self._learner.view

    def follow(self) -> View:
        """What decides here, with whatever another process has folded meanwhile."""
        return self._learner.follow()

    @property
    def arms(self) -> dict[str, bool]:
        """The names of the arms, and whether each knows its propensities exactly."""
        return {name: arm.exact for name, arm in sorted(self._learner.view.arms.items())}

    @property
    def action_count(self) -> int:
        """How many actions there have ever been, those that are retired included."""
        return self._learner.view.actions

    def action(self, action: ActionId) -> ListedAction:
        """One action, by its id."""
        view = self._learner.view
        row = naming.row_of(view, "action", action)
        if row >= view.actions:
            raise UnknownAction("action", row, f"an action of this store, below {view.actions}")
        return ListedAction(row, naming.name_of(view, row), row in view.retired, row in view.capped)

    def actions(self, *, after: int = -1, limit: int = 100, search: str = "") -> list[ListedAction]:
        """The next actions after a row, in the order of rows. search: only those whose id contains this text."""
        view = self._learner.view
        first = validate.count("after", after, least=-1) + 1
        limit = validate.count("limit", limit)
        wanted = validate.instance("search", search, str, "a text").lower()
        found: list[ListedAction] = []
        for row in range(first, view.actions):
            name = naming.name_of(view, row)
            if wanted and wanted not in str(name).lower():
                continue
            found.append(ListedAction(row, name, row in view.retired, row in view.capped))
            if len(found) == limit:
                break
        return found

    def rewards(self, event: str) -> list[RewardRecord]:
        """The rewards of an event, in the order in which they came; actions by id."""
        with self._database.reading() as reader:
            where = log.decision(reader, a_name("event", event)).position
            found = log.rewards_of(reader, [where], 2**62)
        view = self._learner.view
        every = sorted((one for some in found.values() for one in some), key=lambda one: one.position)
        return [naming.reward_shown(view, one) for one in every]


__all__ = ["ListedAction", "Looking"]
