"""The bounds of London and Sandler (2019) and of Sakhi et al. (2022), for clipped weights pi / max(pi0, tau).

Thesis, lines 6213-6263. All three are lower bounds; what they say of 1 - r is an upper bound for r.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from manyarms._base import validate
from manyarms.certificates.bounds.base import Bound, Budget, Side, complement, divergence, over_contexts
from manyarms.certificates.summaries import Summary
from manyarms.errors import InvalidInput
from manyarms.weights import ClipPropensities, Correction

STEPS = 200


def check_tau(tau: float) -> float:
    """A threshold above 0, since these bounds divide by it."""
    if not 0 < validate.probability("tau", tau) <= 1:
        raise InvalidInput("tau", tau, "a number above 0 and at most 1")
    return float(tau)


def kl_of_coins(p: float, q: float) -> float:
    """The divergence of coins that fall on their head with probability p and q."""
    first = p * math.log(p / q) if p > 0 else 0.0
    return first + ((1 - p) * math.log((1 - p) / (1 - q)) if p < 1 else 0.0)


def smallest_with(p: float, limit: float) -> float:
    """The smallest q <= p with kl(p, q) <= limit, from below."""
    low, high = 0.0, p
    for _ in range(STEPS):
        middle = (low + high) / 2
        if middle <= low or middle >= high:
            break
        low, high = (low, middle) if kl_of_coins(p, middle) <= limit else (middle, high)
    return low


class _FromBelow(Bound):
    """A lower end for a mean of clipped terms tau Z in [0, 1], twice."""

    tau: float

    @property
    def corrections(self) -> tuple[Correction, ...]:
        return (ClipPropensities(self.tau),)

    def lower(self, summary: Summary, kl: float, budget: Budget) -> Side:
        return self._side(summary.of(self.corrections[0]).value, summary.rows, divergence(kl), budget)

    def upper(self, summary: Summary, kl: float, budget: Budget) -> Side:
        return complement(self._side(summary.of(self.corrections[0]).complement, summary.rows, divergence(kl), budget))

    def _side(self, estimate: float, rows: int, kl: float, budget: Budget) -> Side:
        end, without = self.end(estimate, rows, kl, budget.each), self.end(estimate, rows, 0.0, budget.each)
        return Side(end, estimate, {"divergence": without - end, "confidence": estimate - without})

    @abstractmethod
    def end(self, estimate: float, rows: int, kl: float, delta: float) -> float:
        """The lower end from the mean of n clipped terms."""


@dataclass(frozen=True)
class London(_FromBelow):
    """V >= V_hat - sqrt(2 (1/tau - V_hat) c / tau) - 2 c / tau,   c = (KL + log(n/delta)) / (n - 1)   (thesis, lines 6215-6221).

    1 - tau Z with Z = 1(h = A) R / max(p, tau) lies in [0, 1]. For such losses kl(q_hat, q) <= (KL + log(2 sqrt(n)/delta)) /
    n for all posteriors (Maurer; see `over_contexts`), which is at most c for n >= 2; and kl(q_hat, q) >= (q - q_hat)^2 / (2
    q) for q >= q_hat gives q <= q_hat + sqrt(2 q_hat c) + 2 c. With q = 1 - tau E Z and E Z <= V the statement follows.
    """

    tau: float
    name: ClassVar[str] = "london"

    def __post_init__(self) -> None:
        check_tau(self.tau)

    def end(self, estimate: float, rows: int, kl: float, delta: float) -> float:
        if rows < 2:
            return -math.inf
        c = (kl + math.log(rows / delta)) / (rows - 1)
        return estimate - math.sqrt(2 * max(0.0, 1 / self.tau - estimate) * c / self.tau) - 2 * c / self.tau


@dataclass(frozen=True)
class Sakhi1(_FromBelow):
    """V >= max over l > 0 of (exp(l tau V_hat - c) - 1) / (tau (e^l - 1)),   c = (KL + log(2 sqrt(n)/delta)) / n.

    Catoni's bound for the losses 1 - tau Z of `London`: q <= (1 - exp(-l q_hat - c)) / (1 - e^-l), for all l at once because
    kl(q_hat, q) is the supremum over l of -l q_hat - log(1 - q (1 - e^-l)) (Germain et al., 2009), and kl(q_hat, q) <= c.
    With q = 1 - tau V and q_hat = 1 - tau V_hat the form above follows. The thesis (lines 6237-6241) prints exp(... + c)
    inside, by which a larger divergence would tighten the bound; here it loosens it. The maximum over l is where kl(tau
    V_hat, tau V) = c.
    """

    tau: float
    name: ClassVar[str] = "sakhi-1"

    def __post_init__(self) -> None:
        check_tau(self.tau)

    def end(self, estimate: float, rows: int, kl: float, delta: float) -> float:
        c = (kl + math.log(2 * math.sqrt(rows) / delta)) / rows
        return smallest_with(min(max(self.tau * estimate, 0.0), 1.0), c) / self.tau


@dataclass(frozen=True)
class Sakhi2(Bound):
    """V >= V_hat - c - (KL + log(2/delta)) / l - l/n g(l / (tau n)) V_n,   g(u) = (e^u - 1 - u) / u^2.

    Thesis, lines 6257-6263.

    c bounds the error of contexts as in `Unified`. Given the contexts, Z - E Z <= 1/tau, so E exp(t (Z - E Z)) <=
    exp(t^2 g(t/tau) E Z^2) (Bennett), with t = l/n and a change of measure; E Z^2 is at most the sum over a of
    pi pi0 / max(pi0, tau)^2, whose mean is V_n, the expected square of `Averages`. Clipping counts too little: V >= the mean.
    From above the bias B_n is added, and since Z >= 0, E exp(-t Z) <= 1 - t E Z + t^2/2 E Z^2: 1/2 takes the place of g.
    """

    tau: float
    lam: float
    name: ClassVar[str] = "sakhi-2"
    needs_logging: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_tau(self.tau)
        validate.positive("lambda", self.lam)

    @property
    def corrections(self) -> tuple[Correction, ...]:
        return (ClipPropensities(self.tau),)

    def resized(self, before: int, after: int) -> Sakhi2:
        """lambda goes with sqrt(n)."""
        return Sakhi2(self.tau, self.lam * math.sqrt(after / before))

    def lower(self, summary: Summary, kl: float, budget: Budget) -> Side:
        value = summary.of(self.corrections[0]).value
        costs = self._costs(summary, kl, budget, bennett(self.lam / (self.tau * summary.rows)), 0.0)
        return Side(value - sum(costs.values()), value, costs)

    def upper(self, summary: Summary, kl: float, budget: Budget) -> Side:
        averages = summary.of(self.corrections[0])
        costs = self._costs(summary, kl, budget, 0.5, averages.lost)
        return Side(averages.value + sum(costs.values()), averages.value, costs)

    def _costs(self, summary: Summary, kl: float, budget: Budget, curve: float, bias: float) -> dict[str, float]:
        averages = summary.of(self.corrections[0])
        kl = divergence(kl)
        if averages.expected_square is None:
            _ = averages.second_moment  # says what is missing
        assert averages.expected_square is not None
        return {
            "contexts": over_contexts(summary, kl, budget.common),
            "divergence": kl / self.lam,
            "confidence": math.log(1 / budget.rest) / self.lam,
            "bias": bias,
            "variance": self.lam / summary.rows * curve * averages.expected_square,
        }


def bennett(u: float) -> float:
    """(e^u - 1 - u) / u^2, and 1/2 at 0."""
    if u < 1e-4:
        return 0.5 + u / 6
    return (math.expm1(u) - u) / u**2 if u < 700 else math.inf


__all__ = ["London", "Sakhi1", "Sakhi2", "bennett", "check_tau", "kl_of_coins", "smallest_with"]
