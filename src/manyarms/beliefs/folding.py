"""Linear rows of many actions, learned in one step: by sums where sums suffice, by triangles where they would lose digits.

Sums of x x^T are what a log folds into fastest, and squares are what rounding hurts most. With v_a a bound on the prior variance
of theta_a, in any direction and the root's share with it, the energy of an action is

    v_a sum x^T x / noise^2,

how much more its rows may tell than the prior does. A sum keeps the prior's part to about energy x 2e-16. Rows that would bring
their action's energy above `MOST`, and all rows where an action's prior is nearly singular, are gathered by QR instead
(`linalg.triangles`), d of them being as good as all, and what they tell goes on to the leaf and to the root as rows: nothing is
squared, and what is lost is the root of it.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from manyarms._base import linalg
from manyarms._base.typing import Array, Ints
from manyarms.beliefs import limits
from manyarms.beliefs.growable import GrowableArray
from manyarms.beliefs.leaves import Leaves
from manyarms.beliefs.roots import Root
from manyarms.beliefs.sums import Places, Rounds, Sums, batches, by_action

Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]

MOST = 1e-8 / float(np.finfo(np.float64).eps)  # energy whose sums are good to 1e-8


class Triangles:
    """By action, the triangle of the rows (x, r) added so far."""

    def __init__(self, dim: int) -> None:
        self.places = Places()
        self.counts = GrowableArray((), np.int64)
        self._tables = GrowableArray((dim + 1, dim + 1))

    @classmethod
    def of(cls, dim: int, ids: Ints, counts: Ints, tables: Array) -> Triangles:
        """Triangles (t, d + 1, d + 1) of the actions `ids` (rising) that were made elsewhere."""
        made = cls(dim)
        made.places.add(ids)
        made.counts.extend(counts)
        made._tables.extend(tables)
        return made

    @property
    def tables(self) -> Array:
        """(t, d + 1, d + 1), in the order of their places."""
        return self._tables.rows

    def add(self, X: Array, actions: Ints, rewards: Array) -> None:
        """Add rows: contexts (n, d), actions (n,), rewards (n,)."""
        touched, labels = np.unique(actions, return_inverse=True)
        places, new = self.places.add(touched)
        if new:
            self.counts.extend(np.zeros(new, dtype=np.int64))
            self._tables.extend(np.zeros((new, *self._tables.rows.shape[1:])))
        self.counts.rows[places] += np.bincount(labels, minlength=len(touched))
        rows = np.concatenate([X, rewards[:, None]], axis=1)
        self._tables.rows[places] = linalg.triangles(rows, labels, len(touched), self._tables.rows[places])

    def rows(self, places: Ints, G: Array, B: Array) -> tuple[Array, Array]:
        """Rows (n, d, d) and values (n, d) that stand for those of these places and for sums G (n, d, d), B (n, d)."""
        tables = self._tables.rows[places]
        summed = np.flatnonzero(np.trace(G, axis1=1, axis2=2) > 0)
        if len(summed):
            x, r = linalg.rows_of_sums(G[summed], B[summed])
            more = np.concatenate([x, r[:, :, None]], axis=2)
            tables[summed] = np.linalg.qr(np.concatenate([tables[summed], more], axis=1), mode="r")
        return tables[:, :-1, :-1], tables[:, :-1, -1]


def fold(root: Root, leaves: Leaves, chunks: Iterable[Rounds], noise_variance: float) -> Ints:
    """Learn checked rows that come in chunks; each action is updated once, at the end. Returns the slots that have learned."""
    return learn(root, leaves, *gather(root, leaves, chunks, noise_variance), noise_variance)


def gather(root: Root, leaves: Leaves, chunks: Iterable[Rounds], noise_variance: float) -> tuple[Sums, Triangles]:
    """What checked rows that come in chunks tell, before anybody learns it."""
    light, heavy = Sums(leaves.dim, leaves.catalogue.size), Triangles(leaves.dim)
    for X, actions, rewards in batches(chunks, leaves.catalogue.size):
        rows = by_action(X, actions)
        squares = rows.squares + light.squares(rows.touched)
        too_much = beyond(root, leaves, rows.touched, squares, noise_variance)
        if too_much.any():
            apart = too_much[rows.labels]
            heavy.add(X[apart], actions[apart], rewards[apart])
            X, actions, rewards = X[~apart], actions[~apart], rewards[~apart]
            rows = by_action(X, actions)
        light.add(X, actions, rewards, rows)
        del X, actions, rewards, rows  # they may be a large part of what is held
    return light, heavy


def learn(root: Root, leaves: Leaves, light: Sums, heavy: Triangles, noise_variance: float) -> Ints:
    """Learn what was gathered. Returns the slots that have learned."""
    known = root.mean() if root.known else None
    only_light = np.ones(len(light), dtype=np.bool_)
    if len(heavy.places):
        only_light = ~np.isin(light.ids, heavy.places.ids)
    slots = _fold_sums(root, leaves, light, only_light, known, noise_variance)
    if len(heavy.places):
        slots = np.concatenate([slots, _fold_rows(root, leaves, light, heavy, known, noise_variance)])
    return slots


def beyond(root: Root, leaves: Leaves, touched: Ints, squares: Array, noise_variance: float) -> Flags:
    """(t,): for which actions sums over rows of so many squares, sum x^T x, would not do, beside what they have learned."""
    energy = squares / noise_variance
    if len(leaves.counts):
        slots = leaves.catalogue.slots(touched)
        played = slots >= 0
        energy[played] += leaves.packing.trace(leaves.G.rows[slots[played]])
    found: Flags = energy * (leaves.largest_prior_size() + limits.spread(root, leaves)) > MOST
    some = np.flatnonzero(found)
    if len(some):  # look closer
        sizes = leaves.prior_sizes(touched[some])
        if not root.known:
            sizes = sizes + root.size() * leaves.mixing.sizes(touched[some], leaves.dim)
        found[some] = energy[some] * sizes > MOST
    return found | leaves.steep_of(touched) if leaves.steep else found


def _fold_sums(
    root: Root, leaves: Leaves, light: Sums, chosen: Flags, known: Array | None, noise_variance: float
) -> Ints:
    places = np.flatnonzero(chosen)
    first = not len(leaves.counts) and len(places) == len(light)
    slots = leaves.slots(light.ids[places], known, light.handed_over() if first else None)
    spread = limits.spread(root, leaves)
    leaves.counts.rows[slots] += light.counts[places]
    told: tuple[Array, Array] | None = None  # by all of them
    for start in range(0, len(slots), leaves.together):
        where, some = slots[start : start + leaves.together], places[start : start + leaves.together]
        G, B = leaves.G.rows.take(where, axis=0), leaves.B.rows.take(where, axis=0)
        if first:
            G, B = G / noise_variance, B / noise_variance
        else:
            G, B = G + light.G.take(some, axis=0) / noise_variance, B + light.B.take(some, axis=0) / noise_variance
        change = leaves.replace(where, G, B, known, spread, root.parts, new=first)
        if told is not None and change is not None:
            for total, more in zip(told, change, strict=True):
                total += more
        else:
            told = change
    if told is not None:
        root.learn(*told)
    return slots


def _fold_rows(
    root: Root, leaves: Leaves, light: Sums, heavy: Triangles, known: Array | None, noise_variance: float
) -> Ints:
    order = np.argsort(heavy.places.ids)
    ids = heavy.places.ids[order]
    slots = leaves.slots(ids, known)
    summed = light.places.of(ids)
    noise = np.sqrt(noise_variance)
    for start in range(0, len(ids), leaves.chunk):
        some = slice(start, start + leaves.chunk)
        where, at = slots[some], summed[some]
        G, B = np.zeros((len(where), leaves.dim, leaves.dim)), np.zeros((len(where), leaves.dim))
        G[at >= 0], B[at >= 0] = leaves.packing.unpack(light.G[at[at >= 0]]), light.B[at[at >= 0]]
        rows, values = heavy.rows(order[some], G, B)
        leaves.counts.rows[where] += heavy.counts.rows[order[some]]
        leaves.counts.rows[where[at >= 0]] += light.counts[at[at >= 0]]
        seen = leaves.absorb(where, rows / noise, values / noise, known)
        if known is None:
            root.learn_rows(*seen)
    return slots


__all__ = ["MOST", "Rounds", "Triangles", "beyond", "fold", "gather", "learn"]
