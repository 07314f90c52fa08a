"""Bounds from products: logarithmic smoothing, implicit exploration, and the gain over the logging policy.

For independent Z_i >= 0 the product of (1 + l Z_i) has expectation (1 + l E Z)^n. Nothing is asked of the size of weights,
pi0 is needed of the played actions only, and mass where it is 0 can only make the lower end lower. Thesis, lines 746-752;
Sakhi et al. (2024).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from manyarms._base import validate
from manyarms.certificates.bounds.base import Bound, Budget, Side, complement, divergence
from manyarms.certificates.summaries import Summary
from manyarms.errors import InvalidInput
from manyarms.weights import Correction, ImplicitExploration


def from_products(estimate: float, smoothing: float, rows: int, spent: float) -> float:
    """(exp(l V - spent / n) - 1) / l: the lower end from V, a mean of log(1 + l Z) / l."""
    return math.expm1(max(-745.0, smoothing * estimate - spent / rows)) / smoothing


def _side(estimate: float, smoothing: float, rows: int, kl: float, delta: float) -> Side:
    start = from_products(estimate, smoothing, rows, 0.0)
    without = from_products(estimate, smoothing, rows, math.log(1 / delta))
    end = from_products(estimate, smoothing, rows, kl + math.log(1 / delta))
    return Side(end, start, {"divergence": without - end, "confidence": start - without})


@dataclass(frozen=True)
class LogSmoothingBound(Bound):
    """V >= (exp(l V_ls - (KL + log(1/delta)) / n) - 1) / l,   V_ls the mean of pi log(1 + l R/p) / l.

    For a rule h let Z_i = 1(h(X_i) = A_i) R_i / p_i, with mean at most V(h). E exp(sum log(1 + l Z_i) - n log(1 + l V(h))) <=
    1, so by a change of measure from prior to Q and Markov's inequality E_Q[sum log(1 + l Z_i)] <= n E_Q log(1 + l V(h)) + KL
    + log(1/delta), for all Q at once. The left side is n l V_ls, since log(1 + l Z) is log(1 + l R/p) where the rule plays A
    and 0 elsewhere; and E_Q log(1 + l V(h)) <= log(1 + l V(pi_Q)) because log is concave. From above: the same for 1 - R.

    For a policy that was fixed beforehand KL = 0, and V_ls the mean of log(1 + l w R) / l, which is larger
    (`evaluation.intervals.ls_lower`). l must not depend on the rows.
    """

    smoothing: float
    name: ClassVar[str] = "ls"

    def __post_init__(self) -> None:
        validate.positive("smoothing", self.smoothing)

    @property
    def smoothings(self) -> tuple[float, ...]:
        return (self.smoothing,)

    def lower(self, summary: Summary, kl: float, budget: Budget) -> Side:
        estimate = summary.smoothing(self.smoothing).value
        return _side(estimate, self.smoothing, summary.rows, divergence(kl), budget.each)

    def upper(self, summary: Summary, kl: float, budget: Budget) -> Side:
        estimate = summary.smoothing(self.smoothing).complement
        return complement(_side(estimate, self.smoothing, summary.rows, divergence(kl), budget.each))


@dataclass(frozen=True)
class Gain(Bound):
    """V(pi) - V(pi0) >= (exp(l G - (KL + log(1/delta)) / n) - 1) / l,   for 0 < l < 1: both policies on the same rows.

    1 + l (Z_i - R_i) > 0 for l < 1, and its expectation is at most 1 + l (V(h) - V(pi0)), with Z_i as in `LogSmoothingBound`
    and R_i the reward that the logging policy got. The same argument, with E_Q log(1 + l (Z - R)) = pi log(1 + l (1/p - 1) R)
    + (1 - pi) log(1 - l R). Where the policies agree (pi = p = 1) a row adds nothing at all, neither gain nor noise, which
    the difference of two separate bounds cannot see. From above there is no such statement.
    """

    smoothing: float
    name: ClassVar[str] = "gain"

    def __post_init__(self) -> None:
        if not 0 < validate.positive("smoothing", self.smoothing) < 1:
            raise InvalidInput("smoothing", self.smoothing, "a number above 0 and below 1")

    @property
    def smoothings(self) -> tuple[float, ...]:
        return (self.smoothing,)

    def lower(self, summary: Summary, kl: float, budget: Budget) -> Side:
        estimate = summary.smoothing(self.smoothing).gain
        return _side(estimate, self.smoothing, summary.rows, divergence(kl), budget.each)

    def upper(self, summary: Summary, kl: float, budget: Budget) -> Side:
        return Side(math.inf, summary.smoothing(self.smoothing).gain, {})


@dataclass(frozen=True)
class ImplicitExplorationBound(Bound):
    """V >= V_ix - (KL + log(1/delta)) / (2 gamma n),   V_ix the mean of pi R / (p + gamma): the penalty knows no policy.

    z / (1 + z/2) <= log(1 + z) with z = 2 gamma R/p, R <= 1, gives 2 gamma R / (p + gamma) <= log(1 + 2 gamma R/p): the
    argument of `LogSmoothingBound` with l = 2 gamma, and log(1 + l V) <= l V (Neu, 2015; Gabbianelli et al., 2024). From
    above: for 1 - R.
    """

    gamma: float
    name: ClassVar[str] = "ix-tail"

    def __post_init__(self) -> None:
        validate.positive("gamma", self.gamma)

    @property
    def corrections(self) -> tuple[Correction, ...]:
        return (ImplicitExploration(self.gamma),)

    def lower(self, summary: Summary, kl: float, budget: Budget) -> Side:
        return self._side(summary.of(self.corrections[0]).value, summary.rows, divergence(kl), budget.each)

    def upper(self, summary: Summary, kl: float, budget: Budget) -> Side:
        return complement(
            self._side(summary.of(self.corrections[0]).complement, summary.rows, divergence(kl), budget.each)
        )

    def _side(self, estimate: float, rows: int, kl: float, delta: float) -> Side:
        steps = 2 * self.gamma * rows
        costs = {"divergence": kl / steps, "confidence": math.log(1 / delta) / steps}
        return Side(estimate - sum(costs.values()), estimate, costs)


__all__ = ["Gain", "ImplicitExplorationBound", "LogSmoothingBound", "from_products"]
