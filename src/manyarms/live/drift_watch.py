"""Is the world still what the agents have learned? Their standardised residuals, watched by a `DriftAlarm` for each agent.

**Where rewards have no default**, a row is judged when it is learned, by what was known before it. Rows of one chunk are told in
slices, so that they may be judged together: an action comes again in a slice only while its rows, judged by the same belief,
hardly share an error (`own_doubt` in `beliefs/residuals.py` sums to at most `SHARED`), and a slice is short beside what the root
has learned. The first rows of an agent are slices of one, and exact; later ones nearly so.

**Where they have one**, rewards come soon and defaults late: in the order of arrival residuals would first be too high and then
too low, whenever traffic rises or falls. There the first action of an event is judged when the event is settled, in the order of
the log: a linear belief's as if its own row had been left out, where it was learned already. Approximate in two ways: these
residuals are correlated through what was learned later; and an agent that has learned the early rewards of those that still
wait, and not yet their defaults, expects a little too much. So events are judged only once the log that waits is a hundredth of
them.

**Which rows.** An agent whose prior is too wide, or whose noise is set too small, chooses what it overrates: as long as it knows
little its predictions are too high (the winner's curse), and nothing has changed. So of an agent that does not drift those rows
are judged in which it has little doubt beside the noise: at most `DOUBT` of the variance, or no more than it usually has. That
is known before the reward comes, and leaves the rate of false alarms as it is.

Where rewards drift, a row is judged by the belief at its time, or as of now if it comes late. Agents that forget are not watched
where rewards have a default: by the time that an event settles, what was known before its reward is not known any more. Rewards
that are replaced are no new evidence; of a sum of several rewards the first that comes is judged, where there is no default.
Discounting and windows take the world for one that stays: where it wanders steadily, their residuals are too wide, and the
model's alarm says so again and again. Clicks and counts are predicted approximately, those of agents that drift more so: the
rate of false alarms is then about, and not at most, what is stated.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import Array, Bools, Ints
from manyarms.beliefs import Belief
from manyarms.beliefs.residuals import LARGEST, Residuals, left_out_residuals, residuals
from manyarms.live.agent_arm import AgentArm
from manyarms.live.arms import Arm
from manyarms.live.learned_rows import SettledEvent, TaughtRow
from manyarms.live.operations import operation
from manyarms.live.settings import Settings
from manyarms.live.stores.database import Reader
from manyarms.sequential import DriftAlarm
from manyarms.sequential.e_detector import MOST_TIME

if TYPE_CHECKING:
    from manyarms.live.state import State

MEAN_TIME = 1_000_000.0  # rows for one false alarm of an agent, at least
SHARED = 0.125  # own doubt of the rows of an action in one slice
FEW = 8  # a slice is at most one row for so many learned ones and each dimension of the root
AHEAD = 16  # rows looked at beyond twice the length of the last slice
SETTLED = 100  # events for each entry of the log that waits
DOUBT = 0.05  # the part of a row's variance that is not noise
LATELY = 1_000  # rows over which it is averaged


@dataclass
class ArmDrift:
    """What is watched of one agent: its alarm, None where nothing can be said of its rewards (counts without a range).

    seen: rows that it was told, or events settled. left_out: of those, how many were not judged. doubt: the part of a row's
    variance that is not noise, as it is usual lately. at: when the last alarm came, by the log's time.
    """

    alarm: DriftAlarm | None
    seen: int = 0
    left_out: int = 0
    doubt: float = 0.0
    at: float | None = None

    @classmethod
    def of(cls, belief: Belief, settings: Settings, mean_time: float) -> ArmDrift:
        """Of an agent of this belief."""
        likelihood = belief.likelihood
        reward_range = (0.0, 1.0) if likelihood.binary else settings.reward_range
        if not likelihood.exact and reward_range is None:
            return cls(None)
        return cls(DriftAlarm(mean_time, likelihood.exact, reward_range))

    def little_doubt(self, belief: Belief, own_doubt: Array) -> Bools:
        """Which rows have no more doubt than is usual, or than `DOUBT`; all of them, where doubt never ends."""
        found = (own_doubt <= max(DOUBT, self.doubt)) | (belief.memory is not None)
        for one in own_doubt.tolist():
            if math.isfinite(one):
                self.doubt += (one - self.doubt) / LATELY
        return np.asarray(found, dtype=np.bool_)

    def take(self, actions: Ints, rewards: Array, found: Residuals, use: Bools, at: float) -> None:
        """Rows in their order, and which of them are to be judged."""
        # a context may be far beyond what anybody can learn from
        places = np.flatnonzero(use & np.isfinite(found.z) & np.isfinite(found.mean))
        self.seen += len(use)
        self.left_out += len(use) - len(places)
        alarm = self.alarm
        if alarm is None or not len(places):
            return
        if alarm.rewards is not None:  # a sum of several may leave the range
            rewards = np.clip(rewards, alarm.rewards.least, alarm.rewards.most)
        before, mean = alarm.total, np.clip(found.mean, -LARGEST, LARGEST)
        alarm.update(actions[places], found.z[places], mean[places], rewards[places])
        if alarm.total > before:
            self.at = at

    def settle(self, arm: AgentArm, events: Sequence[SettledEvent], waiting: int, at: float) -> None:
        """The first actions of settled events, some of whose rewards have been learned."""
        rows = [TaughtRow(one.decision, one.decision.actions[0], None, one.reward or 0.0) for one in events]
        contexts = [row.context for row in rows]
        fits = [place for place, row in enumerate(rows) if _fits(arm, row, contexts[place])]
        aged = arm.agent.belief.memory is not None  # what a row left over then is not known any more
        if self.alarm is None or aged or not fits or self.seen + len(fits) < SETTLED * waiting:
            self.seen += len(fits)
            self.left_out += len(fits)
            return
        belief = arm.agent.belief
        X, rewards = np.array([contexts[place] for place in fits]), np.array([rows[place].now for place in fits])
        actions = np.array([rows[place].action for place in fits], dtype=np.int64)
        with np.errstate(all="ignore"):
            found = residuals(belief, X, actions, rewards)
            if belief.likelihood.exact:
                learned = np.array([events[place].given for place in fits])
                without = left_out_residuals(belief, X, actions, rewards)
                found = Residuals(*(np.where(learned, one, other) for one, other in zip(without, found, strict=True)))
        use = _hardly_shared(belief, actions, found.own_doubt) & self.little_doubt(belief, found.own_doubt)
        self.take(actions, rewards, found, use, at)

    def to_json(self) -> list[Any]:
        """As snapshots have it."""
        return [None if self.alarm is None else self.alarm.spec(), self.seen, self.left_out, self.doubt, self.at]

    @classmethod
    def from_json(cls, body: list[Any]) -> ArmDrift:
        """What `to_json` gave."""
        alarm, seen, left_out, doubt, at = body
        return cls(None if alarm is None else DriftAlarm.restored(alarm), seen, left_out, doubt, at)


def _fits(arm: AgentArm, row: TaughtRow, context: Array | None) -> bool:
    """Whether an arm can have learned a row."""
    fitting = context is not None and len(context) == arm.dim
    return fitting and row.decision.position > arm.since and row.action < arm.actions


@dataclass
class Slice:
    """Rows to be told together, and what was found of them before: nothing, where they are not judged now."""

    rows: list[TaughtRow]
    found: Residuals | None = None
    use: Bools | None = None
    here: ArmDrift | None = None

    def told(self, learned: Sequence[bool], at: float) -> None:
        """They have been told; which of them were learned, and not refused."""
        if self.here is None or self.found is None or self.use is None:
            return
        actions = np.array([row.action for row in self.rows], dtype=np.int64)
        rewards = np.array([row.now for row in self.rows])
        self.here.take(actions, rewards, self.found, self.use & np.array(learned), at)


@dataclass
class DriftWatch:
    """The alarms of all agents that learn. mean_time: of each of them. since: the version from which on rows count."""

    mean_time: float = MEAN_TIME
    since: int = 0
    arms: dict[str, ArmDrift] = field(default_factory=dict)

    def _of(self, name: str, arm: AgentArm, settings: Settings) -> ArmDrift:
        if name not in self.arms:
            self.arms[name] = ArmDrift.of(arm.agent.belief, settings, self.mean_time)
        return self.arms[name]

    def judged(self, state: State, name: str, arm: Arm, rows: list[TaughtRow]) -> Iterator[Slice]:
        """New rows in the slices in which an arm is to be told them, each judged before it is told."""
        start = last = 0
        for now, run in groupby(rows, lambda row: self._now(state, arm, row)):
            upto = start + len(list(run))
            if not now:  # judged when they are settled, or by nobody
                yield Slice(rows[start:upto])
                start = upto
            while start < upto:
                assert isinstance(arm, AgentArm)
                here = self._of(name, arm, state.settings)
                found = _slice(arm, here, rows[start : min(upto, start + 2 * last + AHEAD)])
                last = len(found.rows)
                start += last
                yield found

    def _now(self, state: State, arm: Arm, row: TaughtRow) -> bool:
        """Whether a row is judged when it is learned."""
        known = isinstance(arm, AgentArm) and row.action < arm.actions
        return known and state.agreed.of(row.decision.position).default is None

    def settle(self, state: State, events: Sequence[SettledEvent], waiting: int) -> None:
        """Events that have settled, in the order of their positions, before their defaults are learned. waiting: entries of the
        log that are not settled."""
        agreed = state.agreed
        events = [
            one for one in events if one.reward is not None and agreed.of(one.decision.position).default is not None
        ]
        for name, arm in state.arms.items():
            if events and arm.learns and isinstance(arm, AgentArm):
                self._of(name, arm, state.settings).settle(arm, events, waiting, state.chunk.at)

    def to_json(self) -> list[Any]:
        """As snapshots have it."""
        return [self.mean_time, self.since, {name: one.to_json() for name, one in sorted(self.arms.items())}]

    @classmethod
    def from_json(cls, body: list[Any]) -> DriftWatch:
        """What `to_json` gave."""
        mean_time, since, arms = body
        return cls(mean_time, since, {name: ArmDrift.from_json(one) for name, one in arms.items()})


def _slice(arm: AgentArm, here: ArmDrift, rows: list[TaughtRow]) -> Slice:
    """As many of the rows, from the first on, as may be told together."""
    belief = arm.agent.belief
    if here.alarm is None:
        return Slice(rows)
    if not belief.root.known:
        rows = rows[: max(1, here.seen // (FEW * belief.root.dim))]
    X, rewards = np.array([row.context for row in rows]), np.array([row.now for row in rows])
    actions = np.array([row.action for row in rows], dtype=np.int64)
    times = belief.times(arm.times(np.array([row.decision.decided_at for row in rows])), len(rows))
    with np.errstate(all="ignore"):
        found = residuals(belief, X, actions, rewards, times)
    together = _hardly_shared(belief, actions, found.own_doubt)
    length = len(rows) if together.all() else int(np.argmin(together))
    found = Residuals(*(one[:length] for one in found))
    return Slice(rows[:length], found, here.little_doubt(belief, found.own_doubt), here)


def _hardly_shared(belief: Belief, actions: Ints, own_doubt: Array) -> Bools:
    """Which rows, judged by one belief, hardly share an error with those of their action before them."""
    sums: dict[int, float] = {}
    found = np.ones(len(actions), dtype=np.bool_)
    for place, (action, doubt) in enumerate(zip(actions.tolist(), own_doubt.tolist(), strict=True)):
        whose = action if belief.per_action else 0  # one parameter for all of them
        before = sums.get(whose)
        sums[whose] = doubt + (before or 0.0)
        found[place] = before is None or sums[whose] <= SHARED
    return found


@operation("watch_drift")
def _watch_drift(state: State, reader: Reader, position: int, body: dict[str, Any]) -> Any:
    mean_time = body["mean_time"]
    state.watch.drift = None if mean_time is None else DriftWatch(mean_time, state.chunk.version)
    return {}


def watch_body(mean_time: object) -> dict[str, float | None]:
    """What is asked for, checked."""
    if mean_time is None:
        return {"mean_time": None}
    return {"mean_time": validate.number("mean_time", mean_time, least=1, most=MOST_TIME)}


__all__ = ["ArmDrift", "DriftWatch", "Slice", "watch_body"]
