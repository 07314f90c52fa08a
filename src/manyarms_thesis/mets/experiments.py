"""All experiments of the thesis's chapter on mixed-effect Thompson sampling."""

from __future__ import annotations

from manyarms_thesis.mets.bound import BOUND
from manyarms_thesis.mets.grid import GRID
from manyarms_thesis.mets.movielens import MOVIELENS
from manyarms_thesis.mets.robustness import MISSPECIFIED, UNCERTAIN
from manyarms_thesis.mets.structure import STRUCTURE
from manyarms_thesis.mets.synthetic import ACTIONS, SYNTHETIC

EXPERIMENTS = (SYNTHETIC, GRID, STRUCTURE, ACTIONS, MOVIELENS, MISSPECIFIED, UNCERTAIN, BOUND)

__all__ = ["EXPERIMENTS"]
