"""Intervals for the value of a policy that hold at all times at once, on a log whose policy learns and drifts.

**The statement.** X_t ≥ 0 is one number a round, such as w_t r_t with w = π(a|x)/p for the propensity p that was logged at
that moment, and μ_t = E[X_t | everything before round t]. Nothing else is assumed: the logging policy may depend on all that
happened, the values μ_t may drift, X has no upper limit. With probability at least 1 − α, for all t at once,

    L_t ≤ (μ_1 + … + μ_t)/t

**Why.** Let X̂_t be a guess in [0, 1] that is made before round t, and y = X_t − X̂_t ≥ −1. For λ in [0, 1) and ψ(λ) =
−ln(1−λ) − λ, exp(λy − ψ(λ)y²) ≤ 1 + λy (Fan, Grama and Liu, 2015, lemma 4.1). Hence, as X̂_t and μ_t are known beforehand,

    E[exp(λ(X_t − μ_t) − ψ(λ)(X_t − X̂_t)²) | past] ≤ exp(λ(X̂_t − μ_t)) (1 + λ(μ_t − X̂_t)) ≤ 1        (1 + u ≤ e^u)

so that the product over rounds is a supermartingale that starts at 1, for each λ and so for a mixture over λ (`mixture.py`).
By Ville's inequality it ever reaches 1/α with probability at most α. It falls as the mean μ rises; L_t is where it is 1/α.
The cap of the guess at 1 is what y ≥ −1 needs. Karampatziakis, Mineiro and Ramdas, "Off-policy confidence sequences" (2021);
Howard et al. (2021).
"""

from __future__ import annotations

import math
from typing import Self

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.tables import Shown, Table
from manyarms._base.text import counted, number
from manyarms._base.typing import Array, Spec
from manyarms.errors import Contradiction, InvalidInput
from manyarms.sequential import inputs
from manyarms.sequential.ends import ends_table
from manyarms.sequential.mixture import boundary, log_mixture

FIRST_GUESS = 0.5
LEAST_RHO, MOST_RHO = 1e-2, 1e6


class RunningValue(Shown):
    """A lower end, valid at all times, for the running average of the conditional means of numbers X ≥ 0.

        ln E(μ) = s + v + ρ ln ρ − (v+ρ) ln(s+v+ρ) + ln γ(v+ρ, s+v+ρ) − ln γ(ρ, ρ)
        s = ΣX − tμ,    v = Σ(X − X̂)²,    X̂_t = min(1, (½ + Σ_{u<t} X_u)/t)

    Three numbers are kept: t, ΣX and v. rho: at which variation the interval is tightest; small ones favour early rounds. The
    module's docstring has the argument.

    >>> value = RunningValue()
    >>> value.update([0.0, 1.0, 1.0, 0.0, 1.0] * 200)
    >>> round(value.lower(0.05), 3)
    0.545
    >>> value
    RunningValue: mean 0.6 of 1,000 numbers, at least 0.545 at 5 %
    """

    def __init__(self, rho: float = 1.0) -> None:
        self.rho = validate.number("rho", rho, least=LEAST_RHO, most=MOST_RHO)
        self.count = 0
        self.total = 0.0
        self.variation = 0.0

    def update(self, value: npt.ArrayLike) -> None:
        """One number X ≥ 0, or several in the order in which they came."""
        self._commit(*self._after(inputs.batch("value", value, 0.0)))

    def _after(self, values: Array) -> tuple[Array, Array]:
        """ΣX and v after each of the checked numbers, as if they came one by one: sums run in order. Nothing changes."""
        totals = np.add.accumulate(np.concatenate(([self.total], values)))
        rounds = np.arange(self.count + 1, self.count + len(values) + 1, dtype=np.float64)
        gaps = values - np.minimum(1.0, (FIRST_GUESS + totals[:-1]) / rounds)
        variations = np.add.accumulate(np.concatenate(([self.variation], gaps * gaps)))
        return totals[1:], variations[1:]

    def _commit(self, totals: Array, variations: Array) -> None:
        """Take what `_after` gave as the state."""
        if len(totals):
            self.count += len(totals)
            self.total, self.variation = float(totals[-1]), float(variations[-1])

    @property
    def mean(self) -> float:
        """The plain average of the numbers; 0 before the first."""
        return self.total / self.count if self.count else 0.0

    def log_e(self, mean: float) -> float:
        """ln E at a running mean: reaches ln(1/α) at any time with probability at most α, if the mean is at most that one."""
        mean = validate.number("mean", mean, least=0)
        return float(log_mixture(self.variation, self.total - self.count * mean, self.rho))

    def lower(self, alpha: float = 0.05) -> float:
        """The lower end at level 1 − alpha; at all times at once, so that it may be looked at and acted on at any."""
        log_threshold = -math.log(inputs.level(alpha))
        if not self.count:
            return 0.0
        return max(0.0, (self.total - boundary(self.variation, self.rho, log_threshold)) / self.count)

    def spec(self) -> Spec:
        """The state as JSON holds it; `restored` makes the same object of it, to the last bit."""
        return {
            "kind": "running_value",
            "rho": self.rho,
            "count": self.count,
            "total": self.total,
            "variation": self.variation,
        }

    @classmethod
    def restored(cls, spec: Spec) -> Self:
        """The object that `spec` is of."""
        rho, count, total, variation = inputs.saved(spec, "running_value", "rho", "count", "total", "variation")
        made = cls(rho)
        made.count = validate.count("spec", count, least=0)
        made.total = inputs.finite("spec", total)
        made.variation = inputs.finite("spec", variation)
        if not made.count and (made.total or made.variation):
            raise InvalidInput("spec", validate.describe(spec), "sums of 0 where nothing has come yet")
        return made

    def __repr__(self) -> str:
        return f"RunningValue: mean {self.mean:.4g} of {self.count:,} numbers, at least {self.lower(0.05):.3g} at 5 %"

    def _table(self) -> Table:
        return ends_table(f"mean {number(self.mean)} of {counted(self.count, 'number')}", self.lower)


class ValueInterval(Shown):
    """An interval, valid at all times, for the running average of the values of a policy on a live log.

    Two `RunningValue`, each at α/2: w·r has the mean V, and w·(1−r) the mean 1 − V, as weights have the mean 1. So

        L_t(w·r)  ≤  (V_1 + … + V_t)/t  ≤  1 − L_t(w·(1−r))

    If the logging policy never plays some of the policy's actions, weights have a mean below 1, both lower ends are of less
    than they should be, and the interval is still valid. Propensities must be exact: estimated ones make weights with
    another mean.

    reward_range: the least and the largest reward; ends are in these units.

    >>> interval = ValueInterval()
    >>> interval.update([2.0, 0.0, 2.0, 0.0] * 500, [1.0, 0.0, 0.0, 1.0] * 500)
    >>> [round(end, 2) for end in interval.interval(0.05)]
    [0.43, 0.57]
    """

    def __init__(self, reward_range: tuple[float, float] = (0.0, 1.0), rho: float = 1.0) -> None:
        self.rewards = inputs.RewardRange(reward_range)
        self.value, self.rest = RunningValue(rho), RunningValue(rho)

    @property
    def count(self) -> int:
        """Rounds so far."""
        return self.value.count

    def update(self, weight: npt.ArrayLike, reward: npt.ArrayLike) -> None:
        """The weight π(a|x)/p of what was played and its reward, of one round or of several in order."""
        w, r = inputs.batch("weight", weight, 0.0), self.rewards.unit("reward", reward)
        inputs.same_length(weight=w, reward=r)
        value, rest = self.value._after(w * r), self.rest._after(w * (1 - r))
        self.value._commit(*value)
        self.rest._commit(*rest)

    def interval(self, alpha: float = 0.05) -> tuple[float, float]:
        """The ends, inside the range of rewards. Ends that cross are an error: then weights have another mean than 1."""
        alpha = inputs.level(alpha)
        low, high = self.value.lower(alpha / 2), 1 - self.rest.lower(alpha / 2)
        low, high = min(low, 1.0), max(high, 0.0)
        if low > high:
            raise Contradiction(
                f"a value of at least {self._scaled(low):.4g} and at most {self._scaled(high):.4g}", alpha
            )
        return self._scaled(low), self._scaled(high)

    def lower(self, alpha: float = 0.05) -> float:
        """The lower end alone, which may spend all of alpha."""
        return self._scaled(min(1.0, self.value.lower(alpha)))

    def upper(self, alpha: float = 0.05) -> float:
        """The upper end alone, which may spend all of alpha."""
        return self._scaled(1 - min(1.0, self.rest.lower(alpha)))

    def _scaled(self, unit: float) -> float:
        return self.rewards.least + self.rewards.span * unit

    def spec(self) -> Spec:
        """The state as JSON holds it."""
        parts = {"value": self.value.spec(), "rest": self.rest.spec()}
        return {"kind": "value_interval", "reward_range": self.rewards.spec(), **parts}

    @classmethod
    def restored(cls, spec: Spec) -> Self:
        """The object that `spec` is of."""
        reward_range, value, rest = inputs.saved(spec, "value_interval", "reward_range", "value", "rest")
        made = cls(reward_range)
        made.value, made.rest = twins(value, rest)
        return made

    def __repr__(self) -> str:
        ends = f"at least {self.lower(0.025):.3g}, at most {self.upper(0.025):.3g} at 5 %"
        return f"ValueInterval: {self.count:,} rounds, {ends}"

    def _table(self) -> Table:
        return ends_table(
            f"the value after {counted(self.count, 'round')}, at all times at once", self.lower, self.upper
        )


def twins(first: Spec, second: Spec) -> tuple[RunningValue, RunningValue]:
    """Two restored statistics of the same rounds."""
    one, other = RunningValue.restored(first), RunningValue.restored(second)
    if (one.count, one.rho) != (other.count, other.rho):
        raise InvalidInput("spec", f"{one.count} and {other.count} rounds", "two sides of the same rounds")
    return one, other


__all__ = ["RunningValue", "ValueInterval", "twins"]
