"""The model of drift at work: rows are learned in the order of their times by leaves that wander (leaves.py).

Actions that are known no better than by their prior any more go back to those that nobody has played (expiry.py), so that a
decision costs what was played lately, not what was ever played.

**Likelihoods that are not exact** are expanded row by row: with x^T theta ~ N(mu, V) before the row, root and leaf together,
the mode u of N(u; mu, V) p(r | u) is found, and the row stands for a linear one with variance 1 / g'(u) and the value u + (r -
g(u)) / g'(u). This is Laplace's approximation, one row at a time: earlier rows are not looked at again.

**A root that drifts.** Its evidence came from the past. What is known of it relaxes towards its prior (roots.py, `relax`), in
steps of one per cent: an approximation, since past rows are taken as weaker rows about the present root.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, cast

import numpy as np

from manyarms._base.typing import AnyArray, Array, Ints, Spec
from manyarms.beliefs import limits
from manyarms.beliefs.drift import expiry, predicting
from manyarms.beliefs.drift.clock import Clock
from manyarms.beliefs.drift.filtering import Row, Told
from manyarms.beliefs.drift.leaves import DriftingLeaves, Exchange
from manyarms.beliefs.drift.memory import MOST_SIGNAL, Memory, in_order, rounds_of
from manyarms.beliefs.roots import GaussianRoot
from manyarms.errors import InvalidInput, StorageError

if TYPE_CHECKING:
    from manyarms.beliefs.belief import Belief
    from manyarms.beliefs.correcting import Corrections
    from manyarms.beliefs.drift.settings import Drift

ROOT_STEP = 0.01  # how much of the root's evidence is forgotten at a time
FORGOTTEN = 1e-12  # of a row's evidence about the root: nothing is left of it
FEWEST = 256  # rows, at least, from one look for forgotten actions to the next


class DriftMemory(Memory):
    """The clock of leaves that wander, and what is forgotten on the way."""

    ages = True

    def __init__(self, drift: Drift, belief: Belief) -> None:
        if drift.root_rate and not (belief.root.known or isinstance(belief.root, GaussianRoot)):
            raise InvalidInput("root_half_life", drift.root_half_life, f"none with a {type(belief.root).__name__}")
        limits.check_noise(belief.root, belief.leaves, belief.likelihood.noise_variance, MOST_SIGNAL)
        self.drift, self.clock = drift, Clock(drift.clock == "rounds")
        self._root_time = 0.0  # up to which the root has been relaxed
        self._unseen = 0  # rows since forgotten actions were last looked for
        leaves = cast(DriftingLeaves, belief.leaves)
        leaves.rate, leaves.keep, leaves.known = drift.rate, drift.kept, belief.known

    @property
    def horizon(self) -> float | None:
        return rounds_of(self.drift.rate, self.clock.gap)

    @property
    def how(self) -> Drift:
        return self.drift

    @property
    def settings(self) -> Spec:
        return {"kind": "drift", **self.drift.options()}

    # ---- learning -----------------------------------------------------------------------------------------------------

    def learn(
        self, belief: Belief, X: Array, actions: Ints, rewards: Array, times: Array, scores: Array | None = None
    ) -> None:
        """scores (n,): where the log density of each reward given the rows before it is written, of rows in order."""
        leaves = cast(DriftingLeaves, belief.leaves)
        likelihood, mixing = belief.likelihood, leaves.mixing
        if not self.clock.rows:
            self._root_time = float(times.min())
        for i in in_order(times).tolist():
            x, action, value, noise = X[i], int(actions[i]), float(rewards[i]), likelihood.noise_variance
            leaves.now = float(times[i])
            if self.drift.root_rate:
                self._relax(belief, leaves.now)
            if noise is None:
                seen = predicting.expanded(likelihood, value, *self._moments(belief, x, action))
                if scores is not None:
                    scores[i] = seen.log_density(likelihood)
                value, noise = seen.linear(likelihood)
            told = leaves.learn_row(action, Row(leaves.now, x, value, noise))
            if scores is not None and likelihood.exact and isinstance(told, Told):
                scores[i] = predicting.log_density(belief.root, mixing.lift(action, told.towards), told)
            self._tell(belief, action, told, leaves.now)
        self.clock.advance(times)
        leaves.now = self.clock.now
        self._unseen += len(actions)
        if self._unseen >= max(FEWEST, len(leaves.counts) // 4):
            self._unseen = 0
            self._let_go(belief)

    def _tell(self, belief: Belief, action: int, told: Told | Exchange, time: float) -> None:
        """Tell the root, unless it is known, of a row of this time: as much of it as would be left by now."""
        root, mixing = belief.root, belief.leaves.mixing
        left = float(np.exp(-self.drift.root_rate * max(0.0, self._root_time - time)))
        if root.known or left < FORGOTTEN:
            return
        if isinstance(told, Told):
            root.observe(mixing.lift(action, told.towards), told.variance / left, told.value)
            return
        ids, D, e = np.array([action]), left * told.precision[None], left * told.information[None]
        if told.precision.any():
            gathered = mixing.gather(ids, D, e) if root.parts == 1 else mixing.gather_parts(ids, D, e, root.parts)
            root.exchange(*gathered)
        else:
            root.inform(mixing.lift(action, e[0]))

    def _relax(self, belief: Belief, time: float) -> None:
        left = float(np.exp(-self.drift.root_rate * max(0.0, time - self._root_time)))
        if left <= 1 - ROOT_STEP and isinstance(belief.root, GaussianRoot):
            belief.root.relax(left)
            self._root_time = time

    @staticmethod
    def _moments(belief: Belief, x: Array, action: int) -> tuple[float, float]:
        """Mean and variance of x^T theta_a, now."""
        mean, variance = belief.predictive(x[None], np.array([action]))
        return float(mean[0]), float(variance[0])

    def _let_go(self, belief: Belief) -> None:
        """Actions that are near enough to their prior count as never played."""
        leaves = cast(DriftingLeaves, belief.leaves)
        leaves.forget_rows()
        if not belief.per_action or not self.drift.tolerance:
            return
        old = np.flatnonzero(leaves.decays(None) < expiry.OLD)
        gone = expiry.forgotten(belief.root, leaves, old, self.drift.tolerance)
        if len(gone):
            leaves.release(gone)
            belief.rebuilt()

    def correct(self, belief: Belief, rows: Corrections, times: Array | None) -> None:
        X, actions, was, now = rows
        leaves = cast(DriftingLeaves, belief.leaves)
        noise_variance = (
            belief.likelihood.noise_variance or 1.0
        )  # canonical likelihoods: a reward adds x r to the information
        slots = leaves.catalogue.slots(actions)
        for i, slot in enumerate(slots.tolist()):
            if slot < 0:  # forgotten since
                continue
            last = float(leaves.times.rows[slot])
            time = None if times is None else float(times[i])
            told = leaves.replace_value(slot, X[i], float(now[i] - was[i]), noise_variance, time)
            self._tell(belief, int(actions[i]), told, last if time is None else time)

    # ---- time ---------------------------------------------------------------------------------------------------------

    def pass_to(self, belief: Belief, time: float) -> None:
        super().pass_to(belief, time)
        leaves = cast(DriftingLeaves, belief.leaves)
        leaves.now = self.clock.now
        if self.drift.root_rate:
            self._relax(belief, leaves.now)
        self._unseen = 0
        self._let_go(belief)

    def at(self, belief: Belief, time: float) -> Belief:
        leaves = cast(DriftingLeaves, belief.leaves)
        if time == leaves.now:
            return belief
        view, aged = copy.copy(belief), copy.copy(leaves)
        aged.now = time
        view.leaves = aged
        return view

    # ---- state --------------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, AnyArray]:
        return {**super().arrays(), "drift": np.array([self._root_time, float(self._unseen)])}

    def restore(self, arrays: dict[str, AnyArray], dim: int) -> None:
        super().restore(arrays, dim)
        told = arrays["drift"]
        if told.shape != (2,) or told.dtype != np.float64 or not np.isfinite(told).all() or told[1] < 0:
            raise StorageError("memory.drift is not a time and a count")
        self._root_time, self._unseen = float(told[0]), int(told[1])


__all__ = ["DriftMemory"]
