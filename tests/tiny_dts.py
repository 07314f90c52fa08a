"""The experiments of the dTS chapter at the least sizes that still have every panel, agent and claim."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from manyarms_thesis.catalogue import Experiment, catalogue, find
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import items_of
from manyarms_thesis.harness.work import execute

EXPERIMENTS = [experiment for name, experiment in catalogue().items() if name.startswith("dts-")]
TINY = {"epochs": 3, "hidden": 8}
# the least that still has every panel, agent and claim
SIZES: Mapping[str, Mapping[str, Any]] = {
    "dts-synthetic": {"rounds": 6, "runs": 2, "scaled_runs": 2, "K": [5], "shapes": [[5, 2]]},
    "dts-actions": {"rounds": 6, "runs": 2, "d": 3, "L": 2, "K": [4, 9]},
    "dts-action-contexts": {"rounds": 6, "runs": 2, "shapes": [[4, 3, 2], [5, 4, 2]]},
    "dts-scaling": {
        "rounds": 6, "runs": 2, "base": {"K": 4, "d": 3, "L": 2}, "K": [4, 6], "d": [3, 4], "L": [2, 3],
    },
    "dts-misspecified": {"rounds": 6, "runs": 2, "K": [5], "shapes": [[3, 2]]},
    "dts-swissroll": {
        "rounds": 6, "runs": 2, "K": 5, "preparations": 1, "n": [10, 20], "pretraining_size": 20, "depth": 3,
        "L": [2, 3, 4], "training": TINY,
    },
    "dts-movielens": {"rounds": 6, "runs": 2, "K": [5], "d": [2], "preparations": 1, "depth": 3, "training": TINY},
    "dts-posterior": {
        "runs": 2, "normal_n": 20, "roll_n": 20, "depth": 3, "bank": 500, "draws": 40, "training": TINY,
    },
    "dts-bound": {
        "rounds": 6, "runs": 2, "base": {
            "K": 4, "d": 3, "L": 2, "action_variance": 1.0, "latent_variance": 1.0, "columns": 1,
        },
        "K": [4, 6], "d": [3, 4], "L": [1, 2], "action_variance": [0.5, 1.0], "latent_variance": [1.0, 2.0],
        "columns": [0.5, 1], "scenario_d": [4], "scenario_K": [4],
    },
    "dts-chains": {
        "rounds": 6, "runs": 2, "K": [5], "n": 20, "d": 2, "depth": 3, "preparations": 1, "training": TINY,
    },
    "dts-rules": {
        "runs": 2, "shared": [[5, 3, 2, 12], [9, 3, 2, 6]], "offered": 3, "own": [5, 6], "noise": [1.0, 0.3], "n": 20,
        "depth": 3, "preparations": 1, "training": TINY,
    },
    "dts-images": {
        "rounds": 6, "runs": 2, "data": ["mnist"], "truth": ["labels", "model"], "percent": [5, 50], "K": 4, "d": 5,
        "n": 20, "depth": 3, "tasks": 2, "training": TINY,
    },
}  # fmt: skip


def tiny(experiment: Experiment) -> Experiment:
    return replace(
        experiment, scales={**experiment.scales, "smoke": {**experiment.scales["smoke"], **SIZES[experiment.name]}}
    )


@cache
def played(name: str) -> Results:
    """All work of a tiny version, in this process, once."""
    small = tiny(find(name))
    cells = small.cells("smoke")
    runs = {
        (item.cell.panel, item.method, run): columns
        for item in items_of(small.name, cells, seed=0)
        for run, columns in execute(item).items()
    }
    return Results(small.name, "smoke", cells, runs)
