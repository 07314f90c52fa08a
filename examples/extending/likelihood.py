"""A likelihood of one's own: successes out of a known number of trials."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from manyarms.beliefs import LIKELIHOODS, GeneralisedLinear
from manyarms.errors import InvalidInput


@LIKELIHOODS.register("binomial")
@dataclass(frozen=True)
class Binomial(GeneralisedLinear):
    """R ~ Binomial(n, sigmoid(x^T theta)): A(u) = n log(1 + e^u), mean n sigmoid(u)."""

    trials: int = 10

    def mean(self, u):
        return self.trials * expit(u)

    def slope(self, u):
        return self.trials * expit(u) * expit(-u)

    def potential(self, u):
        return self.trials * np.logaddexp(0.0, u)

    def check(self, rewards) -> None:
        """Whole numbers from 0 to n."""
        bad = (rewards < 0) | (rewards > self.trials) | (rewards != np.floor(rewards))
        if bad.any():
            raise InvalidInput("reward", f"{rewards[bad][0]:g}", f"an integer from 0 to {self.trials}")
