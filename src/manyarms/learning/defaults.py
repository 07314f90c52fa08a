"""How much and how fast to learn where nothing was said.

A step of Adam moves every parameter by about the learning rate, whatever the objective's scale, and so a score x . theta by about
rate * ||x||_1 / temperature. The rate is chosen for steps of at most STEP in scores:

    rate = min(0.1, STEP temperature / mean ||x||_1) * min(1, m / 1000),        m = (sum |r|)^2 / sum r^2

with m the number of rows that rewards are as good as: of 10,000 rows with 40 clicks there is not more to learn than from 40 rows,
and a policy that moves as far as others do would only fit their noise. The rate falls linearly to 0, which needs no tuning to
settle; for a projection W, with scores x^T W beta_a, the length is that of x times the mean ||beta_a||_1. A log has at least ten
passes, and a small one as many as make STEPS steps (a hundred at most). Policies learned so reach the value of the logging policy
on logs of 2,000 rows and more (docs/learning.md has the figures); with 0.001 and ten epochs, a small log ends near where it
started.

Encoders with hidden layers, and plain gradient steps (sgd), whose size follows the objective's, keep 0.001 and a constant rate.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from manyarms.logs.data import LoggedData
from manyarms.policies.encoders import Projection

if TYPE_CHECKING:
    from manyarms.learning.results import Learnable
    from manyarms.learning.settings import Train

STEP = 0.8
LARGEST_RATE = 0.1
USUAL_RATE = 1e-3
EPOCHS, MOST_EPOCHS, STEPS = 10, 100, 400
INFORMATIVE = 1000.0  # rows from which on the rate is not held back
ROWS = 10_000  # that the contexts' length is taken from


def epochs_of(rows: int, batch: int) -> int:
    """Passes over a log of so many rows."""
    return min(MOST_EPOCHS, max(EPOCHS, math.ceil(STEPS / math.ceil(rows / batch))))


def rate_of(
    log: LoggedData, policy: Learnable, train: Train | None, optimiser: str, informative: float | None = None
) -> float:
    """The learning rate for contexts as long as those of a log; informative: of a log that this is a sample of."""
    if optimiser == "sgd" or not is_linear(policy, train):
        return USUAL_RATE
    X = log.contexts[:: max(1, len(log) // ROWS)]
    projects = policy.encoder is not None and train != "actions"
    features = X if policy.encoder is None or projects else np.asarray(policy.encoder.encode(X), dtype=np.float64)
    length = float(np.abs(features).sum(axis=1).mean())
    if projects:
        length *= float(np.abs(policy.actions[:: max(1, len(policy.actions) // ROWS)]).sum(axis=1).mean())
    temperature = float(getattr(policy, "temperature", 1.0))
    informative = informative_rows(log) if informative is None else informative
    return min(LARGEST_RATE, STEP * temperature / max(length, 1e-6)) * min(1.0, informative / INFORMATIVE)


def informative_rows(log: LoggedData) -> float:
    """How many rows of equal rewards, other than 0, say as much; at least 1."""
    sizes = np.abs(log.rewards / max(float(np.abs(log.rewards).max()), 1e-300))
    return max(1.0, float(sizes.sum() ** 2 / max((sizes**2).sum(), 1e-300)))


def is_linear(policy: Learnable, train: Train | None) -> bool:
    """Whether scores are linear in what is learned."""
    projects = isinstance(policy.encoder, Projection) and train != "both"
    return policy.encoder is None or train == "actions" or projects


__all__ = ["EPOCHS", "ROWS", "USUAL_RATE", "epochs_of", "informative_rows", "is_linear", "rate_of"]
