"""All experiments of the thesis's chapter on the structured direct method, and those on logs and corrections beside it."""

from __future__ import annotations

from manyarms_thesis.es.clipping import CLIPPING
from manyarms_thesis.sdm.bound import BOUND
from manyarms_thesis.sdm.movielens import MOVIELENS
from manyarms_thesis.sdm.ope_obd import OBD
from manyarms_thesis.sdm.robustness import LIKELIHOOD, PESSIMISM, PRIOR
from manyarms_thesis.sdm.synthetic import ACTIONS, SYNTHETIC

EXPERIMENTS = (SYNTHETIC, ACTIONS, MOVIELENS, LIKELIHOOD, PRIOR, PESSIMISM, BOUND, CLIPPING, OBD)

__all__ = ["EXPERIMENTS"]
