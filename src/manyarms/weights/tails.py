"""How heavy is the tail of the importance weights? Pareto k (Vehtari, Simpson, Gelman, Yao and Gabry, 2024).

Above a high threshold u almost any distribution looks like a generalised Pareto one (Pickands, 1975),

    P(w > u + x | w > u) = (1 + k x / sigma)^(-1/k)

whose moments exist up to 1/k: at k < 1/2 the variance of the weights is finite, at k >= 1 not even their mean. An average of n
weights has a useful error up to about k = min(1 - 1 / log10(n), 0.7); above, neither it nor its standard error can be trusted.
The threshold leaves the largest min(n/5, 3 sqrt(n)) weights above it, and k is estimated as Zhang and Stephens (2009) do.
"""

from __future__ import annotations

import math

import numpy as np

from manyarms._base.typing import Array

KEPT = 16_384  # weights: as many as the rule wants up to 29.8 million rows; beyond, the threshold is a higher one
FEWEST = 5  # weights above the threshold, below which k is not estimated
RELIABLE = 0.7
LEAST = 1e-290  # of a quartile, in units of the largest: what is divided by must not vanish
SHRINKAGE = 10.0  # weights' worth of evidence for k = 1/2, as in Vehtari et al.


class LargestWeights:
    """The largest weights of a stream, in bounded memory."""

    def __init__(self) -> None:
        self.rows = 0
        self._kept: Array = np.empty(0)
        self._least = 0.0  # what is not above this cannot be among the largest
        self._fitted: tuple[int, float | None] = (0, None)  # rows, and their k

    def add(self, weights: Array) -> None:
        """More weights, of at least 0."""
        self.rows += len(weights)
        self._keep(weights[weights > self._least])

    def merge(self, other: LargestWeights) -> None:
        """The weights of another stream: the largest of both are among the largest of each."""
        self.rows += other.rows
        self._least = max(self._least, other._least)
        self._keep(other._kept)

    def _keep(self, weights: Array) -> None:
        self._kept = np.concatenate([self._kept, weights])
        if len(self._kept) > 2 * KEPT:
            self._kept = np.partition(self._kept, -KEPT - 1)[-KEPT - 1 :]
            self._least = float(self._kept.min())

    def pareto_k(self) -> float | None:
        """The shape k of the tail; None where too few weights differ for one."""
        if self._fitted[0] != self.rows:
            self._fitted = self.rows, self._shape()
        return self._fitted[1]

    def _shape(self) -> float | None:
        above = math.ceil(min(0.2 * self.rows, 3 * math.sqrt(self.rows), KEPT))
        largest = np.sort(self._kept)[::-1]
        threshold = float(largest[above]) if above < len(largest) else 0.0  # zeros are not kept
        excess = largest[:above] - threshold
        excess = excess[excess > 1e-9 * threshold]  # weights that are equal up to rounding are no tail
        return pareto_shape(excess) if len(excess) >= FEWEST else None


def largest_reliable_k(rows: int) -> float:
    """Up to which k an average of so many weights can be trusted: min(1 - 1 / log10(n), 0.7)."""
    return min(1 - 1 / math.log10(rows), RELIABLE) if rows > 1 else -math.inf


def pareto_shape(excess: Array) -> float:
    """k of a generalised Pareto distribution from its draws x > 0, with a little weight on 1/2.

    With theta = -k / sigma the likelihood has a profile in theta alone, l(theta) = log(-theta / k(theta)) - k(theta) - 1 per
    draw, k(theta) = mean of log(1 - theta x). Zhang and Stephens (2009) average theta over a grid, each point weighed by its
    likelihood under a weak prior: no optimiser, and nothing to fail.
    """
    x = np.sort(excess) / excess.max()  # k does not depend on the scale
    n = len(x)
    points = 30 + int(math.sqrt(n))
    quartile = max(x[max(0, int(n / 4 + 0.5) - 1)], LEAST)
    theta = 1.0 + (1.0 - np.sqrt(points / (np.arange(1, points + 1) - 0.5))) / (3.0 * quartile)
    theta = theta[theta != 0]
    k = np.array([float(np.log1p(-one * x).mean()) for one in theta])  # all 1 - theta x > 0, as theta < 1 / max x
    profile = n * (np.log(-theta / k) - k - 1.0)
    share = np.exp(profile - profile.max())
    best = float((theta * share).sum() / share.sum())
    found = float(np.log1p(-best * x).mean())
    return (found * n + 0.5 * SHRINKAGE) / (n + SHRINKAGE)


__all__ = ["LargestWeights", "largest_reliable_k", "pareto_shape"]
