"""Off-policy evaluation of what a live log says: sums over the events of each five minutes, from which every answer is made.

    Online     what was deployed at the time, whoever it was: rewards as they came
    Baseline   the first action of every call, which the application would have shown
    Random     any of the actions offered, all alike

An event counts if it was active, its propensity is exact, and its waiting time is over: by the rewards that came, or by the
default. Without a default none does: those that have a reward are not like the others. Weights are pi(a | x) / p, with p as it
was logged; whether an event is activated must not depend on its action. For a policy whose action could not be shown (only the
baseline is, while an apprentice looks on) the event says nothing, and is left out of that policy's sums.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from manyarms.live import Live, log
from manyarms.live.records import DecisionRecord
from manyarms.sequential import ValueInterval

STEP = 300  # seconds of a sum
AT_A_TIME = 1000  # events read at once
# a row of sums: when the five minutes begin; events, sum of w r, of w, events with w > 0, sums of (w r)^2, of w^2 r and of w^2;
# the ends of the interval of all events so far
START, COUNT, VALUE, WEIGHT, SHOWN, SQUARES, CROSSED, WEIGHTS, LOW, HIGH = range(10)
ALPHA = 0.05
POLICIES = ("Online", "Baseline", "Random")


def evaluate(live: Live, start: float, end: float, going_on: Callable[[], bool]) -> dict[str, Any]:
    """Values of the policies over the events from `start` to `end`; going_on: whether anybody still wants to know."""
    bounds = live.settings.reward_range or (-1.0, 1.0)
    running = {name: _Running(bounds) for name in POLICIES}
    left_out = 0
    [(now,)] = live.database.read("SELECT at FROM counter")
    after = _before(live, start)
    while going_on():
        with live.database.reading() as reader:
            events = log.decisions_from(reader, after, AT_A_TIME)
            rewards = log.rewards_of(reader, [event.position for event in events], 2**62) if events else {}
        for event in events:
            if event.at > end:
                break
            came = rewards.get((event.position, event.actions[0] if event.actions else -1), [])
            reward = _reward(live, event, [one.value for one in came], now)
            weights = None if reward is None else _weights(event)
            if event.erased or reward is None or weights is None:
                left_out += 1
                continue
            reward = min(bounds[1], max(bounds[0], reward))  # a sum may leave the range
            for name, weight in weights.items():
                running[name].see(event.at, weight, reward)
        if not events or events[-1].at > end:
            break
        after = events[-1].position
    return {
        "events": running["Online"].count,
        "left_out": left_out,
        "bounds": list(bounds),
        "policies": {
            name: {"rows": rows, "interval": one.interval()}
            for name, one, rows in ((name, one, one.rows()) for name, one in running.items())
        },
    }


def _before(live: Live, start: float) -> int:
    """The position before the first event at this time."""
    found = live.database.read("SELECT MIN(position) FROM decisions WHERE at >= ?", (start,))[0][0]
    return 2**62 if found is None else int(found) - 1


def _reward(live: Live, event: DecisionRecord, came: list[float], now: float) -> float | None:
    """By what was agreed when it was decided; None where there is none yet, or it was never shown."""
    if event.erased or not event.active:
        return None
    settings = live.view.agreed.of(event.position)
    if settings.default is None or event.at + settings.wait > now:
        return None  # what has its reward already is not like what still waits for it, or has none
    return settings.combined(came) if came else settings.default


def _weights(event: DecisionRecord) -> dict[str, float] | None:
    asked = event.question
    if asked is None or asked.candidates is None or not event.propensity or event.propensity_kind != "exact":
        return None
    baseline, action = event.details.get("baseline"), event.actions[0]
    chances = dict(zip(asked.candidates, event.details.get("chances", ()), strict=False))
    found = {"Online": 1.0}
    if baseline is not None and chances.get(baseline, 0.0) > 0.0:
        found["Baseline"] = float(action == baseline) / event.propensity
    if chances and min(chances.values()) > 0.0:
        found["Random"] = 1.0 / len(chances) / event.propensity
    return found


class _Running:
    """Sums of one policy so far."""

    def __init__(self, bounds: tuple[float, float]) -> None:
        self._interval, self._bounds = ValueInterval(bounds), bounds
        self._weights: list[float] = []
        self._rewards: list[float] = []
        self._steps: dict[int, list[float]] = {}
        self.count = 0

    def see(self, at: float, weight: float, reward: float) -> None:
        """One event, in the order of time."""
        step = int(at // STEP) * STEP
        if step not in self._steps:
            self._close()
            self._steps[step] = [0.0] * (LOW - COUNT)
        sums = self._steps[step]
        value = weight * reward
        parts = (1.0, value, weight, float(weight > 0.0), value * value, weight * value, weight * weight)
        for place, part in enumerate(parts):
            sums[place] += part
        self._weights.append(weight)
        self._rewards.append(reward)
        self.count += 1

    def _close(self) -> None:
        """The interval at the end of five minutes."""
        if self._weights:
            self._interval.update(self._weights, self._rewards)
            self._weights, self._rewards = [], []
            last = next(reversed(self._steps))
            self._steps[last].extend(self.interval())

    def interval(self) -> list[float]:
        """The ends so far."""
        return [float(end) for end in (self._interval.interval(ALPHA) if self._interval.count else self._bounds)]

    def rows(self) -> list[list[float]]:
        """The sums of each five minutes in which something happened."""
        self._close()
        return [[float(step), *sums] for step, sums in self._steps.items()]


__all__ = [
    "ALPHA", "COUNT", "CROSSED", "HIGH", "LOW", "POLICIES", "SHOWN", "SQUARES", "START", "STEP", "VALUE", "WEIGHT", "WEIGHTS",
    "evaluate",
]  # fmt: skip
