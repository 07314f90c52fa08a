"""Logarithmic smoothing, which acts on w * r, and its form that is linear in the policy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, cast

from manyarms._base.arrays import log1p
from manyarms._base.typing import Array
from manyarms.errors import InvalidInput
from manyarms.weights.base import CORRECTIONS, Correction, Rule, powers
from manyarms.weights.parameters import zero_or_positive


@CORRECTIONS.register("ls")
@dataclass(frozen=True)
class LogSmoothing(Correction):
    """Logarithmic smoothing: the mean of log(1 + l w r) / l, l >= 0, for rewards of at least 0; l = 0 is IPS.

    Thesis, Section 1.3; Sakhi et al. (2024). As a weight it is log(1 + l w r) / (l r), and it depends on r. Its mean
    is at most the policy's value, and `evaluation.intervals.ls_lower` turns it into a lower confidence bound that
    needs no bound on the weights. What is lost of a reward, r - terms / w, is largest on [0, 1] at r = 1, as its
    derivative in r is not negative: `effective_policy` is what is kept there.
    """

    smoothing: float
    summary: ClassVar[str] = "logarithmic smoothing of weighted rewards"
    parameter: ClassVar[str | None] = "smoothing"
    plain_at: ClassVar[float | None] = 0.0
    rule: ClassVar[Rule | None] = Rule("smoothing = 1/sqrt(n)", lambda n: float(n**-0.5), powers)
    by_default: ClassVar[bool] = True
    never_above: ClassVar[bool] = True
    rising: ClassVar[bool] = True
    depends_on_reward: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "smoothing", zero_or_positive("smoothing", self.smoothing))

    def weight(self, pi: Array, pi0: Array, reward: Array | None = None) -> Array:
        if reward is None:
            raise InvalidInput("reward", "nothing", "rewards: logarithmic smoothing acts on w * r, not on w alone")
        nothing = reward == 0  # there the weight is its limit w
        safe = reward + nothing
        return cast(Array, self.terms(pi, pi0, safe) / safe * ~nothing + pi / pi0 * nothing)

    def terms(self, pi: Array, pi0: Array, reward: Array) -> Array:
        if self.smoothing == 0:
            return pi / pi0 * reward
        return log1p(self.smoothing * (pi / pi0) * reward) / self.smoothing

    def bound(self, pi0_min: float = 0.0) -> float | None:
        """Of w_hat * r for rewards in [0, 1]."""
        if pi0_min <= 0:
            return None
        return math.log1p(self.smoothing / pi0_min) / self.smoothing if self.smoothing else 1.0 / pi0_min

    @property
    def log_smoothing(self) -> float:
        return self.smoothing


@CORRECTIONS.register("ls-linear")
@dataclass(frozen=True)
class LinearLogSmoothing(LogSmoothing):
    """pi / l * log(1 + l r / pi0): never above LogSmoothing (log is concave), and linear in pi, for learning."""

    summary: ClassVar[str] = "logarithmic smoothing in a form that is linear in the policy"
    by_default: ClassVar[bool] = False
    linear_in_policy: ClassVar[bool] = True

    def terms(self, pi: Array, pi0: Array, reward: Array) -> Array:
        if self.smoothing == 0:
            return pi / pi0 * reward
        return pi * log1p(self.smoothing * reward / pi0) / self.smoothing


__all__ = ["LinearLogSmoothing", "LogSmoothing"]
