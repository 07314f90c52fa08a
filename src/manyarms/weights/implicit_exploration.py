"""Implicit exploration: a constant is added to propensities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from manyarms._base.typing import Array
from manyarms.weights.base import CORRECTIONS, Ratio, Rule, powers
from manyarms.weights.parameters import zero_or_positive


@CORRECTIONS.register("ix")
@dataclass(frozen=True)
class ImplicitExploration(Ratio):
    """pi / (pi0 + gamma), "IX", gamma >= 0; gamma = 0 is IPS (thesis, Section 8.6).

    Bias at x: minus the sum over a of pi(a|x) r(x, a) gamma / (pi0(a|x) + gamma).
    """

    gamma: float
    summary: ClassVar[str] = "implicit exploration: gamma is added to propensities"
    parameter: ClassVar[str | None] = "gamma"
    plain_at: ClassVar[float | None] = 0.0
    rule: ClassVar[Rule | None] = Rule("gamma = 1/sqrt(n)", lambda n: float(n**-0.5), powers)
    by_default: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", zero_or_positive("gamma", self.gamma))

    def denominator(self, pi0: Array) -> Array:
        return pi0 + self.gamma


__all__ = ["ImplicitExploration"]
