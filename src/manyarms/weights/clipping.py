"""Clipping: of propensities from below, or of weights from above."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from manyarms._base.arrays import at_least, at_most
from manyarms._base.typing import Array
from manyarms.weights.base import CORRECTIONS, Correction, Ratio, Rule, powers
from manyarms.weights.parameters import positive_or_infinite, zero_or_positive


@CORRECTIONS.register("cips", "ips-max", "clip")
@dataclass(frozen=True)
class ClipPropensities(Ratio):
    """pi / max(pi0, tau), "IPS-max" or "cIPS", 0 <= tau <= 1; tau = 0 is IPS (thesis, Sections 7.1.1 and 8.2).

    Bias at x: minus the sum over a of pi(a|x) r(x, a) (1 - pi0(a|x) / tau)_+.
    """

    tau: float
    summary: ClassVar[str] = "inverse propensity scoring, propensities clipped at tau"
    parameter: ClassVar[str | None] = "tau"
    plain_at: ClassVar[float | None] = 0.0
    rule: ClassVar[Rule | None] = Rule(
        "tau = 1/sqrt(n), so that weights stay below sqrt(n)", lambda n: float(n**-0.5), powers
    )
    by_default: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "tau", zero_or_positive("tau", self.tau, most=1))

    def denominator(self, pi0: Array) -> Array:
        return at_least(pi0, self.tau)


@CORRECTIONS.register("ips-min")
@dataclass(frozen=True)
class ClipWeights(Correction):
    """min(w, M), "IPS-min", M > 0; a large M is IPS (thesis, Section 8.2).

    Bias at x: minus the sum over a of pi(a|x) r(x, a) (1 - M / w(a|x))_+.
    """

    limit: float
    summary: ClassVar[str] = "inverse propensity scoring, weights clipped at a limit"
    parameter: ClassVar[str | None] = "limit"
    plain_at: ClassVar[float | None] = math.inf
    rule: ClassVar[Rule | None] = Rule(
        "limit = sqrt(n) (thesis, Section 8.2)", lambda n: float(n**0.5), lambda n: tuple(1 / t for t in powers(n))
    )
    by_default: ClassVar[bool] = True
    never_above: ClassVar[bool] = True
    rising: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "limit", positive_or_infinite("limit", self.limit))

    def weight(self, pi: Array, pi0: Array, reward: Array | None = None) -> Array:
        return at_most(pi / pi0, self.limit)

    def bound(self, pi0_min: float = 0.0) -> float | None:
        limit = min(self.limit, 1.0 / pi0_min) if pi0_min > 0 else self.limit
        return limit if limit < math.inf else None


__all__ = ["ClipPropensities", "ClipWeights"]
