"""Counts by minute of the last day, in a ring that is as long as the day has minutes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from manyarms._base.typing import Array

DAY = 1440  # minutes
FIELDS = (
    "decisions", "played", "rewards", "units", "repeated", "held_out", "deferred", "never_activated", "greedy_known", "explored",
    "new_actions", "exact", "estimated",
)  # fmt: skip
BY_ARM = ("decisions", "rewarded", "total")
"""Of the decisions of a minute and an arm: how many there are, how many have a reward by now, and what these come to."""
MOST_ARMS = 32
OTHER = "(others)"
_PLACE = {name: place for place, name in enumerate(FIELDS)}


class Minutes:
    """What happened in each minute; what is older than a day is forgotten."""

    def __init__(self) -> None:
        self._stamp = np.full(DAY, -1, dtype=np.int64)
        self._counts = np.zeros((DAY, len(FIELDS)))
        self._arms: dict[str, int] = {}
        self._by_arm = np.zeros((DAY, 0, len(BY_ARM)))

    def add(self, at: float, **counts: float) -> None:
        """Count so many more of these fields at a time."""
        if (slot := self._slot(at)) is not None:
            row = self._counts[slot]
            for name, value in counts.items():
                row[_PLACE[name]] += value

    def add_arm(self, at: float, arm: str, decisions: int = 0, rewarded: int = 0, total: float = 0.0) -> None:
        """Decisions of an arm at a time, and what they earned."""
        if (slot := self._slot(at)) is not None:
            place = self._arm(arm)  # first: there may be one more of them afterwards
            self._by_arm[slot, place] += (decisions, rewarded, total)

    def _slot(self, at: float) -> int | None:
        """Where the minute of a time is counted; None where it has been forgotten."""
        minute = int(at // 60)
        slot = minute % DAY
        if self._stamp[slot] > minute:
            return None
        if self._stamp[slot] < minute:
            self._stamp[slot] = minute
            self._counts[slot] = 0.0
            self._by_arm[slot] = 0.0
        return slot

    def _arm(self, name: str) -> int:
        if name not in self._arms:
            if len(self._arms) >= MOST_ARMS:
                name = OTHER
            if name not in self._arms:
                self._arms[name] = len(self._arms)
                self._by_arm = np.concatenate((self._by_arm, np.zeros((DAY, 1, len(BY_ARM)))), axis=1)
        return self._arms[name]

    # ---- to look at

    def _rows(self, now: float, minutes: int) -> tuple[Array, Array]:
        """Counts (minutes, fields) and (minutes, arms, 3) up to now, the oldest first."""
        last = int(now // 60)
        wanted = np.arange(last - minutes + 1, last + 1)
        slots = wanted % DAY
        there = self._stamp[slots] == wanted
        return (
            np.where(there[:, None], self._counts[slots], 0.0),
            np.where(there[:, None, None], self._by_arm[slots], 0.0),
        )

    def totals(self, now: float, minutes: int = DAY) -> dict[str, int]:
        """The sums of the last minutes, this one among them."""
        counts, _ = self._rows(now, min(minutes, DAY))
        return {name: round(value) for name, value in zip(FIELDS, counts.sum(axis=0).tolist(), strict=True)}

    def earned(self, now: float, minutes: int = DAY) -> dict[str, list[float]]:
        """By arm: decisions, those with a reward, and their sum."""
        _, by_arm = self._rows(now, min(minutes, DAY))
        sums = by_arm.sum(axis=0).tolist()
        return {name: sums[place] for name, place in self._arms.items() if any(sums[place])}

    def series(self, now: float, minutes: int, default: float | None, points: int = 120) -> dict[str, Any]:
        """Decisions and rewards by steps of time, about `points` of them; and mean rewards, by a quarter as many longer steps.

        A decision that has no reward by now counts with the default; without a default it is left out of the mean.
        """
        start, step, counts, _ = self._steps(now, minutes, points)
        since, long, _, arms = self._steps(now, minutes, max(1, points // 4))
        named = {name: arms[:, place] for name, place in self._arms.items() if arms[:, place].any()}
        return {
            "start": start,
            "step": step,
            "decisions": counts[:, _PLACE["decisions"]].astype(int).tolist(),
            "rewards": counts[:, _PLACE["rewards"]].astype(int).tolist(),
            "earned": {
                "start": since,
                "step": long,
                "mean": _means(arms.sum(axis=1), default),
                "arms": {name: _means(rows, default) for name, rows in named.items()},
            },
        }

    def _steps(self, now: float, minutes: int, points: int) -> tuple[float, int, Array, Array]:
        """When the first step begins, how many seconds one has, and the sums of each: (steps, fields), (steps, arms, 3)."""
        minutes = max(1, min(minutes, DAY))
        step = math.ceil(minutes / points)
        end = (int(now // 60) // step + 1) * step  # steps begin at multiples of their length: they stay as they are
        bins = min(math.ceil(minutes / step), DAY // step)
        counts, by_arm = self._rows((end - 1) * 60.0, bins * step)
        arms = by_arm.reshape(bins, step, by_arm.shape[1], len(BY_ARM)).sum(axis=1)
        return (end - bins * step) * 60.0, step * 60, counts.reshape(bins, step, -1).sum(axis=1), arms


def mean_reward(earned: Sequence[float], default: float | None) -> float | None:
    """Of decisions, those with a reward, and their sum: the mean; those without count with the default."""
    decisions, rewarded, total = earned
    number = rewarded if default is None else decisions
    if not number:
        return None
    return (total + (decisions - rewarded) * (default or 0.0)) / number if default is not None else total / number


def _means(rows: Array, default: float | None) -> list[float | None]:
    return [mean_reward(row, default) for row in rows.tolist()]


__all__ = ["DAY", "FIELDS", "Minutes", "mean_reward"]
