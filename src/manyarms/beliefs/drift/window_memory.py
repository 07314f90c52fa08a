"""A sliding window at work: its rows are kept, and those that have left it leave the sums.

The window's beginning moves in steps, multiples of length / steps. When it moves, the sums of every action that loses rows are
made anew from the rows that it has left, and so is the root from what all actions tell: the belief is that of a fold over the
window's rows, whatever came and went before. Actions without rows left count as never played.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from manyarms._base.typing import AnyArray, Array, Ints, Spec
from manyarms.beliefs import correcting, saved_state
from manyarms.beliefs.drift import renewal
from manyarms.beliefs.drift.clock import Clock
from manyarms.beliefs.drift.memory import Memory, in_order
from manyarms.beliefs.growable import GrowableArray
from manyarms.errors import StorageError

if TYPE_CHECKING:
    from manyarms.beliefs.belief import Belief
    from manyarms.beliefs.correcting import Corrections
    from manyarms.beliefs.drift.settings import SlidingWindow


class WindowMemory(Memory):
    """The clock, and the rows of the window in the order in which they were learned."""

    def __init__(self, window: SlidingWindow, belief: Belief) -> None:
        renewal.check(belief, "SlidingWindow")
        self.window, self.clock = window, Clock(window.clock == "rounds")
        self._make_tables(belief.dim)

    def _make_tables(self, dim: int) -> None:
        self._X, self._actions = GrowableArray((dim,)), GrowableArray((), np.int64)
        self._rewards, self._times = GrowableArray(()), GrowableArray(())

    @property
    def horizon(self) -> float | None:
        gap = self.clock.gap
        return None if gap is None else self.window.step * self.window.steps / gap

    @property
    def how(self) -> SlidingWindow:
        return self.window

    @property
    def settings(self) -> Spec:
        return {"kind": "window", **self.window.options()}

    @property
    def rows(self) -> int:
        """How many rows the window holds."""
        return len(self._times)

    # ---- learning -----------------------------------------------------------------------------------------------------

    def _begins(self, time: float) -> float:
        """The window's beginning at a time: what is earlier has left it."""
        return (math.floor(time / self.window.step) - self.window.steps) * self.window.step

    def learn(self, belief: Belief, X: Array, actions: Ints, rewards: Array, times: Array) -> None:
        order = in_order(times)
        ends = self.clock.later(float(times.max()) + (1.0 if self.clock.counts else 0.0))
        fits = order[times[order] >= self._begins(ends)]  # what would leave at once never comes
        self._leave(belief, ends)
        if len(fits):
            belief.learn(X[fits], actions[fits], rewards[fits])
            self._X.extend(X[fits])
            self._actions.extend(actions[fits])
            self._rewards.extend(rewards[fits])
            self._times.extend(times[fits])
        self.clock.advance(times)

    def _leave(self, belief: Belief, time: float) -> None:
        """Rows that are too old at that time leave the belief."""
        times = self._times.rows
        stays = times >= self._begins(time)
        if stays.all():
            return
        touched = np.unique(self._actions.rows[~stays])
        keep = np.flatnonzero(stays)
        for table in (self._X, self._actions, self._rewards, self._times):
            table.keep(keep)
        leaves, noise_variance = belief.leaves, renewal.noise_variance(belief)
        slots = leaves.catalogue.slots(touched)
        G, B, counts = self._sums(touched, leaves.packing.size)
        left = counts > 0
        renewal.renew(belief, slots, G / noise_variance, B / noise_variance)
        leaves.counts.rows[slots] = counts
        if belief.per_action:
            leaves.release(slots[~left])
        renewal.renew_root(belief)

    def _sums(self, touched: Ints, size: int) -> tuple[Array, Array, Ints]:
        """Sums of x x^T (packed), of r x, and the number of the rows that these actions have left."""
        places = np.searchsorted(touched, self._actions.rows)
        places = np.minimum(places, len(touched) - 1)
        mine = np.flatnonzero(touched[places] == self._actions.rows)
        X, r, labels = self._X.rows[mine], self._rewards.rows[mine], places[mine]
        dim = X.shape[1]
        rows, columns = np.triu_indices(dim)
        G, B = np.zeros((len(touched), size)), np.zeros((len(touched), dim))
        for k in range(size):
            G[:, k] = np.bincount(labels, X[:, rows[k]] * X[:, columns[k]], len(touched))
        for k in range(dim):
            B[:, k] = np.bincount(labels, r * X[:, k], len(touched))
        return G, B, np.bincount(labels, minlength=len(touched))

    def correct(self, belief: Belief, rows: Corrections, times: Array | None) -> None:
        X, actions, was, now = rows
        when = [None] * len(X) if times is None else times.tolist()
        changed = [i for i in range(len(X)) if self._replace(X[i], actions[i], was[i], now[i], when[i])]
        if not changed:
            return
        slots = belief.leaves.catalogue.slots(actions[changed])
        change = (now - was)[changed] / renewal.noise_variance(belief)
        correcting.correct_sums(belief.root, belief.leaves, slots, X[changed], change)
        belief.screen.changed(actions[changed])

    def _replace(self, x: Array, action: int, was: float, now: float, time: float | None) -> bool:
        """Replace the reward of the last row like this; whether there is one, which has not left yet."""
        like = np.flatnonzero((self._actions.rows == action) & (self._rewards.rows == was))
        if time is not None:
            like = like[self._times.rows[like] == time]
        like = like[(self._X.rows[like] == x).all(axis=1)]
        if not len(like):
            return False
        self._rewards.rows[like[-1]] = now
        return True

    def pass_to(self, belief: Belief, time: float) -> None:
        super().pass_to(belief, time)
        self._leave(belief, self.clock.now)

    # ---- state --------------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, AnyArray]:
        tables = {"X": self._X.rows, "actions": self._actions.rows, "rewards": self._rewards.rows}
        return {**super().arrays(), **tables, "times": self._times.rows}

    def restore(self, arrays: dict[str, AnyArray], dim: int) -> None:
        super().restore(arrays, dim)
        number = len(arrays["times"])
        if len(saved_state.table(arrays, "actions", (number,), np.int64)) and arrays["actions"].min() < 0:
            raise StorageError("the window has actions below 0")
        self._make_tables(dim)
        self._X.extend(saved_state.table(arrays, "X", (number, dim)))
        self._actions.extend(arrays["actions"])
        self._rewards.extend(saved_state.table(arrays, "rewards", (number,)))
        self._times.extend(saved_state.table(arrays, "times", (number,)))

    @property
    def nbytes(self) -> int:
        return sum(table.nbytes for table in (self._X, self._actions, self._rewards, self._times))


__all__ = ["WindowMemory"]
