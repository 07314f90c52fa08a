"""A bound of one's own: Pinsker's inequality for clipped weights, a Hoeffding bound with a divergence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from manyarms._base.arrays import sqrt
from manyarms.bounds import BOUNDS, FromBelow
from manyarms.errors import InvalidInput
from manyarms.weights import ClipPropensities


@BOUNDS.register("hoeffding")
@dataclass(frozen=True)
class Hoeffding(FromBelow):
    """V >= V_hat - sqrt((KL + log(2 sqrt(n)/delta)) / (2 n)) / tau.

    Z = 1(h = A) R / max(p, tau) has tau Z in [0, 1]. For such variables kl(mean, expectation) <= (KL + log(2 sqrt(n)/delta)) / n
    for all posteriors at once (Maurer, 2004), and 2 (p - q)^2 <= kl(p, q). Clipping counts too little: E Z <= V.
    """

    tau: float
    description: ClassVar[str] = "Hoeffding's, for clipping: simple and wide"
    grid = (("taus", float),)

    def __post_init__(self) -> None:
        if not 0 < self.tau <= 1:
            raise InvalidInput("tau", self.tau, "a number above 0 and at most 1")

    @property
    def statistics(self):
        return (ClipPropensities(self.tau),)

    def end(self, estimate, rows: int, kl, delta: float):
        """The lower end from the mean of n clipped terms; floats or torch scalars."""
        return estimate - sqrt((kl + math.log(2 * math.sqrt(rows) / delta)) / (2 * rows)) / self.tau
