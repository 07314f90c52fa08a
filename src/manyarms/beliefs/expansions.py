"""Around what an action's likelihood is expanded (likelihoods/base.py): what is known about theta_a, its own rows left out.

    prior    N(W_a E[m], Sigma_a + W_a Cov(m) W_a^T), with the moments of the root before any evidence
    cavity   the same with the root as it is now, less what this action itself told it

A leaf told the root D = Sigma_a^-1 - Sigma_a^-1 S_a Sigma_a^-1 and e = Sigma_a^-1 S_a B_a about W_a m (leaves.py). If
W_a m ~ N(n, V) now, then without that message it has the covariance V' = (V^-1 - D)^-1 and the mean n + V' (D n - e). With
V = A A^T, V' = A (I - A^T D A)^-1 A^T, where nothing is inverted that may be singular.
"""

from __future__ import annotations

import numpy as np

from manyarms._base.typing import Array, Ints
from manyarms.beliefs.leaves import Leaves

SMALLEST = (
    1e-12  # of the eigenvalues of I - A^T D A, which lie in (0, 1] but for rounding, or for moments that were drawn
)


def prior(leaves: Leaves, slots: Ints, mean: Array, factor: Array) -> tuple[Array, Array]:
    """Means (n, d) and covariances (n, d, d) of theta_a for a root of this mean (p,) and factor (p, p) of its covariance."""
    ids = leaves.catalogue.played.rows[slots]
    return leaves.mixing.apply(ids, mean), leaves.prior_covariance(ids) + _spread(leaves, ids, factor)


def cavity(leaves: Leaves, slots: Ints, mean: Array, factor: Array) -> tuple[Array, Array]:
    """The same for a root of this mean and factor after all evidence, that of the slot itself taken back."""
    ids = leaves.catalogue.played.rows[slots]
    D, e = leaves.told(slots)
    values, vectors = np.linalg.eigh(_spread(leaves, ids, factor))
    A = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    told = np.swapaxes(A, 1, 2) @ D @ A
    values, vectors = np.linalg.eigh(np.eye(leaves.dim) - (told + np.swapaxes(told, 1, 2)) / 2)
    left = (A @ vectors) / np.sqrt(np.clip(values, SMALLEST, 1.0))[:, None, :]
    spread = left @ np.swapaxes(left, 1, 2)
    centre = leaves.mixing.apply(ids, mean)
    pushed = np.einsum("nij,nj->ni", D, centre) - e
    return centre + np.einsum("nij,nj->ni", spread, pushed), leaves.prior_covariance(ids) + spread


def _spread(leaves: Leaves, ids: Ints, factor: Array) -> Array:
    """(n, d, d): W_a F F^T W_a^T."""
    rows = leaves.mixing.lift_all(np.repeat(ids, leaves.dim), np.tile(np.eye(leaves.dim), (len(ids), 1)))
    spread = rows.reshape(len(ids), leaves.dim, -1) @ factor
    return spread @ np.swapaxes(spread, 1, 2)


__all__ = ["cavity", "prior"]
