"""Many small symmetric matrices at once, entry by entry: one vector over the matrices for each entry of the upper triangle.

A library factorises small matrices one after the other, and a call for a 10 x 10 matrix costs more than its arithmetic. Here the
arithmetic of a textbook is written out once, and every operation is one on vectors that have a number for each matrix.
Matrices are (d(d+1)/2, m), the entries in the order of `linalg.Packing`; vectors are (d, m).
"""

from __future__ import annotations

import numpy as np

from manyarms._base import linalg
from manyarms._base.typing import Array

LARGEST = 24  # d up to which this is faster than one call of LAPACK for each matrix
FEWEST = 64  # matrices below which it is not
AT_A_TIME = 1 << 17  # numbers in a table that is in work: a few of them fit into a cache


def suits(dim: int, number: int) -> bool:
    """Whether so many matrices of this size are done sooner here."""
    return dim <= LARGEST and number >= FEWEST


def together(dim: int) -> int:
    """How many matrices to take at a time."""
    return max(FEWEST, AT_A_TIME // (dim * (dim + 1) // 2))


def shrink(C: Array, G: Array, b: Array) -> tuple[Array, Array] | None:
    """`linalg.shrink` with one C (d, d) for all: S = (Sigma^-1 + G)^-1 and S b. None where rounding in a huge G spoils it."""
    d = len(C)
    middle = sandwich(C.T, G)
    middle[_rows_at(d)[:-1]] += 1.0
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        inner, solved = inverse_and_solution(middle, C.T @ b)
        diagonal = inner[_rows_at(d)[:-1]]
        sound = bool(((diagonal > 0) & (diagonal <= 1 + 1e-9)).all())
    return (sandwich(C, inner), C @ solved) if sound else None


def sandwich(A: Array, M: Array) -> Array:
    """A M A^T for symmetric M (d(d+1)/2, m) and one A (d, d): linear in the entries of M, so one product serves all matrices."""
    pack = linalg.packing(len(A))
    if np.count_nonzero(A) == np.count_nonzero(diagonal := np.diagonal(A)):
        return M * (diagonal[pack.rows] * diagonal[pack.columns])[:, None]
    i, j = A[pack.rows], A[pack.columns]  # rows of A for each entry (i, j) of the answer
    map_ = i[:, pack.rows] * j[:, pack.columns]
    beside = pack.rows != pack.columns  # (k, l) and (l, k) are one entry
    map_[:, beside] += i[:, pack.columns[beside]] * j[:, pack.rows[beside]]
    return map_ @ M


def inverse_and_solution(M: Array, b: Array) -> tuple[Array, Array]:
    """M^-1 and M^-1 b of positive definite M; what is not positive definite becomes NaN.

    M = U^T U by Cholesky, V = U^-1 by rows from the last, M^-1 = V V^T; b goes along as one more column: it is solved for.
    """
    d, m = b.shape
    at = _rows_at(d)
    U = [np.concatenate([M[at[i] : at[i + 1]], b[i : i + 1]]) for i in range(d)]  # row i from its diagonal on, and b
    pivots, room = np.empty((d, m)), np.empty((d + 1, m))  # 1 / u_ii
    for i, row in enumerate(U):
        np.divide(1.0, np.sqrt(row[0], out=pivots[i]), out=pivots[i])
        row *= pivots[i]
        for k in range(i + 1, d):
            U[k] -= np.multiply(row[k - i :], row[k - i], out=room[k : d + 1])
    V = [room] * d
    for i in range(d - 1, -1, -1):  # u_ii v_ij = - sum_(k > i) u_ik v_kj, and for the solution y: u_ii y_i = z_i - ...
        V[i] = row = np.zeros((d + 1 - i, m))
        row[-1] = U[i][-1]
        for k in range(i + 1, d):
            row[k - i :] += np.multiply(V[k], U[i][k - i], out=room[k : d + 1])
        row *= -pivots[i]
        row[0] = pivots[i]
    inverse, solution = np.empty(M.shape), np.empty(b.shape)
    for i in range(d):
        for j in range(i, d):
            np.einsum("km,km->m", V[i][j - i : -1], V[j][:-1], out=inverse[at[i] + j - i])
        np.negative(V[i][-1], out=solution[i])
    return inverse, solution


def _rows_at(d: int) -> list[int]:
    """Where each row of the upper triangle begins, with its diagonal entry; and the end."""
    return [i * (2 * d - i + 1) // 2 for i in range(d + 1)]


__all__ = ["inverse_and_solution", "sandwich", "shrink", "suits", "together"]
