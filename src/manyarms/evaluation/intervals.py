"""Confidence intervals for means of terms. Functions on plain numbers; `manyarms.evaluation.estimate` picks among them.

    normal       value -+ z se                                   for many rows and weights without a heavy tail
    bootstrap    quantiles of resampled means                    the same, and follows a skew
    block        quantiles of means of resampled blocks of time   the same, and rows may depend on rows near in time
    bernstein    Maurer and Pontil (2009)                        any n, for terms with a known span
    ls           logarithmic smoothing                           any n and any weights, for rewards in [0, 1]

The first two are approximations: with heavy-tailed weights and an effective sample of few rows they cover less than they
say (in tests/evaluation/test_intervals.py: at 90 %, 89 % of the time for a moderate change of policy and 400 rows, 65 %
for a large one and 30 rows). The last two hold for every n, for rows that are independent and a policy that was fixed
before they were seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from manyarms._base.tables import Shown, Table
from manyarms._base.text import interval_text
from manyarms.bounds.concentration import bernstein_margin, confidence, from_products

KINDS = ("normal", "bootstrap", "block", "bernstein", "ls")


@dataclass(frozen=True, repr=False)
class Interval(Shown):
    """Two ends, what they were computed by, and what they are for."""

    low: float
    high: float
    kind: str
    level: float
    covers: str

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def _table(self) -> Table:
        return Table(f"{self.covers}: {interval_text(self.low, self.high)}, {self.kind} at {self.level:.4g}")


def normal(value: float, standard_error: float, level: float) -> tuple[float, float]:
    """value -+ z se."""
    far = reach(standard_error, level)
    return value - far, value + far


def reach(standard_error: float, level: float) -> float:
    """z se."""
    return NormalDist().inv_cdf((1 + level) / 2) * standard_error


def ls_lower(estimate: float, smoothing: float, rows: int, delta: float) -> float:
    """A lower confidence bound of the value from V = mean of log(1 + l w r) / l, for rewards of at least 0, l > 0.

        value >= (exp(l V - log(1/delta) / n) - 1) / l    with probability at least 1 - delta

    `from_products` for Z = w r, rows being independent: the product over i of (1 + l w_i r_i) has expectation
    (1 + l E[w r])^n; by Markov's inequality it exceeds that 1/delta times with probability at most delta, and E[w r] is at
    most the value (less where the logging policy leaves actions out). Nothing else is assumed: weights may be unbounded,
    and the number of rows small. l must not depend on the rows (1/sqrt(n) does not). Sakhi et al. (2024).
    """
    return max(0.0, from_products(estimate, smoothing, rows, math.log(1 / delta)))


__all__ = [
    "KINDS", "Interval", "bernstein_margin", "confidence", "ls_lower", "normal", "reach",
]  # fmt: skip
