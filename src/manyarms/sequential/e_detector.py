"""Has something changed? Alarms with a stated mean time between false ones, under any dependence.

**E-detectors** (Shin, Ramdas and Rinaldo, "E-detectors: a nonparametric framework for sequential change detection", 2022).
Let E_t ≥ 0 have E[E_t | past] ≤ 1 as long as nothing has changed, and

    M_t = (1 + M_{t−1}) E_t,   M_0 = 0             (the sum of the evidence since round s, over all s: Shiryaev and Roberts)

Then E[M_t | past] ≤ 1 + M_{t−1}: M_t − t is a supermartingale, and E[M_τ] ≤ E[τ] for every stopping time τ. At the first
time with M_τ ≥ 1/α that reads 1/α ≤ E[M_τ] ≤ E[τ]: **the mean time to a false alarm is at least 1/α**, whatever the
dependence between rounds. The inequality is linear in M, so that the average of several such M has it too: one for each size
of change that is looked for, each multiplied by its own evidence alone.

**The mean fell below m₀**, for numbers X in [0, 1] of any law: E = 1 + λ(m₀ − X) with 0 ≤ λ ≤ 1/(1 − m₀). It is not negative
as X ≤ 1, and has mean 1 + λ(m₀ − E[X | past]) ≤ 1 as long as the conditional mean is at least m₀. Small λ find small falls.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Self

import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.tables import Shown, Table
from manyarms._base.text import counted, number
from manyarms._base.typing import Array, Spec
from manyarms.errors import InvalidInput
from manyarms.sequential import inputs

BETS = (0.025, 0.05, 0.1, 0.2, 0.4, 0.8)  # λ as parts of the largest one
CAP = 1e300  # of M, which only has to be right up to the alarm
MOST_TIME = 1e100


class ShiryaevRoberts(Shown, ABC):
    """The averages of M = (1 + M) E and their alarms; what E is, a detector says (`_factors`).

    mean_time: rounds from one false alarm to the next, on average, at least. restart: begin anew after an alarm; otherwise
    the first alarm stays.
    """

    kind = ""

    def __init__(self, parts: int, mean_time: float, restart: bool) -> None:
        self.mean_time = validate.number("mean_time", mean_time, least=1, most=MOST_TIME)
        self.restart = validate.flag("restart", restart)
        self.evidence = [0.0] * parts
        self.count = 0
        self.alarms = 0
        self.alarm: int | None = None  # the round of the last alarm, from 1 on

    @abstractmethod
    def _factors(self, value: float) -> list[float]:
        """E of one number, for each of the changes that are looked for."""

    @property
    def statistic(self) -> float:
        """The average of M, to be compared with `mean_time`."""
        return math.fsum(self.evidence) / len(self.evidence)

    def _take(self, values: Array) -> None:
        """Numbers that have been checked, one after another."""
        enough = self.mean_time
        for value in values.tolist():
            self.count += 1
            self.evidence = [min((1 + m) * e, CAP) for m, e in zip(self.evidence, self._factors(value), strict=True)]
            if self.statistic >= enough and (self.restart or not self.alarms):
                self.alarms += 1
                self.alarm = self.count
                if self.restart:
                    self.evidence = [0.0] * len(self.evidence)

    @abstractmethod
    def _declared(self) -> Spec:
        """The arguments of the constructor."""

    def spec(self) -> Spec:
        """The state as JSON holds it."""
        state: Spec = {"evidence": list(self.evidence), "count": self.count, "alarms": self.alarms, "alarm": self.alarm}
        return {"kind": self.kind, **self._declared(), **state}

    def _resume(self, evidence: object, count: object, alarms: object, alarm: object) -> None:
        """Take a saved state, checked."""
        if not isinstance(evidence, list | tuple) or len(evidence) != len(self.evidence):
            raise InvalidInput("spec", validate.describe(evidence), f"{len(self.evidence)} numbers of evidence")
        self.evidence = [validate.number("spec", one, least=0, most=CAP) for one in evidence]
        self.count = validate.count("spec", count, least=0)
        self.alarms = validate.count("spec", alarms, least=0, most=self.count)
        if (alarm is None) is not (self.alarms == 0):
            raise InvalidInput("spec", validate.describe(alarm), f"the round of an alarm, after {self.alarms} of them")
        self.alarm = None if alarm is None else validate.count("spec", alarm, most=self.count)

    def __repr__(self) -> str:
        said = "no alarm" if self.alarm is None else f"alarm in round {self.alarm:,}"
        return f"{type(self).__name__}: {self.count:,} rounds, {self.statistic:.3g} of {self.mean_time:g}, {said}"

    def _table(self) -> Table:
        said = (
            "no alarm" if self.alarm is None else f"{counted(self.alarms, 'alarm')}, the last in round {self.alarm:,}"
        )
        return Table(
            f"{type(self).__name__} after {counted(self.count, 'round')}: {said}",
            rows=[
                ("evidence", f"{number(self.statistic)}, alarm at {number(self.mean_time)}"),
                ("rounds between false alarms", f"at least {number(self.mean_time)} on average"),
                ("after an alarm", "begins anew" if self.restart else "the first alarm stays"),
            ],
        )


class EDetector(ShiryaevRoberts):
    """An alarm when the mean of bounded numbers, such as rewards, fell below a number; of no model, under any dependence.

        M_λ ← (1 + M_λ)(1 + λ(m₀ − X)),   alarm when the average of M_λ over the λ reaches mean_time

    mean: m₀, below which a conditional mean is a change. mean_time: rounds from one false alarm to the next, on average, at
    least. restart: begin anew after an alarm; otherwise the first alarm stays. reward_range: of the numbers and of `mean`.
    bets: the λ, as parts of the largest one, (1/(1 − m₀)): small ones find small falls, and later.

    >>> detector = EDetector(mean=0.5, mean_time=1_000)
    >>> detector.update([0.0, 1.0] * 100)
    >>> detector.update([0.0, 0.0, 0.0, 1.0] * 100)
    >>> detector.alarm
    238
    """

    kind = "e_detector"

    def __init__(
        self,
        mean: float,
        mean_time: float = 10_000,
        restart: bool = False,
        reward_range: tuple[float, float] = (0.0, 1.0),
        bets: Sequence[float] = BETS,
    ) -> None:
        self.rewards = inputs.RewardRange(reward_range)
        self.mean = validate.number("mean", mean, above=self.rewards.least, below=self.rewards.most)
        self.bets = inputs.some("bets", bets, 0.0, 1.0)
        unit = (self.mean - self.rewards.least) / self.rewards.span
        if not 0 < unit < 1 - 1e-12:
            raise InvalidInput("mean", validate.describe(mean), "a number inside the range of rewards, not at its ends")
        self._stakes = [(bet / (1 - unit), unit) for bet in self.bets]
        super().__init__(len(self.bets), mean_time, restart)

    def update(self, value: npt.ArrayLike) -> None:
        """One number inside the range of rewards, or several in order."""
        self._take(self.rewards.unit("value", value))

    def _factors(self, value: float) -> list[float]:
        """1 + λ(m₀ − X), which rounding does not take below 0."""
        return [max(0.0, 1 + stake * (unit - value)) for stake, unit in self._stakes]

    def _declared(self) -> Spec:
        """The arguments of the constructor."""
        first = {"mean": self.mean, "mean_time": self.mean_time, "restart": self.restart}
        return {**first, "reward_range": self.rewards.spec(), "bets": list(self.bets)}

    @classmethod
    def restored(cls, spec: Spec) -> Self:
        """The object that `spec` is of."""
        names = ("mean", "mean_time", "restart", "reward_range", "bets")
        *declared, evidence, count, alarms, alarm = inputs.saved(
            spec, cls.kind, *names, "evidence", "count", "alarms", "alarm"
        )
        made = cls(*declared)
        made._resume(evidence, count, alarms, alarm)
        return made


__all__ = ["EDetector", "ShiryaevRoberts"]
