"""The difference of two policies' values on the same rows: their terms share the luck of the log, which cancels."""

from __future__ import annotations

import math
from dataclasses import dataclass

from manyarms._base.moments import Contrast, Moments, Part
from manyarms._base.tables import Shown, Table
from manyarms._base.text import interval_text, number
from manyarms.estimators.base import Range
from manyarms.evaluation.intervals import Interval
from manyarms.evaluation.readings import VALUE, Readings, Wanted, contradictions, error_of, intervals_of, possible

AGAINST_THE_LOG = "the logging policy's value is the mean of the rewards"


@dataclass(frozen=True, repr=False)
class Difference(Shown):
    """The value of one policy less that of another, on the same log."""

    value: float
    standard_error: float
    interval: Interval
    intervals: tuple[Interval, ...]
    correlation: float
    """Of the two policies' terms: the nearer to 1, the more the pairing has won."""

    note: str
    warnings: tuple[str, ...] = ()

    @property
    def significant(self) -> bool:
        """Whether the interval leaves out 0."""
        return not self.interval.low <= 0 <= self.interval.high

    def _table(self) -> Table:
        shown = "it is shown" if self.significant else "no difference is shown"
        ends = interval_text(self.interval.low, self.interval.high)
        return Table(
            f"difference {self.value:+.4g} {ends}: {shown} at {self.interval.level:.4g}",
            ("interval", "low", "high", "level", "is for"),
            [(one.kind, one.low, one.high, f"{one.level:.4g}", one.covers) for one in self.intervals],
            [
                f"standard error {number(self.standard_error)}; correlation of the two policies' terms {self.correlation:.3f}"
            ]
            + [f"warning: {text}" for text in self.warnings]
            + ([f"note: {self.note}"] if self.note else []),
        )


def of_the_log(column: int, limits: Range | None) -> Readings:
    """The rewards themselves, in a column: unbiased terms in the rewards' own range, the logging policy's."""
    mean = (Part(column),)
    return Readings(mean, mean, mean, limits, VALUE)


def paired(
    moments: Moments, ours: Readings, theirs: Readings, wanted: Wanted, limits: Range | None, note: str
) -> Difference:
    """One reading less another of the same rows; limits: of the rewards, beyond which no values differ."""
    read = Readings(
        middle=_minus(ours.middle, theirs.middle),
        low=_minus(ours.low, theirs.high),
        high=_minus(ours.high, theirs.low),
        span=_minus_spans(ours.span, theirs.span),
        covers=_covers(ours, theirs),
        weights=(*ours.weights, *theirs.weights),
    )
    found, warnings = intervals_of(moments, read, wanted)
    if limits is not None and ours.covers == theirs.covers == VALUE:
        most = limits[1] - limits[0]
        found, wrong = possible(found, (-most, most))
        warnings = contradictions(wrong, (-most, most)) + warnings
    none = Interval(-math.inf, math.inf, "none", wanted.level, read.covers)
    chosen = next((one for one in found if one.kind == wanted.interval), found[0] if found else none)
    if chosen.kind != wanted.interval:
        note += f"; there is no {wanted.interval} interval, " + (
            "nor another" if chosen is none else f"the {chosen.kind} one is shown"
        )
    error = error_of(moments, read.middle, wanted, read.weights)
    own, other = (error_of(moments, one.middle, wanted) for one in (ours, theirs))
    known = math.isfinite(error) and math.isfinite(own * other) and own * other > 0
    alike = (own**2 + other**2 - error**2) / (2 * own * other) if known else 0.0
    return Difference(moments.value(read.middle), error, chosen, tuple(found), alike, note, tuple(warnings))


def _covers(ours: Readings, theirs: Readings) -> str:
    if ours.covers.startswith(VALUE) and theirs.covers.startswith(VALUE):
        return "the difference of the policies' values" + ours.covers.removeprefix(VALUE)
    return "the difference of the estimators' means, which their biases keep from that of the values"


def _minus(left: Contrast, right: Contrast) -> Contrast:
    return (*left, *(Part(part.column, part.over, -part.sign) for part in right))


def _minus_spans(left: Range | None, right: Range | None) -> Range | None:
    return None if left is None or right is None else (left[0] - right[1], left[1] - right[0])


__all__ = ["AGAINST_THE_LOG", "Difference", "of_the_log", "paired"]
