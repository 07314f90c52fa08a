"""Is a Gaussian model still right? Its standardised one-step residuals, watched by an e-detector.

If rewards follow a linear model with Gaussian noise and a Gaussian prior, the residuals z = (r − xᵀθ̂)/√(σ² + xᵀSx), each
from what was known before the round, are independent standard normal numbers *whatever the agent does*: the law of r given
the past and the choice is N(xᵀθ̂, σ² + xᵀSx). A shift of their mean by δ has the likelihood ratio

    E = exp(δz − δ²/2),     of mean 1 under the model

and one M = (1 + M) E for each δ (`e_detector.py`) sees shifts of any size between. The model must be right in its noise,
too: with a σ that is 10 % too small false alarms come more often than stated. Where that is not sure, let `EDetector` give
the alarms and this one the diagnosis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

import numpy.typing as npt

from manyarms._base.typing import Spec
from manyarms.sequential import inputs
from manyarms.sequential.e_detector import ShiryaevRoberts

SHIFTS = (-1.0, -0.5, -0.25, 0.25, 0.5, 1.0)
LARGEST_EXPONENT = 690.0  # exp(690) is below `CAP`
LARGEST_SHIFT = 100.0
LARGEST_RESIDUAL = 1e50


class ResidualDetector(ShiryaevRoberts):
    """An alarm when the mean of standardised residuals is no longer 0.

        M_δ ← (1 + M_δ) exp(δz − δ²/2),   alarm when the average of M_δ over the shifts δ reaches mean_time

    mean_time: rounds from one false alarm to the next, on average, at least, if residuals are standard normal. restart:
    begin anew after an alarm; otherwise the first alarm stays. shifts: the δ that are looked for, in standard deviations.

    >>> detector = ResidualDetector(mean_time=1_000)
    >>> detector.update([1.0, -1.0] * 100)
    >>> detector.update([2.0, 0.0] * 100)
    >>> detector.alarm
    213
    """

    kind = "residual_detector"

    def __init__(self, mean_time: float = 10_000, restart: bool = False, shifts: Sequence[float] = SHIFTS) -> None:
        self.shifts = inputs.some("shifts", shifts, -LARGEST_SHIFT, LARGEST_SHIFT)
        super().__init__(len(self.shifts), mean_time, restart)

    def update(self, residual: npt.ArrayLike) -> None:
        """One standardised residual, or several in order."""
        self._take(inputs.batch("residual", residual, -LARGEST_RESIDUAL, LARGEST_RESIDUAL))

    def _factors(self, value: float) -> list[float]:
        """exp(δz − δ²/2), cut where it could overflow."""
        return [math.exp(min(delta * value - delta * delta / 2, LARGEST_EXPONENT)) for delta in self.shifts]

    def _declared(self) -> Spec:
        """The arguments of the constructor."""
        return {"mean_time": self.mean_time, "restart": self.restart, "shifts": list(self.shifts)}

    @classmethod
    def restored(cls, spec: Spec) -> Self:
        """The object that `spec` is of."""
        names = ("mean_time", "restart", "shifts", "evidence", "count", "alarms", "alarm")
        *declared, evidence, count, alarms, alarm = inputs.saved(spec, cls.kind, *names)
        made = cls(*declared)
        made._resume(evidence, count, alarms, alarm)
        return made


__all__ = ["ResidualDetector"]
