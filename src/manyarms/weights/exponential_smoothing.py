"""Exponential smoothing: a power of the propensity, or of the whole weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from manyarms._base import validate
from manyarms._base.arrays import exp, log
from manyarms._base.policy_tables import proportional
from manyarms._base.typing import Array
from manyarms.weights.base import CORRECTIONS, Correction, Ratio, Rule


def _rule(words: str) -> Rule:
    return Rule(words, lambda n: float(1 - n**-0.25), lambda n: tuple(i / 10 for i in range(11)))


@CORRECTIONS.register("es")
@dataclass(frozen=True)
class ExponentialAlpha(Ratio):
    """pi / pi0^alpha, exponential smoothing, 0 <= alpha <= 1; alpha = 1 is IPS (thesis, Sections 7.1.1 and 8.2).

    Bias at x: minus the sum over a of pi(a|x) r(x, a) (1 - pi0(a|x)^(1 - alpha)) (thesis, Appendix E.1.1).
    """

    alpha: float
    summary: ClassVar[str] = "exponential smoothing: propensities to the power alpha"
    parameter: ClassVar[str | None] = "alpha"
    plain_at: ClassVar[float | None] = 1.0
    rule: ClassVar[Rule | None] = _rule("alpha = 1 - n^(-1/4) (thesis, Section 8.5)")
    by_default: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", validate.probability("alpha", self.alpha))

    def denominator(self, pi0: Array) -> Array:
        return pi0**self.alpha

    def effective_policy(self, pi: Array, pi0: Array) -> Array:
        return pi * (pi0 > 0) * pi0 ** (1 - self.alpha)


@CORRECTIONS.register("es-beta")
@dataclass(frozen=True)
class ExponentialBeta(Correction):
    """w^beta, 0 <= beta <= 1; beta = 1 is IPS (thesis, Section 8.2). Raises weights below 1: the bias has two signs."""

    beta: float
    summary: ClassVar[str] = "exponential smoothing: weights to the power beta"
    parameter: ClassVar[str | None] = "beta"
    plain_at: ClassVar[float | None] = 1.0
    rising: ClassVar[bool] = True
    rule: ClassVar[Rule | None] = _rule("beta = 1 - n^(-1/4)")

    def __post_init__(self) -> None:
        object.__setattr__(self, "beta", validate.probability("beta", self.beta))

    def weight(self, pi: Array, pi0: Array, reward: Array | None = None) -> Array:
        return (pi / pi0) ** self.beta

    def log_weight(self, log_pi: Array, pi0: Array) -> Array:
        return self.beta * (log_pi - log(pi0))

    def terms_from_log(self, log_pi: Array, pi0: Array, reward: Array) -> Array:
        """In logs: as a power w^beta has no gradient where pi is too small to be told from 0."""
        return exp(self.log_weight(log_pi, pi0)) * reward

    def effective_policy(self, pi: Array, pi0: Array) -> Array:
        return pi**self.beta * (pi0 > 0) * pi0 ** (1 - self.beta)

    def bound(self, pi0_min: float = 0.0) -> float | None:
        lowest = max(pi0_min, 0.0) ** self.beta
        return 1.0 / lowest if lowest > 0 else None

    def best_policy(self, rewards: Array, logging: Array) -> Array | None:
        """In proportion to r(x, a)^(1 / (1 - beta)) pi0(a|x) (thesis, Section 7.1.1); uniform where there is no reward."""
        if self.is_none:
            return super().best_policy(rewards, logging)
        # the largest reward is taken out: a high power of a small one must not vanish
        scale = (rewards * (logging > 0)).max(axis=1, keepdims=True)
        return proportional((rewards / np.where(scale > 0, scale, 1.0)) ** (1 / (1 - self.beta)) * logging)


__all__ = ["ExponentialAlpha", "ExponentialBeta"]
