"""The lift of treated traffic over a permanent hold-out, at any time.

Each round is held out with a known probability h, by a coin that knows nothing of the round. Z = 1 if it was. For any guess
c of the reward that is made beforehand,

    D = (r − c) ((1−Z)/(1−h) − Z/h)       has the mean  T − H,  the value of the treatment less that of the hold-out

because the weights of c have the mean 0. D has the least noise near c = (1−h)H + hT; here c is the running mean of all
rewards, which costs nothing and is as good as long as the lift is small beside the spread of rewards. Let m = min(h, 1−h).
As |r − c| ≤ 1,

    1 + m D ≥ 0   has the mean  1 + m (T − H),            1 − m D ≥ 0   has the mean  1 − m (T − H)

so that `RunningValue` bounds the running average of T − H from both sides, though values drift and both policies learn. With
c = 0 these are inverse propensity weights, whose noise is that of the whole reward; an interval for each arm pays for two
(docs/anytime.md compares them).
"""

from __future__ import annotations

from typing import Self

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.tables import Shown, Table
from manyarms._base.text import counted
from manyarms._base.typing import Spec
from manyarms.errors import InvalidInput
from manyarms.sequential import inputs
from manyarms.sequential.confidence_sequence import FIRST_GUESS, RunningValue, twins
from manyarms.sequential.ends import ends_table

LEAST_SHARE = 1e-6


class Lift(Shown):
    """An interval, valid at all times, for the running average of the lift of treated traffic over a hold-out.

    share: the probability of being held out. reward_range: the least and the largest reward; the lift is in these units.

    >>> lift = Lift(share=0.5)
    >>> lift.update([True, False] * 500, [0.0, 1.0] * 500)
    >>> [round(end, 2) for end in lift.interval(0.05)]
    [0.88, 1.0]
    """

    def __init__(self, share: float, reward_range: tuple[float, float] = (0.0, 1.0), rho: float = 1.0) -> None:
        self.share = validate.number("share", share, above=0, below=1)
        self.scale = min(self.share, 1 - self.share)
        if self.scale < LEAST_SHARE:
            raise InvalidInput(
                "share", validate.describe(share), f"a number from {LEAST_SHARE:g} to 1 - {LEAST_SHARE:g}"
            )
        self.rewards = inputs.RewardRange(reward_range)
        self.total = 0.0  # of rewards, on the scale of [0, 1]
        self.above, self.below = RunningValue(rho), RunningValue(rho)

    @property
    def count(self) -> int:
        """Rounds so far."""
        return self.above.count

    @property
    def mean(self) -> float:
        """The plain estimate of the lift; 0 before the first round."""
        return (self.above.mean - 1) / self.scale * self.rewards.span if self.count else 0.0

    def update(self, held_out: npt.ArrayLike, reward: npt.ArrayLike) -> None:
        """Whether a round was held out, and its reward; of one round or of several in order."""
        out, r = inputs.flags("held_out", held_out), self.rewards.unit("reward", reward)
        inputs.same_length(held_out=out, reward=r)
        totals = np.add.accumulate(np.concatenate(([self.total], r)))
        rounds = np.arange(self.count + 1, self.count + len(r) + 1, dtype=np.float64)
        guesses = np.minimum(1.0, (FIRST_GUESS + totals[:-1]) / rounds)
        sides = np.where(out, -(self.scale / self.share), self.scale / (1 - self.share))
        parts = (r - guesses) * sides  # m D, in [−1, 1]
        above, below = self.above._after(1 + parts), self.below._after(1 - parts)
        self.total = float(totals[-1])
        self.above._commit(*above)
        self.below._commit(*below)

    def lower(self, alpha: float = 0.05) -> float:
        """The lift is at least this, at all times at once, with probability 1 − alpha."""
        return max(-1.0, (self.above.lower(alpha) - 1) / self.scale) * self.rewards.span

    def upper(self, alpha: float = 0.05) -> float:
        """The lift is at most this, at all times at once, with probability 1 − alpha."""
        return min(1.0, (1 - self.below.lower(alpha)) / self.scale) * self.rewards.span

    def interval(self, alpha: float = 0.05) -> tuple[float, float]:
        """Both ends, each at half of alpha."""
        alpha = inputs.level(alpha)
        return self.lower(alpha / 2), self.upper(alpha / 2)

    def spec(self) -> Spec:
        """The state as JSON holds it."""
        parts: Spec = {"total": self.total, "above": self.above.spec(), "below": self.below.spec()}
        return {"kind": "lift", "share": self.share, "reward_range": self.rewards.spec(), **parts}

    @classmethod
    def restored(cls, spec: Spec) -> Self:
        """The object that `spec` is of."""
        names = ("share", "reward_range", "total", "above", "below")
        share, reward_range, total, above, below = inputs.saved(spec, "lift", *names)
        made = cls(share, reward_range)
        made.above, made.below = twins(above, below)
        made.total = validate.number("spec", total, least=0, most=made.count)
        return made

    def __repr__(self) -> str:
        low, high = self.interval(0.05)
        return f"Lift: {self.mean:+.3g} after {self.count:,} rounds, from {low:+.3g} to {high:+.3g} at 5 %"

    def _table(self) -> Table:
        title = f"lift {self.mean:+.4g} after {counted(self.count, 'round')}, at all times at once"
        return ends_table(title, self.lower, self.upper)


__all__ = ["Lift"]
