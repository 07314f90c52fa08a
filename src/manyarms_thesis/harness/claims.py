"""What the thesis states, what was measured, and the verdict of the measurement on the statement.

A statement is turned into a difference that should be above zero, or into several. Methods of one panel met the same
problems, so their differences are taken run by run.

    held            the difference is above zero by two standard errors
    refuted         it is below zero by two standard errors
    undecided       neither, or there is no standard error
    held in part    of several differences some are above zero by two standard errors, and some are not

Two standard errors are meant for many runs; with n runs it is the quantile of Student's distribution with n - 1 degrees of
freedom at the same level: 4.5 for three runs, 2.9 for five, 2.05 for fifty.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from manyarms._base.typing import Array, Ints
from manyarms.errors import InvalidInput
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.thesis import sections

Verdict = Literal["held", "held in part", "refuted", "undecided"]
STANDARD_ERRORS = 2.0
PARTS = ("all", "held", "refuted")
# a true difference of this many standard errors is found, at two standard errors, four times out of five
FOUND = STANDARD_ERRORS + 0.84


@lru_cache(maxsize=1024)
def standard_errors(degrees: float) -> float:
    """How many standard errors decide: 2 where the error is known, more where it is itself estimated from few runs."""
    if math.isinf(degrees):
        return STANDARD_ERRORS
    if degrees < 1:
        return math.inf
    from scipy.stats import norm, t

    return float(t.ppf(norm.cdf(STANDARD_ERRORS), degrees))


@dataclass(frozen=True)
class Measured:
    """A mean and its standard error (not a number when there was only one run), with the degrees of freedom behind it."""

    mean: float
    standard_error: float
    degrees: float = math.inf

    def __sub__(self, other: Measured) -> Measured:
        """A difference between independent measurements."""
        error = math.hypot(self.standard_error, other.standard_error)
        return Measured(self.mean - other.mean, error, min(self.degrees, other.degrees))

    def __neg__(self) -> Measured:
        return replace(self, mean=-self.mean)

    def times(self, factor: float) -> Measured:
        """In other units."""
        return replace(self, mean=factor * self.mean, standard_error=abs(factor) * self.standard_error)

    def __str__(self) -> str:
        return f"{self.mean:.4g} ± {self.standard_error:.2g}"

    @property
    def above_zero(self) -> bool:
        """Above zero by at least two standard errors."""
        return self.mean > 0 and self.mean >= standard_errors(self.degrees) * self.standard_error

    @property
    def below_zero(self) -> bool:
        """Below zero by at least two standard errors."""
        return (-self).above_zero

    @property
    def strength(self) -> float:
        """The mean in standard errors that decide; ranks differences from least to most convincing."""
        if math.isnan(self.standard_error):
            return -math.inf
        needed = standard_errors(self.degrees) * self.standard_error
        if needed > 0:
            return self.mean / needed
        return math.copysign(math.inf, self.mean) if self.mean else 0.0  # two that are the same: nothing is above zero


def measured(values: Array, worlds: Ints | None = None) -> Measured:
    """Mean and standard error over runs; worlds: which runs met the same world, and are therefore not independent.

    With worlds w the error is the cluster-robust one, C / (C - 1) sum_w (sum of the deviations in w)^2 / n^2 for C worlds, with
    C - 1 degrees of freedom; where each run has its own world it is the usual one.
    """
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or not len(values):
        raise InvalidInput("values", f"shape {values.shape}", "a value for each run, shape (runs,)")
    mean, n = float(values.mean()), len(values)
    met = np.arange(n) if worlds is None else np.unique(worlds, return_inverse=True)[1]
    count = int(met.max()) + 1
    if count < 2:
        return Measured(mean, math.nan, 0)
    sums = np.bincount(met, weights=values - mean, minlength=count)
    return Measured(mean, math.sqrt(count / (count - 1) * float(sums @ sums)) / n, count - 1)


def least(differences: Mapping[str, Measured]) -> tuple[str, Measured]:
    """The least convincing of several differences: all hold exactly when this one does."""
    name = min(differences, key=lambda key: differences[key].strength)
    return name, differences[name]


def verdict_on(differences: Sequence[Measured]) -> Verdict:
    """The verdict of the differences that a statement is made of."""
    above = sum(one.above_zero for one in differences)
    if above:
        return "held" if above == len(differences) else "held in part"
    return "refuted" if any(one.below_zero for one in differences) else "undecided"


@dataclass(frozen=True)
class Claim:
    """A statement, of the thesis where it cites its lines, beside its measurement.

    figure, standard_error   of the difference that should be above zero; of several, the least convincing one
    parts                    how many differences the statement is made of; how many of these hold, and how many are refuted
    of_formulas              whether formulas alone decide it, whatever the worlds of a run are
    of_each                  whether it is said of each of several panels or methods by itself, so that some of them may refute it
    """

    statement: str
    thesis_lines: str
    figure: float
    standard_error: float
    verdict: Verdict
    panel: str = ""
    detail: str = ""
    degrees: float = math.inf
    parts: tuple[int, int, int] = (1, 0, 0)
    of_formulas: bool = False
    of_each: bool = False

    @property
    def holds(self) -> bool:
        """Whether it was borne out as a whole."""
        return self.verdict == "held"

    @property
    def sections(self) -> str:
        """The sections of the thesis that state it; none for a statement of this project."""
        return sections(self.thesis_lines)

    @property
    def shows(self) -> float:
        """The least difference that runs such as these would find four times out of five."""
        return (standard_errors(self.degrees) + FOUND - STANDARD_ERRORS) * self.standard_error

    def plain(self) -> dict[str, Any]:
        """As it stands in claims.json; a missing standard error is null."""
        return {
            "statement": self.statement,
            "thesis_sections": self.sections,
            "thesis_lines": self.thesis_lines,
            "figure": _number(self.figure),
            "standard_error": _number(self.standard_error),
            "degrees_of_freedom": _number(self.degrees),
            "would_show": _number(self.shows),
            "verdict": self.verdict,
            "holds": self.holds,
            "panel": self.panel,
            "detail": self.detail,
            "parts": dict(zip(PARTS, self.parts, strict=True)),
            **{name: True for name in ("of_formulas", "of_each") if getattr(self, name)},
        }

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any]) -> Claim:
        """The claim that was written as plain data."""
        figure, error, degrees = (plain[name] for name in ("figure", "standard_error", "degrees_of_freedom"))
        all_parts, held, refuted = (int(plain["parts"][name]) for name in PARTS)
        return cls(
            plain["statement"], plain["thesis_lines"], math.nan if figure is None else figure,
            math.nan if error is None else error, plain["verdict"], plain["panel"], plain["detail"],
            math.inf if degrees is None else degrees, (all_parts, held, refuted), plain.get("of_formulas", False),
            plain.get("of_each", False),
        )  # fmt: skip


def claim(
    statement: str,
    lines: str,
    difference: Measured,
    *,
    panel: str = "",
    detail: str = "",
    parts: Sequence[Measured] = (),
) -> Claim:
    """A statement that says of `difference`, and of all `parts` where it has several, that it is above zero.

    lines: of the thesis; "" for a statement that is not in it.
    """
    among = list(parts) or [difference]
    return Claim(
        statement, lines, difference.mean, difference.standard_error, verdict_on(among), panel, detail, difference.degrees,
        (len(among), sum(one.above_zero for one in among), sum(one.below_zero for one in among)),
    )  # fmt: skip


def gain(results: Results, panel: str, method: str, baseline: str) -> Measured:
    """By how much a method's final regret is below a baseline's, run by run."""
    return measured(results.final(panel, baseline) - results.final(panel, method), results.worlds.get(panel))


def gains(results: Results, panels: Mapping[str, str], method: str, baseline: str) -> dict[str, Measured]:
    """`gain` in several panels, by what these are called."""
    return {name: gain(results, panel, method, baseline) for name, panel in panels.items()}


def final_regrets(results: Results, panels: Mapping[str, str], method: str) -> dict[str, Measured]:
    """A method's final regret in several panels, by what these are called."""
    return {name: measured(results.final(panel, method), results.worlds.get(panel)) for name, panel in panels.items()}


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
        statement, lines, difference, panel=panel, parts=list(ahead.values()),
        detail=f"final regret above that of {method}, over the same worlds: {listed(ahead)}; least convincing: {nearest}",
    )  # fmt: skip


def ratio(results: Results, panel: str, method: str, baseline: str) -> Measured:
    """The baseline's mean final regret over the method's, with its standard error by the delta method over paired runs."""
    ours, theirs = results.final(panel, method), results.final(panel, baseline)
    value = float(theirs.mean() / ours.mean())
    deviations = measured(theirs / theirs.mean() - ours / ours.mean(), results.worlds.get(panel))
    return replace(deviations.times(value), mean=value)


def saved(results: Results, panel: str, method: str, baseline: str) -> Measured:
    """The share of a baseline's mean regret that a method saves, with its error by the delta method over paired runs."""
    share = ratio(results, panel, baseline, method)
    return replace(share, mean=1 - share.mean)


def logarithm(value: Measured) -> Measured:
    """The logarithm of a positive measurement, by the delta method."""
    return Measured(math.log(value.mean), value.standard_error / value.mean, value.degrees)


def slope(x: Array, values: Sequence[Measured]) -> Measured:
    """The least-squares slope of independent measurements against x, with their errors carried through."""
    centred = x - x.mean()
    weights = centred / (centred @ centred)
    error = math.sqrt(sum((float(w) * value.standard_error) ** 2 for w, value in zip(weights, values, strict=True)))
    mean = sum(float(w) * value.mean for w, value in zip(weights, values, strict=True))
    return Measured(mean, error, min(value.degrees for value in values))


def listed(values: Mapping[str, object]) -> str:
    """Names and values in a row, for a detail."""
    return ", ".join(f"{name} {value}" for name, value in values.items())


def increasing(values: Mapping[str, Measured], statement: str, lines: str, *, panel: str = "") -> Claim:
    """Independent measurements grow from each one to the next; the figure is the least convincing step.

    Where there is one alone, nothing is decided.
    """
    names = list(values)
    if len(names) < 2:  # a part of an experiment
        return claim(statement, lines, Measured(math.nan, math.nan, 0), panel=panel, detail="nothing to compare")
    steps = {f"{before} to {after}": values[after] - values[before] for before, after in pairwise(names)}
    step, difference = least(steps)
    shown = ", ".join(f"{name}: {value}" for name, value in values.items())
    detail = f"{shown}; least convincing step: {step}"
    return claim(statement, lines, difference, panel=panel, detail=detail, parts=list(steps.values()))


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


__all__ = [
    "Claim", "Measured", "Verdict", "claim", "final_regrets", "gain", "gains", "increasing", "least", "listed", "logarithm",
    "lower_regret", "measured", "outperforms", "ratio", "saved", "slope", "standard_errors", "verdict_on",
]  # fmt: skip
