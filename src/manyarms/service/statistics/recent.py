"""The last plays, one by one, in a ring: what the page of an action draws its minutes from."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyarms._base.typing import Array, Ints

MOST = 131_072


class RecentPlays:
    """Position, time, action and reward of the last plays; of a decision with several actions there are several.

    Positions never fall: a decision that was deferred has that of its activation.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._position: Ints = np.full(most, np.iinfo(np.int64).max, dtype=np.int64)  # sorted but for where it wraps
        self._at = np.zeros(most)
        self._action = np.full(most, -1, dtype=np.int32)
        self._reward = np.full(most, np.nan)
        self._next = 0

    def play(self, position: int, at: float, action: int) -> None:
        """One more."""
        place = self._next
        self._position[place], self._at[place], self._action[place] = position, at, action
        self._reward[place] = np.nan
        self._next = (place + 1) % self._most

    def reward(self, position: int, action: int, value: float) -> None:
        """What it has earned by now, where it is still here."""
        for start, end in ((self._next, self._most), (0, self._next)):
            place = start + int(np.searchsorted(self._position[start:end], position))
            while place < end and self._position[place] == position:
                if self._action[place] == action:
                    self._reward[place] = value
                    return
                place += 1

    def of(self, action: int) -> tuple[Array, Array]:
        """Times and rewards (nan where there is none) of the plays of an action, the oldest first."""
        found = np.flatnonzero(self._action == action)
        order = np.argsort(self._position[found], kind="stable")
        return self._at[found[order]], self._reward[found[order]]

    def series(self, action: int, now: float, minutes: int, points: int = 60) -> dict[str, Any]:
        """Plays of an action, those with a reward and its total, by steps of time up to now."""
        step = -(-minutes // points)
        bins = -(-minutes // step)
        start = (int(now // 60) // step + 1 - bins) * step * 60.0
        at, reward = self.of(action)
        place = ((at - start) // (step * 60)).astype(np.int64)
        inside = (place >= 0) & (place < bins)
        place, reward = place[inside], reward[inside]
        came = ~np.isnan(reward)
        return {
            "start": start,
            "step": step * 60,
            "plays": np.bincount(place, minlength=bins).tolist(),
            "rewarded": np.bincount(place[came], minlength=bins).tolist(),
            "total": np.bincount(place[came], weights=reward[came], minlength=bins).tolist(),
        }


__all__ = ["MOST", "RecentPlays"]
