"""Pessimism as penalties on an objective.

SampleVariance    V - weight sqrt(Var / n)                 Var the sample variance of V's terms (SVP; thesis, Appendix D.4.9)
Distance          V - weight / n ||theta - theta0||^2      theta0 the start, or the logging policy (thesis, Appendix D.4.9)
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from manyarms._base import validate
from manyarms._base.arrays import sqrt
from manyarms.errors import InvalidInput
from manyarms.estimators.base import Answers, Batch, Objective, Request, RowObjective, Tensor
from manyarms.logs.data import LoggedData

TINY = 1e-30  # a variance below it counts as none: the root has no slope there


class _Around(Objective):
    """An objective with something taken off."""

    def __init__(self, objective: Objective, weight: float) -> None:
        if not isinstance(objective, Objective):
            raise InvalidInput("objective", validate.describe(objective), "an objective of this package")
        self.objective = objective
        self.weight = validate.not_negative("weight", weight)

    @property
    def row_by_row(self) -> bool:  # type: ignore[override]
        """Where the objective inside is."""
        return self.objective.row_by_row

    @property
    def settings(self) -> dict[str, float]:
        return {**self.objective.settings, "weight": self.weight}

    @property
    def label(self) -> str:
        return f"{self.objective.label} with {self.name} {self.weight:.3g}"

    def resolved(self, rows: int) -> Objective:
        return type(self)(self.objective.resolved(rows), self.weight)

    def prepare(self, log: LoggedData) -> Request:
        return self.objective.prepare(log)

    def value(self, answers: Answers, batch: Batch) -> Tensor:
        return self.objective.value(answers, batch)


class SampleVariance(_Around):
    """Sample variance penalisation: the mean of the terms less weight sqrt(Var / n).

    n is the number of rows of the log, and Var the variance of the terms of a batch with rows that are not active counted as
    0. The root of a batch's variance is below the root of the log's on average: the smaller the batch, the milder the penalty.
    """

    name: ClassVar[str] = "svp"

    def __init__(self, objective: RowObjective, weight: float = 1.0) -> None:
        super().__init__(objective, weight)
        if not isinstance(objective, RowObjective) or objective.self_normalised:
            raise InvalidInput("objective", objective.name, "an objective that is a mean over rows")
        self._terms_of = objective

    def prepare(self, log: LoggedData) -> Request:
        request = self.objective.prepare(log)
        columns = {**request.columns, "rounds": np.full(len(log), float(len(log)))}
        return replace(request, columns=columns, rising=False)  # a larger term may cost more in variance than it adds

    def value(self, answers: Answers, batch: Batch) -> Tensor:
        each = self._terms_of.terms(answers, batch.columns)
        mean = each.sum() / batch.size
        rounds = batch.columns["rounds"]
        if batch.size < 2 or not len(rounds):
            return mean
        silent = batch.size - len(rounds)
        # around the mean, and not as a difference of squares, which would lose all digits where terms are alike
        variance = (((each - mean) ** 2).sum() + silent * mean**2) / (batch.size - 1)
        return mean - self.weight * sqrt(variance.clip(min=TINY) / rounds[0])


class Distance(_Around):
    """Less weight / n ||theta - theta0||^2, which whoever holds the parameters takes off: here it is only written down."""

    name: ClassVar[str] = "distance"

    @property
    def distance(self) -> float:
        """The weight."""
        return self.weight + self.objective.distance


__all__ = ["Distance", "SampleVariance"]
