"""Empirical Bernstein for a policy that was fixed before the log.

The other bounds for such a policy are those of learning with KL = 0: `LogSmoothingBound`, `ImplicitExplorationBound`, `Unified`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from manyarms.bounds.base import BOUNDS, Budget, Side, complement
from manyarms.bounds.bounded_weights import BoundedWeights
from manyarms.bounds.concentration import bernstein_margin
from manyarms.bounds.summary import Summary
from manyarms.errors import InvalidInput


@BOUNDS.register("bernstein")
@dataclass(frozen=True)
class EmpiricalBernstein(BoundedWeights):
    """V >= V_hat - sqrt(2 S log(2/delta) / n) - 7 log(2/delta) / (3 tau (n - 1)),   for clipped weights, S their sample variance.

    Maurer and Pontil (2009) for the independent terms pi R / max(p, tau), which lie in [0, 1/tau] and whose mean is at most
    V. From above: the same for 1 - R. It says nothing of a policy that was learned from the same rows.
    """

    description: ClassVar[str] = "empirical Bernstein for clipped weights: only for a policy that was fixed beforehand"
    for_fixed_only: ClassVar[bool] = True

    def lower(self, summary: Summary, kl: float, budget: Budget) -> Side:
        averages = summary.of(self.correction)
        return self._side(averages.value, averages.variance, summary.rows, kl, budget.each)

    def upper(self, summary: Summary, kl: float, budget: Budget) -> Side:
        averages = summary.of(self.correction)
        return complement(self._side(averages.complement, averages.complement_variance, summary.rows, kl, budget.each))

    def _side(self, estimate: float, spread: float, rows: int, kl: float, delta: float) -> Side:
        if kl > 0:
            raise InvalidInput("kl", kl, "0: empirical Bernstein is for a policy that was fixed beforehand")
        if rows < 2:
            return Side(estimate - math.inf, estimate, {})
        variance = bernstein_margin(spread, rows, 0.0, delta)
        costs = {"variance": variance, "confidence": bernstein_margin(spread, rows, 1 / self.tau, delta) - variance}
        return Side(estimate - sum(costs.values()), estimate, costs)


__all__ = ["EmpiricalBernstein"]
