"""Concentration inequalities that the bounds and the intervals of evaluation rest on, each written once.

Floats, and torch scalars where nothing has to be solved for.
"""

from __future__ import annotations

import math

from manyarms._base import arrays, validate
from manyarms.errors import InvalidInput

STEPS = 200
NEAREST_TO_ONE = 1e-15  # one minus a level: nearer ones have no quantiles in double precision


def confidence(name: str, level: float) -> float:
    """A probability strictly between 0 and 1, which can be divided among many statements and told from 0 and 1."""
    found = validate.probability(name, level)
    if not 0 < found < 1:
        raise InvalidInput(name, validate.describe(level), "a number above 0 and below 1")
    if found < validate.SMALLEST or 1 - found < NEAREST_TO_ONE:
        expected = f"a number above 0 and below 1, from {validate.SMALLEST:g} to 1 - {NEAREST_TO_ONE:g}"
        raise InvalidInput(name, validate.describe(level), expected)
    return found


def bernstein_margin(variance: float, rows: int, width: float, delta: float) -> float:
    """How far a mean of n terms with sample variance V and span `width` can be from its expectation, one-sided.

    With probability at least 1 - delta,  E[Z] <= mean + sqrt(2 V log(2/delta) / n) + 7 width log(2/delta) / (3 (n - 1)),
    and the same below: Maurer and Pontil (2009), theorem 4, for independent terms.
    """
    if rows < 2:
        return math.inf
    log = math.log(2 / delta)
    return arrays.sqrt(2 * variance * log / rows) + 7 * width * log / (3 * (rows - 1))


def from_products(estimate: float, smoothing: float, rows: int, spent: float) -> float:
    """A lower bound (exp(l V - spent / n) - 1) / l of E Z, from V, the mean of log(1 + l Z_i) / l, for independent Z_i >= 0.

    The product over i of (1 + l Z_i) has expectation (1 + l E Z)^n. By Markov's inequality it exceeds that 1/delta times with
    probability at most delta: spent = log(1/delta), to which PAC-Bayes adds the divergence (`LogSmoothingBound`).
    """
    # below -745 the exponential is 0 in double precision
    return arrays.expm1(arrays.clip(smoothing * estimate - spent / rows, -745.0)) / smoothing


def over_contexts(rows: int, kl: float, delta: float) -> float:
    """How far the mean over n contexts of V(pi_Q|X_i) can be from V(pi_Q), for all posteriors Q at once.

    The value of a rule h at a context lies in [0, 1], and for such variables E exp(n kl(mean, expectation)) <= 2 sqrt(n)
    (Maurer, 2004; Germain et al., 2015, for all n). A change of measure from the prior to Q, Jensen's inequality for the
    convex kl, and Pinsker's 2 (p - q)^2 <= kl(p, q) give sqrt((KL + log(2 sqrt(n) / delta)) / (2 n)), on both sides
    (thesis, Appendix E.2.1).
    """
    return arrays.sqrt((kl + math.log(2 * math.sqrt(rows) / delta)) / (2 * rows))


def bernoulli_kl(p: float, q: float) -> float:
    """The divergence of coins that fall on their head with probability p and q."""
    first = p * math.log(p / q) if p > 0 else 0.0
    return first + ((1 - p) * math.log((1 - p) / (1 - q)) if p < 1 else 0.0)


def kl_inverse(p: float, limit: float) -> float:
    """The smallest q <= p with kl(p, q) <= limit, from below."""
    low, high = 0.0, p
    for _ in range(STEPS):
        middle = (low + high) / 2
        if middle <= low or middle >= high:
            break
        low, high = (low, middle) if bernoulli_kl(p, middle) <= limit else (middle, high)
    return low


def chernoff_upper(mean: float, rows: int, delta: float) -> float:
    """An upper bound of an expectation from the mean of n independent numbers in [0, 1]: kl(mean, q) <= log(1/delta) / n.

    Chernoff's inequality, which holds for all variables in [0, 1] since coins have the largest moments.
    """
    mean, rows, delta = validate.probability("mean", mean), validate.count("rows", rows), confidence("delta", delta)
    return 1.0 - kl_inverse(1.0 - mean, math.log(1 / delta) / rows)


def bennett(u: float) -> float:
    """(e^u - 1 - u) / u^2, and 1/2 at 0."""
    if u < 1e-4:
        return 0.5 + u / 6
    return (math.expm1(u) - u) / u**2 if u < 700 else math.inf


__all__ = [
    "bennett", "bernoulli_kl", "bernstein_margin", "chernoff_upper", "confidence", "from_products", "kl_inverse",
    "over_contexts",
]  # fmt: skip
