"""Sufficient statistics of linear rewards: sums by action over chunks of rows, of any number.

    G_a = sum x x^T,    B_a = sum r x,    n_a        over the rows of action a        (thesis, Section 6.3.2)

The sums are additive, so a log folds chunk by chunk and is never in memory as a whole; memory follows the actions seen.
Rows are put in order of their actions; actions with as many rows each are a stack of matrices (rows, d), and their sums a stack
of products: what is summed is read once, whatever the number of actions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, cast

import numpy as np

from manyarms._base import linalg
from manyarms._base.typing import Array, Ints
from manyarms.beliefs.growable import GrowableArray

Rounds = tuple[Array, Ints, Array]  # contexts (n, d), actions (n,), rewards (n,)

# small chunks are joined, since an action costs less the more of its rows come together
BATCH = 1 << 21  # numbers in the contexts of joined chunks
EACH = 4  # rows of an action that are enough
IN_WORK = 1 << 16  # numbers in a stack that is in work: few enough for a cache
FEW = 2048  # rows for which one pass over sorted rows is cheaper than stacks
LONGEST = 4096  # rows of an action that are taken at once
# how many rows a stack has for each action: as many as there are, or, of many, a few more that are 0
HEIGHTS = np.unique(np.r_[np.arange(1, 33), (2.0 ** np.arange(5, 12.01, 0.125)).astype(np.int64)])


class ByAction(NamedTuple):
    """Rows in order of their actions."""

    touched: Ints  # (t,) the actions, rising
    counts: Ints  # (t,) their rows
    order: Ints  # (n,) the rows, those of an action together and in their own order
    squares: Array  # (t,) the sums of x^T x over their rows

    @property
    def labels(self) -> Ints:
        """(n,): which of the actions touched each row is of."""
        out = np.empty(len(self.order), dtype=np.int64)
        out[self.order] = np.repeat(np.arange(len(self.touched)), self.counts)
        return out


def by_action(X: Array, actions: Ints) -> ByAction:
    """Rows in order of their actions: contexts (n, d), actions (n,)."""
    weights, top = np.einsum("nd,nd->n", X, X), int(actions.max(initial=-1)) + 1
    if top > 4 * len(actions) + FEW:  # few of many actions
        touched, labels, counts = np.unique(actions, return_inverse=True, return_counts=True)
        return ByAction(touched, counts, _in_order(labels, len(touched)), cast(Array, np.bincount(labels, weights)))
    counts = np.bincount(actions, minlength=top)
    touched = np.flatnonzero(counts)
    squares = cast(Array, np.bincount(actions, weights, top))[touched]
    return ByAction(touched, counts[touched], _in_order(actions, top), squares)


def _in_order(labels: Ints, top: int) -> Ints:
    """A stable order of labels below `top`; of 16 bits each, numpy counts them and compares nothing."""
    if len(labels) <= FEW or top > 1 << 32:
        return np.argsort(labels, kind="stable")
    order = np.argsort(labels.astype(np.uint16), kind="stable")
    if top > 1 << 16:
        order = order[np.argsort((labels >> 16).astype(np.uint16)[order], kind="stable")]
    return order


def batches(chunks: Iterable[Rounds], actions: int) -> Iterator[Rounds]:
    """The same rows, small chunks joined until each of so many actions may have a few; a batch is good until the next one."""
    filled, room = 0, None
    for rows in chunks:
        n, d = rows[0].shape
        enough = min(EACH * actions, BATCH // d)
        if room is not None and filled + n > len(room[1]):
            yield room[0][:filled], room[1][:filled], room[2][:filled]
            filled = 0
        if n >= enough:
            yield rows
            continue
        if room is None:
            room = np.empty((enough, d)), np.empty(enough, dtype=np.int64), np.empty(enough)
        for table, part in zip(room, rows, strict=True):
            table[filled : filled + n] = part
        filled += n
    if room is not None and filled:
        yield room[0][:filled], room[1][:filled], room[2][:filled]


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

    def __init__(self, dim: int, actions: int = 0) -> None:
        """`actions`: how many there may be, where that is known."""
        self.packing = linalg.packing(dim)
        self._most = actions
        self.places = Places()
        self._counts = GrowableArray((), np.int64)
        self._G = GrowableArray((self.packing.size,))
        self._B = GrowableArray((dim,))
        self._squares = GrowableArray(())

    @classmethod
    def of(cls, dim: int, ids: Ints, counts: Ints, G: Array, B: Array, squares: Array) -> Sums:
        """Sums of the actions `ids` (rising) that were made elsewhere."""
        made = cls(dim)
        made.places.add(ids)
        for table, rows in ((made._counts, counts), (made._G, G), (made._B, B), (made._squares, squares)):
            table.extend(rows)
        return made

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

    def handed_over(self) -> tuple[GrowableArray, GrowableArray]:
        """The tables of G and B themselves, for somebody who changes them; the sums are at an end."""
        return self._G, self._B

    def add(self, X: Array, actions: Ints, rewards: Array, rows: ByAction | None = None) -> None:
        """Add rows: contexts (n, d), actions (n,), rewards (n,); `rows` are their order, where it is known."""
        if not len(actions):
            return
        touched, counts, order, squares = by_action(X, actions) if rows is None else rows
        places = self._places(touched)
        self._counts.rows[places] += counts
        self._squares.rows[places] += squares
        firsts = np.cumsum(counts) - counts
        if len(order) <= FEW:
            self._add_few(X, order, rewards, firsts, places)
            return
        for begin in range(0, int(counts.max()), LONGEST):
            left = np.minimum(counts - begin, LONGEST)
            heights = np.searchsorted(HEIGHTS, left).astype(np.uint8)
            heights[left <= 0] = len(HEIGHTS)
            by_height = np.argsort(heights, kind="stable")
            ends = np.cumsum(np.bincount(heights, minlength=len(HEIGHTS)))
            for kind in np.unique(heights[heights < len(HEIGHTS)]).tolist():
                some = by_height[ends[kind - 1] if kind else 0 : ends[kind]]
                self._add_stacks(X, order, rewards, firsts[some] + begin, left[some], int(HEIGHTS[kind]), places[some])

    def _places(self, touched: Ints) -> Ints:
        """Where the sums of these actions (rising) lie; new ones get a place at the end."""
        places, new = self.places.add(touched)
        if new:
            for table in (self._counts, self._G, self._B, self._squares):
                if len(self) < self._most <= 2 * len(self):  # the others will come, too
                    table.reserve(self._most)
                table.extend(np.broadcast_to(np.zeros((), dtype=table.rows.dtype), (new, *table.rows.shape[1:])))
        return places

    def _add_few(self, X: Array, order: Ints, rewards: Array, firsts: Ints, places: Ints) -> None:
        """One sum over the rows of each action, which lie together."""
        x = X[order]
        step = max(1, (IN_WORK << 3) // len(x))  # entries at a time
        for start in range(0, self.packing.size, step):
            some = slice(start, start + step)
            products = x[:, self.packing.rows[some]] * x[:, self.packing.columns[some]]
            self._G.rows[places, some] += np.add.reduceat(products, firsts, axis=0)
        self._B.rows[places] += np.add.reduceat(x * rewards[order, None], firsts, axis=0)

    def _add_stacks(
        self, X: Array, order: Ints, rewards: Array, firsts: Ints, counts: Ints, height: int, places: Ints
    ) -> None:
        """Actions with up to `height` rows each, from `firsts` on in the order: a stack of matrices, and one of products."""
        d = X.shape[1]
        G, B = self._G.rows, self._B.rows
        upper = self.packing.rows * (d + 1) + self.packing.columns
        full = bool((counts == height).all())
        within = np.arange(height)
        step = max(1, IN_WORK // ((d + 1) * max(height, d)))
        for start in range(0, len(places), step):
            some = slice(start, start + step)
            at = firsts[some, None] + within
            rows = order.take(at, mode="clip")
            stack = np.empty((*rows.shape, d + 1))
            stack[..., :d] = X.take(rows, axis=0)
            stack[..., d] = rewards.take(rows)
            if not full:
                stack[within >= counts[some, None]] = 0.0
            products = np.matmul(stack[..., :d].swapaxes(1, 2), stack)
            G[places[some]] += products.reshape(len(rows), -1).take(upper, axis=1)
            B[places[some]] += products[..., d]


__all__ = ["ByAction", "Places", "Rounds", "Sums", "batches", "by_action"]
