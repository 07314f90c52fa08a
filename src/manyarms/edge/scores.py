"""Scores x^T theta_a that come out the same everywhere, and the best of them.

A score is the sum of the products x_j theta_aj in the order of the features, each product and each sum rounded to float64 in its
turn: whoever follows this order has the same bits, on whatever machine, and so the same best action. Of equal scores the first in
the bundle is the best.

Large tables are searched in float32 first, by a matrix product in whatever order its library likes. What may be the best, given
how far off such a product can be, is then scored in order: the answer is the same, and most actions are looked at only once.
"""

from __future__ import annotations

import numpy as np

from manyarms._base.typing import AnyArray, Array, Ints

AT_A_TIME = 4096  # actions
FEW = 1 << 14  # numbers in tables that are scored in order at once
ROUNDING = 2.0**-23  # twice that of float32
TINY = 2.0**-140  # what products lose that are smaller than any normal float32


def in_order(table: AnyArray, x: Array) -> Array:
    """Scores (n,) of a table (n, d)."""
    out = np.empty(len(table))
    for start in range(0, len(table), AT_A_TIME):
        columns = np.ascontiguousarray(table[start : start + AT_A_TIME].T, dtype=np.float64)
        scores = np.multiply(columns[0], x[0], out=out[start : start + AT_A_TIME])
        for column, number in zip(columns[1:], x[1:], strict=True):
            column *= number
            scores += column
    return out


def best(tables: AnyArray, x: Array, barred: Ints, largest: Array) -> Ints:
    """(M,): the place of the best action in each of the tables (M, n, d), but for the barred places.

    largest: (M, d), no number of a table is larger in size.
    """
    if tables.size <= FEW:
        return np.array([_best_in_order(table, x, None, barred) for table in tables], dtype=np.int64)
    draws, number, dim = tables.shape
    scaled = np.ldexp(x, -np.frexp(np.abs(x).max())[1])
    near = (tables.reshape(draws * number, dim) @ scaled.astype(np.float32)).reshape(draws, number)
    near[:, barred] = -np.inf
    slack = 2 * ((dim + 3) * ROUNDING * (largest @ np.abs(scaled)) + dim * TINY)
    least = near.max(axis=1) - slack  # in float64
    found = np.empty(draws, dtype=np.int64)
    for draw, table in enumerate(tables):
        found[draw] = _best_in_order(table, x, np.flatnonzero(near[draw] >= least[draw]), barred)
    return found


def _best_in_order(table: AnyArray, x: Array, places: Ints | None, barred: Ints) -> int:
    """The place of the best, of some places (ascending, none of them barred) or of all."""
    if places is not None:
        return int(places[in_order(table[places], x).argmax()])
    scores = in_order(table, x)
    scores[barred] = -np.inf
    return int(scores.argmax())


__all__ = ["best", "in_order"]
