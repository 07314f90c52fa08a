"""The priors of single actions, given the root: Sigma_a, one matrix that all actions share, or one for each.

Where some Sigma_a is nearly singular (`STEEP`), its inverse is to be avoided: leaves ask for `steep` and compute around it.
"""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from manyarms._base import entrywise, linalg, validate
from manyarms._base.typing import Array, Ints
from manyarms.beliefs.growable import SteadyArray
from manyarms.errors import InvalidInput

Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]

STEEP = 1e6  # condition number of Sigma_a from which its inverse is avoided
FULL_AT_A_TIME = 1 << 21  # numbers in full d x d matrices that are alive at once


class ActionPriors:
    """Covariances of the actions' parameters around what they take from the root."""

    def __init__(self, covariance: Array) -> None:
        """`covariance` (d, d) shared by all actions, or (K, d, d)."""
        covariance = validate.covariance("covariance", covariance)
        self.dim = int(covariance.shape[-1])
        self.packing = linalg.packing(self.dim)
        self.chunk = max(1, FULL_AT_A_TIME // self.dim**2)  # actions whose full matrices are made at a time
        self.shared = covariance.ndim == 2
        if self.shared:
            self.covariance = covariance
            self.precision = linalg.inverse(covariance)
            self._steep = 0, bool(self._nearly_singular(covariance[None])[0])
        else:
            self._steep = 0, False  # how many actions were looked at, and whether one was nearly singular
            self.covariances = SteadyArray((self.packing.size,), by_column=True)
            self._largest_prior = 0, 0.0  # how many actions were looked at, and the largest trace among them
            self.covariances.extend(self.packing.pack(covariance))

    def prior_covariance(self, ids: Ints) -> Array:
        """(n, d, d) Sigma_a."""
        if self.shared:
            return np.broadcast_to(self.covariance, (len(ids), self.dim, self.dim))
        return self.packing.unpack(self.covariances.rows[ids])

    def _prior_factor(self, ids: Ints) -> Array:
        """(d, d) or (n, d, d): lower triangular C_a with C_a C_a^T = Sigma_a."""
        return cast(Array, np.linalg.cholesky(self.covariance if self.shared else self.prior_covariance(ids)))

    def prior_sizes(self, ids: Ints) -> Array:
        """(n,) or (1,): the traces of Sigma_a."""
        if self.shared:
            return np.array([float(self.covariance.trace())])
        return self.packing.trace(self.covariances.rows[ids])

    def largest_prior_size(self) -> float:
        """The largest trace of Sigma_a, of all actions."""
        if self.shared:
            return float(self.covariance.trace())
        seen, largest = self._largest_prior
        if seen < len(self.covariances):
            largest = max(largest, float(self.packing.trace(self.covariances.rows[seen:]).max()))
            self._largest_prior = len(self.covariances), largest
        return largest

    def prior_precision(self, ids: Ints) -> Array:
        """(n, d, d) Sigma_a^-1."""
        if self.shared:
            return np.broadcast_to(self.precision, (len(ids), self.dim, self.dim))
        return linalg.inverse(self.prior_covariance(ids))

    def prior_variances(self, x: Array, ids: Ints | None) -> Array:
        """x^T Sigma_a x: one number (1,) where Sigma is shared, else one for each id (None: for every action).

        Where it is zero, rounding would leave something on either side.
        """
        if self.shared:
            return np.array([max(0.0, float(x @ self.covariance @ x))])
        rows = self.covariances.rows
        found = self.packing.bilinear(x, x) @ (rows if ids is None else rows[ids]).T
        return cast(Array, np.maximum(found, 0.0, out=found))

    def common_spread(self, x: Array) -> float:
        """The root of x^T Sigma x, which all actions share."""
        return math.sqrt(self.prior_variances(x, None)[0])

    def check_new_covariance(self, covariance: Array | None, number: int) -> Array | None:
        """Prior covariances of new actions, checked and packed; None where all actions share theirs."""
        if self.shared:
            if covariance is not None:
                raise InvalidInput("covariance", validate.describe(covariance), "nothing: the actions share theirs")
            return None
        if covariance is None:
            raise InvalidInput("covariance", "None", f"{number} matrices of {self.dim} x {self.dim}")
        array = validate.covariance("covariance", covariance, self.dim)
        array = np.broadcast_to(array, (number, self.dim, self.dim)) if array.ndim == 2 else array
        if len(array) != number:
            raise InvalidInput("covariance", f"{len(array)} matrices", f"{number}, one for each new action")
        return self.packing.pack(array)

    def _prior_factors(self, ids: Ints) -> Array:
        """(n, d, d): C_a."""
        return np.broadcast_to(self._prior_factor(ids), (len(ids), self.dim, self.dim))

    @property
    def steep(self) -> bool:
        """Whether some Sigma_a is nearly singular."""
        seen, steep = self._steep
        if not self.shared and seen < len(self.covariances):
            for start in range(seen, len(self.covariances), self.chunk):
                ids = np.arange(start, min(start + self.chunk, len(self.covariances)))
                steep = steep or bool(self._nearly_singular(self.prior_covariance(ids)).any())
            self._steep = len(self.covariances), steep
        return steep

    def steep_of(self, ids: Ints) -> Flags:
        """(n,): whose Sigma_a is nearly singular."""
        if self.shared or not self.steep:
            return np.full(len(ids), self.steep)
        return self._nearly_singular(self.prior_covariance(ids))

    def _nearly_singular(self, covariances: Array) -> Flags:
        """(n,): where tr Sigma tr Sigma^-1, from 1 to d^2 times the condition number, is above d^2 STEEP.

        By the inequality of the means, tr Sigma^-1 <= d (tr Sigma / d)^(d - 1) / det Sigma: with the determinant from Cholesky
        factors, most covariances are found to be sound without being inverted.
        """
        means = np.trace(covariances, axis1=1, axis2=2) / self.dim
        pivots = np.diagonal(np.linalg.cholesky(covariances), axis1=1, axis2=2) ** 2
        out: Flags = np.log(means[:, None] / pivots).sum(axis=1) > np.log(STEEP)
        some = np.flatnonzero(out)
        if len(some):
            inverse_means = np.trace(linalg.inverse(covariances[some]), axis1=1, axis2=2) / self.dim
            out[some] = means[some] * inverse_means > STEEP
        return out

    # ---- many actions at once

    @property
    def together(self) -> int:
        """Actions whose matrices are made at a time."""
        return min(self.chunk, entrywise.together(self.dim)) if self.dim <= entrywise.LARGEST else self.chunk

    def conditioned(self, ids: Ints, G: Array, b: Array) -> tuple[Array, Array]:
        """(n, d(d+1)/2) S_a = (Sigma_a^-1 + G_a)^-1 and (n, d) S_a b_a, for packed G and vectors b (n, d)."""
        C = self._prior_factor(ids)
        if self.shared and not self.steep and entrywise.suits(self.dim, len(ids)):
            found = entrywise.shrink(C, np.ascontiguousarray(G.T), b.T)
            if found is not None:
                return found[0].T, found[1].T
        S, mean = linalg.shrink(C, self.packing.unpack(G), b)
        return self.packing.pack(S), mean

    def weighed(self, own: Array, M: Array) -> Array:
        """(n, d, d): Sigma_a^-1 M_a Sigma_a^-1 for packed M, with own = Sigma_a^-1, (d, d) or (n, d, d)."""
        if own.ndim == 2 and entrywise.suits(self.dim, len(M)):
            return self.packing.unpack(np.ascontiguousarray(entrywise.sandwich(own, M.T).T))
        return linalg.sandwich(own, self.packing.unpack(M))

    def _own(self, ids: Ints) -> Array:
        """(1, d, d) or (n, d, d): Sigma_a^-1."""
        return self.precision[None] if self.shared else self.prior_precision(ids)


__all__ = ["FULL_AT_A_TIME", "STEEP", "ActionPriors"]
