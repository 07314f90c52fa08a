"""Posteriors without rounding: the two-level model of beliefs, conditioned in rational numbers until the very end.

    m ~ N(mu, Omega),    theta_a | m ~ N(W_a m, Sigma_a),    r = x^T theta_a + noise

Every double is a rational number, and so is every entry of the posterior. `benchmarks/accuracy.py` measures with it as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from manyarms._base.typing import Array, Ints

Matrix = list[list[Fraction]]


def rational(array: Array) -> Matrix:
    """The same numbers; a vector as a column."""
    return [[Fraction(value) for value in np.atleast_1d(row).tolist()] for row in array]


def product(*matrices: Matrix) -> Matrix:
    """The product of matrices, from the left."""
    result, *others = matrices
    for other in others:
        columns = list(zip(*other, strict=True))
        result = [[sum((a * b for a, b in zip(row, c, strict=True)), Fraction(0)) for c in columns] for row in result]
    return result


def combined(left: Matrix, right: Matrix, sign: int = 1) -> Matrix:
    """left + sign x right."""
    return [[a + sign * b for a, b in zip(u, v, strict=True)] for u, v in zip(left, right, strict=True)]


def turned(matrix: Matrix) -> Matrix:
    """The transpose."""
    return [list(column) for column in zip(*matrix, strict=True)]


def inverse(matrix: Matrix) -> Matrix:
    """By elimination."""
    n = len(matrix)
    rows = [list(row) + [Fraction(int(i == j)) for j in range(n)] for i, row in enumerate(matrix)]
    for i in range(n):
        pivot = next(k for k in range(i, n) if rows[k][i] != 0)
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for k in range(n):
            if k != i and rows[k][i] != 0:
                factor = rows[k][i]
                rows[k] = [u - factor * v for u, v in zip(rows[k], rows[i], strict=True)]
    return [row[n:] for row in rows]


def sums(X: Array, r: Array) -> tuple[Matrix, Matrix]:
    """X^T X and X^T r (a column). Doubles are integers over powers of 2: integers add up quickly."""
    table = np.column_stack([X, r])
    ratios = [[value.as_integer_ratio() for value in row] for row in table.tolist()]
    scale = max((below for row in ratios for _, below in row), default=1)
    columns = list(zip(*([above * (scale // below) for above, below in row] for row in ratios), strict=True))
    if not columns:
        columns = [()] * table.shape[1]
    *x, y = columns
    square = scale * scale
    G = [[Fraction(sum(a * b for a, b in zip(u, v, strict=True)), square) for v in x] for u in x]
    return G, [[Fraction(sum(a * b for a, b in zip(u, y, strict=True)), square)] for u in x]


@dataclass(frozen=True)
class TwoLevels:
    """A prior: mean (p,) and covariance (p, p) of the root, W (K, d, p), Sigma (K, d, d). No covariance: the root is known."""

    mean: Array
    covariance: Array | None
    W: Array
    Sigma: Array

    def sizes(self) -> Array:
        """(K,): a standard deviation of each theta_a, the largest up to a factor of sqrt(d)."""
        own = np.trace(self.Sigma, axis1=1, axis2=2)
        if self.covariance is not None:
            own = own + np.einsum("adp,pq,adq->a", self.W, self.covariance, self.W)
        return np.sqrt(own)

    def posterior(self, X: Array, actions: Ints, rewards: Array, noise: float) -> tuple[Array, Array, Array]:
        """Means (K, d), covariances (K, d, d), and how far an entry of these moves at most with one of Sigma_a."""
        weight = 1 / Fraction(noise) ** 2
        mean = rational(self.mean)
        precision = [] if self.covariance is None else inverse(rational(self.covariance))
        information = [] if self.covariance is None else product(precision, mean)
        leaves = []
        for a, (W_a, Sigma_a) in enumerate(zip(self.W, self.Sigma, strict=True)):
            W, own = rational(W_a), inverse(rational(Sigma_a))
            G, B = sums(X[actions == a], rewards[actions == a])
            G, B = [[weight * v for v in row] for row in G], [[weight * v for v in row] for row in B]
            S = inverse(combined(own, G))
            leaves.append((S, product(S, B), product(S, own), W))
            if self.covariance is not None:
                pulled = product(turned(W), own)
                told = combined(own, product(own, S, own), -1)
                precision = combined(precision, product(turned(W), told, W))
                information = combined(information, product(pulled, S, B))
        spread = None if self.covariance is None else inverse(precision)
        if spread is not None:
            mean = product(spread, information)
        means, covariances, moves = [], [], []
        for S, c, pull, W in leaves:
            P = product(pull, W)
            moves.append(float(max(sum((abs(v) for v in row), Fraction(0)) for row in pull)) ** 2)
            means.append([row[0] for row in combined(c, product(P, mean))])
            covariances.append(S if spread is None else combined(S, product(P, spread, turned(P))))
        return np.array(means, dtype=np.float64), np.array(covariances, dtype=np.float64), np.array(moves)


def covariance_of_condition(rng: np.random.Generator, d: int, condition: float, largest: float = 1.0) -> Array:
    """A random covariance (d, d) whose eigenvalues go from `largest` down to `largest / condition`."""
    Q, _ = np.linalg.qr(rng.standard_normal((d, d)))
    matrix = (Q * (largest * np.logspace(0, -np.log10(condition), d))) @ Q.T
    return np.asarray((matrix + matrix.T) / 2, dtype=np.float64)
