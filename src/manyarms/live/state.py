"""The state: what the log makes of the agents, chunk by chunk. The same log and the same chunks give the same bits.

`State.apply` is the only place where anything live ever changes. Decisions are made on a `View`, which never does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from manyarms.errors import InvalidInput, ManyArmsError, StorageError
from manyarms.live import learned_rows, log
from manyarms.live.arms import Arm, ArmView
from manyarms.live.deployment import Deployment
from manyarms.live.exposure import Exposure
from manyarms.live.learned_rows import TaughtRow
from manyarms.live.operations import DEPTH, OPERATIONS
from manyarms.live.records import Chunk
from manyarms.live.settings import Settings, SettingsInTime
from manyarms.live.stores.database import Reader
from manyarms.live.watch import Watch
from manyarms.logs.schema import NOTHING, Schema

STEP = 4096  # positions folded at a time: what fits easily into memory, and the same for everybody
RESULTS = 256  # outcomes of operations that are remembered
NOTHING_SAID = SettingsInTime(Settings())
COUNTS = ("learned", "replaced", "rows_refused", "operations_refused", "settled")


class NeedsRebuild(Exception):
    """An event that this state has learned from was erased: the fold without it starts earlier."""

    def __init__(self, decision: int) -> None:
        super().__init__(f"the decision at position {decision} was erased")
        self.decision = decision


@dataclass(frozen=True, slots=True)
class View:
    """The state at one version, for deciding: it never changes."""

    version: int
    upto: int
    arms: Mapping[str, ArmView]
    deployment: Deployment
    capped: frozenset[int]
    catalogue: int
    learning: tuple[int, int] | None  # the length of contexts and the number of actions of those that learn
    frozen: Mapping[str, Any]  # counts and monitors, to look at
    schema: Schema = NOTHING  # what contexts are encoded with, and what actions are called
    retired: frozenset[int] = frozenset()
    actions: int = 0  # how many there have ever been
    agreed: SettingsInTime = NOTHING_SAID

    @property
    def timed(self) -> bool:
        """Whether an arm decides by the clock."""
        return any(arm.timed for arm in self.arms.values())


@dataclass
class State:
    """What the log makes of the agents.

    chunk: the last one that was folded. sound_upto: erasures up to this position of the log came before anything was folded.
    counts: rows learned, replaced and refused, and more. results: of the last operations, by position.
    catalogue: how often the catalogue has changed. schema: encoder and ids, of all arms alike; the arms themselves, and the log,
    know vectors and rows. former: settings that held before those of now (`SettingsInTime`).
    """

    settings: Settings
    salt: str
    arms: dict[str, Arm]
    deployment: Deployment
    chunk: Chunk = field(default_factory=Chunk)
    sound_upto: int = 0
    catalogue: int = 0
    exposures: list[Exposure] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTS, 0))
    results: dict[int, Any] = field(default_factory=dict)
    watch: Watch = field(default_factory=Watch)
    schema: Schema = NOTHING
    former: tuple[tuple[int, Settings], ...] = ()

    @property
    def agreed(self) -> SettingsInTime:
        """The settings of all times."""
        return SettingsInTime(self.settings, self.former)

    def view(self) -> View:
        """As it is now, for ever."""
        capped: frozenset[int] = frozenset().union(*(exposure.capped() for exposure in self.exposures))
        arms = {name: arm.view() for name, arm in self.arms.items()}
        frozen = {"counts": dict(self.counts), "watch": self.watch.to_json(), "results": dict(self.results)}
        learning = next(((arm.dim, arm.actions) for arm in self.arms.values() if arm.dim is not None), None)
        return View(
            self.chunk.version, self.chunk.upto, arms, self.deployment, capped, self.catalogue, learning, frozen,
            self.schema, frozenset(next(iter(self.arms.values())).retired), max(arm.actions for arm in self.arms.values()),
            self.agreed,
        )  # fmt: skip

    def deploy(self, wanted: Deployment) -> None:
        """Deploy this from now on; what was deployed before is remembered."""
        self._change(replace(wanted, previous=self.deployment.cut(DEPTH)))

    def roll_back(self, earlier: Deployment | None = None) -> None:
        """Deploy what was deployed before; earlier: which of those, the last one unless said."""
        previous = self.deployment.previous if earlier is None else earlier
        if previous is None:
            raise InvalidInput("deployment", "the first one", "one before it to roll back to")
        for name in previous.names - set(self.arms):
            raise InvalidInput("name", name, f"an arm of this store: {', '.join(sorted(self.arms))}")
        self._change(previous)

    def _change(self, wanted: Deployment) -> None:
        before, self.deployment = self.deployment, wanted
        self.watch.changed(self, before)

    # ---- the fold

    def apply(self, reader: Reader, chunk: Chunk) -> None:
        """Fold the next chunk: operations and rewards in the order of their positions, and then what has become due."""
        before = self.chunk
        assert chunk.version == before.version + 1
        operations = log.operations_between(reader, before.upto, chunk.upto)
        for operation in operations:  # looked for first: nothing has changed yet
            late = operation.kind == "erase" and operation.position > self.sound_upto
            if late and operation.body["decision"] <= before.upto:
                raise NeedsRebuild(operation.body["decision"])
        self.chunk = Chunk(chunk.version, before.upto, before.due, chunk.at, chunk.token)
        for operation in operations:
            self._fold_upto(reader, operation.position - 1)
            self._operate(reader, operation.position, operation.kind, operation.body)
        self._fold_upto(reader, chunk.upto)
        self._settle(reader, chunk)
        for exposure in self.exposures:
            exposure.forget(chunk.at)
        self.chunk = chunk

    def _fold_upto(self, reader: Reader, position: int) -> None:
        """Rewards, in steps of positions."""
        while (after := self.chunk.upto) < position:
            upto = min(position, after + STEP)
            self._teach(learned_rows.of_rewards(reader, self.agreed, after, upto, self.chunk.due))
            if self.exposures:
                for decision in log.decisions_between(reader, after, upto):
                    for exposure in self.exposures:
                        exposure.count(decision.at, decision.actions)
            self.chunk = Chunk(self.chunk.version, upto, self.chunk.due, self.chunk.at, self.chunk.token)

    def _settle(self, reader: Reader, chunk: Chunk) -> None:
        after = self.chunk.due
        while after < chunk.due:
            upto = min(chunk.due, after + STEP)
            taught, settled = learned_rows.of_due(reader, self.agreed, after, upto, chunk.upto)
            if self.watch.drift is not None:  # before the defaults are learned
                self.watch.drift.settle(self, settled, chunk.upto - chunk.due)
            self._teach(taught)
            self.counts["settled"] += len(settled)
            self.watch.settle(self, settled)
            after = upto

    def _operate(self, reader: Reader, position: int, kind: str, body: dict[str, Any]) -> None:
        self.chunk = Chunk(self.chunk.version, position, self.chunk.due, self.chunk.at, self.chunk.token)
        try:
            result: Any = OPERATIONS[kind](self, reader, position, body)
        except StorageError:  # a store that cannot be read refuses nothing: others would fold another state
            raise
        except ManyArmsError as error:  # what was right when it was asked for, and is not any more
            self.counts["operations_refused"] += 1
            result = {"refused": str(error)}
        self.results[position] = result
        while len(self.results) > RESULTS:
            del self.results[min(self.results)]

    # ---- teaching

    def _teach(self, rows: list[TaughtRow]) -> None:
        if not rows:
            return
        new = [row for row in rows if row.was is None]
        changed = [row for row in rows if row.was is not None]
        self.counts["learned"] += len(new)
        self.counts["replaced"] += len(changed)
        for name, arm in self.arms.items():
            if arm.learns and arm.dim is not None:
                self._tell_new(name, arm, self._for(arm, new))
                self._tell(arm, self._for(arm, changed))

    def _tell_new(self, name: str, arm: Arm, rows: list[TaughtRow]) -> None:
        """New rows; where drift is watched, in slices that are judged before they are learned."""
        if self.watch.drift is None:
            self._tell(arm, rows)
            return
        for some in self.watch.drift.judged(self, name, arm, rows):
            some.told(self._tell(arm, some.rows), self.chunk.at)

    def _for(self, arm: Arm, rows: list[TaughtRow]) -> list[TaughtRow]:
        """The rows that an arm can be told: decided after it joined, and not by a process that did not know of it yet."""
        since = [row for row in rows if row.decision.position > arm.since]
        fitting = [row for row in since if row.context is not None and len(row.context) == arm.dim]
        self.counts["rows_refused"] += len(since) - len(fitting)
        return fitting

    def _tell(self, arm: Arm, rows: list[TaughtRow]) -> list[bool]:
        """Rows that are all new, or all changed, in one call; where it is refused, one by one, leaving out those refused.

        Which of them were learned.
        """
        if not rows:
            return []
        try:
            _taught(arm, rows)
        except ManyArmsError:
            if len(rows) == 1:
                self.counts["rows_refused"] += 1
                return [False]
            return [self._tell(arm, [row])[0] for row in rows]
        return [True] * len(rows)


def _taught(arm: Arm, rows: list[TaughtRow]) -> None:
    X = np.array([row.context for row in rows])
    actions = np.array([row.action for row in rows], dtype=np.int64)
    now, at = np.array([row.now for row in rows]), np.array([row.decision.decided_at for row in rows])
    if rows[0].was is None:
        arm.observe(X, actions, now, at)
    else:
        arm.replace_reward(X, actions, np.array([row.was for row in rows]), now, at)


__all__ = ["NeedsRebuild", "State", "View"]
