"""The bounds, each with its argument. `manyarms.certificates.certify` is what makes a certificate of them."""

from __future__ import annotations

from manyarms.certificates.bounds.base import Bound, Budget, Side
from manyarms.certificates.bounds.baselines import London, Sakhi1, Sakhi2
from manyarms.certificates.bounds.fixed import EmpiricalBernstein, mean_at_most
from manyarms.certificates.bounds.smoothing import Gain, ImplicitExplorationBound, LogSmoothingBound
from manyarms.certificates.bounds.unified import AnyAlpha, AnyLambda, Unified

__all__ = [
    "AnyAlpha", "AnyLambda", "Bound", "Budget", "EmpiricalBernstein", "Gain", "ImplicitExplorationBound",
    "LogSmoothingBound", "London", "Sakhi1", "Sakhi2", "Side", "Unified", "mean_at_most",
]  # fmt: skip
