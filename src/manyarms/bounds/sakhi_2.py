"""The second bound of Sakhi et al. (2022), Bernstein's, for clipped weights (thesis, Appendix E.3.3)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from manyarms._base.arrays import as_float
from manyarms.bounds.base import BOUNDS, Bound, Budget, Side, divergence, fixed_lambda, positive_or_open
from manyarms.bounds.bounded_weights import BoundedWeights
from manyarms.bounds.concentration import bennett, over_contexts
from manyarms.bounds.grid import Grid
from manyarms.bounds.summary import Summary, known
from manyarms.weights import ClipPropensities

LAMBDAS = 100  # how many learning chooses from, and pays for


@BOUNDS.register("sakhi-2", "sakhi2")
@dataclass(frozen=True)
class Sakhi2(BoundedWeights):
    """V >= V_hat - c - (KL + log(2/delta)) / l - l/n g(l / (tau n)) V_n,   g(u) = (e^u - 1 - u) / u^2.

    Thesis, Appendix E.3.3-6263.

    c bounds the error of contexts as in `Unified`. Given the contexts, Z - E Z <= 1/tau, so E exp(t (Z - E Z)) <=
    exp(t^2 g(t/tau) E Z^2) (Bennett), with t = l/n and a change of measure; E Z^2 is at most the sum over a of
    pi pi0 / max(pi0, tau)^2, whose mean is V_n, the expected square of `Averages`. Clipping counts too little: V >= the mean.
    From above the bias B_n is added, and since Z >= 0, E exp(-t Z) <= 1 - t E Z + t^2/2 E Z^2: 1/2 takes the place of g.
    """

    lam: float | None = None
    description: ClassVar[str] = "Sakhi et al. by Bernstein, for clipping: needs pi0 of all actions"
    needs_logging_policy: ClassVar[bool] = True
    grid = (("taus", ClipPropensities), ("lambdas", float))

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "lam", positive_or_open(self.lam))

    @classmethod
    def over(cls, grid: Grid, rows: int) -> list[Bound]:
        return [cls(ClipPropensities(tau), rows * lam) for tau in grid.values("taus") for lam in grid.values("lambdas")]

    def resized(self, before: int, after: int) -> Sakhi2:
        """lambda goes with sqrt(n)."""
        return replace(self, lam=fixed_lambda(self.lam) * math.sqrt(after / before))

    def lower(self, summary: Summary, kl: float, budget: Budget) -> Side:
        value = summary.of(self.correction).value
        costs = self._costs(summary, kl, budget, bennett(fixed_lambda(self.lam) / (self.tau * summary.rows)), 0.0)
        return Side(value - sum(costs.values()), value, costs)

    def upper(self, summary: Summary, kl: float, budget: Budget) -> Side:
        averages = summary.of(self.correction)
        costs = self._costs(summary, kl, budget, 0.5, averages.bias)
        return Side(averages.value + sum(costs.values()), averages.value, costs)

    def objective(self, summary: Summary, kl: float, delta: float) -> float:
        """At the best of 100 values of l for these rows, whose union bound is paid whether or not l was left open."""
        n, lam = summary.rows, self.lam
        if lam is None:
            square = as_float(known(summary.of(self.correction).expected_square))
            spent = as_float(kl) + math.log(1 / Budget(delta, 1, LAMBDAS).rest)
            grid = np.geomspace(1e-2 * n * self.tau, 10 * n * self.tau, LAMBDAS)
            lam = float(min(grid, key=lambda l: spent / l + l / n * bennett(l / (self.tau * n)) * square))
        return replace(self, lam=lam).lower(summary, kl, Budget(delta, 1, LAMBDAS)).end

    def _costs(self, summary: Summary, kl: float, budget: Budget, curve: float, bias: float) -> dict[str, float]:
        averages, kl, lam = summary.of(self.correction), divergence(kl), fixed_lambda(self.lam)
        return {
            "contexts": over_contexts(summary.rows, kl, budget.common),
            "divergence": kl / lam,
            "confidence": math.log(1 / budget.rest) / lam,
            "bias": bias,
            "variance": _product(lam / summary.rows * curve, known(averages.expected_square)),
        }


def _product(curve: float, square: float) -> float:
    """Their product: 0 where no weight is there to vary, also where the curve is beyond all numbers."""
    return 0.0 if curve == math.inf and square == 0 else curve * square


__all__ = ["Sakhi2"]
