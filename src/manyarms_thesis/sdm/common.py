"""What the experiments on sDM share: the chapter, its synthetic problem, and remarks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from manyarms_thesis.harness.experiments import Chapter, Sizes
from manyarms_thesis.harness.spec import Call, Cell, Task
from manyarms_thesis.sdm.learners import EVALUATED, latent_problem, value_by_size

SDM = Chapter(
    "sdm",
    3,
    numbers={
        "relative_reward": "relative reward, largest log",
        "mode_relative_reward": "of its most probable actions",
        "regret": "value lost",
        "milliseconds_a_round": "ms a row",
    },
)
DIM, LATENT_VARIANCE, ACTION_VARIANCE, NOISE = 10, 3.0, 1.0, 1.0
BASELINES = ("DM (Bayes)", "DM (Freq)", "IPS", "snIPS", "DR", "MIPS", "PC")
METRIC = (
    f"Relative reward is V(learned policy) / V(best policy) of each run, both exact given {EVALUATED:,} fresh contexts and "
    "averaged over runs. A policy learned by gradient counts with its own value or with that of its most probable "
    "actions, whichever is better on average."
)
BASELINE_REMARKS = (
    "DM (Freq) has ridge 1. IPS and DR clip propensities at 1/(4K). Linear softmax policies are learned by 300 steps of Adam "
    "(rate 0.1, 512 rows a step) from zero; 2,000 steps change little (K=100: DR gains 0.04 at n=1,000 and nothing at "
    "n=10,000, the others gain nothing). MIPS has √K clusters and PC √K/2 nearest neighbours, by the actions' "
    "prior means W_a μ, which is what DM (Bayes) knows of them too. The thesis prints none of these."
)
LOGGING = (
    "Skewed logging plays actions with probabilities in proportion to 1/rank, in a random order and whatever the "
    "context; the thesis does not print its other logging policies."
)


def latent_cell(
    sizes: Sizes,
    K: int,
    latent: int,
    learners: Mapping[str, Call],
    *,
    logging: str = "uniform",
    name: str | None = None,
    task: Task = value_by_size,
    **world: Any,
) -> Cell:
    """A panel of the latent world; the log has as many rows as the largest size."""
    problem = {
        "actions": K, "dim": DIM, "latent_dim": latent, "noise": NOISE, "latent_scale": LATENT_VARIANCE,
        "action_scale": ACTION_VARIANCE, "sizes": list(sizes["n"]), "logging": logging, **world,
    }  # fmt: skip
    parameters = {"K": K, "d": problem["dim"], "latent": latent, "logging": logging, **world}
    panel = name or f"{logging} logging, K={K:,}, d'={latent}"
    return Cell(panel, parameters, Call(latent_problem, problem), learners, max(sizes["n"]), sizes["runs"], task)


def latent_grid(sizes: Sizes, learners: Mapping[str, Call]) -> list[Cell]:
    """A panel of the latent world for each number of actions and of latent dimensions."""
    return [
        latent_cell(sizes, K, latent, learners, name=f"K={K:,}, d'={latent}")
        for K in sizes["K"]
        for latent in sizes["latent"]
    ]


__all__ = ["BASELINES", "BASELINE_REMARKS", "LOGGING", "METRIC", "SDM", "latent_cell", "latent_grid"]
