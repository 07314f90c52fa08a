"""What is believed before any data: independent actions, one shared mean, or mixed effects.

A prior only describes; `manyarms.beliefs.belief_of` turns it into a belief. All three are special cases of

    root m ~ N(mu, Sigma),    theta_a | m ~ N(W_a m, Sigma_a)          (thesis, Sections 1.4.2 and 3.1.1)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from manyarms._base import block_diagonal, validate
from manyarms._base.tables import Shown, Table, text_of
from manyarms._base.text import counted
from manyarms._base.typing import Array
from manyarms.errors import InvalidInput


@dataclass(frozen=True, eq=False, repr=False)
class ActionPrior(Shown):
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


@dataclass(frozen=True, eq=False, repr=False)
class HierarchicalPrior(Shown):
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


@dataclass(frozen=True, eq=False, init=False, repr=False)
class MixedEffectPrior(Shown):
    """Actions that mix L shared effects with known weights b_a (thesis, Section 3.1.1):

        Psi = (psi_1, ..., psi_L) ~ N(effect_mean, effect_covariance)
        theta_a | Psi ~ N(sum_l b_al psi_l, action_covariance)

    weights (K, L), effect_mean (L, d), effect_covariance (L d, L d) with the effects one after the other, or (L, d, d) for
    independent effects, action_covariance (d, d), or (K, d, d) for one per action.

    Where effects are independent only their own covariances are held, `effect_blocks` (L, d, d), which is otherwise None; the
    whole matrix `effect_covariance` is made for whoever asks for it.
    """

    weights: Array
    effect_mean: Array
    effect_covariance: Array  # an attribute of its own only where the effects are not independent: see __getattr__
    action_covariance: Array
    effect_blocks: Array | None = field(init=False, repr=False)

    def __init__(self, weights: Array, effect_mean: Array, effect_covariance: Array, action_covariance: Array) -> None:
        weights = validate.as_array("weights", weights, (None, None))
        mean = validate.as_array("effect_mean", effect_mean, (weights.shape[1], None))
        effects, dim = mean.shape
        blocks, whole = _of_effects(effect_covariance, effects, dim)
        own = validate.action_covariance("action_covariance", action_covariance, dim, len(weights))
        parts = {"weights": weights, "effect_mean": mean, "action_covariance": own}
        if whole is not None:
            parts["effect_covariance"] = whole
        for name, part in parts.items():
            object.__setattr__(self, name, validate.owned(part))
        object.__setattr__(self, "effect_blocks", None if blocks is None else validate.owned(blocks))

    @classmethod
    def isotropic(
        cls, weights: Array, dim: int, *, effect_variance: float = 1.0, action_variance: float = 1.0
    ) -> MixedEffectPrior:
        """Effects of mean zero with one variance, actions with another, from the mixing weights alone.

        weights (K, L): for categories one column each, 1 for the categories of an action and 0 elsewhere.
        """
        weights = validate.as_array("weights", weights, (None, None))
        L, d = weights.shape[1], validate.count("dim", dim)
        validate.square_room("dim", d, 4 * (L + 2))  # a block for each effect, and what checking them takes
        eye = np.eye(d)
        effects = np.tile(eye * validate.positive("effect_variance", effect_variance), (L, 1, 1))
        own = eye * validate.positive("action_variance", action_variance)
        return cls(weights, np.zeros((L, d)), effects, own)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Array:
            """What is not held: the whole matrix, where the effects are independent."""
            if name == "effect_covariance":
                return block_diagonal.dense(self.effect_blocks)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

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
        if self.effect_blocks is not None:
            spread = (self.weights**2 @ self.effect_blocks.reshape(effects, dim * dim)).reshape(self.actions, dim, dim)
        else:
            blocks = self.effect_covariance.reshape(effects, dim, effects, dim).transpose(0, 2, 1, 3)
            pairs = (self.weights[:, :, None] * self.weights[:, None, :]).reshape(self.actions, effects * effects)
            spread = (pairs @ blocks.reshape(effects * effects, dim * dim)).reshape(self.actions, dim, dim)
        # a mean that is zero for all is better said once
        mean = self.weights @ self.effect_mean if self.effect_mean.any() else self.effect_mean[0]
        return ActionPrior(self.actions, mean, spread + self.action_covariance)

    def single_effect(self) -> HierarchicalPrior:
        """One shared mean in place of the effects, with the first effect's prior: the thesis's HierTS (Section 3.4.1)."""
        d = self.dim
        first = self.effect_covariance[:d, :d] if self.effect_blocks is None else self.effect_blocks[0]
        return HierarchicalPrior(self.actions, self.effect_mean[0], first, self.action_covariance)

    def scaled(
        self,
        *,
        weights: float = 1.0,
        effect_mean: float = 1.0,
        effect_covariance: float = 1.0,
        action_covariance: float = 1.0,
    ) -> MixedEffectPrior:
        """The same prior with its parts multiplied by constants: misspecification on purpose (thesis, Appendix A.4.3)."""
        effects = self.effect_covariance if self.effect_blocks is None else self.effect_blocks
        return MixedEffectPrior(
            weights=validate.number("weights", weights) * self.weights,
            effect_mean=validate.number("effect_mean", effect_mean) * self.effect_mean,
            effect_covariance=validate.positive("effect_covariance", effect_covariance) * effects,
            action_covariance=validate.positive("action_covariance", action_covariance) * self.action_covariance,
        )

    def _table(self) -> Table:
        actions, effects = self.weights.shape
        own = "one for each action" if self.action_covariance.ndim == 3 else "one for all actions"
        return Table(
            f"{counted(actions, 'action')} that mix {counted(effects, 'effect')}, contexts of length {self.effect_mean.shape[1]}",
            rows=[
                ("weights", text_of(self.weights)),
                ("effect mean", text_of(self.effect_mean)),
                ("effects", "depend on each other" if self.effect_blocks is None else "independent"),
                ("action covariance", own),
            ],
        )

    def _line(self) -> str:
        (actions, effects), dim = self.weights.shape, self.effect_mean.shape[1]
        covariance = (
            f"{effects * dim} x {effects * dim}" if self.effect_blocks is None else f"{effects} x {dim} x {dim}"
        )
        own = text_of(self.action_covariance)
        return (
            f"weights={actions:,} x {effects} numbers, effect_covariance={covariance} numbers, action_covariance={own}"
        )


def _of_effects(value: Array, effects: int, dim: int) -> tuple[Array | None, Array | None]:
    """What is given as the effects' covariance, checked: their blocks if they are independent, otherwise the whole matrix."""
    name, size = "effect_covariance", effects * dim
    array = validate.as_floats(name, value)
    if array.ndim == 2 and array.shape == (size, size):
        found = block_diagonal.blocks_of(array, effects)
        if found is None:
            return None, validate.one_covariance(name, array, size)
        array = found
    if array.ndim == 3 and array.shape != (effects, dim, dim):
        raise InvalidInput(name, f"shape {array.shape}", f"a matrix of {size} x {size}, or {effects} of {dim} x {dim}")
    return validate.covariance(name, array, dim if array.ndim == 3 else size), None


__all__ = ["ActionPrior", "HierarchicalPrior", "MixedEffectPrior"]
