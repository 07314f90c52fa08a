"""The two-sided bound for exponential smoothing, and with it for clipping, implicit exploration and others: one implementation.

Thesis, lines 2508-2530 (exponential smoothing), 2686-2722 (all corrections), 5722-5860 (proof), 5863-5941 (any lambda, any
alpha).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from manyarms._base import validate
from manyarms.certificates.bounds.base import Bound, Budget, Side, confidence, divergence, over_contexts
from manyarms.certificates.summaries import Averages, Summary
from manyarms.errors import InvalidInput
from manyarms.weights import Correction, ExponentialAlpha

HALVINGS = 60


@dataclass(frozen=True)
class Unified(Bound):
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
    """

    correction: Correction
    lam: float
    name: ClassVar[str] = "unified"
    needs_logging: ClassVar[bool] = True

    def __post_init__(self) -> None:
        validate.positive("lambda", self.lam)

    @property
    def corrections(self) -> tuple[Correction, ...]:
        return (self.correction,)

    @property
    def settings(self) -> dict[str, float]:
        return {**self.correction.settings, "lambda": self.lam}

    @property
    def label(self) -> str:
        shown = ", ".join(f"{name}={value:.3g}" for name, value in self.settings.items())
        return f"{self.correction.name} ({shown})"

    def lower(self, summary: Summary, kl: float, budget: Budget) -> Side:
        averages = summary.of(self.correction)
        costs = self._costs(summary, averages, kl, budget, averages.overshoot)
        return Side(averages.value - sum(costs.values()), averages.value, costs)

    def upper(self, summary: Summary, kl: float, budget: Budget) -> Side:
        averages = summary.of(self.correction)
        costs = self._costs(summary, averages, kl, budget, averages.lost)
        return Side(averages.value + sum(costs.values()), averages.value, costs)

    def width(self, summary: Summary, kl: float, delta: float) -> float:
        """The two-sided bound on |V - V_hat| as it is printed (thesis, lines 2511-2520, 2711-2722)."""
        averages = summary.of(self.correction)
        costs = self._costs(summary, averages, kl, Budget(delta), averages.lost + averages.overshoot)
        return sum(costs.values())

    def resized(self, before: int, after: int) -> Unified:
        """lambda goes with 1 / sqrt(n)."""
        return Unified(self.correction, self.lam * math.sqrt(before / after))

    def _costs(self, summary: Summary, averages: Averages, kl: float, budget: Budget, bias: float) -> dict[str, float]:
        kl = divergence(kl)
        steps = summary.rows * self.lam
        return {
            "contexts": over_contexts(summary, kl, budget.common),
            "divergence": kl / steps,
            "confidence": math.log(1 / budget.rest) / steps,
            "bias": bias,
            "variance": self.lam / 2 * averages.second_moment,
        }


@dataclass(frozen=True)
class AnyLambda(Bound):
    """The same for all lambda in (0, 1) at once, so that lambda may be chosen by looking (thesis, lines 5865-5901).

    The bound at lambda_j = 2^-j, j = 1, 2, ..., with the share lambda_j of delta, which sum to 1. Both ends are the best over
    j. `printed` is the thesis's form for a given lambda, which stands for the j with lambda / 2 <= lambda_j <= lambda and is
    wider.
    """

    correction: Correction
    name: ClassVar[str] = "any-lambda"
    needs_logging: ClassVar[bool] = True

    @property
    def corrections(self) -> tuple[Correction, ...]:
        return (self.correction,)

    def lower(self, summary: Summary, kl: float, budget: Budget) -> Side:
        return max((side for side in self._sides(summary, kl, budget, above=False)), key=lambda side: side.end)

    def upper(self, summary: Summary, kl: float, budget: Budget) -> Side:
        return min((side for side in self._sides(summary, kl, budget, above=True)), key=lambda side: side.end)

    def _sides(self, summary: Summary, kl: float, budget: Budget, *, above: bool) -> list[Side]:
        found = []
        for j in range(1, HALVINGS):
            share = Unified(self.correction, 2.0**-j)
            # the contexts' statement does not depend on lambda, and is made once: only the other half is shared out
            spent = Budget(budget.delta, budget.sides, budget.points)
            side = share.upper(summary, kl, spent) if above else share.lower(summary, kl, spent)
            extra = j * math.log(2) / (summary.rows * share.lam)
            costs = {**side.costs, "confidence": side.costs["confidence"] + extra}
            found.append(Side(side.end + (extra if above else -extra), side.start, costs))
        return found

    def printed(self, summary: Summary, kl: float, delta: float, lam: float) -> float:
        """The bound on |V - V_hat| as it is printed, for any lambda in (0, 1)."""
        if not 0 < lam < 1:
            raise InvalidInput("lambda", lam, "a number above 0 and below 1")
        n, averages, kl = summary.rows, summary.of(self.correction), divergence(kl)
        first = math.sqrt((kl + math.log(8 * math.sqrt(n) / (confidence(delta) * lam))) / (2 * n))
        second = 2 * (kl + math.log(8 / (delta * lam))) / (n * lam)
        return first + averages.lost + second + lam / 2 * averages.second_moment


@dataclass(frozen=True)
class AnyAlpha(Bound):
    """Exponential smoothing from below, for one lambda and all alpha in (0, 1] at once (thesis, lines 5905-5941).

    The bound at alpha_j = 2^-j, j = 0, 1, ..., with the share alpha_j / 2 of delta, which sum to 1. For any alpha there is a
    j with alpha <= alpha_j <= 2 alpha; V_hat grows with alpha, and so does Var_n, hence the value at alpha_j is at least that
    at alpha and the variance at most that at min(2 alpha, 1). There is no upper end: the value at alpha_j is not bounded by
    that at alpha.
    """

    alpha: float
    lam: float
    name: ClassVar[str] = "any-alpha"
    needs_logging: ClassVar[bool] = True

    def __post_init__(self) -> None:
        validate.positive("lambda", self.lam)
        if not validate.probability("alpha", self.alpha) > 0:
            raise InvalidInput("alpha", self.alpha, "a number above 0 and at most 1")

    @property
    def corrections(self) -> tuple[Correction, ...]:
        return (ExponentialAlpha(self.alpha), ExponentialAlpha(min(1.0, 2 * self.alpha)))

    def resized(self, before: int, after: int) -> AnyAlpha:
        """lambda goes with 1 / sqrt(n)."""
        return AnyAlpha(self.alpha, self.lam * math.sqrt(before / after))

    def lower(self, summary: Summary, kl: float, budget: Budget) -> Side:
        own, doubled = (summary.of(one) for one in self.corrections)
        kl, steps = divergence(kl), summary.rows * self.lam
        costs = {
            "contexts": over_contexts(summary, kl, budget.common),
            "divergence": kl / steps,
            "confidence": math.log(2 / (budget.rest * self.alpha)) / steps,
            "bias": own.overshoot,
            "variance": self.lam / 2 * doubled.second_moment,
        }
        return Side(own.value - sum(costs.values()), own.value, costs)

    def upper(self, summary: Summary, kl: float, budget: Budget) -> Side:
        return Side(math.inf, summary.of(self.corrections[0]).value, {})

    def printed(self, summary: Summary, kl: float, delta: float) -> float:
        """What the thesis takes off V_hat."""
        n, (own, doubled) = summary.rows, (summary.of(one) for one in self.corrections)
        kl = divergence(kl)
        first = math.sqrt((kl + math.log(8 * math.sqrt(n) / (confidence(delta) * self.alpha))) / (2 * n))
        second = (kl + math.log(8 / (delta * self.alpha))) / (n * self.lam)
        return first + own.lost + second + self.lam / 2 * doubled.second_moment


__all__ = ["AnyAlpha", "AnyLambda", "Unified"]
