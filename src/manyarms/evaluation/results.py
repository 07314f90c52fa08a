"""What comes out of an evaluation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from manyarms._base import validate
from manyarms._base.tables import Shown, Table
from manyarms.errors import InvalidInput
from manyarms.evaluation.diagnostics import PolicyOverlap
from manyarms.evaluation.intervals import Interval
from manyarms.evaluation.paired import Difference

if TYPE_CHECKING:
    from manyarms.evaluation.verdicts import Verdict


@dataclass(frozen=True, repr=False)
class Estimate(Shown):
    """One estimator's answer."""

    name: str
    label: str
    value: float
    standard_error: float
    interval: Interval
    """The one that was asked for; all that could be had are in `intervals`."""

    intervals: tuple[Interval, ...]
    effective_sample_size: float
    unbiased: bool
    warnings: tuple[str, ...]
    note: str
    gain: Difference | None = None
    """The value less that of the logging policy, paired row by row."""

    contradicted: bool = False
    """Whether an interval was left out because it lies where no value can be."""

    @property
    def kind(self) -> str:
        """How the interval was computed."""
        return self.interval.kind

    @property
    def interval_is_for(self) -> str:
        """The policy's value, or the mean of a biased estimator."""
        return self.interval.covers

    def by(self, kind: str) -> Interval | None:
        """The interval of a kind, if there is one."""
        return next((interval for interval in self.intervals if interval.kind == kind), None)

    def _table(self) -> Table:
        from manyarms.evaluation.tables import estimate_table

        return estimate_table(self)


@dataclass(frozen=True, repr=False)
class Evaluation(Shown):
    """All estimates of one policy on one log."""

    policy: str
    rows: int
    actions: int
    level: float
    estimates: tuple[Estimate, ...]
    logged: Estimate
    """The mean reward of the log: the value of the policy that wrote it."""

    overlap: PolicyOverlap | None
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    groups: int | None = None
    """How many groups the rows come in, about so where there are more than a million; None where rows are on their own."""

    on_training_rows: bool = False
    """Whether the policy was learned from rows of this log, as far as that is known."""

    def __getitem__(self, name: str) -> Estimate:
        for estimate in self.estimates if isinstance(name, str) else ():
            if name in (estimate.name, estimate.label):
                return estimate
        raise InvalidInput("name", validate.describe(name), f"one of {', '.join(e.name for e in self.estimates)}")

    def verdict(self, estimator: str | None = None) -> Verdict:
        """Ship, do not ship or cannot tell (see `manyarms.evaluation.verdict`)."""
        from manyarms.evaluation.verdicts import verdict

        return verdict(self, estimator=estimator)

    def report(self, path: str | Path) -> Path:
        """Write an HTML page with the table and pictures; its path."""
        from manyarms.evaluation.page import write

        return write(self, Path(path))

    def _table(self) -> Table:
        from manyarms.evaluation.tables import as_table

        return as_table(self)


__all__ = ["Estimate", "Evaluation"]
