"""One level of one diffusion chain on the way up: the stacked forms of `linalg`, for a single matrix and without their calls.

A shared chain has one matrix a level, of 2 to 100 dimensions: what a stack's checks and copies cost is then most of a decision.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from manyarms._base import linalg
from manyarms._base.typing import Array


class ChainLevel:
    """psi ~ N(m, Sigma), Sigma = F F^T, with Sigma^-1 = `own`."""

    def __init__(self, factor: Array, own: Array) -> None:
        self.factor, self.own = factor, own
        self._transposed = np.asfortranarray(factor.T)
        self._own_size = float(own.trace())
        self._most = (1 + 1e-7) * np.square(factor).sum(axis=1)  # no variance can grow
        self._eye = np.eye(len(own))

    def up(self, G: Array, B: Array) -> tuple[Array, Array, Array, Array, Array]:
        """Given evidence (G, B) about psi: T, S Sigma^-1 and S B, where S = T T^T = (Sigma^-1 + G)^-1; the evidence about m.

        Which form of the last two cancels less is decided as in `linalg.told` and `linalg.pulls`.
        """
        root = self._root(G)
        S = root @ root.T
        offset = S @ B
        size = float(G.trace())
        SG = S @ G if size <= linalg.MUCH * self._own_size else None
        towards = self._eye - SG if SG is not None and size <= self._own_size else S @ self.own
        if SG is not None:
            D, e = G - G @ SG, B - G @ offset
        else:
            D, e = self.own - self.own @ S @ self.own, self.own @ offset
        return root, towards, offset, (D + D.T) / 2, e

    def _root(self, G: Array) -> Array:
        """T = F (I + F^T G F)^-1/2; `linalg.evidence_factor` where rounding in a huge G spoils the short way."""
        middle = self._transposed @ G @ self.factor
        middle += middle.T
        middle *= 0.5
        middle += self._eye
        cholesky, solve = _routines()
        lower, failed = cholesky(middle.T, lower=1, overwrite_a=1)
        if not failed:
            found = solve(1.0, lower, self._transposed, lower=1)
            if (np.square(found).sum(axis=0) <= self._most).all():
                return np.ascontiguousarray(found.T)
        return linalg.evidence_factor(self.factor, G)


@cache
def _routines() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Cholesky and a triangular solve: dtrsm, since LAPACK's dtrtrs wakes threads for the smallest matrices."""
    from scipy.linalg.blas import dtrsm  # late: they take a while to import, and only chains need them
    from scipy.linalg.lapack import dpotrf

    return dpotrf, dtrsm


__all__ = ["ChainLevel"]
