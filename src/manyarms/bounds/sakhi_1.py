"""The first bound of Sakhi et al. (2022), Catoni's, for clipped weights (thesis, Appendix E.3.3)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from manyarms._base.arrays import as_float, expm1
from manyarms.bounds.base import BOUNDS, Budget, FromBelow, positive_or_open
from manyarms.bounds.bounded_weights import BoundedWeights
from manyarms.bounds.concentration import kl_inverse
from manyarms.bounds.summary import Summary

LAMBDAS = np.geomspace(1e-3, 10, 100)  # what learning chooses from


@BOUNDS.register("sakhi-1", "sakhi1")
@dataclass(frozen=True)
class Sakhi1(FromBelow, BoundedWeights):
    """V >= max over l > 0 of (exp(l tau V_hat - c) - 1) / (tau (e^l - 1)),   c = (KL + log(2 sqrt(n)/delta)) / n.

    Catoni's bound for the losses 1 - tau Z of `London`: q <= (1 - exp(-l q_hat - c)) / (1 - e^-l), for all l at once because
    kl(q_hat, q) is the supremum over l of -l q_hat - log(1 - q (1 - e^-l)) (Germain et al., 2009), and kl(q_hat, q) <= c.
    With q = 1 - tau V and q_hat = 1 - tau V_hat the form above follows. The thesis (Appendix E.3.3) prints exp(... + c)
    inside, by which a larger divergence would tighten the bound; here it loosens it. The maximum over l is where kl(tau
    V_hat, tau V) = c; lam: one l in its place.
    """

    lam: float | None = None
    description: ClassVar[str] = "Sakhi et al. by Catoni, for clipping"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "lam", positive_or_open(self.lam))

    @property
    def is_open(self) -> bool:
        return False  # without l it is the best one, which costs nothing

    def end(self, estimate: float, rows: int, kl: float, delta: float) -> float:
        c = (kl + math.log(2 * math.sqrt(rows) / delta)) / rows
        if self.lam is None:
            return kl_inverse(min(max(self.tau * estimate, 0.0), 1.0), c) / self.tau
        return expm1(self.lam * self.tau * estimate - c) / (self.tau * math.expm1(self.lam))

    def objective(self, summary: Summary, kl: float, delta: float) -> float:
        """At the best l of a grid for these rows: in closed form, so that it can be differentiated."""
        if self.lam is not None:
            return super().objective(summary, kl, delta)
        estimate, n = as_float(summary.of(self.correction).value), summary.rows
        c = (as_float(kl) + math.log(2 * math.sqrt(n) / delta)) / n
        ends = np.expm1(LAMBDAS * self.tau * estimate - c) / np.expm1(LAMBDAS)
        return replace(self, lam=float(LAMBDAS[ends.argmax()])).lower(summary, kl, Budget(delta, sides=1)).end


__all__ = ["Sakhi1"]
