"""All experiments of the thesis's chapter on mixed-effect Thompson sampling."""

from __future__ import annotations

from manyarms.experiments.mets_bound import BOUND
from manyarms.experiments.mets_grid import GRID
from manyarms.experiments.mets_movielens import MOVIELENS
from manyarms.experiments.mets_robustness import MISSPECIFIED, UNCERTAIN
from manyarms.experiments.mets_structure import STRUCTURE
from manyarms.experiments.mets_synthetic import ACTIONS, SYNTHETIC

EXPERIMENTS = (SYNTHETIC, GRID, STRUCTURE, ACTIONS, MOVIELENS, MISSPECIFIED, UNCERTAIN, BOUND)

__all__ = ["EXPERIMENTS"]
