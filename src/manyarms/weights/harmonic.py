"""The harmonic correction: the weight in a harmonic mean with 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, cast

from manyarms._base.typing import Array
from manyarms.weights.base import CORRECTIONS, Correction, Rule, powers
from manyarms.weights.parameters import zero_or_positive


@CORRECTIONS.register("harmonic")
@dataclass(frozen=True)
class Harmonic(Correction):
    """w / (1 - s + s w), 0 <= s <= 1, "Har": strength s = 0 is IPS and s = 1 ignores the weights (w_hat = 1).

    The thesis prints it both ways round: s is lambda_2 of Section 8.2, and 1 - lambda of Section 8.6. Raises weights
    below 1: the bias has two signs.
    """

    strength: float
    summary: ClassVar[str] = "inverse propensity scoring, weights in a harmonic mean with 1"
    parameter: ClassVar[str | None] = "strength"
    plain_at: ClassVar[float | None] = 0.0
    rule: ClassVar[Rule | None] = Rule("strength = 1/sqrt(n)", lambda n: float(n**-0.5), powers)
    by_default: ClassVar[bool] = True
    rising: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "strength", zero_or_positive("strength", self.strength, most=1))

    def weight(self, pi: Array, pi0: Array, reward: Array | None = None) -> Array:
        # in this form pi0 is multiplied and not divided by, and a weight of 0 stays 0 up to s = 1
        return cast(Array, pi / ((1 - self.strength) * pi0 + self.strength * pi + (pi == 0)))

    def effective_policy(self, pi: Array, pi0: Array) -> Array:
        nowhere = (pi == 0) | (pi0 == 0)
        return cast(Array, pi * (pi0 / ((1 - self.strength) * pi0 + self.strength * pi + nowhere)))

    def bound(self, pi0_min: float = 0.0) -> float | None:
        lowest = (1 - self.strength) * pi0_min + self.strength  # increasing in w: the largest is at pi = 1
        return 1.0 / lowest if lowest > 0 else None


__all__ = ["Harmonic"]
