"""The gain of a policy over the live one, on the live policy's own log: certified at any time.

With w = π(a|x)/p and rewards in [0, 1],

    X = (1 + (w − 1) r)/2 ≥ (1 − r)/2 ≥ 0         has the mean  (1 + V(π) − V(live))/2
    X' = (1 + (w − 1)(1 − r))/2 ≥ r/2 ≥ 0         has the mean  (1 − V(π) + V(live))/2

since w r has the mean V(π), r the mean V(live), and w the mean 1. Both are what `RunningValue` takes. A policy that agrees
with the live one (w = 1) gives X = ½ in every round, without any noise; where the values of both are bounded apart, the
noise of rewards is paid for twice. If the live policy never plays some of π's actions, w has a mean below 1; then both lower
ends are of less than they should be, and stay valid.
"""

from __future__ import annotations

import math
from typing import Self

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.tables import Shown, Table
from manyarms._base.text import counted
from manyarms._base.typing import Spec
from manyarms.sequential import inputs
from manyarms.sequential.confidence_sequence import RunningValue, twins
from manyarms.sequential.ends import ends_table
from manyarms.sequential.mixture import log_mixture


class PairedGain(Shown):
    """Ends, valid at all times, for the running average of V(π) − V(live): promote π once it is `certified`.

    reward_range: the least and the largest reward; the gain is in these units. The module's docstring has the argument.

    >>> gain = PairedGain()
    >>> gain.update([1.8, 0.2, 1.8, 0.2, 1.8] * 100, [1.0, 0.0, 0.0, 0.0, 1.0] * 100)
    >>> gain.certified(0.05), gain.certified(0.05, margin=0.5)
    (True, False)
    """

    def __init__(self, reward_range: tuple[float, float] = (0.0, 1.0), rho: float = 1.0) -> None:
        self.rewards = inputs.RewardRange(reward_range)
        self.better, self.worse = RunningValue(rho), RunningValue(rho)

    @property
    def count(self) -> int:
        """Rounds so far."""
        return self.better.count

    @property
    def mean(self) -> float:
        """The plain estimate of the gain; 0 before the first round."""
        return (2 * self.better.mean - 1) * self.rewards.span if self.count else 0.0

    def update(self, weight: npt.ArrayLike, reward: npt.ArrayLike) -> None:
        """The weight π(a|x)/p of what the live policy played and its reward, of one round or of several in order."""
        w, r = inputs.batch("weight", weight, 0.0), self.rewards.unit("reward", reward)
        inputs.same_length(weight=w, reward=r)
        # (1 − r) + w r and not 1 + (w − 1) r: no sum of parts that are not negative rounds below 0
        better, worse = self.better._after(((1 - r) + w * r) / 2), self.worse._after((r + w * (1 - r)) / 2)
        self.better._commit(*better)
        self.worse._commit(*worse)

    def lower(self, alpha: float = 0.05) -> float:
        """The gain is at least this, at all times at once, with probability 1 − alpha."""
        return (2 * min(1.0, self.better.lower(alpha)) - 1) * self.rewards.span

    def upper(self, alpha: float = 0.05) -> float:
        """The gain is at most this, at all times at once, with probability 1 − alpha."""
        return (1 - 2 * min(1.0, self.worse.lower(alpha))) * self.rewards.span

    def certified(self, alpha: float = 0.05, margin: float = 0.0) -> bool:
        """Is the gain above the margin? True at any time, wrongly, with probability at most alpha. Quicker than `lower`."""
        log_threshold = -math.log(inputs.level(alpha))
        unit = validate.number("margin", margin) / self.rewards.span
        if unit < -1:
            return True
        return unit < 1 and self.better.log_e((1 + unit) / 2) >= log_threshold

    def first_certified(
        self, weight: npt.ArrayLike, reward: npt.ArrayLike, alpha: float = 0.05, margin: float = 0.0
    ) -> int | None:
        """The place, from 0 on, of the first of these rounds with which the gain is `certified`; None: with none.

        Nothing changes: the rounds still have to be taken with `update`.
        """
        w, r = inputs.batch("weight", weight, 0.0), self.rewards.unit("reward", reward)
        inputs.same_length(weight=w, reward=r)
        log_threshold = -math.log(inputs.level(alpha))
        unit = validate.number("margin", margin) / self.rewards.span
        if unit < -1 or unit >= 1:
            return 0 if unit < -1 and len(w) else None
        totals, variations = self.better._after(((1 - r) + w * r) / 2)
        excess = totals - np.arange(self.count + 1, self.count + len(w) + 1) * ((1 + unit) / 2)
        near = np.flatnonzero(excess >= log_threshold)  # ln E is at most the excess
        if not len(near):
            return None
        reached = near[log_mixture(variations[near], excess[near], self.better.rho) >= log_threshold]
        return int(reached[0]) if len(reached) else None

    def spec(self) -> Spec:
        """The state as JSON holds it."""
        parts = {"better": self.better.spec(), "worse": self.worse.spec()}
        return {"kind": "paired_gain", "reward_range": self.rewards.spec(), **parts}

    @classmethod
    def restored(cls, spec: Spec) -> Self:
        """The object that `spec` is of."""
        reward_range, better, worse = inputs.saved(spec, "paired_gain", "reward_range", "better", "worse")
        made = cls(reward_range)
        made.better, made.worse = twins(better, worse)
        return made

    def __repr__(self) -> str:
        return f"PairedGain: {self.mean:+.3g} after {self.count:,} rounds, at least {self.lower(0.05):+.3g} at 5 %"

    def _table(self) -> Table:
        title = f"gain {self.mean:+.4g} after {counted(self.count, 'round')}, at all times at once"
        return ends_table(title, self.lower, self.upper)


__all__ = ["PairedGain"]
