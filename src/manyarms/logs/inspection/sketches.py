"""Sketches of a stream in bounded memory: a uniform sample, and duplicates told by their hashes."""

from __future__ import annotations

import numpy as np

from manyarms._base.typing import AnyArray, Array, Bools, Ints
from manyarms.logs.hashes import STEP, UInts, bits_of, mixed, text_hashes
from manyarms.logs.tables import Column


class Sample:
    """A uniform sample of at most `size` numbers: those with the smallest of independent uniform marks."""

    def __init__(self, size: int = 100_000, seed: int = 0) -> None:
        self.size = size
        self._rng = np.random.default_rng(seed)
        self._values: Array = np.empty(0)
        self._marks: Array = np.empty(0)
        self._limit = 1.0
        self.seen = 0

    def see(self, values: Array) -> None:
        self.seen += len(values)
        marks = self._rng.random(len(values))
        keep = marks < self._limit
        self._values = np.concatenate([self._values, values[keep]])
        self._marks = np.concatenate([self._marks, marks[keep]])
        if len(self._values) > 2 * self.size:
            self._shrink()

    def _shrink(self) -> None:
        if len(self._values) > self.size:
            smallest = np.argpartition(self._marks, self.size - 1)[: self.size]
            self._limit = float(self._marks[smallest].max())
            self._values, self._marks = self._values[smallest], self._marks[smallest]

    def values(self) -> Array:
        self._shrink()
        return self._values

    @property
    def complete(self) -> bool:
        """Whether it holds everything, so that what is computed from it is exact."""
        return self.seen <= self.size


class Duplicates:
    """How many entries of a stream were there before, from 64-bit hashes.

    Exact (up to hash collisions) while at most `budget` different hashes came. Beyond, only hashes whose lowest bits
    are 0 are kept, 1 in `thinning`: equal entries have equal hashes, so they are kept or dropped together, and counts
    multiplied by `thinning` are unbiased.
    """

    def __init__(self, budget: int = 1_000_000) -> None:
        self.budget = budget
        self.thinning = 1
        self._known: UInts = np.empty(0, dtype=np.uint64)  # sorted
        self._times: Ints = np.empty(0, dtype=np.int64)  # how often each came
        self._firsts: Ints = np.empty(0, dtype=np.int64)  # the row where each came first
        self.first_row: int | None = None  # the first entry that was there before, among those kept

    def see(self, hashes: UInts, numbers: Ints) -> None:
        """numbers: the row of each entry."""
        rows = np.flatnonzero((hashes & np.uint64(self.thinning - 1)) == 0)
        found, first, times = np.unique(hashes[rows], return_index=True, return_counts=True)
        new = np.ones(len(found), dtype=np.bool_)
        if len(self._known):
            at = np.minimum(np.searchsorted(self._known, found), len(self._known) - 1)
            new = self._known[at] != found
            self._times[at[~new]] += times[~new]
        if self.first_row is None and int(new.sum()) < len(rows):
            fresh = np.zeros(len(rows), dtype=np.bool_)
            fresh[first[new]] = True
            self.first_row = int(numbers[rows[np.argmin(fresh)]])
        self._insert(found[new], times[new], numbers[rows[first[new]]])
        self._thin()

    def merge(self, later: Duplicates) -> None:
        """The entries of another stream, whose rows come after these."""
        found, times, firsts = later._known, later._times, later._firsts
        thinning = max(self.thinning, later.thinning)
        self._thin(thinning)
        kept = (found & np.uint64(thinning - 1)) == 0
        found, times, firsts = found[kept], times[kept], firsts[kept]
        again = np.isin(found, self._known)
        if self.first_row is None:
            repeated = [int(firsts[again].min())] if again.any() else []
            self.first_row = min(repeated + [row for row in [later.first_row] if row is not None], default=None)
        self._times[np.searchsorted(self._known, found[again])] += times[again]
        self._insert(found[~again], times[~again], firsts[~again])
        self._thin()

    def _insert(self, found: UInts, times: Ints, firsts: Ints) -> None:
        """Hashes that are not known yet, in rising order."""
        if len(found):
            known = np.concatenate([self._known, found])
            order = np.argsort(known, kind="stable")  # two sorted runs: quick
            self._known, self._times = known[order], np.concatenate([self._times, times])[order]
            self._firsts = np.concatenate([self._firsts, firsts])[order]

    def _thin(self, least: int = 1) -> None:
        """Keep 1 in `least` hashes at most, and no more than the budget."""
        while len(self._known) > self.budget or self.thinning < least:
            self.thinning *= 2
            keep = (self._known & np.uint64(self.thinning - 1)) == 0
            self._known, self._times, self._firsts = self._known[keep], self._times[keep], self._firsts[keep]

    @property
    def count(self) -> int:
        return int((self._times - 1).sum()) * self.thinning

    @property
    def distinct(self) -> int:
        return len(self._known) * self.thinning

    @property
    def exact(self) -> bool:
        return self.thinning == 1


def hashes_of(columns: list[Column], rows: int) -> UInts:
    """One 64-bit number a row, the same for the same entries whatever chunk they come in."""
    total = np.zeros(rows, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for place, column in enumerate(columns):
            for part in _words(column):
                total = mixed(total + mixed(part + np.uint64(place + 1) * STEP) + STEP)
    return total


def _words(column: Column) -> list[UInts]:
    """A column as 64-bit numbers, one array an entry."""
    if column.categories is not None:
        own = np.append(text_hashes(column.categories), np.uint64(1))  # the code -1, a missing text
        return [own[column.values]]
    values: AnyArray = column.values
    if values.dtype.kind in "Mm":
        return [bits_of(values)]
    absent: Bools = column.absent
    words = list(bits_of(values.reshape(len(values), -1)).T)
    return [np.where(absent, np.uint64(2), word) for word in words] if column.missing is not None else words


__all__ = ["Duplicates", "Sample", "hashes_of"]
