"""The world that dTS assumes (thesis, Section 4.1), and the chains of its experiments (Section 4.4.1).

    psi_L ~ N(0, Sigma_(L+1)),  psi_(l-1) | psi_l ~ N(f_l(psi_l), Sigma_l),  theta_a | psi_1 ~ N(f_1(psi_1), Sigma_1)

with X ~ U([-1, 1]^d) and linear or logistic rewards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import Array
from manyarms.errors import InvalidInput
from manyarms.priors.diffusion import DiffusionPrior
from manyarms.priors.gaussian import ActionPrior, HierarchicalPrior
from manyarms.priors.links import LinearLink, Link, NetworkLink
from manyarms.worlds.base import Cube, RewardDistribution, RewardKind, World, WorldSeed, streams

# hidden units of the thesis's non-linear links (Section 4.4.1); three times d at other sizes
HIDDEN = {5: 20, 20: 60}


class Diffusion(World):
    """K actions drawn from a diffusion prior, latents shared or one chain per action as the prior says; anew for every seed."""

    def __init__(
        self, prior: DiffusionPrior, *, reward: str = "linear", noise: float = 1.0, seed: WorldSeed = 0
    ) -> None:
        if not isinstance(prior, DiffusionPrior):
            raise InvalidInput("prior", validate.describe(prior), "a DiffusionPrior")
        rewards = RewardDistribution(cast(RewardKind, reward), noise)
        rng, _, _ = streams(seed)
        self._prior, self.depth = prior, prior.depth
        super().__init__(prior.draw(rng), rewards, Cube(prior.dim), seed)

    def __repr__(self) -> str:
        chain = "one chain" if self._prior.shared else "a chain per action"
        return f"Diffusion(actions={self.actions}, dim={self.dim}, depth={self.depth}, {chain}, {self.likelihood})"

    def prior(self) -> DiffusionPrior:
        """The very prior this world was drawn from."""
        return self._prior

    def action_prior(self) -> ActionPrior:
        """All latents integrated out, action by action, for LinTS and its kin; by Monte Carlo where links are not linear."""
        return self._prior.marginal()

    def hierarchical_prior(self) -> HierarchicalPrior:
        """All latents but psi_1 integrated out, with f_1(psi_1) as the shared mean; linear links only (thesis, Appendix B.3)."""
        return self._prior.two_level(1).hierarchical()


def synthetic_chain(
    actions: int,
    dim: int,
    depth: int,
    *,
    links: str = "linear",
    hidden: int | None = None,
    active: Sequence[int] | None = None,
    scaled: bool = False,
    seed: int = 0,
) -> DiffusionPrior:
    """A random chain as in the thesis's synthetic experiments (Section 4.4.1), all covariances the identity, latents shared.

    links: "linear" for f_l(psi) = W_l psi with entries uniform on [-1, 1] in the first `active[l - 1]` columns and zeros in the
    others, or "network" for two-layer ReLU networks of `hidden` units with weights uniform on [-1, 1] and no constants.
    active: d_1, ..., d_L; by default halved from layer to layer, which gives the thesis's (5, 2) and (20, 10, 5, 2).
    scaled: divide every weight by the square root of its fan-in (for W_l that is d_l), so that scores keep their size however
    deep the chain is. As printed they grow with depth and width, and saturate a logistic reward.
    """
    dim, depth = validate.count("dim", dim), validate.count("depth", depth)
    validate.square_room("dim", dim, 2)
    validate.room("depth", depth, 32 * dim * dim, f"layers of {dim:,} dimensions")
    scaled = validate.flag("scaled", scaled)
    rng = np.random.default_rng(validate.seed(seed))
    drawn: list[Link]
    if not isinstance(links, str) or links not in ("linear", "network"):
        raise InvalidInput("links", validate.describe(links), "'linear' or 'network'")
    if links == "linear":
        if hidden is not None:
            hidden = validate.count("hidden", hidden)  # of no meaning here, but a wrong one is still a mistake
        drawn = [LinearLink(_matrix(dim, columns, scaled, rng)) for columns in _active(active, dim, depth)]
    else:
        if active is not None:
            raise InvalidInput("active", validate.describe(active), "None: only linear links have columns to leave out")
        units = HIDDEN.get(dim, 3 * dim) if hidden is None else validate.count("hidden", hidden)
        drawn = [NetworkLink.random(dim, units, rng, scaled=scaled) for _ in range(depth)]
    return DiffusionPrior(actions, dim, drawn, [1.0] * (depth + 1), shared=True)


def _active(active: Sequence[int] | None, dim: int, depth: int) -> list[int]:
    if active is None:
        return [max(1, dim // 2**level) for level in range(depth)]
    columns: list[int] = validate.integers("active", active).tolist()
    if len(columns) != depth or not 1 <= min(columns) <= max(columns) <= dim:
        raise InvalidInput("active", validate.describe(active), f"{depth} numbers from 1 to {dim}, one per layer")
    return columns


def _matrix(dim: int, columns: int, scaled: bool, rng: np.random.Generator) -> Array:
    W = rng.uniform(-1.0, 1.0, (dim, dim))
    W[:, columns:] = 0.0
    return W / np.sqrt(columns) if scaled else W


__all__ = ["Diffusion", "synthetic_chain"]
