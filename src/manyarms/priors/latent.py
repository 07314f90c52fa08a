"""The structured prior of sDM in full generality: one latent vector, and a matrix of its own for every action.

    psi ~ N(mean, covariance),    theta_a | psi ~ N(W_a psi, action_covariance)          (thesis, Section 6.3)

d' = len(psi) may be far below d (low rank) or above it. Mixed effects are the special case W_a = b_a^T kron I, which
`MixedEffectPrior` holds in K x L numbers instead of K x d x d'.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyarms._base import validate
from manyarms._base.tables import Shown
from manyarms._base.typing import Array
from manyarms.priors.gaussian import ActionPrior


@dataclass(frozen=True, eq=False, repr=False)
class LatentPrior(Shown):
    """Actions that are linear maps of one latent vector, plus a deviation of their own.

    matrices W (K, d, d'), mean (d',), covariance (d', d'), action_covariance (d, d), or (K, d, d) for one per action.
    """

    matrices: Array
    mean: Array
    covariance: Array
    action_covariance: Array

    def __post_init__(self) -> None:
        matrices = validate.as_array("matrices", self.matrices, (None, None, None))
        actions, dim, latent = matrices.shape
        object.__setattr__(self, "matrices", validate.owned(matrices))
        object.__setattr__(self, "mean", validate.owned(validate.as_array("mean", self.mean, (latent,))))
        shared = validate.one_covariance("covariance", self.covariance, latent)
        object.__setattr__(self, "covariance", validate.owned(shared))
        own = validate.action_covariance("action_covariance", self.action_covariance, dim, actions)
        object.__setattr__(self, "action_covariance", validate.owned(own))

    @property
    def actions(self) -> int:
        """K, the number of actions."""
        return len(self.matrices)

    @property
    def dim(self) -> int:
        """d, the length of a context and of an action's parameter."""
        return int(self.matrices.shape[1])

    @property
    def latent_dim(self) -> int:
        """d', the length of the latent vector."""
        return int(self.matrices.shape[2])

    def marginal(self) -> ActionPrior:
        """The latent vector integrated out, action by action: N(W_a mu, Sigma_a + W_a Sigma W_a^T) (thesis, Section 6.4.2).

        The prior of DM (Bayes): the same marginals, and no correlation between actions.
        """
        W = self.matrices
        # two products with a triangle of Sigma: symmetric to the last bit, and no larger temporary than W itself
        half = W @ np.linalg.cholesky(self.covariance)
        return ActionPrior(self.actions, W @ self.mean, half @ np.swapaxes(half, 1, 2) + self.action_covariance)


__all__ = ["LatentPrior"]
