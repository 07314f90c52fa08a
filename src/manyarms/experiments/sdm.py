"""All experiments of the thesis's chapter on the structured direct method, and those on logs and corrections beside it."""

from __future__ import annotations

from manyarms.experiments.es_clipping import CLIPPING
from manyarms.experiments.ope_obd import OBD
from manyarms.experiments.sdm_bound import BOUND
from manyarms.experiments.sdm_movielens import MOVIELENS
from manyarms.experiments.sdm_robustness import LIKELIHOOD, PESSIMISM, PRIOR
from manyarms.experiments.sdm_synthetic import ACTIONS, SYNTHETIC

EXPERIMENTS = (SYNTHETIC, ACTIONS, MOVIELENS, LIKELIHOOD, PRIOR, PESSIMISM, BOUND, CLIPPING, OBD)

__all__ = ["EXPERIMENTS"]
