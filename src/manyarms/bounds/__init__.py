"""Bounds on the value of a policy, as functions of a summary: what `certify` reads off, and what `PACBayes` learns by.

base.py               Bound, Budget, the registry BOUNDS
summary.py            the averages of a policy on a log that bounds are functions of
grid.py               the parameters that are declared before a log is looked at
concentration.py      the inequalities underneath
unified.py, ...       a bound a file, each with its argument
"""

from __future__ import annotations

from manyarms.bounds.any_alpha import AnyAlpha
from manyarms.bounds.any_lambda import AnyLambda
from manyarms.bounds.base import BOUNDS, Bound, Budget, FromBelow, Side
from manyarms.bounds.bounded_weights import BoundedWeights
from manyarms.bounds.concentration import chernoff_upper
from manyarms.bounds.empirical_bernstein import EmpiricalBernstein
from manyarms.bounds.grid import Grid
from manyarms.bounds.implicit_exploration import ImplicitExplorationBound
from manyarms.bounds.log_smoothing import Gain, LogSmoothingBound
from manyarms.bounds.london import London
from manyarms.bounds.sakhi_1 import Sakhi1
from manyarms.bounds.sakhi_2 import Sakhi2
from manyarms.bounds.summary import Averages, Statistic, Summary
from manyarms.bounds.unified import GeneralBound, Unified

__all__ = [
    "BOUNDS", "AnyAlpha", "AnyLambda", "Averages", "Bound", "BoundedWeights", "Budget", "EmpiricalBernstein", "FromBelow", "Gain",
    "GeneralBound", "Grid", "ImplicitExplorationBound", "LogSmoothingBound", "London", "Sakhi1", "Sakhi2", "Side",
    "Statistic", "Summary", "Unified", "chernoff_upper",
]  # fmt: skip
