"""Bounds from products: logarithmic smoothing, and the gain over the logging policy.

For independent Z_i >= 0 the product of (1 + l Z_i) has expectation (1 + l E Z)^n (`from_products`). Nothing is asked of the
size of weights, pi0 is needed of the played actions only, and mass where it is 0 can only make the lower end lower.
Thesis, Section 1.3; Sakhi et al. (2024).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from manyarms._base import arrays, validate
from manyarms._base.typing import Array
from manyarms.bounds.base import BOUNDS, Budget, FromBelow, Side, require_correction
from manyarms.bounds.concentration import from_products
from manyarms.bounds.summary import Statistic, Summary
from manyarms.errors import InvalidInput
from manyarms.weights import Correction, LinearLogSmoothing, LogSmoothing


@BOUNDS.register("ls")
@dataclass(frozen=True)
class LogSmoothingBound(FromBelow):
    """V >= (exp(l V_ls - (KL + log(1/delta)) / n) - 1) / l,   V_ls the mean of pi log(1 + l R/p) / l.

    For a rule h let Z_i = 1(h(X_i) = A_i) R_i / p_i, with mean at most V(h). E exp(sum log(1 + l Z_i) - n log(1 + l V(h))) <=
    1, so by a change of measure from prior to Q and Markov's inequality E_Q[sum log(1 + l Z_i)] <= n E_Q log(1 + l V(h)) + KL
    + log(1/delta), for all Q at once. The left side is n l V_ls, since log(1 + l Z) is log(1 + l R/p) where the rule plays A
    and 0 elsewhere; and E_Q log(1 + l V(h)) <= log(1 + l V(pi_Q)) because log is concave. From above: the same for 1 - R.

    For a policy that was fixed beforehand KL = 0, and V_ls the mean of log(1 + l w R) / l, which is larger
    (`evaluation.intervals.ls_lower`). l must not depend on the rows.
    """

    smoothing: float
    description: ClassVar[str] = "logarithmic smoothing: needs propensities only"
    grid = (("smoothings", float),)

    def __post_init__(self) -> None:
        object.__setattr__(self, "smoothing", validate.positive("smoothing", self.smoothing))

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        return (LogSmoothing(self.smoothing),)

    @property
    def mixture(self) -> bool:
        return True  # averaged over rules, logarithmic smoothing is its linear form

    @classmethod
    def for_estimate(cls, correction: Correction, lam: float | None = None) -> LogSmoothingBound:
        """lambda is the estimate's own smoothing."""
        smoothing = require_correction(correction).settings.get("smoothing", 0.0)
        if lam is not None or not smoothing or correction != LinearLogSmoothing(smoothing):
            came = f"an estimate by {correction.name} {correction.settings}" + ("" if lam is None else " and a lambda")
            raise InvalidInput("value", came, "LS(smoothing) in its linear form, for the bound 'ls'")
        return cls(smoothing)

    @property
    def estimated_by(self) -> Correction:
        return LinearLogSmoothing(self.smoothing)

    def end(self, estimate: float, rows: int, kl: float, delta: float) -> float:
        return from_products(estimate, self.smoothing, rows, kl + math.log(1 / delta))

    def start(self, estimate: float) -> float:
        return from_products(estimate, self.smoothing, 1, 0.0)


@dataclass(frozen=True)
class GainTerms:
    """log(1 + l (w - 1) R) / l, for 0 < l < 1."""

    smoothing: float

    def terms(self, pi: Array, pi0: Array, reward: Array) -> Array:
        """Elementwise."""
        return arrays.log1p(self.smoothing * (pi / pi0 - 1) * reward) / self.smoothing


@dataclass(frozen=True)
class Gain(LogSmoothingBound):
    """V(pi) - V(pi0) >= (exp(l G - (KL + log(1/delta)) / n) - 1) / l,   for 0 < l < 1: both policies on the same rows.

    1 + l (Z_i - R_i) > 0 for l < 1, and its expectation is at most 1 + l (V(h) - V(pi0)), with Z_i as in `LogSmoothingBound`
    and R_i the reward that the logging policy got. The same argument, with E_Q log(1 + l (Z - R)) = pi log(1 + l (1/p - 1) R)
    + (1 - pi) log(1 - l R). Where the policies agree (pi = p = 1) a row adds nothing at all, neither gain nor noise, which
    the difference of two separate bounds cannot see. From above there is no such statement.
    """

    name: ClassVar[str] = "gain"
    of_gain: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.smoothing < 1:
            raise InvalidInput("smoothing", self.smoothing, "a number above 0 and below 1")

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        return (GainTerms(self.smoothing),)

    def upper(self, summary: Summary, kl: float, budget: Budget) -> Side:
        return Side(math.inf, summary.of(self.statistics[0]).value, {})

    def opposite(self, summary: Summary, kl: float, budget: Budget) -> float:
        """A lower end for V(pi0) - V(pi), from (w - 1)(1 - R): with propensities that are right it cannot contradict `lower`."""
        return self._side(summary.of(self.statistics[0]).complement, summary.rows, kl, budget.each).end


__all__ = ["Gain", "GainTerms", "LogSmoothingBound"]
