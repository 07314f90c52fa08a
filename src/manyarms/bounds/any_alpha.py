"""Exponential smoothing from below for all alpha at once (thesis, Appendix E.2.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from manyarms._base import validate
from manyarms.bounds.base import BOUNDS, Bound, Budget, Side
from manyarms.bounds.summary import Statistic, Summary
from manyarms.bounds.unified import Unified
from manyarms.errors import InvalidInput
from manyarms.weights import ExponentialAlpha


@BOUNDS.register("any-alpha")
@dataclass(frozen=True)
class AnyAlpha(Bound):
    """Exponential smoothing from below, for one lambda and all alpha in (0, 1] at once.

    The bound at alpha_j = 2^-j, j = 0, 1, ..., with the share alpha_j / 2 of delta, which sum to 1. For any alpha there is a
    j with alpha <= alpha_j <= 2 alpha; V_hat grows with alpha, and so does Var_n, hence the value at alpha_j is at least that
    at alpha and the variance at most that at min(2 alpha, 1). (The thesis takes off the bias too, and pays for alpha in the
    term of the contexts; the end here is as valid, and nearer.) There is no upper end: the value at alpha_j is not bounded by
    that at alpha.
    """

    alpha: float
    lam: float
    description: ClassVar[str] = "exponential smoothing for all alpha in (0, 1] at once, from below only"
    needs_logging_policy: ClassVar[bool] = True
    grid = (("alphas", float), ("lambdas", float))
    free: ClassVar[str | None] = "alphas"

    def __post_init__(self) -> None:
        object.__setattr__(self, "lam", validate.positive("lambda", self.lam))
        alpha = validate.probability("alpha", self.alpha)
        if alpha < validate.SMALLEST:
            expected = f"a number above 0 (of at least {validate.SMALLEST:g}) and at most 1"
            raise InvalidInput("alpha", validate.describe(self.alpha), expected)
        object.__setattr__(self, "alpha", alpha)

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        return (ExponentialAlpha(self.alpha), ExponentialAlpha(min(1.0, 2 * self.alpha)))

    def resized(self, before: int, after: int) -> AnyAlpha:
        """lambda goes with 1 / sqrt(n)."""
        return AnyAlpha(self.alpha, self.lam * math.sqrt(before / after))

    def lower(self, summary: Summary, kl: float, budget: Budget) -> Side:
        own, doubled = (summary.of(one) for one in self.statistics)
        costs = {
            **Unified(ExponentialAlpha(self.alpha), self.lam).lower(summary, kl, budget).costs,
            "confidence": math.log(2 / (budget.rest * self.alpha)) / (summary.rows * self.lam),
            "variance": self.lam / 2 * doubled.second_moment,
        }
        return Side(own.value - sum(costs.values()), own.value, costs)

    def upper(self, summary: Summary, kl: float, budget: Budget) -> Side:
        return Side(math.inf, summary.of(self.statistics[0]).value, {})


__all__ = ["AnyAlpha"]
