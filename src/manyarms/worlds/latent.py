"""The world that sDM assumes: one latent vector behind all actions (thesis, Sections 6.3 and 6.5.1).

    psi ~ N(mu, latent_scale I),    theta_a | psi ~ N(W_a psi, action_scale I),    X ~ U([-1, 1]^d)

mu is uniform on [-1, 1]^d', and so are the entries of the W_a.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import Array
from manyarms.errors import InvalidInput
from manyarms.priors.gaussian import ActionPrior, HierarchicalPrior
from manyarms.priors.latent import LatentPrior
from manyarms.worlds.base import Cube, RewardDistribution, RewardKind, World, WorldSeed, streams

MatrixKind = Literal["uniform", "orthonormal"]


class UnitCube(Cube):
    """Contexts uniform on [-1, 1]^d / sqrt(d): the cube inside the unit ball, E[x x^T] = I / (3 d)."""

    @property
    def kappa_x(self) -> float:
        """1: a corner has length one."""
        return 1.0

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """n independent contexts, (n, d)."""
        side = 1.0 / math.sqrt(self.dim)
        return rng.uniform(-side, side, size=(n, self.dim))


class Latent(World):
    """K actions that are linear maps of one latent vector; drawn anew for every seed.

    latent_scale and action_scale are variances. matrices: "uniform" entries on [-1, 1] as in the thesis's experiments, or
    "orthonormal" rows, W_a W_a^T = I, as in its theorems (needs latent_dim >= dim). unit_contexts: contexts of length at
    most 1, as in the theorems, in place of the cube [-1, 1]^d.
    """

    def __init__(
        self,
        actions: int,
        dim: int,
        latent_dim: int,
        *,
        reward: RewardKind = "linear",
        noise: float = 1.0,
        latent_scale: float = 3.0,
        action_scale: float = 1.0,
        matrices: MatrixKind = "uniform",
        unit_contexts: bool = False,
        seed: WorldSeed = 0,
    ) -> None:
        K, d = validate.count("actions", actions), validate.count("dim", dim)
        self.latent_dim = p = validate.count("latent_dim", latent_dim)
        rewards = RewardDistribution(reward, noise)
        self.latent_scale = validate.positive("latent_scale", latent_scale)
        self.action_scale = validate.positive("action_scale", action_scale)
        validate.one_of("matrices", matrices, get_args(MatrixKind))
        unit_contexts = validate.flag("unit_contexts", unit_contexts)
        validate.room("actions", K, 24 * d * p, f"actions with matrices of {d:,} x {p:,}")
        if matrices == "orthonormal" and p < d:
            raise InvalidInput("latent_dim", p, f"at least dim = {d}: there are no more orthonormal rows than columns")
        rng, _, _ = streams(seed)
        self.latent_mean = rng.uniform(-1.0, 1.0, p)
        self.psi = self.latent_mean + np.sqrt(self.latent_scale) * rng.standard_normal(p)
        if matrices == "uniform":
            self.matrices = rng.uniform(-1.0, 1.0, (K, d, p))
        else:
            columns, _ = np.linalg.qr(rng.standard_normal((K, p, d)))
            self.matrices = np.ascontiguousarray(np.swapaxes(columns, 1, 2))
        theta = self.matrices @ self.psi
        theta += np.sqrt(self.action_scale) * rng.standard_normal((K, d))
        super().__init__(theta, rewards, UnitCube(d) if unit_contexts else Cube(d), seed)

    def __repr__(self) -> str:
        return f"Latent(actions={self.actions}, dim={self.dim}, latent_dim={self.latent_dim}, {self.likelihood})"

    def prior(self) -> LatentPrior:  # type: ignore[override]
        """The very prior this world was drawn from: sDM's."""
        return LatentPrior(
            self.matrices,
            self.latent_mean,
            self.latent_scale * np.eye(self.latent_dim),
            self.action_scale * np.eye(self.dim),
        )

    def action_prior(self) -> ActionPrior:
        """The latent vector integrated out, action by action: DM (Bayes)'s prior (thesis, Section 6.4.2)."""
        return self.prior().marginal()

    def hierarchical_prior(self) -> HierarchicalPrior:
        """One shared mean with the actions' average moments; the W_a have mean zero, so it knows next to nothing."""
        marginal = self.action_prior()
        own = self.action_scale * np.eye(self.dim)
        return HierarchicalPrior(self.actions, marginal.mean.mean(axis=0), marginal.covariance.mean(axis=0) - own, own)


__all__ = ["Latent", "MatrixKind", "UnitCube"]
