"""Discounting at work: rows lose their weight by the clock, the prior does not.

With weights w_s = exp(-rate (t - t_s)) the belief at time t is that of sums G_a = sum w_s x x^T / sigma^2, B_a = sum w_s r x /
sigma^2. All of them shrink together, and with them what every action tells the root: that is worked off in epochs, for all
played actions at once. Within an epoch that began at t_0 a new row gets the weight exp(rate (t - t_0)) >= 1, so that rows are
right among each other, and only the common factor exp(-rate (t - t_0)) >= 1 - lag is still to come. An epoch's end multiplies
the sums by it, and computes S_a, c_a and the root anew from them: nothing is taken back from a factor, and no error is carried
on from epoch to epoch.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from manyarms._base.typing import AnyArray, Array, Ints, Spec
from manyarms.beliefs import correcting, saved_state
from manyarms.beliefs.drift import expiry, renewal
from manyarms.beliefs.drift.clock import Clock
from manyarms.beliefs.drift.memory import Memory, in_order, rounds_of
from manyarms.errors import StorageError

if TYPE_CHECKING:
    from manyarms.beliefs.belief import Belief
    from manyarms.beliefs.correcting import Corrections
    from manyarms.beliefs.drift.settings import Discount

SMALLEST = 1e-30  # of a common factor: what is multiplied by it is gone
TOGETHER = 1 << 15  # rows of one call that are learned in one piece, at most


class DiscountMemory(Memory):
    """The clock, and when the last epoch began."""

    def __init__(self, discount: Discount, belief: Belief) -> None:
        renewal.check(belief, "Discount")
        self.discount, self.clock = discount, Clock(discount.clock == "rounds")
        self._since = 0.0
        self._lasts: dict[int, float] = {}  # by action, the time of its last row
        self._longest = -math.log1p(-discount.lag) / discount.rate  # an epoch

    @property
    def horizon(self) -> float | None:
        return rounds_of(self.discount.rate, self.clock.gap)

    @property
    def how(self) -> Discount:
        return self.discount

    @property
    def settings(self) -> Spec:
        return {"kind": "discount", **self.discount.options()}

    def learn(self, belief: Belief, X: Array, actions: Ints, rewards: Array, times: Array) -> None:
        if not self.clock.rows:
            self._since = float(times.min())
        order = in_order(times)
        start = 0
        while start < len(order):
            first = float(times[order[start]])
            self._renew(belief, first)
            # all that falls into this epoch
            stop = int(np.searchsorted(times[order], self._since + self._longest, side="right"))
            some = order[start : max(start + 1, min(stop, start + TOGETHER))]
            roots = np.exp(self.discount.rate * np.minimum(times[some] - self._since, self._longest) / 2)
            belief.learn(X[some] * roots[:, None], actions[some], rewards[some] * roots)
            start += len(some)
            for i in some.tolist():
                self._lasts[int(actions[i])] = float(times[i])
        self.clock.advance(times)
        self._renew(belief, self.clock.now)

    def _renew(self, belief: Belief, time: float) -> None:
        """Work the discount off, if it has grown."""
        if time - self._since <= self._longest:
            return
        factor = math.exp(-min(self.discount.rate * (time - self._since), 600.0))
        leaves = belief.leaves
        self._since = time
        slots = np.arange(len(leaves.counts))
        if factor < SMALLEST:
            factor = 0.0
        renewal.renew(belief, slots, factor * leaves.G.rows, factor * leaves.B.rows)
        if belief.per_action and self.discount.tolerance:
            gone = expiry.forgotten(belief.root, leaves, slots, self.discount.tolerance)
            for action in leaves.catalogue.played.rows[gone].tolist():
                self._lasts.pop(action, None)
            leaves.release(gone)
        renewal.renew_root(belief)

    def correct(self, belief: Belief, rows: Corrections, times: Array | None) -> None:
        X, actions, was, now = rows
        slots = belief.leaves.catalogue.slots(actions)
        there = np.flatnonzero(slots >= 0)  # the others have been forgotten
        if times is None:  # the last row of each action is meant
            times = np.array([self._lasts.get(action, self._since) for action in actions.tolist()])
        most = self.discount.rate * self._longest
        weights = np.exp(np.clip(self.discount.rate * (times - self._since), -600.0, most))
        changes = weights * (now - was) / renewal.noise_variance(belief)
        if len(there):
            correcting.correct_sums(belief.root, belief.leaves, slots[there], X[there], changes[there])
            belief.screen.changed(actions[there])

    def pass_to(self, belief: Belief, time: float) -> None:
        super().pass_to(belief, time)
        self._renew(belief, self.clock.now)

    def arrays(self) -> dict[str, AnyArray]:
        actions = sorted(self._lasts)
        lasts = np.array([self._lasts[action] for action in actions])
        told = {"discount": np.array([self._since]), "actions": np.array(actions, dtype=np.int64), "lasts": lasts}
        return {**super().arrays(), **told}

    def restore(self, arrays: dict[str, AnyArray], dim: int) -> None:
        super().restore(arrays, dim)
        told = arrays["discount"]
        if told.shape != (1,) or told.dtype != np.float64 or not np.isfinite(told).all():
            raise StorageError("memory.discount is not a time")
        self._since = float(told[0])
        number = len(arrays["actions"])
        actions = saved_state.table(arrays, "actions", (number,), np.int64)
        lasts = saved_state.table(arrays, "lasts", (number,))
        self._lasts = dict(zip(actions.tolist(), lasts.tolist(), strict=True))


__all__ = ["DiscountMemory"]
