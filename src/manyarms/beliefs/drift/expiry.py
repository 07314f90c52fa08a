"""Actions that are known no better than before they were played: they count as never played again.

Given the root, an action is N(c + A W m, S), and N(W m, Sigma) without rows. With Sigma = C C^T, o = C^-1 (c + (A - I) W m) and
M = C^-1 S C^-T the divergence of the first from the second is

    KL = (tr M - d - log det M + |o|^2) / 2

where |o|^2 is taken in expectation over what is known of the root. By Pinsker's inequality the two laws differ by at most
sqrt(KL / 2) in total variation: no event has probabilities that differ by more. An action is let go where that is at most the
tolerance; afterwards it comes nearer and nearer still to what it is taken for.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from manyarms._base.typing import Array, Ints
from manyarms.beliefs.leaves import Leaves
from manyarms.beliefs.roots import Root

OLD = 0.05  # correlation with its last row, above which no action is looked at


def forgotten(root: Root, leaves: Leaves, slots: Ints, tolerance: float) -> Ints:
    """Those of these slots whose laws are within the tolerance of their priors, in total variation."""
    found = [slots[:0]]
    step = max(1, leaves.chunk // 8)
    for start in range(0, len(slots), step):
        some = slots[start : start + step]
        found.append(some[divergences(root, leaves, some) <= 2 * tolerance**2])
    return np.concatenate(found)


def divergences(root: Root, leaves: Leaves, slots: Ints) -> Array:
    """(n,): KL of each slot's law given the root from that of its prior."""
    d, ids = leaves.dim, leaves.catalogue.played.rows[slots]
    packed, c = leaves.posterior(slots)
    C = np.linalg.cholesky(leaves.prior_covariance(ids))
    inverse = np.linalg.inv(C)
    M = inverse @ leaves.packing.unpack(packed) @ np.swapaxes(inverse, 1, 2)
    values = np.maximum(np.linalg.eigvalsh((M + np.swapaxes(M, 1, 2)) / 2), 1e-300)
    centre = leaves.mixing.apply(ids, root.mean())
    if root.known:  # c is all of the mean
        away = np.einsum("nij,nj->ni", inverse, c - centre)
        squares = np.einsum("ni,ni->n", away, away)
    else:
        moved = leaves.pulls(slots) - np.eye(d)
        away = np.einsum("nij,nj->ni", inverse, c + np.einsum("nij,nj->ni", moved, centre))
        spread = inverse @ moved
        factor = root.factor()
        squares = np.einsum("ni,ni->n", away, away)
        for i in range(d):
            lifted = leaves.mixing.lift_all(ids, spread[:, i, :]) @ factor
            squares += np.einsum("np,np->n", lifted, lifted)
    # x - 1 - log x without cancellation where x is near 1
    gaps = values - 1
    shape = np.where(np.abs(gaps) < 1e-4, gaps**2 / 2 - gaps**3 / 3, gaps - np.log(values))
    return cast(Array, (shape.sum(axis=1) + squares) / 2)


__all__ = ["OLD", "divergences", "forgotten"]
