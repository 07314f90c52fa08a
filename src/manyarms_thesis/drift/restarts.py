"""An agent that forgets everything now and then: every so many rounds, or when an alarm says that its belief is wrong.

The alarm is an e-detector on standardised residuals (`sequential.ResidualDetector`), each from what was known before its row.
After a restart the agent is what it was in the beginning, but for the catalogue, which is the present one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from manyarms._base.typing import AnyArray, Array
from manyarms.sequential import ResidualDetector
from manyarms_thesis.drift.replaced import Replaced


class Restarting(Replaced):
    """`make(n)` gives the agent of the n-th start. every: rounds between restarts; None: on an alarm of `mean_time`."""

    def __init__(self, make: Callable[[int], Any], *, every: int | None = None, mean_time: float = 10_000) -> None:
        self._make, self._every, self._mean_time = make, every, mean_time
        super().__init__()
        self.restarts, self._since = 0, 0
        self._begin()

    def _begin(self) -> None:
        self.agent, self._since = self._make(self.restarts), 0
        self._detector = None if self._every is not None else ResidualDetector(self._mean_time)
        for name, arguments, options in self._told:
            getattr(self.agent, name)(*arguments, **options)

    def observe(self, x: Array, a: int, r: float) -> None:
        """Learn the row, and begin anew if it is time, or if the row was one surprise too many."""
        if self._detector is not None:
            belief = self.agent.belief
            mean, variance = belief.predictive(np.asarray(x)[None], np.array([a]))
            self._detector.update(
                (r - float(mean[0])) / math.sqrt(belief.likelihood.noise_variance + float(variance[0]))
            )
        self.agent.observe(x, a, r)
        self._since += 1
        if self._since == self._every or (self._detector is not None and self._detector.alarm is not None):
            self.restarts += 1
            self._begin()

    def retire(self, ids: AnyArray) -> None:
        """Do not choose these any more, after a restart either."""
        self._told.append(("retire", (ids,), {}))
        self.agent.retire(ids)

    def add_actions(self, *arguments: Any, **options: Any) -> AnyArray:
        """New actions, which are there after a restart, too."""
        self._told.append(("add_actions", arguments, options))
        return np.asarray(self.agent.add_actions(*arguments, **options))


__all__ = ["Restarting"]
