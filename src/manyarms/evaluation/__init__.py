"""Off-policy evaluation: what would another policy have earned on this log, and can the answer be trusted?

evaluation = evaluate(policy, log)           a table of estimates with intervals and warnings
difference(policy, other, log)               two policies on the same rows
choose(policies, log)                        the largest lower bound, for all policies at once
tune(policy, log, "es")                      how strongly to correct, by a stated rule
quality(world, policy, logging, ...)         bias, variance and coverage where the truth is known
"""

from __future__ import annotations

from manyarms.estimators.neighbours import Neighbours, cluster_actions
from manyarms.evaluation.compare import Choice, Difference, choose, difference
from manyarms.evaluation.estimate import evaluate
from manyarms.evaluation.estimators import DM, DR, IPS, SWITCH
from manyarms.evaluation.grouped import MIPS, PC, OffCEM
from manyarms.evaluation.intervals import Interval
from manyarms.evaluation.quality import Quality, quality, true_value
from manyarms.evaluation.results import Estimate, Evaluation
from manyarms.evaluation.terms import Estimator, Settings, Terms
from manyarms.evaluation.tuning import Tuning, tune

__all__ = [
    "DM", "DR", "IPS", "MIPS", "PC", "SWITCH", "Choice", "Difference", "Estimate", "Estimator", "Evaluation", "Interval",
    "Neighbours", "OffCEM", "Quality", "Settings", "Terms", "Tuning", "choose", "cluster_actions", "difference", "evaluate",
    "quality", "true_value", "tune",
]  # fmt: skip
