"""Actions on a Swiss roll: a law that no Gaussian and no short chain of latents can be (thesis, Section 4.4.2 and Appendix B.6).

    t ~ U(3 pi / 2, 9 pi / 2),    theta = scale (t cos t, t sin t) + thickness N(0, I),    scale = 2 / (9 pi / 2)

independently for every action: one and a half turns, with radius from 2/3 to 2, about one unit of standard deviation in each
coordinate. The thesis names the distribution and leaves its scale open.
"""

from __future__ import annotations

from typing import NoReturn, cast

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import Array
from manyarms.errors import InvalidInput
from manyarms.priors.gaussian import ActionPrior, HierarchicalPrior
from manyarms.worlds.base import Cube, RewardDistribution, RewardKind, World, WorldSeed, streams

START, STOP = 1.5 * np.pi, 4.5 * np.pi
SCALE = 2.0 / STOP


class SwissRoll(World):
    """K actions in two dimensions, independent points of a Swiss roll; contexts uniform on [-1, 1]^2."""

    def __init__(
        self, actions: int, *, reward: str = "linear", noise: float = 1.0, thickness: float = 0.0, seed: WorldSeed = 0
    ) -> None:
        actions = validate.room("actions", validate.count("actions", actions), 64)
        self.thickness = validate.not_negative("thickness", thickness)
        rng, _, _ = streams(seed)
        theta = swiss_roll(actions, rng, self.thickness)
        super().__init__(theta, RewardDistribution(cast(RewardKind, reward), noise), Cube(2), seed)

    def __repr__(self) -> str:
        return f"SwissRoll(actions={self.actions}, {self.likelihood})"

    def sample(self, n: int, seed: int = 0) -> Array:
        """(n, 2) fresh points of the same roll, independent of the world's actions: offline estimates to pre-train on."""
        rng = np.random.default_rng([validate.seed(seed), 0x5011])
        return swiss_roll(validate.count("n", n), rng, self.thickness)

    def prior(self) -> NoReturn:
        """Refused: the roll has no structured prior in closed form."""
        raise InvalidInput(
            "prior", "a Swiss roll, which is no diffusion",
            "a pre-trained one: manyarms.pretrain(world.sample(10_000)).prior(world.actions); or world.action_prior()",
        )  # fmt: skip

    def action_prior(self) -> ActionPrior:
        """The Gaussian with the roll's mean and covariance, exact: the prior of LinTS."""
        mean, covariance = moments(self.thickness)
        return ActionPrior(self.actions, mean, covariance)

    def hierarchical_prior(self) -> HierarchicalPrior:
        """The roll's mean and half its covariance for a shared mean, the other half for the actions around it.

        Nothing is shared in truth, and the thesis has no HierTS here; the marginals are those of `action_prior`.
        """
        mean, covariance = moments(self.thickness)
        return HierarchicalPrior(self.actions, mean, covariance / 2, covariance / 2)


def swiss_roll(n: int, rng: np.random.Generator, thickness: float = 0.0) -> Array:
    """(n, 2) points of the roll."""
    validate.room("n", n, 64, "points")
    t = rng.uniform(START, STOP, n)
    points: Array = SCALE * t[:, None] * np.stack([np.cos(t), np.sin(t)], axis=1)
    return points + thickness * rng.standard_normal(points.shape)


def moments(thickness: float = 0.0) -> tuple[Array, Array]:
    """Mean (2,) and covariance (2, 2) of the roll, by Gauss-Legendre quadrature to rounding."""
    nodes, weights = np.polynomial.legendre.leggauss(64)
    t = START + (STOP - START) * (nodes + 1) / 2
    points, weights = SCALE * t[:, None] * np.stack([np.cos(t), np.sin(t)], axis=1), weights / 2
    mean = weights @ points
    centred = points - mean
    return mean, (centred * weights[:, None]).T @ centred + thickness**2 * np.eye(2)


__all__ = ["SwissRoll", "moments", "swiss_roll"]
