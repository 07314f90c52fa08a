"""An experiment of one's own, in one file: does epsilon-greedy lose to LinTS? Found by `manyarms reproduce` once imported.

In a package of your own, name this module in pyproject.toml, and nothing else is needed:

    [project.entry-points."manyarms.experiments"]
    mine = "my_package.experiment"
"""

from __future__ import annotations

from typing import Any

import manyarms as ma
from manyarms_thesis.harness.claims import Claim, lower_regret
from manyarms_thesis.harness.experiments import Chapter, Sizes
from manyarms_thesis.harness.figures import regret_curves
from manyarms_thesis.harness.online import lints, online_regret
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell


def world(*, seed: int, actions: int) -> Any:
    """A problem is a function of a seed and plain parameters."""
    return ma.worlds.MixedEffect(actions, effects=2, dim=3, seed=seed)


def epsilon_greedy(*, world: Any, rounds: int, seed: int, epsilon: float) -> Any:
    """A method of an online cell is a function of the world, the horizon and a seed."""
    return ma.agents.EpsilonGreedyAgent(world.action_prior(), epsilon=epsilon, seed=seed)


def cells(sizes: Sizes) -> list[Cell]:
    methods = {"LinTS": Call(lints), "ε = 0.1": Call(epsilon_greedy, {"epsilon": 0.1})}
    return [
        Cell(f"K={K}", {"K": K}, Call(world, {"actions": K}), methods, sizes["rounds"], sizes["runs"], online_regret)
        for K in sizes["K"]
    ]


def claims(results: Results) -> list[Claim]:
    statement = "LinTS has lower regret than ε-greedy"
    return [lower_regret(results, panel, "LinTS", "ε = 0.1", statement, "361-450") for panel in results.panels]


EPSILON = Chapter("mine", number=9).experiment(
    "my-epsilon",
    order=1,
    title="Thompson sampling against ε-greedy",
    thesis_lines="361-450",
    scales={
        scale: {"rounds": 100 * n, "runs": 2 * n, "K": [5]} for scale, n in (("smoke", 1), ("quick", 5), ("paper", 20))
    },
    question="Does Thompson sampling lose less than ε-greedy?",
    setting="{K} actions with three features and two effects, {rounds} rounds, {runs} runs; LinTS and ε-greedy with ε = 0.1.",
    build=cells,
    claims=claims,
    figures=lambda results, folder: [regret_curves(results, results.panels, folder, "regret", "Regret")],
)
