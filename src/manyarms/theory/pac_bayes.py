"""What can be said where the world is known, or before there is a log: the direct bound, the oracle inequality, sample sizes.

None of these is a certificate: they rest on numbers that no log gives (thesis, Section 8.4.2 and Appendix E.2.4).
"""

from __future__ import annotations

import math
import numbers

from manyarms._base import validate
from manyarms.bounds.base import Budget, divergence, fixed_lambda
from manyarms.bounds.concentration import confidence
from manyarms.bounds.summary import Summary
from manyarms.bounds.unified import Unified
from manyarms.certificates.sample_size import smallest
from manyarms.errors import InvalidInput


def direct_bound_width(bound: Unified, summary: Summary, kl: float, delta: float, expected_square: float) -> float:
    """A bound on |E V_hat - V_hat| that needs the world: (KL + log(2/delta)) / (lambda n) + lambda/2 (logged + expected square).

    expected_square: the expectation over contexts, actions of pi0 and rewards of pi R^2 / h^2. The argument of `Unified` for
    I3, with contexts drawn as well: f = E Z - Z over a whole row, and no I1; E V_hat is not V, but V less the bias
    (thesis, Section 8.4.2).
    """
    _require(bound, "summary", summary)
    averages, n, lam = summary.of(bound.correction), summary.rows, fixed_lambda(bound.lam)
    expected_square = validate.not_negative("expected_square", expected_square)
    spent = (divergence(kl) + math.log(2 / confidence("delta", delta))) / (lam * n)
    return spent + lam / 2 * (averages.logged_square + expected_square)


def oracle_gap(bound: Unified, best: Summary, kl: float, delta: float) -> float:
    """How far the policy with the largest lower end can be below the best policy, given the latter's summary.

    With probability at least 1 - delta both ends hold for both policies. L(learned) >= L(best) for the lower ends L, so
    V(learned) >= L(best) = V_hat(best) - costs below, and V_hat(best) >= V(best) - costs above: the sum of both. Learning by
    the printed width instead, bias on both sides, gives twice the width (thesis, Appendix E.2.4).
    """
    _require(bound, "best", best)
    budget = Budget(delta)
    below, above = bound.lower(best, kl, budget), bound.upper(best, kl, budget)
    return above.end - below.end


def uniform_logging_gap(rows: int, actions: int, alpha: float, distance: float, delta: float) -> float:
    """The oracle inequality for uniform logging, Gaussian policies with sigma = 1, lambda = 1/sqrt(n) (thesis, Appendix E.2.4).

        (sqrt(D^2 + 2 log(4 sqrt(n)/delta)) + D^2 + 2 log(4/delta) + K^(2 alpha - 1) + K^(2 alpha)) / sqrt(n) + 2 (1 -
        K^(alpha - 1))

    with D the distance of the best policy's mean to the prior's: B_n = 1 - K^(alpha - 1) and Var_n <= K^(2 alpha - 1) + K^(2
    alpha).
    """
    n, K, delta = validate.count("rows", rows), validate.count("actions", actions), confidence("delta", delta)
    a, square = validate.probability("alpha", alpha), validate.not_negative("distance", distance) ** 2
    root = math.sqrt(square + 2 * math.log(4 * math.sqrt(n) / delta))
    moving = root + square + 2 * math.log(4 / delta) + K ** (2 * a - 1) + K ** (2 * a)
    return float(moving / math.sqrt(n) + 2 * (1 - K ** (a - 1)))


def uniform_logging_rows(gap: float, actions: int, alpha: float, distance: float, delta: float) -> int:
    """The smallest n with uniform_logging_gap <= gap; gap must exceed what the bias costs, 2 (1 - K^(alpha - 1))."""
    actions, alpha = validate.count("actions", actions), validate.probability("alpha", alpha)
    least = 2 * (1 - actions ** (alpha - 1))
    if not (isinstance(gap, numbers.Real) and gap == math.inf):  # which any number of rows has
        gap = validate.number("gap", gap)
    if not gap > least:
        raise InvalidInput("gap", gap, f"more than the bias costs at any number of rows, {least:.4g}")
    found = smallest(lambda n: uniform_logging_gap(n, actions, alpha, distance, delta) <= gap)
    if found is None:
        raise InvalidInput("gap", gap, f"more than {least:.4g} by enough for some number of rows")
    return found


def _require(bound: object, argument: str, summary: object) -> None:
    validate.instance("bound", bound, Unified, "a unified bound, manyarms.bounds.Unified(correction, lambda)")
    validate.instance(argument, summary, Summary, "a summary, from manyarms.certificates.summarise")


__all__ = ["direct_bound_width", "oracle_gap", "uniform_logging_gap", "uniform_logging_rows"]
