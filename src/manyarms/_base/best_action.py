"""The action with the largest inner product x^T theta_a, exactly, for many contexts and many actions.

For any positive definite M, |x^T theta| <= ||x||_M ||theta||_(M^-1) by Cauchy-Schwarz. With M the second moment of the
actions the bound is as tight in every direction, and actions are visited in blocks of falling ||theta||_(M^-1): a
context leaves as soon as its best score reaches the bound of all that is left. In a few dimensions the first blocks
decide nearly every context, and the rest of a large catalogue is never multiplied. Memory is one block of scores.
"""

from __future__ import annotations

import numpy as np

from manyarms._base.typing import Array, Ints

ACTIONS_PER_BLOCK = 2048
SCORES_PER_BLOCK = 1 << 20
# in high dimension all actions have about the same length, and sorting them would win nothing
DIMENSIONS_WORTH_SORTING = 32
# a computed score or length may be off by some roundings: a block is skipped only beyond that doubt
ROUNDING = 1e-9


class BestAction:
    """argmax_a x^T theta_a over the rows of `theta` (K, d)."""

    def __init__(self, theta: Array) -> None:
        self._theta = theta
        actions, dim = theta.shape
        self._sorted = dim <= DIMENSIONS_WORTH_SORTING and actions > ACTIONS_PER_BLOCK
        if self._sorted:
            moments, axes = np.linalg.eigh(theta.T @ theta / actions)
            # directions in which no action extends get a little length, so that M has an inverse
            scales = np.sqrt(np.maximum(moments, max(moments[-1], np.finfo(np.float64).tiny) * 1e-12))
            self._to_metric = axes * scales  # ||x @ it|| = ||x||_M
            lengths = np.concatenate(
                [
                    np.linalg.norm(theta[first : first + ACTIONS_PER_BLOCK] @ (axes / scales), axis=1)
                    for first in range(0, actions, ACTIONS_PER_BLOCK)
                ]
            )
            self._order = np.argsort(-lengths, kind="stable")
            self._lengths = lengths[self._order]

    def __call__(self, contexts: Array) -> tuple[Ints, Array]:
        """Ids and scores of the best actions of the rows of `contexts` (n, d); of ties, any."""
        ids = np.zeros(len(contexts), dtype=np.int64)
        scores = np.full(len(contexts), -np.inf)
        rows = np.arange(len(contexts))
        norms = np.linalg.norm(contexts @ self._to_metric, axis=1) * (1 + ROUNDING) if self._sorted else None
        first, size = 0, ACTIONS_PER_BLOCK
        while first < len(self._theta):
            if norms is not None:
                rows = rows[norms[rows] * self._lengths[first] >= scores[rows]]
            if not len(rows):
                break
            block = slice(first, first + size)
            members = self._order[block] if self._sorted else None
            parameters = (self._theta[block] if members is None else self._theta[members]).T
            step = max(1, SCORES_PER_BLOCK // size)
            for start in range(0, len(rows), step):
                part = rows[start : start + step]
                products = contexts[part] @ parameters
                winner = products.argmax(axis=1)
                found = products[np.arange(len(part)), winner]
                better = found > scores[part]
                scores[part[better]] = found[better]
                ids[part[better]] = first + winner[better] if members is None else members[winner[better]]
            first += size
            # few contexts left: longer blocks, so that the products and not the steps between them take the time
            size = min(max(ACTIONS_PER_BLOCK, SCORES_PER_BLOCK // (8 * len(rows))), 16 * ACTIONS_PER_BLOCK, 2 * size)
        return ids, scores


__all__ = ["BestAction"]
