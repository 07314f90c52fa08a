"""lambda* and adaptive alpha: what learning maximises, which is no certificate.

lambda* = sqrt(2 kl2 / (n Var_n)) and alpha* minimise the width on the rows themselves (thesis, lines 2532-2543). The bound
holds for parameters that were fixed beforehand, and not for these: `Tuned` is therefore a type of its own, which nothing here
turns into a `Certificate`. `certify` looks at a grid that was declared beforehand, and pays for it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from manyarms.certificates.bounds.base import Budget, confidence, divergence, over_contexts
from manyarms.certificates.summaries import Averages, Summary
from manyarms.weights import Correction


@dataclass(frozen=True)
class Tuned:
    """An objective's value, and the parameters that were chosen on the data for it."""

    objective: float
    lam: float
    correction: Correction


def best_lambda(averages: Averages, rows: int, kl: float, delta: float) -> float:
    """sqrt(2 kl2 / (n Var_n)), kl2 = KL + log(4/delta)."""
    return math.sqrt(2 * (divergence(kl) + math.log(4 / confidence(delta))) / (rows * averages.second_moment))


def objective(summary: Summary, kl: float, delta: float, correction: Correction) -> Tuned:
    """V_hat less the width at lambda*: V_hat - sqrt(kl1/(2n)) - B_n - sqrt(2 kl2 Var_n / n)."""
    averages, n = summary.of(correction), summary.rows
    lam = best_lambda(averages, n, kl, delta)
    spread = math.sqrt(2 * (kl + math.log(4 / delta)) * averages.second_moment / n)
    width = over_contexts(summary, kl, Budget(delta).common) + averages.lost + spread
    return Tuned(averages.value - width, lam, correction)


def adaptive(summary: Summary, kl: float, delta: float, corrections: Sequence[Correction]) -> Tuned:
    """The correction that minimises B_n + sqrt(2 kl2 Var_n / n) among those of the summary, and its objective."""

    def cost(one: Correction) -> float:
        averages = summary.of(one)
        return averages.lost + math.sqrt(2 * (kl + math.log(4 / delta)) * averages.second_moment / summary.rows)

    return objective(summary, kl, delta, min(corrections, key=cost))


__all__ = ["Tuned", "adaptive", "best_lambda", "objective"]
