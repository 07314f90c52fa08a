"""Objectives: what a policy's parameters should maximise on a log; and estimators, the objectives that estimate its value.

PWLL, LPI, cLPI, ESLPI, RegKL, RegKLLinear, BPR     weighted log-likelihoods: easy to maximise, no estimates (likelihoods.py)
IPS, cIPS, ES, ESBeta, IX, LS, SNIPS                estimates from importance weights (ips.py)
DM, DR, SNDR, SWITCH, SwitchDR                      estimates from reward models (models.py)
MIPS, OffCEM, PC                                    estimates for large action spaces (grouped.py)
SampleVariance, Distance                            penalties on any of them (penalties.py)
PACBayes, Heuristic                                 lower bounds on the value, and what they inspire (pessimism.py)

`learn` climbs any of them, `evaluate` averages the terms of estimators, and refuses the others by name. `named` finds one by
its name; `@OBJECTIVES.register(name)` adds one of your own.
"""

from __future__ import annotations

from manyarms.estimators.base import OBJECTIVES, Answers, Batch, Estimator, Objective, Request, RowObjective
from manyarms.estimators.grouped import MIPS, PC, OffCEM
from manyarms.estimators.ips import ES, IPS, IX, LS, SNIPS, ESBeta, cIPS
from manyarms.estimators.likelihoods import BPR, ESLPI, LPI, PWLL, RegKL, RegKLLinear, cLPI
from manyarms.estimators.models import DM, DR, SNDR, SWITCH, SwitchDR
from manyarms.estimators.naming import named, names, summaries
from manyarms.estimators.neighbours import Neighbours, cluster_actions
from manyarms.estimators.oracles import FiniteProblem
from manyarms.estimators.penalties import Distance, SampleVariance
from manyarms.estimators.pessimism import Heuristic, PACBayes

__all__ = [
    "BPR", "DM", "DR", "ES", "ESLPI", "IPS", "IX", "LPI", "LS", "MIPS", "OBJECTIVES", "PC", "PWLL", "SNDR", "SNIPS", "SWITCH",
    "Answers", "Batch", "Distance", "ESBeta", "Estimator", "FiniteProblem", "Heuristic", "Neighbours", "Objective", "OffCEM",
    "PACBayes", "RegKL", "RegKLLinear", "Request", "RowObjective", "SampleVariance", "SwitchDR", "cIPS", "cLPI",
    "cluster_actions", "named", "names", "summaries",
]  # fmt: skip
