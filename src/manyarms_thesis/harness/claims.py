"""What the thesis states, what was measured, and whether the measurement bears it out.

A statement is turned into a difference that should be above zero. It holds only where the difference is above zero by
at least two standard errors; a difference that is too small or too noisy does not hold, and one of the wrong sign
does not either. Agents of one panel met the same worlds, so their differences are taken run by run.
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
        raise InvalidInput("values", f"shape {values.shape}", "one number a run")
    error = float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan
    return Measured(float(values.mean()), error)


def least(differences: Mapping[str, Measured]) -> tuple[str, Measured]:
    """The least convincing of several differences: all hold exactly when this one does."""
    name = min(differences, key=lambda key: differences[key].strength)
    return name, differences[name]


@dataclass(frozen=True)
class Claim:
    """A statement of the thesis beside its measurement."""

    statement: str
    thesis_lines: str
    figure: float
    standard_error: float
    holds: bool
    panel: str = ""
    detail: str = ""

    def plain(self) -> dict[str, Any]:
        """As it stands in claims.json; a missing standard error is null."""
        return {
            "statement": self.statement,
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


def gain(results: Results, panel: str, agent: str, baseline: str) -> Measured:
    """By how much an agent's final regret is below a baseline's, run by run."""
    return measured(results.final(panel, baseline) - results.final(panel, agent))


def outperforms(
    results: Results, panel: str, agent: str, baselines: Sequence[str], statement: str, lines: str
) -> Claim:
    """An agent has lower final regret than every baseline; the figure is the least convincing difference."""
    gains = {name: gain(results, panel, agent, name) for name in baselines}
    nearest, difference = least(gains)
    others = ", ".join(f"{name} {value}" for name, value in gains.items())
    return claim(
        statement, lines, difference, panel=panel,
        detail=f"final regret above that of {agent}, over the same worlds: {others}; least convincing: {nearest}",
    )  # fmt: skip


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


__all__ = ["Claim", "Measured", "claim", "gain", "increasing", "least", "measured", "outperforms"]
