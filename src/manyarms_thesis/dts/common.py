"""What the experiments on dTS share: the synthetic problem, and clouds of points."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from manyarms._base.palette import PALETTE
from manyarms._base.seeds import seed_of
from manyarms._base.typing import Array
from manyarms.worlds import Diffusion, synthetic_chain
from manyarms_thesis.dts.agents import agents_of
from manyarms_thesis.harness.experiments import Chapter, Sizes
from manyarms_thesis.harness.figures import draw_grid
from manyarms_thesis.harness.online import online_regret
from manyarms_thesis.harness.spec import Call, Cell, Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DTS = Chapter("dts", 2)
SCALINGS: Mapping[bool, str] = {False: "as printed", True: "links scaled"}
REMARKS = [
    "A chain (its links) is drawn anew in every run. Regret is the expected one.",
    "Links scaled: every matrix is divided by the root of its fan-in (for W_l, of its columns that are not zero). As printed, "
    "with weights in [-1, 1], a chain of depth 4 makes what all actions have in common far larger than what sets them apart: "
    "a logistic reward is then nearly constant, and no choice matters.",
    "LinTS, LinUCB, GLM-TS and UCB-GLM have the marginal prior of an action, from 100,000 draws where links are not linear. "
    "HierTS is the thesis's HierTS-1 (all latents but the uppermost integrated out); it needs linear links and rewards. In "
    "logistic worlds dTS-LL and dTS-NL take sigma = 1 for their noise. “dTS-NL, jacobian” carries evidence up through linearised "
    "links, where the thesis's rule leaves the links out; “dTS-NL, moments” has a Gaussian with the moments of the chain's end.",
]


def diffusion_world(
    *, actions: int, dim: int, depth: int, links: str, scaled: bool, reward: str, seed: int
) -> Diffusion:
    """The thesis's synthetic world (Section 4.4.1): a chain drawn anew for every seed, Sigma_l = I, sigma = 1."""
    # a seed of its own: the world draws its actions from `seed` itself
    chain = synthetic_chain(actions, dim, depth, links=links, scaled=scaled, seed=seed_of("chain", seed))
    return Diffusion(chain, reward=reward, noise=1.0, seed=seed)


def synthetic_cell(
    sizes: Sizes,
    K: int,
    d: int,
    L: int,
    *,
    links: str = "linear",
    scaled: bool = False,
    reward: str = "linear",
    agents: Mapping[str, Call] | None = None,
    name: str | None = None,
    task: Task = online_regret,
    more: Mapping[str, Any] | None = None,
) -> Cell:
    """A panel of the synthetic world; the agents of the thesis's comparison unless others are given. `more` parameters."""
    parameters = {"links": links, "scaled": scaled, "reward": reward, "K": K, "d": d, "L": L, **(more or {})}
    world = {"actions": K, "dim": d, "depth": L, "links": links, "scaled": scaled, "reward": reward}
    what = f"{'linear' if links == 'linear' else 'non-linear'} links{', scaled' if scaled else ''}"
    panel = name or f"{what}, {reward} rewards, K={K:,}, d={d}, L={L}"
    methods = agents_of(links, reward) if agents is None else agents
    problem = Call(diffusion_world, world)
    return Cell(panel, parameters, problem, methods, sizes["rounds"], sizes["runs"], task)


def clouds(groups: Mapping[str, Mapping[str, Array]], folder: Path, name: str, title: str, *, columns: int = 3) -> Path:
    """Points in the plane, one drawing a group, the first cloud behind the others; the same axes everywhere."""
    everything = np.concatenate([cloud for group in groups.values() for cloud in group.values()])
    low, high = np.quantile(everything, 0.002, axis=0), np.quantile(everything, 0.998, axis=0)
    margin = 0.1 * (high - low)

    def draw(axis: Axes, points: Mapping[str, Array]) -> None:
        for (label, cloud), colour in zip(points.items(), PALETTE, strict=False):
            axis.scatter(cloud[:, 0], cloud[:, 1], s=4, alpha=0.45, color=colour, linewidths=0)
            axis.scatter([], [], s=30, color=colour, label=label)  # for the legend
        axis.set_axisbelow(True)
        axis.set_aspect("equal")
        axis.set_xlim(low[0] - margin[0], high[0] + margin[0])
        axis.set_ylim(low[1] - margin[1], high[1] + margin[1])

    return draw_grid(groups, draw, folder, name, title, columns=columns)


__all__ = ["DTS", "REMARKS", "SCALINGS", "clouds", "diffusion_world", "synthetic_cell"]
