"""Policies as tables (nx, K), one row of probabilities for each of a few contexts."""

from __future__ import annotations

import numpy as np

from manyarms._base.typing import Array


def greedy(score: Array) -> Array:
    """(nx, K): 1 for the largest score of each context (the lowest id among equals), 0 elsewhere."""
    out = np.zeros(score.shape)
    out[np.arange(len(score)), score.argmax(axis=1)] = 1.0
    return out


def proportional(mass: Array) -> Array:
    """(nx, K): masses over their sum; without any mass every policy is as good, and it is uniform."""
    total = mass.sum(axis=1, keepdims=True)
    return np.where(total > 0, mass / np.where(total > 0, total, 1.0), 1.0 / mass.shape[1])


__all__ = ["greedy", "proportional"]
