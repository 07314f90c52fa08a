"""What is believed before any data: independent actions, one shared mean, or mixed effects.

A prior only describes; `manyarms.beliefs.belief_of` turns it into a belief. All three are special cases of

    root m ~ N(mu, Sigma),    theta_a | m ~ N(W_a m, Sigma_a)          (thesis, Sections 1.4.2 and 3.1.1)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import Array


@dataclass(frozen=True, eq=False)
class ActionPrior:
    """Independent actions, theta_a ~ N(mean_a, covariance_a).

    A mean of shape (d,) and a covariance of shape (d, d) are common to all actions, and then the actions that
    nobody has played cost nothing; (K, d) and (K, d, d) give every action its own.
    """

    actions: int
    mean: Array
    covariance: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "actions", validate.count("actions", self.actions))
        mean = validate.as_floats("mean", self.mean)
        mean = validate.as_array("mean", mean, (self.actions, None) if mean.ndim == 2 else (None,))
        covariance = validate.action_covariance("covariance", self.covariance, mean.shape[-1], self.actions)
        object.__setattr__(self, "mean", validate.owned(mean))
        object.__setattr__(self, "covariance", validate.owned(covariance))

    @property
    def dim(self) -> int:
        """d, the length of a context and of an action's parameter."""
        return int(self.mean.shape[-1])

    def marginal(self) -> ActionPrior:
        """Itself: the actions are independent already."""
        return self


@dataclass(frozen=True, eq=False)
class HierarchicalPrior:
    """Actions around one shared mean: mu ~ N(mean, covariance), theta_a | mu ~ N(mu, action_covariance)."""

    actions: int
    mean: Array
    covariance: Array
    action_covariance: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "actions", validate.count("actions", self.actions))
        mean = validate.as_array("mean", self.mean, (None,))
        object.__setattr__(self, "mean", validate.owned(mean))
        shared = validate.one_covariance("covariance", self.covariance, len(mean))
        object.__setattr__(self, "covariance", validate.owned(shared))
        own = validate.action_covariance("action_covariance", self.action_covariance, len(mean), self.actions)
        object.__setattr__(self, "action_covariance", validate.owned(own))

    @property
    def dim(self) -> int:
        """d, the length of a context and of an action's parameter."""
        return len(self.mean)

    def marginal(self) -> ActionPrior:
        """The shared mean integrated out, action by action: N(mean, covariance + action_covariance)."""
        return ActionPrior(self.actions, self.mean, self.covariance + self.action_covariance)


@dataclass(frozen=True, eq=False)
class MixedEffectPrior:
    """Actions that mix L shared effects with known weights b_a (thesis, Section 3.1.1):

        Psi = (psi_1, ..., psi_L) ~ N(effect_mean, effect_covariance)
        theta_a | Psi ~ N(sum_l b_al psi_l, action_covariance)

    weights (K, L), effect_mean (L, d), effect_covariance (L d, L d) with the effects one after the other,
    action_covariance (d, d), or (K, d, d) for one per action.
    """

    weights: Array
    effect_mean: Array
    effect_covariance: Array
    action_covariance: Array

    def __post_init__(self) -> None:
        weights = validate.as_array("weights", self.weights, (None, None))
        mean = validate.as_array("effect_mean", self.effect_mean, (weights.shape[1], None))
        effects, dim = mean.shape
        object.__setattr__(self, "weights", validate.owned(weights))
        object.__setattr__(self, "effect_mean", validate.owned(mean))
        shared = validate.one_covariance("effect_covariance", self.effect_covariance, effects * dim)
        object.__setattr__(self, "effect_covariance", validate.owned(shared))
        own = validate.action_covariance("action_covariance", self.action_covariance, dim, len(weights))
        object.__setattr__(self, "action_covariance", validate.owned(own))

    @classmethod
    def isotropic(
        cls, weights: Array, dim: int, *, effect_variance: float = 1.0, action_variance: float = 1.0
    ) -> MixedEffectPrior:
        """Effects of mean zero with one variance, actions with another, from the mixing weights alone.

        weights (K, L): for categories one column each, 1 for the categories of an action and 0 elsewhere.
        """
        weights = validate.as_array("weights", weights, (None, None))
        L, d = weights.shape[1], validate.count("dim", dim)
        validate.square_room("dim", d, 4 * L * L)
        effects = np.eye(L * d) * validate.positive("effect_variance", effect_variance)
        own = np.eye(d) * validate.positive("action_variance", action_variance)
        return cls(weights, np.zeros((L, d)), effects, own)

    @property
    def actions(self) -> int:
        """K, the number of actions."""
        return len(self.weights)

    @property
    def effects(self) -> int:
        """L, the number of effects."""
        return len(self.effect_mean)

    @property
    def dim(self) -> int:
        """d, the length of a context and of an action's parameter."""
        return int(self.effect_mean.shape[1])

    def marginal(self) -> ActionPrior:
        """The effects integrated out, action by action; correlations between actions are lost.

        theta_a ~ N(sum_l b_al mu_l, Sigma_a + Gamma_a Sigma_Psi Gamma_a^T), Gamma_a = b_a^T kron I (thesis, Section 3.4.1):
        the prior of the thesis's LinTS and GLM-TS.
        """
        effects, dim = self.effect_mean.shape
        blocks = self.effect_covariance.reshape(effects, dim, effects, dim).transpose(0, 2, 1, 3)
        pairs = (self.weights[:, :, None] * self.weights[:, None, :]).reshape(self.actions, effects * effects)
        spread = (pairs @ blocks.reshape(effects * effects, dim * dim)).reshape(self.actions, dim, dim)
        # a mean that is zero for all is better said once
        mean = self.weights @ self.effect_mean if self.effect_mean.any() else self.effect_mean[0]
        return ActionPrior(self.actions, mean, spread + self.action_covariance)

    def single_effect(self) -> HierarchicalPrior:
        """One shared mean in place of the effects, with the first effect's prior: the thesis's HierTS (Section 3.4.1)."""
        d = self.dim
        return HierarchicalPrior(
            self.actions, self.effect_mean[0], self.effect_covariance[:d, :d], self.action_covariance
        )

    def scaled(
        self,
        *,
        weights: float = 1.0,
        effect_mean: float = 1.0,
        effect_covariance: float = 1.0,
        action_covariance: float = 1.0,
    ) -> MixedEffectPrior:
        """The same prior with its parts multiplied by constants: misspecification on purpose (thesis, Appendix A.4.3)."""
        return replace(
            self,
            weights=validate.number("weights", weights) * self.weights,
            effect_mean=validate.number("effect_mean", effect_mean) * self.effect_mean,
            effect_covariance=validate.positive("effect_covariance", effect_covariance) * self.effect_covariance,
            action_covariance=validate.positive("action_covariance", action_covariance) * self.action_covariance,
        )


__all__ = ["ActionPrior", "HierarchicalPrior", "MixedEffectPrior"]
