"""Challenges: an arm that looks on is promoted once it is certified to be better than what is deployed, and then guarded.

**Certificate.** Each fresh event with an exact propensity that was not held out, decided after the challenge began, gives the
paired gain X = (1 + (w − 1) r)/2, where w is the challenger's chance of what was done over the chance that it had. Both were
recorded when the event was decided, before its reward. `PairedGain` bounds the running average of V(challenger) − V(deployed)
from below, at all times at once. Held out events are left out: the hold-out may be worse than what is deployed, and to be better
than a mixture with it says too little. A challenger that could not answer gets the weight 0, as if it had earned the least.

**Level.** Challenge k has α_k = 6α/(π²k²), so that all of them together are ever wrong with probability at most α. If other arms
are deployed meanwhile, the comparison is with something else: it begins anew, and counts as the next challenge.

**Guard.** After the promotion an `EDetector` takes the rewards of the new champion's own fresh events, against the value that was
certified less `guard`. That value, wrong with probability at most α_k, is the larger of two lower ends: that of w·r, and that of
the rewards of what was deployed plus that of the gain. An alarm rolls back; as long as each of these
rewards has at least that mean, given what came before, it comes once in `mean_time` of these events on average, or more rarely.
The certified value is an average over the events of the challenge: where values move with the time of day, `guard` has to
leave room for it. The guard ends when somebody deploys something else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import Array
from manyarms.errors import InvalidInput, LiveError
from manyarms.live.deployment import BASELINE, Deployment
from manyarms.live.operations import operation, promoted
from manyarms.live.settings import Settings
from manyarms.live.stores.database import Reader
from manyarms.live.watched import Watched, unusable
from manyarms.sequential import EDetector, PairedGain, RunningValue, spent_alpha

if TYPE_CHECKING:
    from manyarms.live.state import State

RUNNING, PROMOTED, ROLLED_BACK = "running", "promoted", "rolled back"
WITHDRAWN = "withdrawn"
OVERTAKEN = "overtaken"  # somebody has deployed it, or something else in its place
STRANDED = "alarm, nothing to roll back to"  # the arms that were deployed before are gone
ENDED = 32  # challenges that are over and remembered
LEAST_ALPHA = 1e-12
MOST_TIME = 1e100
LEAST_GUARDED = 1e-6  # a value, on the scale of [0, 1], below which nothing can fall


@dataclass
class Challenge:
    """One challenge. All values are on the scale of [0, 1].

    number: k, how many there have been with it; level: α_k. since: the version from which on events count; at: when that was.
    joined: whether it looks on because of the challenge. value: of w·r; deployed: of the rewards of what is deployed.
    certified: gain and value when it was promoted. detector: the guard; None where there is nothing to guard.
    """

    name: str
    alpha: float
    margin: float
    guard: float
    mean_time: float
    joined: bool
    number: int = 0
    since: int = 0
    at: float = 0.0
    state: str = RUNNING
    ended: float | None = None
    unable: int = 0
    gain: PairedGain = field(default_factory=PairedGain)
    value: RunningValue = field(default_factory=RunningValue)
    deployed: RunningValue = field(default_factory=RunningValue)
    certified: dict[str, float] | None = None
    detector: EDetector | None = None

    @property
    def level(self) -> float:
        """α_k."""
        return spent_alpha(self.alpha, self.number)

    @property
    def active(self) -> bool:
        """Whether events still count."""
        return self.state in (RUNNING, PROMOTED)

    def begin(self, number: int, version: int, at: float) -> None:
        """Count events from this version on."""
        self.number, self.since, self.at, self.unable = number, version, at, 0
        self.gain, self.value, self.deployed = PairedGain(), RunningValue(), RunningValue()

    # ---- events

    def concerns(self, row: Watched) -> bool:
        """Whether an event counts."""
        if row.version < self.since or not row.fresh or row.reward is None or row.held_out:
            return False
        if self.state == PROMOTED:
            return row.arm == self.name and not row.edge
        return row.treated is not None and self.name in row.shadows

    def first_deed(self, rows: Sequence[Watched]) -> int | None:
        """The place of the first event that promotes it or makes the guard roll it back; nothing changes."""
        places = [place for place, row in enumerate(rows) if self.concerns(row)]
        if not places:
            return None
        own = [rows[place] for place in places]
        if self.state == PROMOTED:
            if self.detector is None:
                return None
            tried = EDetector.restored(self.detector.spec())
            tried.update(_rewards(own))
            return None if tried.alarm is None else places[tried.alarm - self.detector.count - 1]
        weights, rewards = self._weighed(own)
        first = self.gain.first_certified(weights, rewards, self.level, self.margin)
        return None if first is None else places[first]

    def take(self, rows: Sequence[Watched]) -> None:
        """These events have settled."""
        own = [row for row in rows if self.concerns(row)]
        if not own:
            return
        if self.state == PROMOTED:
            if self.detector is not None:
                self.detector.update(_rewards(own))
            return
        weights, rewards = self._weighed(own)
        self.unable += sum(row.shadows[self.name][0] is None for row in own)
        self.gain.update(weights, rewards)
        self.value.update(weights * rewards)
        self.deployed.update(rewards)

    def _weighed(self, own: Sequence[Watched]) -> tuple[Array, Array]:
        chances = np.array([row.shadows[self.name][1] or 0.0 for row in own])
        return chances / np.array([row.treated for row in own]), _rewards(own)

    # ---- deeds

    def promote(self, state: State) -> None:
        """It is certified: all the traffic but the hold-out, and the guard."""
        third = self.level / 3
        value = max(self.value.lower(third), self.deployed.lower(third) + self.gain.lower(third))
        self.certified = {"gain": self.gain.lower(self.level), "value": min(1.0, value)}
        guarded = self.certified["value"] - self.guard
        self.detector = EDetector(guarded, self.mean_time) if LEAST_GUARDED <= guarded < 1 - LEAST_GUARDED else None
        self.state, self.since, self.at = PROMOTED, state.chunk.version, state.chunk.at
        state.deploy(promoted(state.deployment, self.name))

    def end(self, how: str, at: float) -> None:
        """It is over."""
        self.state, self.ended = how, at

    # ---- in snapshots

    def to_json(self) -> dict[str, Any]:
        """As snapshots have it."""
        body = {name: getattr(self, name) for name in PLAIN}
        parts = {"gain": self.gain.spec(), "value": self.value.spec(), "deployed": self.deployed.spec()}
        return {**body, **parts, "detector": None if self.detector is None else self.detector.spec()}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Challenge:
        """What `to_json` gave."""
        return cls(
            **{name: body[name] for name in PLAIN},
            gain=PairedGain.restored(body["gain"]),
            value=RunningValue.restored(body["value"]),
            deployed=RunningValue.restored(body["deployed"]),
            detector=None if body["detector"] is None else EDetector.restored(body["detector"]),
        )


def _rewards(rows: Sequence[Watched]) -> Array:
    return np.array([row.reward for row in rows], dtype=np.float64)


PLAIN = (
    "name", "alpha", "margin", "guard", "mean_time", "joined", "number", "since", "at", "state", "ended", "unable", "certified",
)  # fmt: skip


@dataclass
class Challenges:
    """All challenges of a store, in the order in which they were made. number: how often one has begun."""

    number: int = 0
    made: list[Challenge] = field(default_factory=list)

    @property
    def active(self) -> list[Challenge]:
        """Those that events still count for."""
        return [challenge for challenge in self.made if challenge.active]

    def of(self, name: str) -> Challenge | None:
        """The challenge of this arm that is not over."""
        return next((one for one in self.active if one.name == name), None)

    def start(self, state: State, challenge: Challenge) -> None:
        """It looks on from now on."""
        if challenge.joined:
            shadows = (*state.deployment.shadows, challenge.name)
            state.deployment = replace(state.deployment, shadows=shadows)
        self._begin(state, challenge)
        self.made.append(challenge)
        over = [one for one in self.made if not one.active]
        for one in over[: max(0, len(over) - ENDED)]:
            self.made.remove(one)

    def _begin(self, state: State, challenge: Challenge) -> None:
        self.number += 1
        challenge.begin(self.number, state.chunk.version, state.chunk.at)

    def settle(self, state: State, rows: Sequence[Watched]) -> None:
        """Take in events up to the first one that calls for a deed, do it, and go on: however events are cut into batches."""
        while rows:
            deeds = [(place, one) for one in self.active if (place := one.first_deed(rows)) is not None]
            upto = min(place for place, _ in deeds) + 1 if deeds else len(rows)
            for one in self.active:
                one.take(rows[:upto])
            for place, one in deeds:
                if place == upto - 1:
                    self._do(state, one)
                    break
            rows = rows[upto:]

    def _do(self, state: State, challenge: Challenge) -> None:
        if challenge.state == RUNNING:
            challenge.promote(state)
            return
        earlier = (
            state.deployment.previous
        )  # another hold-out or another shadow may have been deployed since the promotion
        while earlier is not None and earlier.shares == state.deployment.shares:
            earlier = earlier.previous
        if earlier is None or earlier.names - set(state.arms):
            challenge.end(STRANDED, state.chunk.at)
        else:
            challenge.end(ROLLED_BACK, state.chunk.at)
            state.roll_back(earlier)

    def changed(self, state: State, before: Deployment) -> None:
        """Something else is deployed. Challengers go on looking on; where other arms decide now, they begin anew."""
        now = state.deployment
        same = now.shares == before.shares
        for one in self.active:
            if (one.state == PROMOTED) is not (now.shares == {one.name: 1.0}):
                one.end(OVERTAKEN, state.chunk.at)
            elif one.state == RUNNING:
                if one.name not in state.deployment.shadows:
                    one.joined = True
                    state.deployment = replace(state.deployment, shadows=(*state.deployment.shadows, one.name))
                if not same:
                    self._begin(state, one)

    def to_json(self) -> dict[str, Any]:
        """As snapshots have it."""
        return {"number": self.number, "made": [one.to_json() for one in self.made]}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Challenges:
        """What `to_json` gave."""
        return cls(body["number"], [Challenge.from_json(one) for one in body["made"]])


# ---- operations


def challenge_body(
    settings: Settings, alpha: object, margin: object, guard: object, mean_time: object
) -> dict[str, float]:
    """What a challenge asks for, checked."""
    return {
        "alpha": validate.number("alpha", alpha, least=LEAST_ALPHA, below=1),
        "margin": validate.number("margin", margin, above=-settings.span, below=settings.span),
        "guard": validate.number("guard", guard, least=0, below=settings.span),
        "mean_time": validate.number("mean_time", mean_time, least=1, most=MOST_TIME),
    }


def check_possible(settings: Settings, deployment: Deployment, name: str, exact: Mapping[str, bool]) -> None:
    """Refuse a challenge that could not be certified. exact: of each arm, whether it knows its propensities."""
    if (why := unusable(settings)) is not None:
        raise LiveError(f"nothing can be certified: {why}")
    if deployment.shares == {name: 1.0}:
        raise InvalidInput("challenger", name, "an arm other than the one that is deployed")
    if set(deployment.shares) == {BASELINE}:
        raise LiveError(
            "nothing can be certified: the baseline tries nothing else, and says nothing of what it does not do"
        )
    guessing = sorted(arm for arm in (*deployment.shares, name) if arm != BASELINE and not exact[arm])
    if guessing:
        raise LiveError(
            f"nothing can be certified: the propensities of {', '.join(guessing)} are not known exactly, and one over an "
            "estimate is biased; decide by EpsilonGreedy or another rule that knows its probabilities"
        )


@operation("challenge")
def _challenge(state: State, reader: Reader, position: int, body: dict[str, Any]) -> Any:
    name = body["name"]
    if name not in state.arms:
        raise InvalidInput("challenger", name, f"an arm of this store: {', '.join(sorted(state.arms))}")
    if state.watch.challenges.of(name) is not None:
        raise InvalidInput("challenger", name, "an arm that is not challenging already")
    concerned = {arm for arm in (*state.deployment.shares, name) if arm != BASELINE}
    exact = {arm: state.arms[arm].view().exact for arm in concerned}
    check_possible(state.settings, state.deployment, name, exact)
    margin, guard = state.settings.shrunk(body["margin"]), state.settings.shrunk(body["guard"])
    joined = name not in state.deployment.shadows
    made = Challenge(name, body["alpha"], margin, guard, body["mean_time"], joined)
    state.watch.challenges.start(state, made)
    return {"number": made.number}


@operation("withdraw")
def _withdraw(state: State, reader: Reader, position: int, body: dict[str, Any]) -> Any:
    name = body["name"]
    found = state.watch.challenges.of(name)
    if found is None:
        raise InvalidInput("name", name, "an arm whose challenge is not over")
    looked_on = found.state == RUNNING
    found.end(WITHDRAWN, state.chunk.at)
    if looked_on and found.joined:
        left = tuple(shadow for shadow in state.deployment.shadows if shadow != name)
        state.deployment = replace(state.deployment, shadows=left)
    return {}


__all__ = ["Challenge", "Challenges", "challenge_body", "check_possible"]
