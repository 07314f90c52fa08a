"""Small pieces of linear algebra that the beliefs share: packed symmetric matrices and stable rank-one updates."""

from __future__ import annotations

from functools import lru_cache
from typing import cast

import numpy as np

from manyarms._base.typing import AnyArray, Array, Ints

GATHERED = 1 << 22  # numbers in a block of gathered rows
ROUNDING = 8 * float(np.finfo(np.float64).eps)


class Packing:
    """Symmetric d x d matrices stored as their upper triangle, d(d+1)/2 numbers each.

    With S_a packed as rows of one table, x^T S_a y for *all* a is a single product of that table with `bilinear(x, y)`:
    half the memory of full matrices, and the fastest layout we measured for scoring many actions.
    """

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self.rows, self.columns = np.triu_indices(dim)
        self.size = len(self.rows)
        self._position = np.empty((dim, dim), dtype=np.int64)
        self._position[self.rows, self.columns] = np.arange(self.size)
        self._position[self.columns, self.rows] = np.arange(self.size)
        self._diagonal = self.rows == self.columns

    def pack(self, matrices: Array) -> Array:
        """(..., d, d) to (..., d(d+1)/2); the lower triangle is taken to mirror the upper one."""
        return matrices[..., self.rows, self.columns]

    def unpack(self, packed: Array) -> Array:
        """(..., d(d+1)/2) to full matrices (..., d, d)."""
        return packed[..., self._position]

    def bilinear(self, x: Array, y: Array) -> Array:
        """Coefficients f with f . packed(S) = x^T S y for symmetric S; x and y of shape (..., d)."""
        left = x[..., self.rows] * y[..., self.columns]
        right = x[..., self.columns] * y[..., self.rows]
        right[..., self._diagonal] = 0.0
        left += right
        return left


@lru_cache(maxsize=64)
def packing(dim: int) -> Packing:
    """The packing of d x d matrices (index tables are made once per d)."""
    return Packing(dim)


def inverse(matrices: Array) -> Array:
    """Inverse of symmetric positive definite matrices (..., d, d), symmetric to the last bit."""
    result = np.linalg.inv(matrices)
    return (result + np.swapaxes(result, -1, -2)) / 2


def raised(matrix: Array, least: float) -> Array:
    """A symmetric matrix with the eigenvalues below `least` raised to it; the same matrix where there is none."""
    values, vectors = np.linalg.eigh(matrix)
    if values[0] >= least:
        return matrix
    out = (vectors * np.maximum(values, least)) @ vectors.T
    return cast(Array, (out + out.T) / 2)


def shrink(C: Array, G: Array, b: Array) -> tuple[Array, Array]:
    """S = (Sigma^-1 + G)^-1 and S b, for Sigma = C C^T (n, d, d), positive semi-definite G and vectors b (n, d).

    S = C (I + C^T G C)^-1 C^T: the matrix in the middle has no eigenvalue below 1 however large or
    small Sigma is. Should rounding in a huge G spoil even that, its eigenvalues are clipped where they must lie.
    S b is solved for, not multiplied: where contexts are nearly collinear and noise is tiny, S alone has too few digits.
    """
    d = C.shape[-1]
    Ct = np.swapaxes(C, -1, -2)
    middle = Ct @ G @ C
    middle = (middle + np.swapaxes(middle, -1, -2)) / 2
    right = np.concatenate([np.broadcast_to(np.eye(d), middle.shape), Ct @ b[..., None]], axis=-1)
    try:
        solved = np.linalg.solve(middle + np.eye(d), right)
        inner = solved[..., :d]
        diagonal = np.diagonal(inner, axis1=-2, axis2=-1)
        sound = bool(((diagonal > 0) & (diagonal <= 1 + 1e-9)).all())
    except np.linalg.LinAlgError:
        sound = False
    if not sound:
        values, vectors = np.linalg.eigh(middle)
        solved = vectors @ ((np.swapaxes(vectors, -1, -2) @ right) / (1 + np.maximum(values, 0.0))[..., None])
    result = C @ solved[..., :d] @ Ct
    return (result + np.swapaxes(result, -1, -2)) / 2, (C @ solved[..., d:])[..., 0]


def condition(covariance: Array, x: Array, noise_variance: float) -> tuple[Array, Array, float]:
    """Covariance of theta after one noisy observation of x^T theta: (new covariance, gain, total variance).

    gain k = S x / (x^T S x + s^2). The Joseph form (I - k x^T) S (I - k x^T)^T + s^2 k k^T equals the usual
    S - k (S x)^T in exact arithmetic and stays positive and accurate when the noise is tiny or contexts nearly repeat.
    Noise below the rounding error of x^T S x itself is raised to it: no observation can tell more than that.
    """
    Sx = covariance @ x
    noise_variance = max(noise_variance, ROUNDING * float(x @ x) * float(covariance.trace()))
    total = float(x @ Sx) + noise_variance
    gain = Sx / total
    left = covariance - np.outer(gain, Sx)
    right = left @ x - noise_variance * gain  # zero in exact arithmetic: this is the correction of rounding
    left -= np.outer(right, gain)
    left += left.T
    left *= 0.5
    return left, gain, total


def condition_factor(factor: Array, mean: Array, u: Array, variance: float, value: float) -> None:
    """In place: N(mean, S S^T) given that u^T m was seen as `value` with `variance`.

    Potter's square-root update, S <- S - g (S w) w^T with w = S^T u and g = 1 / (t + sqrt(v t)), t = w^T w + v. The
    covariance S S^T is positive semi-definite by construction, and nothing is factorised or inverted again.
    """
    w = u @ factor
    total = float(w @ w) + variance
    Sw = factor @ w
    mean += Sw * ((value - float(u @ mean)) / total)
    w *= 1.0 / (total + np.sqrt(variance * total))
    factor -= np.outer(Sw, w)


def factor_from_precision(precision: Array) -> Array:
    """S with S S^T = precision^-1, for one matrix or a stack; S is upper triangular."""
    lower = np.linalg.cholesky(precision)
    eye = np.broadcast_to(np.eye(precision.shape[-1]), precision.shape)
    return cast(Array, np.swapaxes(np.linalg.solve(lower, eye), -1, -2))


def inner_products_at(x: AnyArray, rows: AnyArray, ids: Ints) -> AnyArray:
    """(b, m): x_i . rows[ids_ij] for x (b, d), rows (K, d) and ids (b, m), in blocks of gathered rows."""
    out = np.empty(ids.shape, dtype=rows.dtype)
    step = max(1, GATHERED // max(1, ids.shape[1] * rows.shape[1]))
    for start in range(0, len(x), step):
        part = slice(start, start + step)
        np.einsum("bd,bmd->bm", x[part], rows[ids[part]], out=out[part])
    return out


def first_rows(labels: AnyArray) -> Ints:
    """Position of the first occurrence of each label in a sorted array of labels."""
    return np.flatnonzero(np.r_[True, labels[1:] != labels[:-1]])
