"""What an inspection found, as plain numbers and words, ready to be printed or put on a page."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from manyarms._base.tables import Shown, Table
from manyarms._base.typing import Array, Ints
from manyarms.logs.inspection.sketches import Duplicates
from manyarms.logs.inspection.statistics import LEAST_ROWS, LOG_EDGES, QUANTILES, BadRows, LogStatistics, NumberColumn

HEAVY = 100.0  # a weight of the uniform target above it is called heavy
MOST_SHOWN = 10
Level = Literal["problem", "warning", "note"]


@dataclass(frozen=True, repr=False)
class Finding(Shown):
    """Something that stands in the way (problem), calls for care (warning), or is good to know (note)."""

    level: Level
    what: str
    advice: str

    def _line(self) -> str:
        return f"{self.level}: {self.what}"


@dataclass(frozen=True, repr=False)
class Histogram(Shown):
    """Counts of values; labels say what each bar stands for. `exact` is False where they come from a sample."""

    labels: tuple[str, ...]
    counts: tuple[int, ...]
    exact: bool = True


@dataclass(frozen=True, repr=False)
class Distribution(Shown):
    """A column of numbers in short; quantiles are exact unless `sampled`."""

    count: int
    missing: int
    mean: float
    standard_deviation: float
    minimum: float
    maximum: float
    quantiles: dict[float, float]
    sampled: bool
    values: dict[float, int] | None  # each value with its count, where there are few
    histogram: Histogram


@dataclass(frozen=True, repr=False)
class ActionRow(Shown):
    """One action: how often it was played, what it brought, and how well a policy that always plays it is covered."""

    name: str
    rows: int
    share: float
    mean_reward: float
    value: float | None  # self-normalised estimate of always playing it
    effective_sample_size: float | None


@dataclass(frozen=True, repr=False)
class LogOverlap(Shown):
    """How far the rows reach for other policies than the one that logged them; see statistics.py for the formulas."""

    mean_weight: float
    mean_weight_error: float
    largest_weight: float
    effective_sample_size: float
    heavy_share: float
    below: dict[float, float]  # share of rows with a propensity below each of some thresholds
    best: ActionRow | None  # the action with the best value among those with enough rows


@dataclass(frozen=True, repr=False)
class DuplicateCount(Shown):
    """Entries that were there before."""

    count: int
    first_row: int | None
    exact: bool


@dataclass(frozen=True, repr=False)
class MissingColumn(Shown):
    """Missing entries of a column."""

    column: str
    count: int
    share: float
    first_row: int


@dataclass(frozen=True, repr=False)
class Inspection(Shown):
    """All of it; `findings` say what to do."""

    source: str
    rows: int
    parts: dict[str, str]  # part of the log -> its column or columns
    dim: int
    action_count: int
    action_count_is_known: bool
    actions_seen: int
    unseen: tuple[str, ...]  # some that were never played
    rarely_played: int  # actions played, but fewer than 5 times
    effective_actions: float  # exp of the entropy of the actions' shares
    most_played: tuple[ActionRow, ...]
    rewards: Distribution
    propensities: Distribution | None
    propensities_are_estimates: bool
    estimated_share: float  # of the rows: those whose propensities are estimates
    overlap: LogOverlap | None
    duplicate_events: DuplicateCount | None
    duplicate_rows: DuplicateCount
    missing: tuple[MissingColumn, ...]
    first_time: str | None
    last_time: str | None
    out_of_order: int | None
    groups: int | None
    groups_are_exact: bool
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]

    @property
    def problems(self) -> tuple[Finding, ...]:
        """What stands in the way of using the log as it is."""
        return tuple(finding for finding in self.findings if finding.level == "problem")

    def _table(self) -> Table:
        from manyarms.logs.printing import inspection_table

        return inspection_table(self)


def distribution(column: NumberColumn, *, log_counts: Ints | None = None) -> Distribution:
    m = column.moments
    quantiles = dict(zip(QUANTILES, column.quantiles(), strict=False))
    if log_counts is not None:
        histogram = log_histogram(log_counts)
    elif column.counts is not None:
        ordered = sorted(column.counts.items())
        histogram = Histogram(tuple(f"{v:g}" for v, _ in ordered), tuple(c for _, c in ordered))
    else:
        counts, edges = np.histogram(column.sample.values(), bins=20)
        labels = tuple(f"{a:.3g} to {b:.3g}" for a, b in pairwise(edges))
        histogram = Histogram(labels, tuple(counts.tolist()), column.sample.complete)
    return Distribution(
        count=int(m.count), missing=column.missing.count, mean=float(m.mean),
        standard_deviation=float(m.deviation), minimum=float(m.least) if m.count else float("nan"),
        maximum=float(m.largest) if m.count else float("nan"),
        quantiles=quantiles, sampled=not column.sample.complete, values=column.counts, histogram=histogram,
    )  # fmt: skip


def log_histogram(counts: Ints) -> Histogram:
    """Half decades, from the first to the last that holds anything."""
    lower = np.concatenate([[0.0], LOG_EDGES])
    halves = np.floor(np.log10(np.maximum(lower, LOG_EDGES[0] / 10)) * 2 + 1e-6) / 2
    steps, member = np.unique(halves, return_inverse=True)
    sums = np.bincount(member, weights=counts).astype(np.int64)
    used = np.flatnonzero(sums)
    if not len(used):
        return Histogram((), ())
    shown = range(int(used[0]), int(used[-1]) + 1)
    return Histogram(tuple(f"from {10 ** steps[i]:.2g}" for i in shown), tuple(int(sums[i]) for i in shown))


def action_row(statistics: LogStatistics, slot: int, names: list[str] | None) -> ActionRow:
    a = statistics.actions
    rows = int(a["rows"][slot])
    rewarded = a["rewarded"][slot]
    inverse, squares = float(a["inverse"][slot]), float(a["inverse_squares"][slot])
    return ActionRow(
        name=str(slot) if names is None else names[slot],
        rows=rows,
        share=rows / statistics.rows,
        mean_reward=float(a["reward"][slot] / rewarded) if rewarded else float("nan"),
        value=float(a["weighted_reward"][slot] / inverse) if inverse > 0 else None,
        effective_sample_size=inverse**2 / squares if squares > 0 else None,
    )


def overlap(statistics: LogStatistics, action_count: int, names: list[str] | None) -> LogOverlap | None:
    m = statistics.inverse
    if not m.count:
        return None
    scale = 1.0 / action_count
    mean, deviation, rows = float(m.mean) * scale, float(m.deviation) * scale, int(m.count)
    p = statistics.propensities.sample.values()
    good = p[(p > 0) & (p <= 1)]
    total = int(statistics.log_counts.sum())
    below = {}
    for threshold in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6):
        place = int(np.searchsorted(LOG_EDGES, threshold * (1 - 1e-9)))
        below[threshold] = float(statistics.log_counts[: place + 1].sum() / total)
    return LogOverlap(
        mean_weight=mean,
        mean_weight_error=deviation / rows**0.5,
        largest_weight=float(m.largest) * scale,
        effective_sample_size=rows * mean**2 / (mean**2 + deviation**2),
        heavy_share=float((good < scale / HEAVY).mean()) if len(good) else 0.0,
        below=below,
        best=_best(statistics, names),
    )


def _best(statistics: LogStatistics, names: list[str] | None) -> ActionRow | None:
    a = statistics.actions
    enough = np.flatnonzero((a["rows"] >= LEAST_ROWS) & (a["inverse"] > 0))
    if not len(enough):
        return None
    values: Array = a["weighted_reward"][enough] / a["inverse"][enough]
    return action_row(statistics, int(enough[np.argmax(values)]), names)


def duplicate_count(found: Duplicates) -> DuplicateCount:
    return DuplicateCount(found.count, found.first_row, found.exact)


def missing_columns(statistics: LogStatistics) -> tuple[MissingColumn, ...]:
    c = statistics.columns
    found: list[tuple[str | None, BadRows]] = [
        (c.action, statistics.missing_actions), (c.reward, statistics.rewards.missing),
        (c.propensity, statistics.propensities.missing), (c.event_id, statistics.missing_events),
        (c.timestamp, statistics.missing_times), *((name, one.missing) for name, one in statistics.context.items()),
    ]  # fmt: skip
    return tuple(
        MissingColumn(name, bad.count, bad.count / statistics.rows, bad.first_row)
        for name, bad in found
        if name is not None and bad.first_row is not None
    )


__all__ = [
    "HEAVY", "MOST_SHOWN", "ActionRow", "Distribution", "DuplicateCount", "Finding", "Histogram", "Inspection", "Level",
    "LogOverlap", "MissingColumn", "action_row", "distribution", "duplicate_count", "missing_columns", "overlap",
]  # fmt: skip
