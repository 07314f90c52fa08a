"""What some rows of a log tell, as arrays that can be sent, cut by action and added: logs fold in pieces, on any machines.

    gathered(belief, chunks)             what one piece tells                        where its rows are
    one.add(other)                       what two pieces tell together               anywhere
    belief.learn_sums(*total.tables())   the belief has learned all of them          where the belief is

Only actions that a piece has seen are in its arrays, in rising order. Sums are added; triangles are stacked and brought to a
triangle again (a QR of QRs). How much a sum may hold before digits are lost (`folding`) is a matter of all pieces together: rows
of actions that have more (`too_much`) are gathered once more, as triangles (`gathered_apart`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from manyarms._base.typing import AnyArray, Array, Ints
from manyarms.beliefs import folding
from manyarms.beliefs.belief import Belief
from manyarms.beliefs.folding import Rounds, Triangles
from manyarms.beliefs.sums import Sums

ROWS_AT_ONCE = 2048  # of two tables that are added


@dataclass(frozen=True, eq=False)
class PartialSums:
    """Sums of the actions `ids` (P,), and triangles of the actions `apart` (T,), both rising."""

    dim: int
    ids: Ints
    counts: Ints
    G: Array  # (P, d(d+1)/2)
    B: Array  # (P, d)
    squares: Array  # (P,)
    apart: Ints
    apart_counts: Ints
    triangles: Array  # (T, d + 1, d + 1)

    @classmethod
    def of(cls, light: Sums, heavy: Triangles | None = None) -> PartialSums:
        """What was gathered, in the order of the actions."""
        dim = light.packing.dim
        heavy = Triangles(dim) if heavy is None else heavy
        order, other = np.argsort(light.ids), np.argsort(heavy.places.ids)
        return cls(
            dim, light.ids[order], light.counts[order], light.G[order], light.B[order], light.squares(light.ids[order]),
            heavy.places.ids[other], heavy.counts.rows[other].astype(np.int64), heavy.tables[other],
        )  # fmt: skip

    def tables(self) -> tuple[Sums, Triangles]:
        """In the form that a belief learns."""
        light = Sums.of(self.dim, self.ids, self.counts, self.G, self.B, self.squares)
        return light, Triangles.of(self.dim, self.apart, self.apart_counts, self.triangles)

    def cut(self, ends: Ints) -> list[PartialSums]:
        """Parts by action: those below the first end, from there below the second, ..., and those from the last on."""
        first = [0, *np.searchsorted(self.ids, ends).tolist(), len(self.ids)]
        other = [0, *np.searchsorted(self.apart, ends).tolist(), len(self.apart)]
        parts = []
        for part in range(len(ends) + 1):
            a, b = slice(first[part], first[part + 1]), slice(other[part], other[part + 1])
            parts.append(
                PartialSums(
                    self.dim, self.ids[a], self.counts[a], self.G[a], self.B[a], self.squares[a],
                    self.apart[b], self.apart_counts[b], self.triangles[b],
                )
            )  # fmt: skip
        return parts

    def without(self, ids: Ints) -> PartialSums:
        """What is told of all other actions."""
        a, b = ~np.isin(self.ids, ids), ~np.isin(self.apart, ids)
        return PartialSums(
            self.dim, self.ids[a], self.counts[a], self.G[a], self.B[a], self.squares[a],
            self.apart[b], self.apart_counts[b], self.triangles[b],
        )  # fmt: skip

    def add(self, other: PartialSums) -> PartialSums:
        """What both tell together."""
        ids, mine, theirs = _union(self.ids, other.ids)
        apart, own, more = _union(self.apart, other.apart)
        triangles = _placed(self.triangles, own, len(apart))
        both = np.intersect1d(own, more)
        triangles[more] += other.triangles  # where this one has none; the others are stacked below
        if len(both):
            stacked = [self.triangles[np.searchsorted(own, both)], other.triangles[np.searchsorted(more, both)]]
            triangles[both] = np.linalg.qr(np.concatenate(stacked, axis=1), mode="r")
        pairs = (
            (self.counts, other.counts), (self.G, other.G), (self.B, other.B), (self.squares, other.squares),
        )  # fmt: skip
        counts, G, B, squares = (_added(a, mine, b, theirs, len(ids)) for a, b in pairs)
        apart_counts = _added(self.apart_counts, own, other.apart_counts, more, len(apart))
        return PartialSums(self.dim, ids, counts, G, B, squares, apart, apart_counts, triangles)


def gathered(belief: Belief, chunks: Iterable[Rounds]) -> PartialSums:
    """What one piece tells, of checked linear rows; the belief is asked for limits, and does not change."""
    checked = (belief.evidence(*rows) for rows in chunks)
    return PartialSums.of(*folding.gather(belief.root, belief.leaves, checked, _noise_variance(belief)))


def gathered_apart(belief: Belief, chunks: Iterable[Rounds], ids: Ints) -> PartialSums:
    """What one piece tells of some actions, all of it as triangles."""
    heavy = Triangles(belief.dim)
    for X, actions, rewards in (belief.evidence(*rows) for rows in chunks):
        some = np.isin(actions, ids)
        if some.any():
            heavy.add(X[some], actions[some], rewards[some])
    return PartialSums.of(Sums(belief.dim), heavy)


def too_much(belief: Belief, total: PartialSums) -> Ints:
    """The actions for which the sums over all pieces will not do, or have only some of the rows."""
    found = folding.beyond(belief.root, belief.leaves, total.ids, total.squares, _noise_variance(belief))
    return np.union1d(total.ids[found], np.intersect1d(total.ids, total.apart))


def _noise_variance(belief: Belief) -> float:
    assert belief.likelihood.noise_variance is not None  # of linear rows
    return belief.likelihood.noise_variance


def even_ends(actions: int, parts: int) -> Ints:
    """Where ids below `actions` are cut into so many parts."""
    return np.arange(1, parts) * actions // parts


def _union(one: Ints, other: Ints) -> tuple[Ints, Ints, Ints]:
    """The ids of two rising lists, rising, and where those of each stand."""
    at = np.searchsorted(one, other)
    new = np.ones(len(other), dtype=np.bool_)
    inside = np.flatnonzero(at < len(one))
    new[inside] = one[at[inside]] != other[inside]
    added: Ints = np.cumsum(new) - new  # new ones before each of the others
    mine = np.arange(len(one)) + np.searchsorted(other[new], one)
    theirs = at + added
    ids = np.empty(len(one) + int(new.sum()), dtype=np.int64)
    ids[mine], ids[theirs] = one, other
    return ids, mine, theirs


def _placed(rows: AnyArray, places: Ints, count: int) -> AnyArray:
    out = np.zeros((count, *rows.shape[1:]), dtype=rows.dtype)
    out[places] = rows
    return out


def _added(one: AnyArray, places: Ints, other: AnyArray, theirs: Ints, count: int) -> AnyArray:
    """Rows of two tables at their places (rising) in a third, added where both have one; a block at a time stays in a cache."""
    out = np.zeros((count, *one.shape[1:]), dtype=one.dtype)
    edges = np.arange(0, count + ROWS_AT_ONCE, ROWS_AT_ONCE)
    first, second = np.searchsorted(places, edges), np.searchsorted(theirs, edges)
    for block, start in enumerate(edges[:-1].tolist()):
        a, b = slice(first[block], first[block + 1]), slice(second[block], second[block + 1])
        rows = out[start : start + ROWS_AT_ONCE]
        rows[places[a] - start] = one[a]
        rows[theirs[b] - start] += other[b]
    return out


__all__ = ["PartialSums", "even_ends", "gathered", "gathered_apart", "too_much"]
