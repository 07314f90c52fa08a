"""Bounds for a policy that was fixed before the log: empirical Bernstein, and the mean reward of the logging policy.

The other evaluation bounds are those of learning with KL = 0: `LogSmoothingBound`, `ImplicitExplorationBound`, `Unified`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from manyarms.certificates.bounds.base import Bound, Budget, Side, complement
from manyarms.certificates.bounds.baselines import check_tau, smallest_with
from manyarms.certificates.summaries import Summary
from manyarms.errors import InvalidInput
from manyarms.evaluation.intervals import bernstein_margin
from manyarms.weights import ClipPropensities, Correction


@dataclass(frozen=True)
class EmpiricalBernstein(Bound):
    """V >= V_hat - sqrt(2 S log(2/delta) / n) - 7 log(2/delta) / (3 tau (n - 1)),   for clipped weights, S their sample variance.

    Maurer and Pontil (2009) for the independent terms pi R / max(p, tau), which lie in [0, 1/tau] and whose mean is at most
    V. From above: the same for 1 - R. It says nothing of a policy that was learned from the same rows.
    """

    tau: float
    name: ClassVar[str] = "bernstein"
    for_fixed_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_tau(self.tau)

    @property
    def corrections(self) -> tuple[Correction, ...]:
        return (ClipPropensities(self.tau),)

    def lower(self, summary: Summary, kl: float, budget: Budget) -> Side:
        averages = summary.of(self.corrections[0])
        return self._side(averages.value, averages.spread, summary.rows, kl, budget.each)

    def upper(self, summary: Summary, kl: float, budget: Budget) -> Side:
        averages = summary.of(self.corrections[0])
        return complement(self._side(averages.complement, averages.complement_spread, summary.rows, kl, budget.each))

    def _side(self, estimate: float, spread: float, rows: int, kl: float, delta: float) -> Side:
        if kl > 0:
            raise InvalidInput("kl", kl, "0: empirical Bernstein is for a policy that was fixed beforehand")
        variance = bernstein_margin(spread, rows, 0.0, delta)
        costs = {"variance": variance, "confidence": bernstein_margin(spread, rows, 1 / self.tau, delta) - variance}
        return Side(estimate - sum(costs.values()) if rows > 1 else -math.inf, estimate, costs if rows > 1 else {})


def mean_at_most(mean: float, rows: int, delta: float) -> float:
    """An upper end for an expectation from the mean of n independent numbers in [0, 1]: kl(mean, q) <= log(1/delta) / n.

    Chernoff's inequality, which holds for all variables in [0, 1] since coins have the largest moments.
    """
    return 1.0 - smallest_with(1.0 - mean, math.log(1 / delta) / rows)


__all__ = ["EmpiricalBernstein", "mean_at_most"]
