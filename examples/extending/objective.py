"""An objective of one's own: the log-likelihood of what was played, weighted by r / sqrt(pi0)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from manyarms.estimators import OBJECTIVES, RowObjective
from manyarms.estimators.base import Request
from manyarms.logs import LoggedData


@OBJECTIVES.register("root-lpi")
class RootLPI(RowObjective):
    """R / sqrt(pi0) log pi: between LPI, which follows the logging policy, and cLPI, which follows the reward alone."""

    summary: ClassVar[str] = "log-likelihood weighted by r / sqrt(p0)"

    def prepare(self, log: LoggedData) -> Request:
        """What is needed of the log: a weight for every row. The policy is asked for the logged action."""
        log.require("propensities", purpose=self.name)
        log.require("unit_rewards", purpose=self.name)
        return Request({"weight": log.rewards / np.sqrt(log.propensities)}, rising=True)

    def terms(self, answers, columns):
        """One term a row, in NumPy or torch alike."""
        return columns["weight"] * answers.log_pi[:, 0]
