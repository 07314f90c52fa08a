"""Neighbours among action embeddings, exactly, in blocks: no array of actions x actions.

Squared distances come from one matrix product a block, which is off by some roundings; whatever that leaves in doubt is
decided by the differences themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.top_k import top_k
from manyarms._base.typing import Array, Bools, Ints
from manyarms.errors import InvalidInput
from manyarms.items.clustering import k_means

DISTANCES = 1 << 19  # numbers in a block of distances
ROWS = 64  # actions whose neighbours are looked for together: one pass over all others serves them all
ROUNDING = 1e-12  # of the squared lengths: far more than a product of two vectors can be off


class Neighbours:
    """Who is near whom in embeddings (K, d) by Euclidean distance: the k nearest, or all within less than a radius.

    An action is its own neighbour, always. Among equal distances the lowest ids are nearest.
    """

    def __init__(self, embeddings: npt.ArrayLike, *, k: int | None = None, radius: float | None = None) -> None:
        self.embeddings = validate.owned(validate.as_array("embeddings", embeddings, (None, None)))
        if (k is None) == (radius is None):
            came = f"k={validate.describe(k)}, radius={validate.describe(radius)}"
            raise InvalidInput("k, radius", came, "one of them: k nearest, or all within a radius")
        self.k = None if k is None else validate.count("k", k)
        self.radius = None if radius is None else validate.positive("radius", radius)
        if self.k is not None and self.k > len(self.embeddings):
            raise InvalidInput("k", self.k, f"at most the number of actions, {len(self.embeddings)}")
        self._squares = np.einsum("kd,kd->k", self.embeddings, self.embeddings)

    def lists(self, actions: Ints) -> Iterator[tuple[int, Ints]]:
        """Each of the actions (m,) with the ids of its neighbours, ascending."""
        actions = validate.action_ids("actions", actions, len(self.embeddings))
        for start in range(0, len(actions), ROWS):
            part = actions[start : start + ROWS]
            slack = ROUNDING * (self._squares[part] + self._squares.max())
            limit = np.full(len(part), np.inf if self.radius is None else self.radius**2)
            if self.k is not None:
                limit = -top_k((-near for _, near in self._blocks(part)), self.k)[1][:, -1] + slack
            found: list[list[Ints]] = [[] for _ in part]
            sure: list[list[Bools]] = [[] for _ in part]
            for first, near in self._blocks(part):
                row, column = np.nonzero(near <= (limit + slack)[:, None])
                for i in np.unique(row):
                    here = column[row == i]
                    found[i].append(first + here)
                    sure[i].append(near[i, here] < limit[i] - slack[i])
            for i, action in enumerate(part.tolist()):
                yield action, self._decided(action, np.concatenate(found[i]), np.concatenate(sure[i]))

    def _blocks(self, part: Ints) -> Iterator[tuple[int, Array]]:
        """Squared distances (m, width) of the actions `part` to consecutive blocks of all actions."""
        mine, squares = self.embeddings[part], self._squares[part][:, None]
        for first in range(0, len(self.embeddings), DISTANCES // ROWS):
            others = slice(first, first + DISTANCES // ROWS)
            near = mine @ self.embeddings[others].T
            near *= -2.0
            near += self._squares[others]
            near += squares
            yield first, near

    def _decided(self, action: int, ids: Ints, sure: Bools) -> Ints:
        """What the product left in doubt, decided by the differences themselves."""
        if self.radius is not None:
            exact = np.linalg.norm(self.embeddings[ids[~sure]] - self.embeddings[action], axis=1)
            keep = sure.copy()
            keep[~sure] = exact < self.radius
            keep[ids == action] = True
            return ids[keep]
        exact = np.linalg.norm(self.embeddings[ids] - self.embeddings[action], axis=1)
        exact[ids == action] = -1.0  # itself first, also among copies of it
        return np.sort(ids[np.lexsort((ids, exact))[: self.k]])


def cluster_actions(embeddings: npt.ArrayLike, clusters: int, *, seed: int = 0) -> Ints:
    """Labels (K,) of actions by k-means on their embeddings (K, d), for MIPS and OffCEM."""
    vectors = validate.as_array("embeddings", embeddings, (None, None))
    return k_means(vectors, clusters, seed=seed)[0]


__all__ = ["Neighbours", "cluster_actions"]
