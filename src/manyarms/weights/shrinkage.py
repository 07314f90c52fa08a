"""Shrinkage: large weights shrink towards 0."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from manyarms._base.typing import Array
from manyarms.weights.base import CORRECTIONS, Correction, Rule, powers
from manyarms.weights.parameters import positive_or_infinite


@CORRECTIONS.register("shrinkage")
@dataclass(frozen=True)
class Shrinkage(Correction):
    """l w / (l + w^2), l > 0; a large l is IPS (thesis, Section 8.2). Weights beyond sqrt(l) shrink towards 0.

    Bias at x: minus the sum over a of pi(a|x) r(x, a) w^2 / (l + w^2).
    """

    scale: float
    summary: ClassVar[str] = "inverse propensity scoring, large weights shrunk towards 0"
    parameter: ClassVar[str | None] = "scale"
    plain_at: ClassVar[float | None] = math.inf
    rule: ClassVar[Rule | None] = Rule(
        "scale = 4n, so that weights stay below sqrt(n)",
        lambda n: 4.0 * n,
        lambda n: tuple(4 / t**2 for t in powers(n)),
    )
    by_default: ClassVar[bool] = True
    never_above: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive_or_infinite("scale", self.scale))

    def weight(self, pi: Array, pi0: Array, reward: Array | None = None) -> Array:
        w = pi / pi0
        with np.errstate(over="ignore"):  # a square beyond all numbers shrinks its weight to 0
            return w / (1 + w * (w / self.scale))

    def effective_policy(self, pi: Array, pi0: Array) -> Array:
        w = pi / (pi0 + (pi0 == 0))
        with np.errstate(over="ignore"):
            return cast(Array, pi * (pi0 > 0) / (1 + w * (w / self.scale)))

    def bound(self, pi0_min: float = 0.0) -> float | None:
        turn = math.sqrt(self.scale)  # w_hat rises up to here, to sqrt(l) / 2
        if pi0_min > 0 and 1.0 / pi0_min < turn:
            w = 1.0 / pi0_min
            return w / (1 + w * w / self.scale)
        return turn / 2 if turn < math.inf else None


__all__ = ["Shrinkage"]
