"""The world that meTS assumes (thesis, Section 3.1; the sizes of Section 3.4.1 as defaults).

    psi_l ~ N(0, effect_scale I),    theta_a | Psi ~ N(sum_l b_al psi_l, action_scale I),    X ~ U([-1, 1]^d)

Means are zero, as in the thesis's experiments.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.typing import Array
from manyarms.errors import InvalidInput
from manyarms.priors.gaussian import ActionPrior, HierarchicalPrior, MixedEffectPrior
from manyarms.worlds.base import Cube, Pool, RewardDistribution, RewardKind, World, WorldSeed, streams

# a covariance of zero is a world's right, but a prior must be positive definite
FLOOR = 1e-8


class MixedEffect(World):
    """K actions that mix L effects; drawn anew for every seed.

    effect_scale and action_scale are variances (sigma_Psi^2 and sigma_0^2); zero is allowed for either.
    weights: None or "uniform" for b_al ~ U(-1, 1), "onehot" for one random category an action, or an array (K, L).
    context_pool: draw this many contexts once and let rounds choose among them, in place of fresh ones.
    """

    def __init__(
        self,
        actions: int,
        effects: int,
        dim: int,
        *,
        reward: RewardKind = "linear",
        noise: float = 1.0,
        effect_scale: float = 3.0,
        action_scale: float = 1.0,
        weights: str | npt.ArrayLike | None = None,
        context_pool: int | None = None,
        seed: WorldSeed = 0,
    ) -> None:
        actions = validate.count("actions", actions)
        self.effects = validate.count("effects", effects)
        dim = validate.count("dim", dim)
        rewards = RewardDistribution(reward, noise)
        self.effect_scale = validate.not_negative("effect_scale", effect_scale)
        self.action_scale = validate.not_negative("action_scale", action_scale)
        pool = None if context_pool is None else validate.count("context_pool", context_pool)
        validate.room("effects", self.effects, 16 * dim, f"effects of {dim:,} numbers")
        validate.room("actions", actions, 16 * (dim + self.effects), f"actions of {dim:,} numbers and as many weights")
        validate.room("context_pool", pool or 1, 16 * dim, f"contexts of {dim:,} numbers")
        rng, _, _ = streams(seed)
        self.psi = np.sqrt(self.effect_scale) * rng.standard_normal((self.effects, dim))
        self.weights = mixing_weights(weights, actions, self.effects, rng)
        theta = rng.standard_normal((actions, dim))
        theta *= np.sqrt(self.action_scale)
        theta += self.weights @ self.psi
        cube = Cube(dim)
        super().__init__(theta, rewards, cube if pool is None else Pool(cube.draw(pool, rng)), seed)

    def __repr__(self) -> str:
        return f"MixedEffect(actions={self.actions}, effects={self.effects}, dim={self.dim}, {self.likelihood})"

    @property
    def kappa_x(self) -> float:
        """d, the bound on ||x||^2 in the cube, also where a pool was drawn from it."""
        return float(self.dim)

    @property
    def kappa_b(self) -> float:
        """max_a ||b_a||^2, as in the regret bound (thesis, Section 3.3.1)."""
        return float(np.einsum("kl,kl->k", self.weights, self.weights).max())

    def prior(self, *, floor: float = FLOOR) -> MixedEffectPrior:
        """The very prior this world was drawn from.

        Where a scale is zero (a perfectly specified linear model, thesis, Section 3.3.2) the prior takes
        the variance `floor` in its place: small beside everything else, and positive definite.
        """
        floor = validate.positive("floor", floor)
        size = self.effects * self.dim
        validate.square_room("effects", self.effects, 4 * self.dim**2)
        return MixedEffectPrior(
            self.weights,
            np.zeros((self.effects, self.dim)),
            max(self.effect_scale, floor) * np.eye(size),
            max(self.action_scale, floor) * np.eye(self.dim),
        )

    def action_prior(self, *, floor: float = FLOOR) -> ActionPrior:
        """The effects integrated out, action by action (thesis, Section 3.4.1), for LinTS, GLM-TS and LinUCB."""
        return self.prior(floor=floor).marginal()

    def hierarchical_prior(self, *, floor: float = FLOOR) -> HierarchicalPrior:
        """One shared mean with the prior of one effect (thesis, Section 3.4.1): HierTS's prior."""
        return self.prior(floor=floor).single_effect()

    def known_effects_prior(self, *, floor: float = FLOOR) -> ActionPrior:
        """The prior of an agent that has been told Psi: theta_a ~ N(sum_l b_al psi_l, action_scale I).

        Its regret is what meTS would have without the cost of learning the effects (thesis, Section 3.3.2).
        """
        covariance = max(self.action_scale, validate.positive("floor", floor)) * np.eye(self.dim)
        return ActionPrior(self.actions, self.weights @ self.psi, covariance)


def mixing_weights(weights: str | npt.ArrayLike | None, actions: int, effects: int, rng: np.random.Generator) -> Array:
    """(K, L) mixing weights: drawn by a named rule, or the caller's own, checked."""
    if weights is None or (isinstance(weights, str) and weights == "uniform"):
        return rng.uniform(-1.0, 1.0, size=(actions, effects))
    if isinstance(weights, str):
        if weights != "onehot":
            raise InvalidInput("weights", repr(weights), "'uniform', 'onehot', or an array (actions, effects)")
        drawn = np.zeros((actions, effects))
        drawn[np.arange(actions), rng.integers(effects, size=actions)] = 1.0
        return drawn
    return validate.owned(validate.as_array("weights", weights, (actions, effects)))


__all__ = ["MixedEffect", "mixing_weights"]
