"""One pass over a log as it was written, good or bad: what is in it, in memory that does not grow with its length.

Counts, means, weights and effective sample sizes are exact. Quantiles come from a uniform sample beyond 100,000 rows,
and duplicates from a sample of hashes beyond a million different ones; both then say so. Memory grows with the number of
different actions alone.

    weight of a target π in row i             w_i = π(a_i | x_i) / π₀(a_i | x_i)
    effective sample size                     (Σ w_i)² / Σ w_i²
    uniform target                            w_i = 1 / (K p_i); its mean is 1 if every action can be played and the
                                              propensities p_i are true
    always action a                           w_i = 1[a_i = a] / p_i, value Σ w_i r_i / Σ w_i (self-normalised)
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from manyarms._base.moments import RunningMoments
from manyarms._base.typing import AnyArray, Array, Bools, Ints
from manyarms._base.validate import LARGEST, SMALLEST
from manyarms.errors import InvalidInput
from manyarms.logs.checks import SUM_TOLERANCE
from manyarms.logs.columns import Resolved
from manyarms.logs.encoding import as_codes
from manyarms.logs.inspection.sketches import Duplicates, Sample, hashes_of
from manyarms.logs.tables import Column, Kind, Table, as_times

MOST_ACTIONS = 20_000_000
MOST_VALUES = 12  # different rewards that are counted one by one
MOST_TEXTS = 1_000  # different texts of a context column that are remembered
LOG_EDGES = 10.0 ** np.arange(-12, 0.01, 0.25)
QUANTILES = (0.01, 0.1, 0.5, 0.9, 0.99)
LEAST_ROWS = 10  # of an action before it may be called the best


@dataclass
class BadRows:
    """Rows that something is wrong with: how many, which is the first, and what stood there."""

    count: int = 0
    first_row: int | None = None
    example: str = ""

    def see(self, wrong: Bools | np.bool_, numbers: Ints, values: AnyArray | None = None) -> None:
        """numbers: of the rows, in their file."""
        found = int(wrong.sum())
        if found and self.first_row is None:
            row = int(np.argmax(wrong))
            self.first_row = int(numbers[row])
            self.example = "" if values is None else str(values[row])
        self.count += found


@dataclass
class NumberColumn:
    """A column of numbers (or of vectors, all their entries together)."""

    moments: RunningMoments = field(default_factory=RunningMoments)
    sample: Sample = field(default_factory=Sample)
    missing: BadRows = field(default_factory=BadRows)
    infinite: BadRows = field(default_factory=BadRows)
    counts: dict[float, int] | None = field(default_factory=dict)  # None once there are too many different values

    def see(self, values: Array, missing: Bools, numbers: Ints, written: AnyArray | None = None) -> Bools:
        """Gives the rows with a finite number; `written`: what stood there, where it was text."""
        self.missing.see(missing, numbers)
        infinite = ~missing & ~(np.abs(values) < LARGEST)  # as good as infinite: its square is
        self.infinite.see(infinite, numbers, values if written is None else written)
        good = ~(missing | infinite)
        self.moments.add(values[good])
        self.sample.see(values[good])
        if self.counts is not None:
            for value, count in zip(
                *(found.tolist() for found in np.unique(values[good], return_counts=True)), strict=True
            ):
                self.counts[value] = self.counts.get(value, 0) + count
                if len(self.counts) > MOST_VALUES:
                    self.counts = None
                    break
        return good

    def quantiles(self) -> list[float]:
        values = self.sample.values()
        return [float(q) for q in np.quantile(values, QUANTILES)] if len(values) else []


@dataclass
class ContextColumn:
    """What is known of a context column; of vectors, entry by entry."""

    kind: Kind
    missing: BadRows = field(default_factory=BadRows)
    infinite: BadRows = field(default_factory=BadRows)
    least: Array | None = None  # (m,)
    largest: Array | None = None
    texts: set[str] | None = field(default_factory=set)
    widths: set[int] = field(default_factory=set)

    def see(self, column: Column, numbers: Ints) -> None:
        if column.kind.name in ("text", "time"):
            self.missing.see(column.absent, numbers)
            if column.categories is not None and self.texts is not None:
                self.texts.update(column.categories[np.unique(column.values[column.values >= 0])].tolist())
                self.texts = None if len(self.texts) > MOST_TEXTS else self.texts
            return
        values = column.values.astype(np.float64).reshape(len(column), -1)
        self.widths.add(values.shape[1])
        gone = column.absent[:, None] | np.isnan(values)
        self.missing.see(gone.any(axis=1), numbers)
        infinite = ~gone & ~(np.abs(values) < LARGEST)
        self.infinite.see(infinite.any(axis=1), numbers)
        good = np.where(gone | infinite, np.nan, values)
        with np.errstate(all="ignore"):
            low = np.fmin.reduce(good, axis=0)
            high = np.fmax.reduce(good, axis=0)
        self.least = low if self.least is None else np.fmin(self.least, low)
        self.largest = high if self.largest is None else np.fmax(self.largest, high)

    @property
    def constant(self) -> int:
        """How many of its entries never change."""
        if self.kind.name == "text":
            return int(self.texts is not None and len(self.texts) <= 1)
        return 0 if self.least is None or self.largest is None else int((self.least == self.largest).sum())


class PerAction:
    """Sums for each action: rows, rewards, 1/p, 1/p², r/p; arrays that grow to the actions seen."""

    FIELDS = ("rows", "reward", "rewarded", "inverse", "inverse_squares", "weighted_reward")

    def __init__(self) -> None:
        self.ids: dict[str, int] | None = None  # where actions have names
        self._sums = np.zeros((len(self.FIELDS), 16))
        self.size = 0

    def slots(self, column: Column, bad: BadRows, missing: BadRows, numbers: Ints) -> tuple[Ints, Bools]:
        """The slot of each row's action, and which rows have one."""
        missing.see(column.absent, numbers)
        if column.categories is not None:
            self.ids = {} if self.ids is None else self.ids
            used = np.unique(column.values[column.values >= 0])
            places = np.full(len(column.categories) + 1, -1)
            for code in used.tolist():
                places[code] = self.ids.setdefault(str(column.categories[code]), len(self.ids))
            slots: Ints = places[column.values]
            self._grow(len(self.ids))
            return slots, slots >= 0
        values = column.values
        if values.ndim != 1 or values.dtype.kind not in "biuf":
            raise InvalidInput("action", f"a column of {column.kind.name}s", "integers or texts")
        ids = values.astype(np.float64)
        with np.errstate(invalid="ignore"):
            good = ~column.absent & (ids == np.rint(ids)) & (ids >= 0) & (ids < MOST_ACTIONS)
        bad.see(~good & ~column.absent, numbers, values)
        slots = np.where(good, np.nan_to_num(ids), 0).astype(np.int64)
        self._grow(int(slots[good].max()) + 1 if good.any() else 0)
        return slots, good

    def add(self, slots: Ints, field_name: str, weights: Array | None = None) -> None:
        found = np.bincount(slots, weights=weights, minlength=self.size)
        self._sums[self.FIELDS.index(field_name), : len(found)] += found

    def _grow(self, size: int) -> None:
        if size > MOST_ACTIONS:
            raise InvalidInput("action", f"more than {MOST_ACTIONS:,} different actions", "a column of actions")
        if size > self._sums.shape[1]:
            wider = np.zeros((len(self.FIELDS), max(size, 2 * self._sums.shape[1])))
            wider[:, : self._sums.shape[1]] = self._sums
            self._sums = wider
        self.size = max(self.size, size)

    def __getitem__(self, field_name: str) -> Array:
        sums: Array = self._sums[self.FIELDS.index(field_name), : self.size]
        return sums


class LogStatistics:
    """Everything that is counted, chunk by chunk."""

    def __init__(self, columns: Resolved, kinds: dict[str, Kind]) -> None:
        self.columns = columns
        self.rows = 0
        self.unit = "row"  # what the source calls a row
        self.actions = PerAction()
        self.actions_are_ids = False  # also where they are integers
        self.bad_actions, self.missing_actions = BadRows(), BadRows()
        self.rewards = NumberColumn()
        self.propensities = NumberColumn()
        self.bad_propensities = BadRows()
        self.estimated = 0  # rows that are said to have an estimate, where that is said row by row
        self.log_counts = np.zeros(len(LOG_EDGES) + 1, dtype=np.int64)
        self.inverse = RunningMoments()  # of 1 / p
        self.mixed: dict[str, str] = {}  # of context columns with numbers and texts: where the first of each are
        self.context = {name: ContextColumn(kinds[name]) for name in columns.context}
        self.events, self.duplicate_rows, self.groups = Duplicates(), Duplicates(), Duplicates()
        self.missing_events = BadRows()
        self.first_time: np.datetime64 | None = None
        self.last_time: np.datetime64 | None = None
        self.earlier, self.missing_times = BadRows(), BadRows()
        self._previous: np.datetime64 | None = None
        self.outside_support, self.disagreeing, self.bad_support = BadRows(), BadRows(), BadRows()

    def see(self, table: Table) -> None:
        numbers = table.row_numbers
        c = self.columns
        self.rows += table.rows
        self.unit = table.unit
        action = table[c.action]
        if self.actions_are_ids and action.categories is None:
            texts, codes = as_codes(c.action, action)
            action = Column(codes, action.missing, np.array(texts, dtype=np.str_))
        slots, played = self.actions.slots(action, self.bad_actions, self.missing_actions, numbers)
        self.actions.add(slots[played], "rows")
        r, rewarded = self._numbers(self.rewards, table[c.reward], c.reward, numbers)
        rewarded = rewarded & played
        self.actions.add(slots[rewarded], "reward", r[rewarded])
        self.actions.add(slots[rewarded], "rewarded")
        if c.propensity is not None:
            self._see_propensities(table[c.propensity], slots, played, r, rewarded, numbers)
            if c.estimated is not None:
                flags = table[c.estimated]
                yes = flags.values == 1 if flags.categories is None else np.char.lower(flags.texts()) == "true"
                self.estimated += int((yes | (flags.texts() == "1")).sum())
        for name, seen in self.context.items():
            seen.see(table[name], numbers)
        self._see_labels(table, numbers)
        if c.support:
            self._see_support(table, numbers)

    def _numbers(self, into: NumberColumn, column: Column, name: str, numbers: Ints) -> tuple[Array, Bools]:
        if column.categories is not None:  # texts where numbers belong: only those that are numbers count
            parsed = np.array([_number(text) for text in column.categories.tolist()] + [np.nan])
            values = parsed[column.values]
            return values, into.see(values, column.absent, numbers, column.texts())
        if column.values.ndim != 1 or column.kind.name != "number":
            raise InvalidInput(f"column {name!r}", f"a column of {column.kind.name}s", "numbers")
        values = column.values.astype(np.float64)
        return values, into.see(values, column.absent, numbers)

    def _see_propensities(
        self, column: Column, slots: Ints, played: Bools, r: Array, rewarded: Bools, numbers: Ints
    ) -> None:
        p, known = self._numbers(self.propensities, column, str(self.columns.propensity), numbers)
        with np.errstate(invalid="ignore"):
            good = known & (p > 0) & (p <= 1 + 1e-6)
        self.bad_propensities.see(known & ~good, numbers, p)
        self.log_counts += np.bincount(np.searchsorted(LOG_EDGES, p[good] * (1 + 1e-9)), minlength=len(self.log_counts))
        inverse = 1.0 / np.maximum(
            p, SMALLEST, where=good, out=np.ones(len(p))
        )  # the square of one over less is infinite
        self.inverse.add(inverse[good])
        both = good & played
        self.actions.add(slots[both], "inverse", inverse[both])
        self.actions.add(slots[both], "inverse_squares", inverse[both] ** 2)
        paid = both & rewarded
        self.actions.add(slots[paid], "weighted_reward", r[paid] * inverse[paid])

    def _see_labels(self, table: Table, numbers: Ints) -> None:
        c = self.columns
        if c.event_id is not None:
            column = table[c.event_id]
            self.missing_events.see(column.absent, numbers)
            here = np.flatnonzero(~column.absent)
            if len(here):
                self.events.see(hashes_of([column], table.rows)[here], numbers[here])
        if c.group is not None:
            self.groups.see(hashes_of([table[c.group]], table.rows), numbers)
        rest = [table[name] for name in c.all if name != c.event_id]
        self.duplicate_rows.see(hashes_of(rest, table.rows), numbers)
        if c.timestamp is not None:
            times = as_times(c.timestamp, table[c.timestamp], table.where)
            self.missing_times.see(np.isnat(times), numbers)
            here = np.flatnonzero(~np.isnat(times))
            if len(here):
                known = times[here]
                before = np.concatenate([known[:1] if self._previous is None else [self._previous], known[:-1]])
                back = np.zeros(table.rows, dtype=np.bool_)
                back[here] = known < before
                self.earlier.see(back, numbers)
                self._previous = known[-1]
                low, high = known.min(), known.max()
                self.first_time = low if self.first_time is None else min(self.first_time, low)
                self.last_time = high if self.last_time is None else max(self.last_time, high)

    def _see_support(self, table: Table, numbers: Ints) -> None:
        """Only where actions are rows: ids in a support are checked when the log is read."""
        c = self.columns
        action = table[c.action]
        ids = _matrix(table, c.support)
        if (
            ids is None
            or self.actions_are_ids
            or action.categories is not None
            or action.values.dtype.kind not in "iuf"
        ):
            return
        inside = ids == action.values[:, None]
        self.outside_support.see(~inside.any(axis=1), numbers)
        chances = _matrix(table, c.support_probabilities) if c.support_probabilities else None
        if chances is None or chances.shape != ids.shape:
            return
        with np.errstate(invalid="ignore"):
            self.bad_support.see(~((chances >= 0).all(axis=1) & (chances.sum(axis=1) <= 1 + SUM_TOLERANCE)), numbers)
            if c.propensity is not None and table[c.propensity].kind.name == "number":
                p = table[c.propensity].values.astype(np.float64)
                own = np.where(inside, chances, 0.0).sum(axis=1)
                self.disagreeing.see(inside.any(axis=1) & ~(np.abs(own - p) <= 1e-4 * np.maximum(p, 1e-3)), numbers)


def _matrix(table: Table, names: tuple[str, ...]) -> Array | None:
    columns = [table[name] for name in names]
    if any(column.categories is not None or column.kind.name == "time" for column in columns):
        return None
    return np.column_stack([column.values.astype(np.float64) for column in columns])


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


__all__ = ["LOG_EDGES", "QUANTILES", "BadRows", "LogStatistics", "NumberColumn"]
