"""Propensities that a table has for some rows only: how many are missing, and what a model of the logging policy puts there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyarms._base.typing import AnyArray, Array, Bools
from manyarms._base.validate import describe
from manyarms.errors import InvalidInput
from manyarms.logs.propensity_models import PropensityModel
from manyarms.logs.tables import Column

SMALLEST = 1e-12  # of an estimate: what was played was not impossible

EstimateOption = bool | PropensityModel
"""Whether missing propensities are estimated: by the actions' frequencies, or by a model."""


@dataclass
class Gaps:
    """Missing propensities, counted table by table."""

    rows: int = 0
    missing: int = 0

    def see(self, rows: int, column: Column | None) -> None:
        """More rows; None where there is no such column at all."""
        self.rows += rows
        self.missing += rows if column is None else int(column.absent.sum())

    @property
    def share(self) -> float:
        return self.missing / max(self.rows, 1)

    def note(self, how: str) -> str:
        """What is said of a log whose gaps were filled."""
        return f"{self.missing:,} of {self.rows:,} propensities ({self.share:.1%}) were missing, and are estimates from {how}"


def as_estimates(given: EstimateOption) -> EstimateOption:
    """True, False, or a model that was fitted."""
    if isinstance(given, bool | np.bool_):
        return bool(given)
    if isinstance(given, type) or not callable(getattr(given, "own", None)):
        expected = "True, False, or a model such as estimate_propensities(...).model"
        raise InvalidInput("estimate_missing", describe(given), expected)
    return given


def without_gaps(column: Column) -> Column:
    """The column with some number that it has in place of the missing ones, which are to be overwritten."""
    present = np.flatnonzero(~column.absent)
    if not len(present):
        return Column(np.ones(len(column)))
    return Column(np.where(column.absent, column.values[present[0]], column.values), None, column.categories)


def filled(values: AnyArray, missing: Bools, estimates: AnyArray) -> Array:
    """Propensities, with estimates in place of the missing ones."""
    if np.shape(estimates) != (int(missing.sum()),) or not np.isfinite(estimates).all():
        came = f"estimates of shape {np.shape(estimates)}"
        raise InvalidInput(
            "estimate_missing", came, f"a model that gives a probability to each of {missing.sum()} rows"
        )
    found = values.astype(np.float64)
    found[missing] = np.clip(estimates, SMALLEST, 1.0)
    return found


__all__ = ["SMALLEST", "EstimateOption", "Gaps", "as_estimates", "filled", "without_gaps"]
