"""What is watched while events settle. It is part of the fold: the same log gives the same monitors, to the last bit.

Every settled event goes, in the order of positions, to

- the value of each arm: of the rewards of its own events, whatever their propensities;
- the lift of the treated traffic over the hold-out, and the ratio in which events reach the arms: with events whose arm was drawn
  anew (without a unit each, with one its first), decided under the shares of now;
- the check of the propensities of each arm, with fresh events whose propensities are exact. The chance is the one within the arm:
  which action looks best is the arm's own opinion, and is fixed before the draw only once the arm is;
- each shadow: how often it would have done something else, and its value by inverse propensities;
- challenges (`challenge.py`), which promote and roll back.

Rows that agents learn are watched, too: whether rewards are still what was predicted (`drift_watch.py`).

Rewards may come in any order; what has to be in order is who was decided for when, and that is the order of positions. An event's
weight has a known mean given everything up to its decision and the rewards of all events before it, as long as no event's reward
hangs on what was done in another one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from manyarms.live.challenge import Challenges
from manyarms.live.deployment import Deployment
from manyarms.live.drift_watch import DriftWatch
from manyarms.live.learned_rows import SettledEvent
from manyarms.live.watched import Watched, watched
from manyarms.sequential import Lift, PropensityCheck, SampleRatio, ValueInterval

if TYPE_CHECKING:
    from manyarms.live.state import State

LEAST_SHARE = 1e-6  # of an arm or a hold-out that can be watched
SKIPPED = ("estimated", "no_propensity", "repeated", "no_reward")


def laws_of(deployment: Deployment) -> list[list[Any]]:
    """The chance of every arm, its name, and whether it is the hold-out's."""
    return [[share, name, place >= len(deployment.shares)] for place, (share, name) in enumerate(deployment.laws)]


@dataclass
class Routing:
    """Whether traffic reaches the arms in the shares that it should: `laws`, since a version. None where there is one arm."""

    laws: list[list[Any]]
    since: int
    ratio: SampleRatio | None

    @classmethod
    def of(cls, deployment: Deployment, since: int) -> Routing:
        """From this version on."""
        laws = laws_of(deployment)
        shares = [law[0] for law in laws]
        watchable = len(laws) > 1 and min(shares) >= LEAST_SHARE
        return cls(laws, since, SampleRatio([share / math.fsum(shares) for share in shares]) if watchable else None)

    def take(self, rows: Sequence[Watched]) -> None:
        """Where they went."""
        if self.ratio is None:
            return
        number = {(name, held_out): place for place, (_, name, held_out) in enumerate(self.laws)}
        came = [number.get((row.arm, row.held_out)) for row in rows if row.routed and row.version >= self.since]
        if known := [place for place in came if place is not None]:
            self.ratio.update(known)

    def to_json(self) -> list[Any]:
        return [self.laws, self.since, None if self.ratio is None else self.ratio.spec()]

    @classmethod
    def from_json(cls, body: list[Any]) -> Routing:
        laws, since, ratio = body
        return cls(laws, since, None if ratio is None else SampleRatio.restored(ratio))


@dataclass
class HoldOut:
    """The lift over a hold-out: of which share, by which arm, since a version. None where there is none."""

    share: float
    arm: str | None
    since: int
    lift: Lift | None

    @classmethod
    def of(cls, deployment: Deployment, since: int) -> HoldOut:
        """From this version on."""
        share, arm = deployment.holdout, deployment.holdout_arm
        return cls(share, arm, since, Lift(share) if LEAST_SHARE < share < 1 - LEAST_SHARE else None)

    def take(self, rows: Sequence[Watched]) -> None:
        """Who was held out, and what it earned."""
        if self.lift is None:
            return
        used = [
            (row.held_out, row.reward)
            for row in rows
            if row.routed and row.reward is not None and row.version >= self.since
        ]
        if used:
            held_out, rewards = zip(*used, strict=True)
            self.lift.update(held_out, rewards)

    def to_json(self) -> list[Any]:
        return [self.share, self.arm, self.since, None if self.lift is None else self.lift.spec()]

    @classmethod
    def from_json(cls, body: list[Any]) -> HoldOut:
        share, arm, since, lift = body
        return cls(share, arm, since, None if lift is None else Lift.restored(lift))


@dataclass
class Shadow:
    """One that looks on: how often it was asked, would have done something else, could not tell; and its value,
    over the events in which it can tell how likely it was to do what was done."""

    seen: int = 0
    differs: int = 0
    unable: int = 0
    value: ValueInterval = field(default_factory=ValueInterval)

    def take(self, name: str, rows: Sequence[Watched]) -> None:
        """What it would have done."""
        weights, rewards = [], []
        for row in rows:
            if (looked := row.shadows.get(name)) is None:
                continue
            would, chance = looked
            self.seen += 1
            self.unable += would is None
            self.differs += would is not None and would != row.action
            if row.fresh and row.reward is not None and row.chance is not None and chance is not None:
                weights.append(chance / row.chance)
                rewards.append(row.reward)
        if weights:
            self.value.update(weights, rewards)

    def to_json(self) -> list[Any]:
        return [self.seen, self.differs, self.unable, self.value.spec()]

    @classmethod
    def from_json(cls, body: list[Any]) -> Shadow:
        seen, differs, unable, value = body
        return cls(seen, differs, unable, ValueInterval.restored(value))


@dataclass
class Watch:
    """Monitors of the live traffic.

    events: settled. skipped: how many of them could not be used for weights, by the first reason. values and checks: by arm.
    drift: None in a store of an earlier version, where nobody has asked for it (`live.watch_drift`): whoever folds its log from
    whichever snapshot must come to the same.
    """

    events: int = 0
    skipped: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SKIPPED, 0))
    values: dict[str, ValueInterval] = field(default_factory=dict)
    checks: dict[str, PropensityCheck] = field(default_factory=dict)
    shadows: dict[str, Shadow] = field(default_factory=dict)
    routing: Routing | None = None
    holdout: HoldOut | None = None
    challenges: Challenges = field(default_factory=Challenges)
    drift: DriftWatch | None = field(default_factory=DriftWatch)

    # ---- events

    def settle(self, state: State, events: Sequence[SettledEvent]) -> None:
        """Take in settled events, in the order of their positions."""
        if not events:
            return
        agreed = state.agreed
        rows = [watched(event, agreed.of(event.decision.position)) for event in events]
        if self.routing is None or self.holdout is None:  # nothing was ever deployed but the first arm
            self.routing, self.holdout = Routing.of(state.deployment, 0), HoldOut.of(state.deployment, 0)
        self.events += len(rows)
        self._count_skipped(rows)
        self._take_arms(rows)
        for name in sorted({name for row in rows for name in row.shadows} & set(state.arms)):
            self.shadows.setdefault(name, Shadow()).take(name, rows)
        self.routing.take(rows)
        self.holdout.take(rows)
        self.challenges.settle(state, rows)

    def _count_skipped(self, rows: Sequence[Watched]) -> None:
        for row in rows:
            reason = row.missing or (None if row.fresh else "repeated") or ("no_reward" if row.reward is None else None)
            if reason is not None:
                self.skipped[reason] += 1

    def _take_arms(self, rows: Sequence[Watched]) -> None:
        for arm in sorted({row.arm for row in rows}):
            own = [row for row in rows if row.arm == arm]
            if rewards := [row.reward for row in own if row.reward is not None]:
                self.values.setdefault(arm, ValueInterval()).update([1.0] * len(rewards), rewards)
            drawn = [
                (row.within, row.greedy)
                for row in own
                if row.fresh and row.within is not None and row.greedy is not None
            ]
            if drawn:
                chances, greedy = zip(*drawn, strict=True)
                self.checks.setdefault(arm, PropensityCheck()).update(chances, greedy)

    # ---- changes

    def changed(self, state: State, before: Deployment) -> None:
        """Something else was deployed: what was measured under other shares begins anew."""
        version = state.chunk.version
        self.challenges.changed(state, before)
        now = state.deployment
        if self.routing is None or self.routing.laws != laws_of(now):
            self.routing = Routing.of(now, version)
        if self.holdout is None or (self.holdout.share, self.holdout.arm) != (now.holdout, now.holdout_arm):
            self.holdout = HoldOut.of(now, version)

    def forget(self, name: str) -> None:
        """An arm is gone."""
        for kept in (self.values, self.checks, self.shadows):
            kept.pop(name, None)
        if self.drift is not None:
            self.drift.arms.pop(name, None)

    # ---- in snapshots

    def to_json(self) -> dict[str, Any]:
        """As snapshots have it."""
        drift = {} if self.drift is None else {"drift": self.drift.to_json()}
        return {
            **drift,
            "events": self.events,
            "skipped": dict(self.skipped),
            "values": {name: value.spec() for name, value in sorted(self.values.items())},
            "checks": {name: check.spec() for name, check in sorted(self.checks.items())},
            "shadows": {name: shadow.to_json() for name, shadow in sorted(self.shadows.items())},
            "routing": None if self.routing is None else self.routing.to_json(),
            "holdout": None if self.holdout is None else self.holdout.to_json(),
            "challenges": self.challenges.to_json(),
        }

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> Watch:
        """What `to_json` gave."""
        return cls(
            body["events"],
            dict(body["skipped"]),
            {name: ValueInterval.restored(spec) for name, spec in body["values"].items()},
            {name: PropensityCheck.restored(spec) for name, spec in body["checks"].items()},
            {name: Shadow.from_json(spec) for name, spec in body["shadows"].items()},
            None if body["routing"] is None else Routing.from_json(body["routing"]),
            None if body["holdout"] is None else HoldOut.from_json(body["holdout"]),
            Challenges.from_json(body["challenges"]),
            None if body.get("drift") is None else DriftWatch.from_json(body["drift"]),
        )


__all__ = ["HoldOut", "Routing", "Shadow", "Watch"]
