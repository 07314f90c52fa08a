"""The two-sided bound for exponential smoothing, and with it for clipping, implicit exploration and others: one implementation.

Thesis, Section 8.3.3 (exponential smoothing), Section 8.6.1 (all corrections), Appendix E.2.1 (proof).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

from manyarms._base.arrays import as_float, clip, sqrt
from manyarms._base.text import labelled
from manyarms.bounds.base import BOUNDS, Bound, Budget, OfCorrection, Side, divergence, fixed_lambda, positive_or_open
from manyarms.bounds.concentration import over_contexts
from manyarms.bounds.grid import Grid
from manyarms.bounds.summary import Summary, sums_over_actions
from manyarms.errors import InvalidInput
from manyarms.weights import ClipPropensities, ExponentialAlpha, Harmonic, ImplicitExploration, NoCorrection

AUTHORS = "es-authors"
"""What learning at `Unified.authors_lambda` goes by: an objective that no certificate can be made of."""

Own = TypeVar("Own", bound="Unified")


@dataclass(frozen=True)
class Unified(OfCorrection):
    """V_hat - c - kl2/(n lambda) - lambda/2 Var_n <= V <= V_hat + c + B_n + kl2/(n lambda) + lambda/2 Var_n.

    V - V_hat = I1 + I2 + I3. I1 is the error of n contexts for all contexts: at most c on either side (`over_contexts`, at
    delta / 2).

    I2, given the contexts, is the mean of the sum over a of r(X_i, a) (pi - pi0 w): it lies between -overshoot and B_n. For
    h(p) >= p nothing is counted too often: I2 >= 0, and the lower end pays no bias. (The thesis takes |I2| <= B_n on both
    sides, which is `width`; the lower end here is as valid, and nearer.)

    I3, given the contexts, is a mean of f_i = E[Z_i] - Z_i with Z_i = 1(h(X_i) = A_i) R_i / h_i, independent and with mean 0
    for any rule h. E exp(l f - l^2/2 (f^2 + E f^2)) <= 1 for any f of mean 0 and any real l (Bercu and Touati, 2008), so by a
    change of measure from prior to Q and Markov's inequality n E_Q I3 <= (KL + log(1/delta')) / l + l/2 E_Q sum (f_i^2 + E
    f_i^2); and f^2 + E f^2 = Z^2 + E Z^2 - 2 Z E Z <= Z^2 + E Z^2 since Z >= 0. E_Q of that sum is at most n Var_n, R being
    at most 1 (rewards may be random). Once for l = lambda and once for -lambda: two sides of delta / 4 each, which gives kl2
    = KL + log(4/delta).

    For a policy that was fixed beforehand Z_i = w_i R_i itself takes the place of the rules', with KL = 0 and squares of w.
    Any correction of the weight will do; for a randomised policy it must be linear in the policy and never above pi / pi0.
    """

    lam: float | None = None
    name: ClassVar[str] = "unified"
    needs_logging_policy: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "lam", positive_or_open(self.lam))
        if not sums_over_actions(self.correction):
            raise InvalidInput(
                "correction", f"{self.correction.name}, which depends on rewards",
                "a correction of the weight alone; smoothing has its own bound, 'ls'",
            )  # fmt: skip

    @property
    def label(self) -> str:
        return labelled(self.correction.name, self.settings)

    def lower(self, summary: Summary, kl: float, budget: Budget) -> Side:
        averages = summary.of(self.correction)
        costs = self._costs(summary, kl, budget, averages.overshoot, fixed_lambda(self.lam))
        return Side(averages.value - sum(costs.values()), averages.value, costs)

    def upper(self, summary: Summary, kl: float, budget: Budget) -> Side:
        averages = summary.of(self.correction)
        costs = self._costs(summary, kl, budget, averages.bias, fixed_lambda(self.lam))
        return Side(averages.value + sum(costs.values()), averages.value, costs)

    def objective(self, summary: Summary, kl: float, delta: float) -> float:
        """V_hat less the two-sided width as it is printed, bias included, which is what the thesis learns by."""
        return summary.of(self.correction).value - self.width(summary, kl, delta)

    def width(self, summary: Summary, kl: float, delta: float) -> float:
        """The two-sided bound on |V - V_hat| as it is printed (thesis, Sections 8.3.3 and 8.6.1).

        With lambda left open it is taken at lambda*, where the last two terms are sqrt(2 kl2 Var_n / n).
        """
        averages, budget = summary.of(self.correction), Budget(delta)
        lam = self._best_lambda(summary, kl, budget) if self.lam is None else self.lam
        return sum(self._costs(summary, kl, budget, averages.bias + averages.overshoot, lam).values())

    def authors_lambda(self, summary: Summary, kl: float, delta: float) -> float:
        """2 sqrt(kl2 Var_n / n), which the authors' code learns by: sqrt(2) Var_n times lambda*, and not differentiated.

        It follows from the rows, so that the formula bounds nothing at it; nor is it near the best: the divergence costs less by
        that factor, the variance more. Learning by it goes further from the prior, often to better policies, while what is
        maximised falls below 0, the least that any value can be (docs/safe-to-ship.md). Hence a heuristic with a name, `AUTHORS`.
        """
        spent = as_float(divergence(kl)) + math.log(1 / Budget(delta).rest)
        variance = max(as_float(summary.of(self.correction).second_moment), 1e-30)
        return 2 * math.sqrt(spent * variance / summary.rows)

    def _best_lambda(self, summary: Summary, kl: float, budget: Budget) -> float:
        """lambda* = sqrt(2 kl2 / (n Var_n)), which minimises the width on the rows themselves (thesis, Section 8.3.4)."""
        variance = clip(summary.of(self.correction).second_moment, 1e-30)
        return sqrt(2 * (divergence(kl) + math.log(1 / budget.rest)) / (summary.rows * variance))

    def _costs(self, summary: Summary, kl: float, budget: Budget, bias: float, lam: float) -> dict[str, float]:
        kl, steps = divergence(kl), summary.rows * lam
        return {
            "contexts": over_contexts(summary.rows, kl, budget.common),
            "divergence": kl / steps,
            "confidence": math.log(1 / budget.rest) / steps,
            "bias": bias,
            "variance": lam / 2 * summary.of(self.correction).second_moment,
        }

    def resized(self: Own, before: int, after: int) -> Own:
        """lambda goes with 1 / sqrt(n)."""
        return replace(self, lam=fixed_lambda(self.lam) * math.sqrt(before / after))


@BOUNDS.register("es", "unified", "es-bound")
class ExponentialSmoothingBound(Unified):
    """`Unified`, by default over a grid of exponential smoothings pi / pi0^alpha."""

    description = "exponential smoothing, pi / pi0^alpha: two-sided, needs pi0 of all actions"
    grid = (("alphas", ExponentialAlpha), ("lambdas", float))


@BOUNDS.register("ips")
class IPSBound(Unified):
    """`Unified` for plain IPS."""

    description = "plain IPS by the same bound"
    grid = (("lambdas", float),)

    @classmethod
    def over(cls, grid: Grid, rows: int) -> list[Bound]:
        return [cls(NoCorrection(), lam) for lam in grid.values("lambdas")]


@BOUNDS.register("clip", "cips")
class ClippingBound(Unified):
    """`Unified`, by default over a grid of clipped propensities."""

    description = "clipping, pi / max(pi0, tau), by the same bound"
    grid = (("taus", ClipPropensities), ("lambdas", float))


@BOUNDS.register("ix")
class UnifiedIXBound(Unified):
    """`Unified`, by default over a grid of implicit explorations."""

    description = "implicit exploration, pi / (pi0 + gamma), by the same bound"
    grid = (("gammas", ImplicitExploration), ("lambdas", float))


@BOUNDS.register("harmonic", "general")
class GeneralBound(Unified):
    """The general bound (thesis, Section 8.6.1): expectations over parameters, for corrections that need not be linear."""

    description = "harmonic weights by the general bound: a fixed policy, or softmax parameters that are drawn"
    grid = (("strengths", Harmonic), ("lambdas", float))
    over_draws = True


__all__ = [
    "AUTHORS", "ClippingBound", "ExponentialSmoothingBound", "GeneralBound", "IPSBound", "Unified", "UnifiedIXBound",
]  # fmt: skip
