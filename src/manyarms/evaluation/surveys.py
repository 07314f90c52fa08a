"""What must be known of a log before its rows are weighed: how many, the range of rewards, the groups, the columns."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from manyarms.errors import InvalidInput
from manyarms.estimators.inputs import require_log
from manyarms.estimators.logging_policy import full_propensities
from manyarms.evaluation.readers import Divided, Here, Pass, Reader
from manyarms.logs.checks import place
from manyarms.logs.data import LoggedData, LogSource
from manyarms.logs.hashes import mixed, text_hashes
from manyarms.logs.inspection.sketches import Duplicates

FIRST = 16  # rows of a source that are looked at before all others
MAX_FREE_CELLS = 20_000_000  # contexts x actions up to which bias terms are added without being asked for


@dataclass(frozen=True)
class Survey:
    """What must be known of a log before its rows are weighed."""

    rows: int
    low: float
    high: float
    first: LoggedData  # a few rows, to see which columns there are
    outside: str | None = None  # the first row whose reward lies outside [0, 1], as the file calls it
    groups: Duplicates | None = None  # the groups that came, where rows have one
    smallest: float = 1.0  # propensity, of those that were logged

    @property
    def unit_rewards(self) -> bool:
        """Whether all rewards lie in [0, 1]."""
        return self.low >= 0 and self.high <= 1

    @property
    def bias_is_cheap(self) -> bool:
        """Whether the bias of corrections can be had for little beside the estimates."""
        log = self.first
        if full_propensities(log) is None:
            return False
        listed = log.logging is None and log.support is not None
        return listed or self.rows * log.action_count <= MAX_FREE_CELLS


@dataclass
class Seen:
    """What is seen of some rows."""

    rows: int = 0
    low: float = math.inf
    high: float = -math.inf
    first: LoggedData | None = None
    outside: str | None = None
    groups: Duplicates | None = None
    smallest: float = 1.0

    def merge(self, later: Seen) -> None:
        """The rows of another one, which come after these."""
        self.rows += later.rows
        self.low, self.high = min(self.low, later.low), max(self.high, later.high)
        self.outside = later.outside if self.outside is None else self.outside
        self.smallest = min(self.smallest, later.smallest)
        if self.groups is None:
            self.groups = later.groups
        elif later.groups is not None:
            self.groups.merge(later.groups)


@dataclass(frozen=True)
class _Look(Pass[Seen]):
    """keeps_first: the first rows themselves are kept."""

    keeps_first: bool

    def start(self, first_row: int) -> Seen:
        return Seen()

    def add(self, sums: Seen, part: LoggedData, row: int) -> None:
        sums.groups = _seen_groups(sums.groups, part, row)
        if self.keeps_first and sums.first is None:
            sums.first = part.rows(slice(0, FIRST))
        sums.outside = _outside(part, row) if sums.outside is None else sums.outside
        sums.rows += len(part)
        sums.low, sums.high = min(sums.low, float(part.rewards.min())), max(sums.high, float(part.rewards.max()))
        sums.smallest = min(sums.smallest, _smallest(part))


def survey(log: LogSource, reader: Reader | None = None) -> Survey:
    """Rows and rewards counted: at once for a log in memory, by one pass over a source."""
    if isinstance(log, LoggedData):
        ends = float(log.rewards.min()), float(log.rewards.max())
        return Survey(len(log), *ends, log, _outside(log, 0), _seen_groups(None, log, 0), _smallest(log))
    require_log(log)
    reader = Here() if reader is None else reader
    seen = reader.read(_Look(keeps_first=not isinstance(reader, Divided)), log)
    first = reader.first(log).rows(slice(0, FIRST)) if isinstance(reader, Divided) else seen.first
    if first is None:
        raise InvalidInput("log", "no rows", "at least one")
    return Survey(seen.rows, seen.low, seen.high, first, seen.outside, seen.groups, seen.smallest)


def _smallest(log: LoggedData) -> float:
    """The smallest propensity that was logged."""
    return 1.0 if log.propensities is None else float(log.propensities.min())


def _seen_groups(known: Duplicates | None, log: LoggedData, before: int) -> Duplicates | None:
    """The groups of more rows, counted by their hashes; before: how many rows came before these."""
    if log.groups is None:
        return known
    known = Duplicates() if known is None else known
    names = log.groups
    hashes = text_hashes(names) if names.dtype.kind == "U" else mixed(names.astype(np.uint64))
    known.see(hashes, before + np.arange(len(names)))
    return known


def _outside(log: LoggedData, before: int) -> str | None:
    """The first row whose reward lies outside [0, 1]; before: how many rows came before these."""
    wrong = (log.rewards < 0) | (log.rewards > 1)
    return place(log, int(np.argmax(wrong)), before) if wrong.any() else None


__all__ = ["Survey", "survey"]
