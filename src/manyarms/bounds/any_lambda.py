"""The unified bound for all lambda at once (thesis, Appendix E.2.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from manyarms._base.arrays import as_float
from manyarms.bounds.base import BOUNDS, Budget, OfCorrection, Side
from manyarms.bounds.summary import Summary
from manyarms.bounds.unified import Unified
from manyarms.weights import ExponentialAlpha

HALVINGS = 60


@BOUNDS.register("any-lambda")
@dataclass(frozen=True)
class AnyLambda(OfCorrection):
    """`Unified` for all lambda in (0, 1) at once, so that lambda may be chosen by looking.

    The bound at lambda_j = 2^-j, j = 1, 2, ..., with the share lambda_j of delta, which sum to 1; the statement about contexts
    does not depend on lambda, and is made once. Both ends are the best over j. The thesis's form for a given lambda stands for
    the j with lambda / 2 <= lambda_j <= lambda, and is wider.
    """

    description: ClassVar[str] = "exponential smoothing for all lambda in (0, 1) at once"
    needs_logging_policy: ClassVar[bool] = True
    grid = (("alphas", ExponentialAlpha),)

    def __post_init__(self) -> None:
        super().__post_init__()
        Unified(self.correction)  # refuses what that bound refuses

    def lower(self, summary: Summary, kl: float, budget: Budget) -> Side:
        return max(self._sides(summary, kl, budget, sign=-1), key=lambda side: as_float(side.end))

    def upper(self, summary: Summary, kl: float, budget: Budget) -> Side:
        return min(self._sides(summary, kl, budget, sign=1), key=lambda side: as_float(side.end))

    def _sides(self, summary: Summary, kl: float, budget: Budget, *, sign: int) -> list[Side]:
        found = []
        for j in range(1, HALVINGS):
            bound = Unified(self.correction, 2.0**-j)
            side = (bound.lower if sign < 0 else bound.upper)(summary, kl, budget)
            extra = j * math.log(2) / (summary.rows * 2.0**-j)
            costs = {**side.costs, "confidence": side.costs["confidence"] + extra}
            found.append(Side(side.end + sign * extra, side.start, costs))
        return found


__all__ = ["AnyLambda"]
