"""Off-policy evaluation: what would another policy have earned on this log, and can the answer be trusted?

evaluation = evaluate(policy, log)           a table of estimates with intervals and warnings
difference(policy, other, log)               two policies on the same rows
choose(policies, log)                        the largest lower bound, for all policies at once
verdict(evaluation)                          ship, do not ship or cannot tell, and why
tune(policy, log, "es")                      how strongly to correct, by a stated rule
row_terms(policy, log, estimator)            the numbers that an estimate is the mean of, row by row
quality(world, policy, logging, ...)         bias, variance and coverage where the truth is known

A policy is one of manyarms, an agent, or whatever says what yours would have done: probabilities of the logged actions, action
ids, a matrix, a classifier, a function of contexts; InColumn, OfColumns and Ranked say it by a column of the log, a function of
its columns, and ranked lists.

Estimators are those of `manyarms.estimators`, which `learn` climbs too.
"""

from __future__ import annotations

from manyarms.evaluation.answers import RowTerms
from manyarms.evaluation.compare import Choice, Difference, choose, difference
from manyarms.evaluation.estimate import evaluate
from manyarms.evaluation.forms import InColumn, OfColumns, Ranked
from manyarms.evaluation.intervals import Interval
from manyarms.evaluation.passes import row_terms
from manyarms.evaluation.policy_like import PolicyLike
from manyarms.evaluation.quality import Quality, quality, true_value
from manyarms.evaluation.results import Estimate, Evaluation
from manyarms.evaluation.tuning import Tuning, tune
from manyarms.evaluation.verdicts import Verdict, verdict

__all__ = [
    "Choice", "Difference", "Estimate", "Evaluation", "InColumn", "Interval", "OfColumns", "PolicyLike", "Quality", "Ranked",
    "RowTerms", "Tuning", "Verdict", "choose",
    "difference", "evaluate", "quality", "row_terms", "true_value", "tune", "verdict",
]  # fmt: skip
