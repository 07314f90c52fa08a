"""Objectives: what a policy's parameters should maximise on a log.

PWLL, LPI, cLPI, ESLPI, RegKL, RegKLLinear, BPR     weighted log-likelihoods: easy to maximise (likelihoods.py)
IPS, cIPS, ES, ESBeta, IX, LS, SelfNormalisedIPS    estimates from importance weights (values.py)
DM, DR                                              estimates from reward models (values.py)
MIPS, OffCEM, PC                                    estimates for large action spaces (grouped.py)
SampleVariance, Distance                            penalties on any of them (penalties.py)
PACBayes, Heuristic                                 lower bounds on the value, and what they inspire (pessimism.py)

An objective says what it needs of a log (`prepare`), what it is on a batch (`value`), and, on finite problems, which policy
is best for it (`oracle`). `named` finds one by its name.
"""

from __future__ import annotations

from manyarms.estimators.base import Batch, Objective, RowObjective, Rows, Terms
from manyarms.estimators.grouped import MIPS, PC, OffCEM
from manyarms.estimators.likelihoods import BPR, ESLPI, LPI, PWLL, RegKL, RegKLLinear, cLPI
from manyarms.estimators.naming import LINES, NAMES, named
from manyarms.estimators.oracles import FiniteProblem
from manyarms.estimators.penalties import Distance, SampleVariance
from manyarms.estimators.pessimism import Heuristic, PACBayes
from manyarms.estimators.values import DM, DR, ES, IPS, IX, LS, ESBeta, SelfNormalisedIPS, cIPS

__all__ = [
    "BPR", "DM", "DR", "ES", "ESLPI", "IPS", "IX", "LINES", "LPI", "LS", "MIPS", "NAMES", "PC", "PWLL", "Batch",
    "Distance", "ESBeta", "FiniteProblem", "Heuristic", "Objective", "OffCEM", "PACBayes", "RegKL", "RegKLLinear",
    "RowObjective", "Rows", "SampleVariance", "SelfNormalisedIPS", "Terms", "cIPS", "cLPI", "named",
]  # fmt: skip
