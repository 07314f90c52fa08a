"""Implicit exploration by its own bound: the penalty knows no policy (Neu, 2015; Gabbianelli et al., 2024)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from manyarms._base import validate
from manyarms.bounds.base import BOUNDS, FromBelow
from manyarms.bounds.summary import Statistic
from manyarms.weights import ImplicitExploration


@BOUNDS.register("ix-tail")
@dataclass(frozen=True)
class ImplicitExplorationBound(FromBelow):
    """V >= V_ix - (KL + log(1/delta)) / (2 gamma n),   V_ix the mean of pi R / (p + gamma): the penalty knows no policy.

    z / (1 + z/2) <= log(1 + z) with z = 2 gamma R/p, R <= 1, gives 2 gamma R / (p + gamma) <= log(1 + 2 gamma R/p): the
    argument of `LogSmoothingBound` with l = 2 gamma, and log(1 + l V) <= l V (Neu, 2015; Gabbianelli et al., 2024). From
    above: for 1 - R.
    """

    gamma: float
    description: ClassVar[str] = "implicit exploration by its own bound: needs propensities only"
    grid = (("gammas", float),)

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", validate.positive("gamma", self.gamma))

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        return (ImplicitExploration(self.gamma),)

    def end(self, estimate: float, rows: int, kl: float, delta: float) -> float:
        return estimate - (kl + math.log(1 / delta)) / (2 * self.gamma * rows)


__all__ = ["ImplicitExplorationBound"]
