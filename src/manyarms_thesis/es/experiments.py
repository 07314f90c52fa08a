"""All experiments of the thesis's chapter on exponential smoothing and principled pessimism."""

from __future__ import annotations

from manyarms_thesis.es import pac_regularisations
from manyarms_thesis.es.bounds import BOUNDS
from manyarms_thesis.es.corrections import CORRECTIONS
from manyarms_thesis.es.coverage import COVERAGE
from manyarms_thesis.es.hyperparameters import HYPERPARAMETERS
from manyarms_thesis.es.ls_bounds import EVALUATION
from manyarms_thesis.es.pac_objectives import OBJECTIVES
from manyarms_thesis.es.principles import PRINCIPLES
from manyarms_thesis.harness.spec import Experiment

# policies learned from supervised data
LEARNING: tuple[Experiment, ...] = (
    BOUNDS, HYPERPARAMETERS, PRINCIPLES, CORRECTIONS, OBJECTIVES, pac_regularisations.BOUND, pac_regularisations.HEURISTIC,
)  # fmt: skip
# certificates, where the truth is known
CERTIFIED: tuple[Experiment, ...] = (EVALUATION, COVERAGE)

EXPERIMENTS: tuple[Experiment, ...] = (*LEARNING, *CERTIFIED)

__all__ = ["CERTIFIED", "EXPERIMENTS", "LEARNING"]
