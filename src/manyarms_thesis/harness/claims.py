"""What the thesis states, what was measured, and whether the measurement bears it out.

A statement is turned into a difference that should be above zero. It holds only where the difference is above zero by
at least two standard errors; a difference that is too small or too noisy does not hold, and one of the wrong sign
does not either. Methods of one panel met the same problems, so their differences are taken run by run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from manyarms._base.typing import Array
from manyarms.errors import InvalidInput
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.thesis import sections

STANDARD_ERRORS = 2.0


@dataclass(frozen=True)
class Measured:
    """A mean and its standard error (not a number when there was only one run)."""

    mean: float
    standard_error: float

    def __sub__(self, other: Measured) -> Measured:
        """A difference between independent measurements."""
        return Measured(self.mean - other.mean, math.hypot(self.standard_error, other.standard_error))

    def __str__(self) -> str:
        return f"{self.mean:.4g} ± {self.standard_error:.2g}"

    @property
    def above_zero(self) -> bool:
        """Above zero by at least two standard errors."""
        return self.mean > 0 and self.mean >= STANDARD_ERRORS * self.standard_error

    @property
    def strength(self) -> float:
        """The mean in standard errors; ranks differences from least to most convincing."""
        if math.isnan(self.standard_error):
            return -math.inf
        return self.mean / self.standard_error if self.standard_error > 0 else math.copysign(math.inf, self.mean)


def measured(values: Array) -> Measured:
    """Mean and standard error over runs."""
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or not len(values):
        raise InvalidInput("values", f"shape {values.shape}", "a value for each run, shape (runs,)")
    error = float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan
    return Measured(float(values.mean()), error)


def least(differences: Mapping[str, Measured]) -> tuple[str, Measured]:
    """The least convincing of several differences: all hold exactly when this one does."""
    name = min(differences, key=lambda key: differences[key].strength)
    return name, differences[name]


@dataclass(frozen=True)
class Claim:
    """A statement, of the thesis where it cites its lines, beside its measurement."""

    statement: str
    thesis_lines: str
    figure: float
    standard_error: float
    holds: bool
    panel: str = ""
    detail: str = ""

    @property
    def sections(self) -> str:
        """The sections of the thesis that state it."""
        return sections(self.thesis_lines)

    def plain(self) -> dict[str, Any]:
        """As it stands in claims.json; a missing standard error is null."""
        return {
            "statement": self.statement,
            "thesis_sections": self.sections,
            "thesis_lines": self.thesis_lines,
            "figure": _number(self.figure),
            "standard_error": _number(self.standard_error),
            "holds": self.holds,
            "panel": self.panel,
            "detail": self.detail,
        }


def claim(statement: str, lines: str, difference: Measured, *, panel: str = "", detail: str = "") -> Claim:
    """A statement that holds when `difference` is above zero by two standard errors."""
    return Claim(statement, lines, difference.mean, difference.standard_error, difference.above_zero, panel, detail)


def gain(results: Results, panel: str, method: str, baseline: str) -> Measured:
    """By how much a method's final regret is below a baseline's, run by run."""
    return measured(results.final(panel, baseline) - results.final(panel, method))


def gains(results: Results, panels: Mapping[str, str], method: str, baseline: str) -> dict[str, Measured]:
    """`gain` in several panels, by what these are called."""
    return {name: gain(results, panel, method, baseline) for name, panel in panels.items()}


def final_regrets(results: Results, panels: Mapping[str, str], method: str) -> dict[str, Measured]:
    """A method's final regret in several panels, by what these are called."""
    return {name: measured(results.final(panel, method)) for name, panel in panels.items()}


def lower_regret(results: Results, panel: str, method: str, baseline: str, statement: str, lines: str) -> Claim:
    """A method has lower final regret than a baseline."""
    shown = ", ".join(f"{name} {measured(results.final(panel, name))}" for name in (method, baseline))
    return claim(statement, lines, gain(results, panel, method, baseline), panel=panel, detail=f"final regret: {shown}")


def outperforms(
    results: Results, panel: str, method: str, baselines: Sequence[str], statement: str, lines: str
) -> Claim:
    """A method has lower final regret than every baseline; the figure is the least convincing difference."""
    ahead = {name: gain(results, panel, method, name) for name in baselines}
    nearest, difference = least(ahead)
    return claim(
        statement, lines, difference, panel=panel,
        detail=f"final regret above that of {method}, over the same worlds: {listed(ahead)}; least convincing: {nearest}",
    )  # fmt: skip


def ratio(results: Results, panel: str, method: str, baseline: str) -> Measured:
    """The baseline's mean final regret over the method's, with its standard error by the delta method over paired runs."""
    ours, theirs = results.final(panel, method), results.final(panel, baseline)
    value = float(theirs.mean() / ours.mean())
    return Measured(value, value * measured(theirs / theirs.mean() - ours / ours.mean()).standard_error)


def saved(results: Results, panel: str, method: str, baseline: str) -> Measured:
    """The share of a baseline's regret that a method saves, run by run."""
    theirs = results.final(panel, baseline)
    return measured((theirs - results.final(panel, method)) / theirs.mean())


def logarithm(value: Measured) -> Measured:
    """The logarithm of a positive measurement, by the delta method."""
    return Measured(math.log(value.mean), value.standard_error / value.mean)


def slope(x: Array, values: Sequence[Measured]) -> Measured:
    """The least-squares slope of independent measurements against x, with their errors carried through."""
    centred = x - x.mean()
    weights = centred / (centred @ centred)
    error = math.sqrt(sum((float(w) * value.standard_error) ** 2 for w, value in zip(weights, values, strict=True)))
    return Measured(sum(float(w) * value.mean for w, value in zip(weights, values, strict=True)), error)


def listed(values: Mapping[str, object]) -> str:
    """Names and values in a row, for a detail."""
    return ", ".join(f"{name} {value}" for name, value in values.items())


def increasing(values: Mapping[str, Measured], statement: str, lines: str, *, panel: str = "") -> Claim:
    """Independent measurements grow from each one to the next; the figure is the least convincing step."""
    names = list(values)
    if len(names) < 2:
        raise InvalidInput("values", f"{len(names)} of them", "at least two measurements to compare")
    steps = {f"{before} to {after}": values[after] - values[before] for before, after in pairwise(names)}
    step, difference = least(steps)
    shown = ", ".join(f"{name}: {value}" for name, value in values.items())
    return claim(statement, lines, difference, panel=panel, detail=f"{shown}; least convincing step: {step}")


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


__all__ = [
    "Claim", "Measured", "claim", "final_regrets", "gain", "gains", "increasing", "least", "listed", "logarithm", "lower_regret",
    "measured", "outperforms", "ratio", "saved", "slope",
]  # fmt: skip
