"""A catalogue whose actions all have slots from the start: slot a is action a, and no table says so."""

from __future__ import annotations

import numpy as np

from manyarms._base.typing import Array, Ints
from manyarms.beliefs.actions.catalogue import ActionCatalogue
from manyarms.logs.actions import Actions


class AllPlayed(ActionCatalogue):
    """Actions that are known through features of their own, so that none waits to be played."""

    def __init__(self, actions: int) -> None:
        super().__init__(actions, None, distinct=False)
        self.units.counts[0] = 0  # no unplayed action is left
        self.played.extend(np.arange(self.size))

    @property
    def barred(self) -> Ints:
        barred = self._barred
        if barred is None:
            barred = self._barred = self.retired_ids()
        return barred

    def play(self, action: int) -> tuple[int, bool]:
        return action, False

    def play_all(self, ids: Ints) -> tuple[Ints, Ints]:
        return ids, ids[:0]

    def add(self, number: int, features: Array | None, names: Actions | None = None) -> Ints:
        new = np.arange(self.size, self.size + number)
        self.size += number
        self.names = names
        self.played.extend(new)
        return new

    def slot(self, action: int) -> int:
        return action

    def slots(self, ids: Ints) -> Ints:
        return ids

    def _bar(self, ids: Ints, gone: int) -> Ints:
        self._barred = None
        return ids[:0]


__all__ = ["AllPlayed"]
