"""What each action was played and earned: numbers by row, as many as the catalogue is long, however many events there are."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyarms._base.typing import AnyArray, Ints
from manyarms.sequential import ValueInterval
from manyarms.sequential.confidence_sequence import FIRST_GUESS

_FIELDS = {
    "plays": np.uint32, "rewarded": np.uint32, "total": np.float64, "last": np.uint32, "settled": np.uint32, "sum": np.float64,
    "variation": np.float64, "rest": np.float64,
}  # fmt: skip


class ActionCounts:
    """By row of an action: plays, those with a reward and its total, when it was last played; and of the plays whose waiting
    time is over the state of a `ValueInterval` of rewards in [0, 1]."""

    def __init__(self, actions: int) -> None:
        self._arrays: dict[str, AnyArray] = {name: np.zeros(actions, dtype=kind) for name, kind in _FIELDS.items()}

    def _room(self, row: int) -> None:
        size = len(self._arrays["plays"])
        if row >= size:
            more = max(row + 1, size + size // 2) - size
            self._arrays = {
                name: np.concatenate((array, np.zeros(more, dtype=array.dtype))) for name, array in self._arrays.items()
            }

    def play(self, row: int, at: float) -> bool:
        """It was played; whether that was the first time."""
        self._room(row)
        plays = self._arrays["plays"]
        new = not plays[row]
        plays[row] += 1
        self._arrays["last"][row] = min(max(int(at), 0), 2**32 - 1)
        return new

    def reward(self, row: int, was: float | None, now: float) -> None:
        """The reward of one of its plays is this, and was that."""
        self._room(row)
        self._arrays["rewarded"][row] += was is None
        self._arrays["total"][row] += now - (was or 0.0)

    def settle(self, row: int, reward: float) -> None:
        """The reward, in [0, 1], of a play whose waiting time is over: as `ValueInterval.update(1.0, reward)`."""
        self._room(row)
        settled, total, variation, rest = (self._arrays[name] for name in ("settled", "sum", "variation", "rest"))
        count, earned = int(settled[row]), float(total[row])
        guess = min(1.0, (FIRST_GUESS + earned) / (count + 1))
        other = min(1.0, (FIRST_GUESS + count - earned) / (count + 1))
        variation[row] += (reward - guess) ** 2
        rest[row] += (1.0 - reward - other) ** 2
        settled[row] += 1
        total[row] += reward

    # ---- to look at

    def of(self, row: int) -> dict[str, Any]:
        """What is known of one action."""
        if row >= len(self._arrays["plays"]) or not self._arrays["plays"][row]:
            rewarded = int(self._arrays["rewarded"][row]) if row < len(self._arrays["rewarded"]) else 0
            return {"plays": 0, "rewarded": rewarded, "total": 0.0, "last": None}
        found = {name: self._arrays[name][row].item() for name in ("plays", "rewarded", "total", "last")}
        return found | {"last": float(found["last"])}

    def interval(self, row: int) -> ValueInterval:
        """The rewards in [0, 1] of its plays whose waiting time is over."""
        made = ValueInterval()
        if row < len(self._arrays["plays"]):
            count, total, variation, rest = (
                self._arrays[name][row].item() for name in ("settled", "sum", "variation", "rest")
            )
            made.value.count = made.rest.count = count
            made.value.total, made.value.variation = total, variation
            made.rest.total, made.rest.variation = count - total, rest
        return made

    def played(self) -> Ints:
        """How often, of those that were played."""
        plays = self._arrays["plays"]
        return plays[plays > 0].astype(np.int64)

    def most_played(self, number: int) -> list[int]:
        """The rows of the most played actions, the most played first."""
        plays = self._arrays["plays"]
        rows = np.flatnonzero(plays)
        if len(rows) > number:
            rows = rows[np.argpartition(plays[rows], -number)[-number:]]
        found: list[int] = rows[np.lexsort((rows, -plays[rows].astype(np.int64)))].tolist()
        return found


def concentration(played: Ints, alive: int | None) -> dict[str, Any]:
    """How plays spread over a catalogue: distinct actions, and the share of plays of its most played 1 % and 10 %."""
    distinct, plays = len(played), int(played.sum())
    found: dict[str, Any] = {"alive": alive, "played": distinct, "plays": plays}
    found["share"] = min(1.0, distinct / alive) if alive else None
    down = np.sort(played)[::-1]
    for name, part in (("top_1", 0.01), ("top_10", 0.1)):
        number = max(1, round(part * alive)) if alive else 0
        found[name] = float(down[:number].sum() / plays) if plays and number else None
    return found


__all__ = ["ActionCounts", "concentration"]
