"""Are the logged propensities those of the policy that acts? An alarm with a stated rate of error, from the log alone.

For every policy that is fixed before the action is drawn, weights have the mean 1. Take the deterministic one that plays the
greedy action g, whatever that is at the moment:

    w = 1{a = g}/p(a)         has the mean  P(a = g)/p(g):  1 if the propensity is right

- *Too small* propensities make it larger than 1. ln E(1) of a `RunningValue` of w reaches ln(1/α) with probability at most α
  at any time if they are right, and soon if not. (If g can be impossible, the mean is below 1, and the statement holds all
  the more.)
- *Too large* ones make it smaller than 1. Weights up to w_max = 1/(least propensity of the greedy action) are needed to see
  it: (w_max − w)/(w_max − 1) ≥ 0 has the mean 1 if w has, and a larger one if w has a smaller one.

A uniform policy in place of the greedy one would not see the usual mistake, 1/n logged under a rule that is nearly greedy:
all its weights are 1.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.tables import Shown, Table
from manyarms._base.text import counted, number
from manyarms._base.typing import Array, Spec
from manyarms.errors import InvalidInput
from manyarms.sequential import inputs
from manyarms.sequential.confidence_sequence import RunningValue
from manyarms.sequential.mixture import log_mixture

SMALLEST_PROPENSITY = 1e-50  # squares of weights are summed
LARGEST_PROPENSITY = 1 - 1e-9  # of the least one: nothing can be larger than 1
SIDES = ("too small", "too large")


class PropensityAlarm(NamedTuple):
    """What is wrong with the propensities, "too small" or "too large", and in which round (from 1 on) it was certain."""

    side: str
    round: int


class PropensityCheck(Shown):
    """An alarm when logged propensities are not those of the acting policy; a false one, ever, with probability at most alpha.

    least_propensity: what the greedy action has at least, if it is known (1 − ε of an ε-greedy rule, ε/m of a mixture with a
    uniform one); with it, too large propensities are looked for as well, and each side spends half of alpha.

    >>> check = PropensityCheck(alpha=0.001)
    >>> check.update(propensity=[0.1] * 100, greedy=[True] * 100)  # 1/10 logged, and always the greedy one played
    >>> check.alarm
    PropensityAlarm(side='too small', round=23)
    """

    def __init__(self, alpha: float = 0.001, least_propensity: float | None = None, rho: float = 1.0) -> None:
        self.alpha = inputs.level(alpha)
        self.least_propensity = None
        if least_propensity is not None:
            self.least_propensity = validate.number(
                "least_propensity", least_propensity, least=SMALLEST_PROPENSITY, most=LARGEST_PROPENSITY
            )
        self.small, self.large = RunningValue(rho), RunningValue(rho)
        self.alarm: PropensityAlarm | None = None

    @property
    def count(self) -> int:
        """Rounds so far."""
        return self.small.count

    @property
    def log_threshold(self) -> float:
        """ln E at which a side gives the alarm."""
        return -math.log(self.alpha if self.least_propensity is None else self.alpha / 2)

    def update(self, propensity: npt.ArrayLike, greedy: npt.ArrayLike) -> None:
        """The logged propensity of what was played, and whether that was the greedy action; one round, or several in order."""
        p = inputs.batch("propensity", propensity, SMALLEST_PROPENSITY, 1.0)
        played = inputs.flags("greedy", greedy)
        inputs.same_length(propensity=p, greedy=played)
        w = np.where(played, 1 / p, 0.0)
        small, large = self.small._after(w), None
        if self.least_propensity is not None:
            if len(p) and p[played].min(initial=1.0) < self.least_propensity:
                came = f"{p[played].min()} of the greedy action"
                raise InvalidInput("propensity", came, f"at least the declared {self.least_propensity:g}")
            most = 1 / self.least_propensity
            large = self.large._after((most - w) / (most - 1))
        found = [self._crossed(*small, SIDES[0])]
        self.small._commit(*small)
        if large is not None:
            found.append(self._crossed(*large, SIDES[1]))
            self.large._commit(*large)
        if self.alarm is None:
            self.alarm = min((one for one in found if one is not None), key=lambda one: one.round, default=None)

    def _crossed(self, totals: Array, variations: Array, side: str) -> PropensityAlarm | None:
        """The first of the new rounds in which a side's mixture at the mean 1 is above the threshold."""
        before = self.small.count if side == SIDES[0] else self.large.count
        rounds = np.arange(before + 1, before + len(totals) + 1)
        excess = totals - rounds
        near = np.flatnonzero(excess >= self.log_threshold)  # ln E is at most the excess
        reached = near[log_mixture(variations[near], excess[near], self.small.rho) >= self.log_threshold]
        return PropensityAlarm(side, int(rounds[reached[0]])) if len(reached) else None

    @property
    def log_e(self) -> float:
        """The larger of the sides' ln E as they stand now."""
        small = self.small.log_e(1.0)
        return small if self.least_propensity is None else max(small, self.large.log_e(1.0))

    def spec(self) -> Spec:
        """The state as JSON holds it."""
        parts = {"small": self.small.spec(), "large": self.large.spec()}
        alarm: list[str | int] | None = None if self.alarm is None else [*self.alarm]
        declared = {"alpha": self.alpha, "least_propensity": self.least_propensity}
        return {"kind": "propensity_check", **declared, **parts, "alarm": alarm}

    @classmethod
    def restored(cls, spec: Spec) -> Self:
        """The object that `spec` is of."""
        names = ("alpha", "least_propensity", "small", "large", "alarm")
        alpha, least, small, large, alarm = inputs.saved(spec, "propensity_check", *names)
        made = cls(alpha, least)
        made.small, made.large = RunningValue.restored(small), RunningValue.restored(large)
        if made.large.count != (0 if least is None else made.small.count) or made.large.rho != made.small.rho:
            raise InvalidInput("spec", validate.describe(spec), "two sides of the same rounds")
        if alarm is not None:
            if not isinstance(alarm, list | tuple) or len(alarm) != 2:
                raise InvalidInput("spec", validate.describe(alarm), "an alarm: its side and its round")
            side = validate.one_of("spec", alarm[0], SIDES)
            made.alarm = PropensityAlarm(side, validate.count("spec", alarm[1], most=max(1, made.count)))
        return made

    def __repr__(self) -> str:
        said = "no alarm" if self.alarm is None else f"{self.alarm.side} since round {self.alarm.round:,}"
        return f"PropensityCheck: {self.count:,} rounds, mean weight {self.small.mean:.4g}, {said}"

    def _table(self) -> Table:
        said = (
            "no alarm"
            if self.alarm is None
            else f"propensities are {self.alarm.side}, certain in round {self.alarm.round:,}"
        )
        return Table(
            f"propensities of {counted(self.count, 'round')}: {said}",
            rows=[
                ("mean weight of the greedy action", f"{number(self.small.mean)}, at most 1 if all is well"),
                ("evidence", f"{number(self.log_e)}, alarm at {number(self.log_threshold)}"),
                ("a false alarm, ever", f"with probability at most {self.alpha:g}"),
            ],
        )


__all__ = ["PropensityAlarm", "PropensityCheck"]
