"""All experiments of the thesis's chapter on exponential smoothing and principled pessimism."""

from __future__ import annotations

from manyarms.experiments import pac_regularisations
from manyarms.experiments.es_bounds import BOUNDS
from manyarms.experiments.es_corrections import CORRECTIONS
from manyarms.experiments.es_coverage import COVERAGE
from manyarms.experiments.es_hyperparameters import HYPERPARAMETERS
from manyarms.experiments.es_principles import PRINCIPLES
from manyarms.experiments.ls_bounds import EVALUATION
from manyarms.experiments.pac_objectives import OBJECTIVES
from manyarms.experiments.spec import Experiment

# policies learned from supervised data
LEARNING: tuple[Experiment, ...] = (
    BOUNDS, HYPERPARAMETERS, PRINCIPLES, CORRECTIONS, OBJECTIVES, pac_regularisations.BOUND, pac_regularisations.HEURISTIC,
)  # fmt: skip
# certificates, where the truth is known
CERTIFIED: tuple[Experiment, ...] = (EVALUATION, COVERAGE)

EXPERIMENTS: tuple[Experiment, ...] = (*LEARNING, *CERTIFIED)

__all__ = ["CERTIFIED", "EXPERIMENTS", "LEARNING"]
