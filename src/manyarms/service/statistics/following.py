"""Following the log of a store: what came since is counted, a few entries at a time, in memory that does not grow with them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from manyarms._base.typing import Array
from manyarms.errors import StorageError
from manyarms.live import Live
from manyarms.live.settings import Settings
from manyarms.live.state import View
from manyarms.live.watched import unusable
from manyarms.service.statistics import entries
from manyarms.service.statistics.actions import ActionCounts
from manyarms.service.statistics.features import Features
from manyarms.service.statistics.minutes import DAY, Minutes
from manyarms.service.statistics.propensities import Propensities
from manyarms.service.statistics.recent import RecentPlays
from manyarms.service.statistics.units import DistinctUnits

BEFORE = 100_000  # decisions counted from before the start


class Following:
    """What was counted, and how far: whoever looks at it holds `lock`.

    after: the position of the log up to which everything is counted, None before the first look; first: where that began.
    last: position and time of the log's last entry; since: the time of the first decision that is counted.
    """

    def __init__(self, live: Live, clock: Callable[[], float]) -> None:
        self._live = live
        self._clock = clock
        self._started = clock()
        self._one_reader = threading.Lock()
        self.lock = threading.RLock()
        self.minutes = Minutes()
        self.actions = ActionCounts(catalogue_size(live.view) or 0)
        self.recent = RecentPlays()
        self.propensities = Propensities()
        self.features = Features(live.encoder)
        self.units = DistinctUnits()
        self.after: int | None = None
        self.first = 0
        self.last = (0, 0.0)
        self.since: float | None = None
        self._due = (
            entries.Due()
        )  # up to where waiting times are over, and propensities that came afterwards are counted
        self._computed = 0

    @property
    def now(self) -> float:
        """The time, which is not before the log's last."""
        return max(self._clock(), self.last[1])

    @property
    def behind(self) -> int:
        """Entries of the log that are not counted yet."""
        return max(0, self.last[0] - (self.after or 0))

    @property
    def caught_up(self) -> bool:
        """Whether all that was there at the last look is counted."""
        return self.after is not None and not self.behind

    def follow(self) -> bool:
        """Count the next few entries; whether there are more."""
        with self._one_reader, self._live.database.reading() as reader:
            if self.after is None:
                self.first = entries.first_position(reader, self._started - DAY * 60.0, BEFORE)
                self.after = self._computed = self.first
                self._due = entries.Due(self.first)
            view = self._live.view
            agreed = view.agreed
            step = entries.next_step(reader, agreed, self.after)
            periods = (agreed.now, *(settings for _, settings in agreed.former))
            wanted = any(unusable(settings) is None for settings in periods)
            due, settled = entries.next_settled(reader, agreed, view.version, self._due, step.upto, rewards=wanted)
            computed, propensities = entries.next_propensities(reader, self._computed)
        with self.lock:
            self._count(step)
            for one in settled:
                self._settle(one, agreed.of(one.position))
            for at, propensity in propensities:
                self.propensities.add(at, propensity, "estimated")
            more = step.upto < step.last or due != self._due or computed > self._computed
            self.after, self.last = step.upto, (step.last, step.at)
            self._due, self._computed = due, computed
        return more

    def catch_up(self, timeout: float = 60.0) -> None:
        """Count all that is in the store now."""
        end = time.monotonic() + timeout
        while self.follow():
            if time.monotonic() > end:
                raise StorageError(f"the log was not followed to its end within {timeout:g} s")

    # ---- counting

    def _count(self, step: entries.Step) -> None:
        contexts: list[Array | None] = []
        for one in step.decisions:
            if self.since is None:
                self.since = one.at
            self._decided(one)
            contexts.append(one.context)
        for played in step.played:
            if played.decision > self.first:
                self._played(played)
        for reward in step.rewards:
            if reward.decision.decision > self.first:  # sums never have rewards without their plays
                self._rewarded(reward)
        for at in step.arrivals:
            self.minutes.add(at, rewards=1)
        if contexts:
            self.features.take(contexts, step.decisions[-1].at)

    def _decided(self, one: entries.Decided) -> None:
        greedy = one.details.get("greedy")
        kind = one.kind if one.propensity is not None else None
        self.minutes.add(
            one.at,
            decisions=1,
            units=one.unit is not None,
            repeated="repeated" in one.details,
            held_out=bool(one.details.get("held_out")),
            deferred=not one.active,
            greedy_known=greedy is not None,
            explored=greedy is False,
            exact=kind == "exact",
            estimated=kind == "estimated",
        )
        if one.propensity is not None and kind in ("exact", "estimated"):
            self.propensities.add(one.at, one.propensity, kind)
        if one.unit is not None:
            self.units.add(one.unit)

    def _played(self, one: entries.Played) -> None:
        new = 0
        for action in one.actions:
            new += self.actions.play(action, one.at)
            self.recent.play(one.since, one.at, action)
        self.minutes.add(one.at, played=1, new_actions=new > 0)
        self.minutes.add_arm(one.at, one.arm, decisions=1)

    def _rewarded(self, reward: entries.Rewarded) -> None:
        of = reward.decision
        self.actions.reward(reward.action, reward.was, reward.now)
        self.recent.reward(of.since, reward.action, reward.now)
        if of.actions and of.actions[0] == reward.action:
            gained = reward.now - (reward.was or 0.0)
            self.minutes.add_arm(of.at, of.arm, rewarded=reward.was is None, total=gained)

    def _settle(self, one: entries.Settled, settings: Settings) -> None:
        if not one.active:
            self.minutes.add(one.at, never_activated=1)
            return
        if unusable(settings) is not None:  # by what held when it was decided, as the monitors of the store have it
            return
        for action, reward in one.rewards:
            value = settings.default if reward is None else reward
            assert value is not None
            self.actions.settle(action, settings.scaled(value))


def catalogue_size(view: View) -> int | None:
    """How many actions a store has ever had; None where nobody knows."""
    if view.schema.catalogue is not None:
        return len(view.schema.catalogue)
    if view.learning is not None:
        return view.learning[1]
    counts = [getattr(getattr(arm, "policy", None), "action_count", None) for arm in view.arms.values()]
    return max((count for count in counts if count is not None), default=None)


__all__ = ["BEFORE", "Following", "catalogue_size"]
