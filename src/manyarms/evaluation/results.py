"""What comes out of an evaluation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from manyarms.errors import InvalidInput
from manyarms.evaluation.diagnostics import PolicyOverlap
from manyarms.evaluation.intervals import Interval


@dataclass(frozen=True)
class Estimate:
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


@dataclass(frozen=True)
class Evaluation:
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

    def __getitem__(self, name: str) -> Estimate:
        for estimate in self.estimates:
            if name in (estimate.name, estimate.label):
                return estimate
        raise InvalidInput("name", repr(name), f"one of {', '.join(e.name for e in self.estimates)}")

    def __str__(self) -> str:
        from manyarms.evaluation.tables import as_text

        return as_text(self)

    def report(self, path: str | Path) -> Path:
        """Write an HTML page with the table and pictures; its path."""
        from manyarms.evaluation.page import write

        return write(self, Path(path))


__all__ = ["Estimate", "Evaluation"]
