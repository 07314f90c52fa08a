"""Implicit exploration: a constant is added to propensities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from manyarms._base import validate
from manyarms._base.typing import Array
from manyarms.weights.base import CORRECTIONS, Correction, Rule, powers


@CORRECTIONS.register("ix")
@dataclass(frozen=True)
class ImplicitExploration(Correction):
    """pi / (pi0 + gamma), "IX", gamma >= 0; gamma = 0 is IPS (thesis, Section 8.6).

    Bias at x: minus the sum over a of pi(a|x) r(x, a) gamma / (pi0(a|x) + gamma).
    """

    gamma: float
    name: ClassVar[str] = "ix"
    summary: ClassVar[str] = "implicit exploration: gamma is added to propensities"
    parameter: ClassVar[str | None] = "gamma"
    rule: ClassVar[Rule | None] = Rule("gamma = 1/sqrt(n)", lambda n: float(n**-0.5), powers)
    by_default: ClassVar[bool] = True
    linear_in_policy: ClassVar[bool] = True
    never_above: ClassVar[bool] = True
    rising: ClassVar[bool] = True

    def __post_init__(self) -> None:
        validate.not_negative("gamma", self.gamma)

    @property
    def is_none(self) -> bool:
        return self.gamma == 0

    def weight(self, pi: Array, pi0: Array, reward: Array | None = None) -> Array:
        return pi / (pi0 + self.gamma)

    def effective_policy(self, pi: Array, pi0: Array) -> Array:
        if self.gamma == 0:
            return pi * (pi0 > 0)
        return pi * (pi0 / (pi0 + self.gamma))

    def bound(self, pi0_min: float = 0.0) -> float | None:
        floor = self.gamma + pi0_min
        return 1.0 / floor if floor > 0 else None


__all__ = ["ImplicitExploration"]
