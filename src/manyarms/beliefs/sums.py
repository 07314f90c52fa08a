"""Sufficient statistics of linear rewards: sums by action over chunks of rows, of any number.

    G_a = sum x x^T,    B_a = sum r x,    n_a        over the rows of action a        (thesis, Section 6.3.2)

The sums are additive, so a log folds chunk by chunk and is never in memory as a whole; memory follows the actions seen.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from manyarms._base import linalg
from manyarms._base.typing import Array, Ints
from manyarms.beliefs.growable import GrowableArray

PRODUCTS_AT_A_TIME = 1 << 21  # numbers x_i x_j that are in work at once
FEW = 2048  # rows for which one pass over sorted rows is cheaper than one pass for each entry of x x^T


class Places:
    """The actions that were seen, each with a place in some tables: the order in which they came."""

    def __init__(self) -> None:
        self._ids = GrowableArray((), np.int64)
        self._sorted: Ints = np.empty(0, dtype=np.int64)  # the ids in order, and their places
        self._place: Ints = np.empty(0, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def ids(self) -> Ints:
        """(P,) the actions seen."""
        return cast(Ints, self._ids.rows)

    def of(self, touched: Ints) -> Ints:
        """Places of these actions (rising), -1 for those that were not seen."""
        at = np.searchsorted(self._sorted, touched)
        out = np.full(len(touched), -1, dtype=np.int64)
        inside = np.flatnonzero(at < len(self._sorted))
        inside = inside[self._sorted[at[inside]] == touched[inside]]
        out[inside] = self._place[at[inside]]
        return out

    def add(self, touched: Ints) -> tuple[Ints, int]:
        """Places of these actions (rising), new ones at the end, and how many were new."""
        places = self.of(touched)
        new = np.flatnonzero(places < 0)
        if len(new):
            places[new] = np.arange(len(self), len(self) + len(new))
            at = np.searchsorted(self._sorted, touched[new])
            self._ids.extend(touched[new])
            self._place = np.insert(self._place, at, places[new])
            self._sorted = np.insert(self._sorted, at, touched[new])
        return places, len(new)


class Sums:
    """Sums of x x^T (packed), of r x and of 1 by action, over the rows added so far."""

    def __init__(self, dim: int) -> None:
        self.packing = linalg.packing(dim)
        self.places = Places()
        self._counts = GrowableArray((), np.int64)
        self._G = GrowableArray((self.packing.size,), by_column=True)
        self._B = GrowableArray((dim,), by_column=True)
        self._squares = GrowableArray(())

    def __len__(self) -> int:
        return len(self.places)

    @property
    def ids(self) -> Ints:
        """(P,) the actions seen."""
        return self.places.ids

    @property
    def counts(self) -> Ints:
        """(P,) their rows."""
        return cast(Ints, self._counts.rows)

    @property
    def G(self) -> Array:
        """(P, d(d+1)/2) sums of x x^T, packed."""
        return self._G.rows

    @property
    def B(self) -> Array:
        """(P, d) sums of r x."""
        return self._B.rows

    def squares(self, touched: Ints) -> Array:
        """(n,): the sums of x^T x of these actions (rising)."""
        places = self.places.of(touched)
        out = np.zeros(len(touched))
        seen = places >= 0
        if seen.any():
            out[seen] = self._squares.rows[places[seen]]
        return out

    def add(self, X: Array, actions: Ints, rewards: Array, products_at_a_time: int = PRODUCTS_AT_A_TIME) -> None:
        """Add rows: contexts (n, d), actions (n,), rewards (n,)."""
        self.add_labelled(X, *np.unique(actions, return_inverse=True), rewards, products_at_a_time)

    def add_labelled(
        self, X: Array, touched: Ints, labels: Ints, rewards: Array, products_at_a_time: int = PRODUCTS_AT_A_TIME
    ) -> None:
        """The same for rows of the actions touched[labels], `touched` rising."""
        places = self._places(touched)
        in_order = len(places) == len(self) and bool((places == np.arange(len(places))).all())
        where: Ints | slice = slice(None) if in_order else places
        self._counts.rows[where] += np.bincount(labels, minlength=len(touched))
        self._squares.rows[where] += np.bincount(labels, np.einsum("nd,nd->n", X, X), len(touched))
        step = max(1, products_at_a_time // self.packing.size)
        for start in range(0, len(labels), step):
            some = slice(start, start + step)
            if len(labels) <= FEW:
                self._add_sorted(X[some], labels[some], rewards[some], places)
            else:
                self._add(np.ascontiguousarray(X[some].T), labels[some], rewards[some], where, len(touched))

    def _places(self, touched: Ints) -> Ints:
        """Where the sums of these actions (rising) lie; new ones get a place at the end."""
        places, new = self.places.add(touched)
        if new:
            for table in (self._counts, self._G, self._B, self._squares):
                table.extend(np.zeros((new, *table.rows.shape[1:]), dtype=table.rows.dtype))
        return places

    def _add_sorted(self, X: Array, labels: Ints, rewards: Array, places: Ints) -> None:
        """Rows in order of their labels, and one sum over each run."""
        order = np.argsort(labels, kind="stable")
        x, ordered = X[order], labels[order]
        firsts = linalg.first_rows(ordered)
        at = places[ordered[firsts]]
        products = x[:, self.packing.rows] * x[:, self.packing.columns]
        self._G.rows[at] += np.add.reduceat(products, firsts, axis=0)
        self._B.rows[at] += np.add.reduceat(x * rewards[order, None], firsts, axis=0)

    def _add(self, columns: Array, labels: Ints, rewards: Array, where: Ints | slice, number: int) -> None:
        """One weighted count per entry of the outer product: nothing is gathered, and columns lie together."""
        G, B = self._G.rows.T, self._B.rows.T  # entries as rows that lie together
        for entry, (i, j) in enumerate(zip(self.packing.rows.tolist(), self.packing.columns.tolist(), strict=True)):
            G[entry, where] += np.bincount(labels, columns[i] * columns[j], number)
        for i, column in enumerate(columns):
            B[i, where] += np.bincount(labels, column * rewards, number)


__all__ = ["PRODUCTS_AT_A_TIME", "Places", "Sums"]
