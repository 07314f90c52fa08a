"""What the experiments on dTS share: the synthetic problem, and clouds of points."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from manyarms._base.palette import PALETTE
from manyarms._base.seeds import seed_of
from manyarms._base.typing import Array
from manyarms.worlds import Diffusion, synthetic_chain
from manyarms_thesis.dts.agents import agents_of
from manyarms_thesis.harness.claims import Claim, claim, least, listed, ratio
from manyarms_thesis.harness.experiments import ACCURACY, Chapter, Sizes
from manyarms_thesis.harness.figures import Drawn, draw_grid
from manyarms_thesis.harness.online import (
    ACTION_CONTEXTS,
    ACTION_CONTEXTS_REMARK,
    online_regret,
    online_regret_of_action_contexts,
    with_action_contexts,
)
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell, Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DTS = Chapter("dts", 2)
# a world that the thesis does not print
SCALED = "links scaled"
SCALINGS: Mapping[bool, str] = {False: "as printed", True: SCALED}
# sizes that set accuracy alone, or belong to variants and not to the thesis's worlds
CONTEXT_ACCURACY = (*ACCURACY, "context_runs", "context_K")
REMARKS = [
    ACTION_CONTEXTS_REMARK,
    "A chain (its links) is drawn anew in every run. Regret is the expected one.",
    "Links scaled, which the thesis does not have: every matrix is divided by the root of its fan-in (for W_l, of its columns "
    "that are not zero). As printed, with weights in [-1, 1], a chain of depth 4 makes what all actions have in common far "
    "larger than what sets them apart: a logistic reward is then nearly constant, and no choice matters. Links scaled and a "
    "context for each action are not combined.",
    "LinTS, LinUCB, GLM-TS and UCB-GLM have the marginal prior of an action, from 100,000 draws where links are not linear. "
    "HierTS is the thesis's HierTS-1 (all latents but the uppermost integrated out); it needs linear links and rewards. In "
    "logistic worlds dTS-LL and dTS-NL take sigma = 1 for their noise. “dTS-NL, jacobian” carries evidence up through linearised "
    "links, where the thesis's rule leaves the links out; “moments” has a Gaussian with the moments of the chain's end. With "
    "linear links all rules are the same, the exact posterior.",
]
# added where the variant with a context for each action is smaller than the printed world
DEAR = (
    "A context for each action costs K d numbers a round (about 20 ms at K=10,000, against 1 ms with a shared one): that variant "
    "has at most K={} and {} runs at the thesis's sizes."
)


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
    variant = SCALED if scaled else ""
    return Cell(panel, parameters, problem, methods, sizes["rounds"], sizes["runs"], task, variant)


def with_contexts(sizes: Sizes, cells: Iterable[Cell], task: Task = online_regret_of_action_contexts) -> Iterator[Cell]:
    """Cells, and those of the printed world again with a context for each action, done by `task`.

    These have at most sizes["context_K"] actions and sizes["context_runs"] runs, where the sizes say so.
    """
    given = list(cells)
    most, runs = sizes.get("context_K"), sizes.get("context_runs")
    for cell in with_action_contexts([cell for cell in given if not cell.variant], task, most=most):
        yield replace(cell, runs=min(cell.runs, runs)) if cell.variant and runs else cell
    yield from (cell for cell in given if cell.variant)


def contexts_matter(method: Callable[[Results, str], str], baseline: str) -> Callable[[Results], Iterator[Claim]]:
    """Claims of this project: a method's lead over a baseline is larger with a context for each action than with one for all.

    method: which one, by panel; panels without it or the baseline are left out.
    """

    def across(results: Results) -> Iterator[Claim]:
        if ACTION_CONTEXTS not in results.variants:
            return
        shared, each = results.variant(""), results.variant(ACTION_CONTEXTS)
        leads, shown = {}, {}
        for panel in each.panels:
            ours = method(each, panel)
            if panel in shared.panels and {ours, baseline} <= set(each.methods(panel)):
                one, own = (ratio(of, panel, ours, baseline) for of in (shared, each))
                leads[panel], shown[panel] = own - one, f"{one.mean:.2f} and {own.mean:.2f}"
        if leads:
            _, nearest = least(leads)
            yield claim(
                f"{baseline}'s regret over dTS's is larger with a context for each action than with one for all, everywhere", "",
                nearest, parts=list(leads.values()), detail=f"ratios with one for all and with one each: {listed(shown)}",
            )  # fmt: skip

    return across


def clouds(
    groups: Mapping[str, Mapping[str, Array]], folder: Path, name: str, title: str, *, caption: str, columns: int = 3
) -> Drawn:
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

    return draw_grid(groups, draw, folder, name, title, columns=columns, caption=caption)


__all__ = [
    "CONTEXT_ACCURACY", "DEAR", "DTS", "REMARKS", "SCALED", "SCALINGS", "clouds", "contexts_matter", "diffusion_world",
    "synthetic_cell", "with_contexts",
]  # fmt: skip
