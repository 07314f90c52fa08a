"""The bound of London and Sandler (2019) for clipped weights (thesis, Appendix E.3.3)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from manyarms._base.arrays import clip, sqrt
from manyarms.bounds.base import BOUNDS, FromBelow
from manyarms.bounds.bounded_weights import BoundedWeights


@BOUNDS.register("london")
@dataclass(frozen=True)
class London(FromBelow, BoundedWeights):
    """V >= V_hat - sqrt(2 (1/tau - V_hat) c / tau) - 2 c / tau,   c = (KL + log(n/delta)) / (n - 1)   (thesis, Appendix E.3.3).

    1 - tau Z with Z = 1(h = A) R / max(p, tau) lies in [0, 1]. For such losses kl(q_hat, q) <= (KL + log(2 sqrt(n)/delta)) /
    n for all posteriors (Maurer; see `over_contexts`), which is at most c for n >= 2; and kl(q_hat, q) >= (q - q_hat)^2 / (2
    q) for q >= q_hat gives q <= q_hat + sqrt(2 q_hat c) + 2 c. With q = 1 - tau E Z and E Z <= V the statement follows.
    """

    description: ClassVar[str] = "London and Sandler, for clipping"

    def end(self, estimate: float, rows: int, kl: float, delta: float) -> float:
        if rows < 2:
            return estimate - math.inf
        c = (kl + math.log(rows / delta)) / (rows - 1)
        # a root of 0 has no slope
        under = clip(2 * clip(1 / self.tau - estimate, 0.0) * c / self.tau, 1e-30)
        return estimate - sqrt(under) - 2 * c / self.tau


__all__ = ["London"]
