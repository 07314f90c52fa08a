"""Blocks of similar actions, so that most unplayed actions need not be looked at.

The mean score of unit u is features_u . c. Units are ordered by a kd-tree on their features and cut into blocks of about a
thousand; inside a box with centre m and half-width h, features . c <= m . c + h . |c|. One product with the boxes then
bounds the means of everything inside.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from manyarms._base.typing import Array, Ints

BLOCK = 1024


class Blocks:
    """kd-tree blocks over rows of features."""

    def __init__(self, features: Array) -> None:
        order, bounds = _kd_order(features, BLOCK)
        self.order = order  # unit at each place
        self.starts = bounds[:-1]
        self.stops = bounds[1:]
        rows = features[order]
        low = np.minimum.reduceat(rows, self.starts, axis=0)
        high = np.maximum.reduceat(rows, self.starts, axis=0)
        # each block is held apart, its features by column: a product with it then reads one run of memory
        self.members = [np.ascontiguousarray(rows[a:b].T) for a, b in pairwise(bounds.tolist())]
        self.centre = (low + high) / 2
        self.half_width = (high - low) / 2
        # rounding of centre and half-width must never put a member outside its box
        self.half_width += 4 * np.finfo(float).eps * (np.abs(self.centre) + self.half_width)
        self.place_of = np.empty(len(order), dtype=np.int64)
        self.place_of[order] = np.arange(len(order))

    def __len__(self) -> int:
        return len(self.starts)

    def bounds(self, c: Array) -> Array:
        """An upper bound on the mean scores in each block."""
        centre = self.centre @ c
        bound = centre + self.half_width @ np.abs(c)
        # the products themselves round, too
        bound += 1e-13 * (np.abs(bound) + np.abs(centre))
        return np.asarray(bound)

    @property
    def nbytes(self) -> int:
        """Bytes of the tables."""
        return sum(m.nbytes for m in self.members) + self.order.nbytes + self.place_of.nbytes + 2 * self.centre.nbytes


def _kd_order(features: Array, size: int) -> tuple[Ints, Ints]:
    """Rows in kd-tree order and the bounds of runs of at most `size`: split the widest side at the median."""
    order = np.arange(len(features))
    runs = [(0, len(features))]
    done: list[int] = [0]
    while runs:
        start, stop = runs.pop()
        if stop - start <= size:
            done.append(stop)
            continue
        rows = order[start:stop]
        values = features[rows]
        side = int(np.argmax(values.max(axis=0) - values.min(axis=0)))
        middle = (stop - start) // 2
        order[start:stop] = rows[np.argpartition(values[:, side], middle)]
        runs.append((start + middle, stop))
        runs.append((start, start + middle))  # popped first: bounds come out in ascending order
    return order, np.array(done)
