"""The best few of many played actions, most of which need not be looked at closely.

Given the root m and the noise z_a that was drawn for it, a played action scores (leaf_scores.py)

    x^T c_a + x^T S_a Sigma^-1 W_a m + sqrt(x^T S_a x) z_a,

and S_a is what costs: d(d+1)/2 numbers of every played action, for each decision. Bounds of the score (played_bounds.py) cost d
numbers or fewer. Whoever's bound stays below k scores that are known is not among the best k, and S_a is read only of those who
are left. Nothing else is different: the numbers that are drawn are the same and in the same order, and so are the decisions.

The scores of those who are left are summed action by action (`Draw.scores`): to the last bit they do not depend on who else is
left, nor, therefore, on how tight the bounds happen to be.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from manyarms._base.typing import Array, Ints
from manyarms.beliefs.actions.catalogue import Offer
from manyarms.beliefs.leaves import Leaves
from manyarms.beliefs.played_bounds import Draw, PlayedBounds
from manyarms.beliefs.roots import Root

# products of numbers of S_a with others, from which on making few of them is worth its while: with a known root, and without
WORTH = 1 << 19, 1 << 20
TOLD = 4  # played actions for each entry of the root, without which draws fall far from its mean and bounds say little
MANY = 16  # one in so many actions left, or more: bounds are made better, and if that does not help every S_a is read
PATIENCE = 63  # contexts at most in which every S_a is then read without asking for bounds


class PlayedScreen:
    """Which played actions can be among the best k of a draw, and their scores."""

    def __init__(self, leaves: Leaves, root: Root) -> None:
        self.leaves, self.root = leaves, root
        self.bounds = PlayedBounds(leaves, root)
        self._in_vain = (
            0,
            0,
        )  # bounds said too little: for so many contexts they are not asked now, and were not the last time

    def changed(self, actions: Ints) -> None:
        """The leaves of these actions, named once or more often, have learned."""
        self.bounds.changed(actions)

    def serves(self, played: int, k: int) -> bool:
        """Whether so many played actions are better screened: something bounds them, and they are many, and far more than k."""
        if not self.bounds.able or played < 4 * MANY * k:
            return False
        known, leaves = self.root.known, self.leaves
        if not known and played < TOLD * self.root.dim:
            return False
        products = 1 if known else 2 if leaves.played_weights is None else 1 + leaves.played_weights.rows.shape[1]
        return played * products * leaves.packing.size >= WORTH[0 if known else 1]

    def best(self, X: Array, M: Array, z: Array, offer: Offer, k: int) -> Array:
        """Scores (n, P) of which the best k are right; those that cannot be among them, and the barred ones, are -inf.

        z (n, P): what was drawn for the offered played actions, which is used up.
        """
        slots = offer.slots
        c = self.leaves.c.rows if slots is None else self.leaves.c.rows[slots]
        means = X @ c.T if self.root.known else [None] * len(X)
        for x, m, mean, row in zip(X, M, means, z, strict=True):
            if not x.any():  # everybody scores the same
                row.fill(0.0)
                continue
            draw = Draw(self.bounds, x, m, row, slots, mean)
            places, scores = self._left(draw, offer, k)
            row.fill(-np.inf)
            row[places] = scores
        return z

    def _left(self, draw: Draw, offer: Offer, k: int) -> tuple[Ints, Array]:
        """The places of those that can be among the best k, and their scores."""
        left_out, before = self._in_vain
        if left_out:
            self._in_vain = left_out - 1, before
            return Left(draw, offer, self.bounds.upper_from_all(draw), k).scored()
        limit = max(8 * k, len(draw.z) // MANY)
        left = Left(draw, offer, self.bounds.upper(draw), k)
        if left.number > limit and self.bounds.tighten(draw.slots_at(left.places())):
            left = Left(draw, offer, self.bounds.upper(draw), k)
        if left.number <= limit:
            self._in_vain = 0, before // 2
        else:
            longer = min(2 * before + 1, PATIENCE)
            self._in_vain = longer, longer
            left = Left(draw, offer, self.bounds.upper_from_all(draw), k)
        return left.scored()

    @property
    def nbytes(self) -> int:
        """Bytes of the derived tables."""
        return self.bounds.nbytes


class Left:
    """Who can be among the best k: whose bounds reach the k-th best of some scores, those with the best bounds."""

    def __init__(self, draw: Draw, offer: Offer, upper: Array, k: int) -> None:
        self.draw, self.upper = draw, upper
        if offer.slots is None and len(offer.barred):
            upper[offer.barred] = -np.inf
        parts = min(len(upper), max(64, 8 * k))  # the best bound of each part of the list, and of these the best
        width = len(upper) // parts
        highest = upper[: parts * width].reshape(parts, width).argmax(axis=1) + width * np.arange(parts)
        first = highest[np.argsort(-upper[highest])[: 2 * k + 6]]
        self.first = first[upper[first] > -np.inf]
        self.scores = draw.scores(self.first)
        floor = np.sort(self.scores)[-k] if len(self.first) >= k else -np.inf
        self._in = upper >= floor if floor > -np.inf else upper > -np.inf
        self.number = np.count_nonzero(self._in)

    def places(self) -> Ints:
        """Where they are."""
        return cast(Ints, np.flatnonzero(self._in))

    def scored(self) -> tuple[Ints, Array]:
        """Where they are, and their scores; with some others, whose scores were needed, too."""
        self._in[self.first] = False
        others = self.places()
        if not len(others):
            return self.first, self.scores
        return np.concatenate([self.first, others]), np.concatenate([self.scores, self.draw.scores(others)])


__all__ = ["PlayedScreen"]
