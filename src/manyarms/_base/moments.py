"""Means, (co)variances and bootstrap replicates of columns, from one pass over rows in any chunks.

`RunningMoments` is the streaming update that all of the library uses. `Moments` adds what estimates need of it: covariances of
columns, and the sums of UNITS units. Row i belongs to unit i mod UNITS, so that a unit is one row up to UNITS rows and a sum of
independent rows beyond; where rows come in groups, all rows of a group belong to one unit. Units are what the bootstrap draws,
and, with groups, what standard errors are computed from. Nothing here grows with the number of rows.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from manyarms._base.cells import CellSums
from manyarms._base.typing import AnyArray, Array, Bools, Ints

UNITS = 16_384
DRAWN = 1 << 20  # bootstrap counts held at a time
EXACT, CANCELLED = 1e-13, 1e-7  # relative to means and to spreads: some hundred roundings, and the root of so many


class RunningMoments:
    """Counts, means, centred second moments and ranges of numbers, entry by entry, chunk by chunk.

    With n, m and S the count, mean and sum of squared deviations so far, and n', m', S' those of a chunk,

        m <- m + (m' - m) n' / (n + n'),    S <- S + S' + (m' - m)^2 n n' / (n + n')

    (Chan, Golub and LeVeque, 1983): sums about the mean, never differences of large sums. covariance: of C columns, S is the
    matrix of all products of two columns, and not of their squares alone.
    """

    def __init__(self, shape: int | tuple[int, ...] = (), *, covariance: bool = False) -> None:
        self.count: Array = np.zeros(shape)
        self.mean: Array = np.zeros(shape)
        self.scatter: Array = np.zeros((shape, shape) if covariance and isinstance(shape, int) else shape)
        self.least: Array = np.full(shape, np.inf)
        self.largest: Array = np.full(shape, -np.inf)
        self._covariance = covariance

    def add(self, values: Array, missing: Bools | None = None) -> None:
        """Add rows (n, *shape); entries that are `missing`, of the same shape, do not count (not with covariances)."""
        if not len(values):
            return
        with np.errstate(over="ignore", invalid="ignore"):  # squares beyond all numbers are infinite, and read as such
            if missing is None:
                count = np.full(values.shape[1:], float(len(values)))
                mean = values.mean(axis=0)
                centred = values - mean
            else:
                count = (~missing).sum(axis=0).astype(np.float64)
                mean = np.where(missing, 0.0, values).sum(axis=0) / np.maximum(count, 1)
                centred = np.where(missing, 0.0, values - mean)
            scatter = centred.T @ centred if self._covariance else (centred**2).sum(axis=0)
        self._join(count, mean, scatter)
        there: Bools | bool = True if missing is None else ~missing
        self.least = np.minimum(self.least, np.min(values, axis=0, where=there, initial=np.inf))
        self.largest = np.maximum(self.largest, np.max(values, axis=0, where=there, initial=-np.inf))

    def merge(self, other: RunningMoments) -> None:
        """All that another one has counted."""
        self._join(other.count, other.mean, other.scatter)
        self.least = np.minimum(self.least, other.least)
        self.largest = np.maximum(self.largest, other.largest)

    def _join(self, count: Array, mean: Array, scatter: Array) -> None:
        """n', m' and S' of more rows."""
        with np.errstate(over="ignore", invalid="ignore"):
            gap, total = mean - self.mean, np.maximum(self.count + count, 1)
            between = self.count * count / total
            products = np.outer(gap, gap) if self._covariance else gap**2
            self.scatter = self.scatter + scatter + products * between
            beyond = np.isinf(mean) | np.isinf(self.mean)
            self.mean = np.where(beyond, self.mean + mean, self.mean + gap * (count / total))
        if beyond.any():  # a mean that is infinite once stays so, and has no spread
            pairs = beyond | beyond[:, None] if self._covariance else beyond
            self.scatter = np.where(pairs, np.inf, self.scatter)
        self.count = self.count + count

    @property
    def variance(self) -> Array:
        """The sample variances, or the sample covariances (C, C)."""
        return self.scatter / np.maximum(1, self.count - 1)

    @property
    def deviation(self) -> Array:
        """The standard deviation, with the count in the denominator; 0 where nothing was counted."""
        return np.asarray(np.sqrt(self.scatter / np.maximum(self.count, 1)))


@dataclass(frozen=True)
class Part:
    """sign * mean of a column, or sign * mean of a column over the mean of another (self-normalised)."""

    column: int
    over: int | None = None
    sign: float = 1.0


Contrast = Sequence[Part]
"""A sum of parts: an estimate is one part, the difference of two estimates is two."""


class Moments:
    """Accumulates rows of C columns."""

    def __init__(self, columns: int, cells: int = 0, first_row: int = 0) -> None:
        """cells: of time, into which rows are summed as well; 0 for none. first_row: the number of the first row to come."""
        self.rows = 0
        self._first_row = first_row
        self.grouped = False
        self.cells = CellSums(cells, columns) if cells else None
        self._running = RunningMoments(columns, covariance=True)
        self._unit_sums = np.zeros((UNITS, columns))
        self._unit_rows = np.zeros(UNITS)
        self._replicates: dict[tuple[int, int], Array] = {}

    def add(self, columns: Array, groups: AnyArray | None = None, cell: Ints | None = None) -> None:
        """Add rows (n, C), with the group of each row where rows of a group may depend on each other, and its cell of time."""
        self._running.add(columns)
        if self.cells is not None and cell is not None:
            self.cells.add(columns, cell)
        if groups is None:
            unit = (self._first_row + self.rows + np.arange(len(columns))) % UNITS
        else:
            self.grouped = True
            unit = _units_of(groups)
        self._unit_rows += np.bincount(unit, minlength=UNITS)
        for column in range(columns.shape[1]):
            self._unit_sums[:, column] += np.bincount(unit, weights=columns[:, column], minlength=UNITS)
        self.rows += len(columns)

    def merge(self, later: Moments) -> None:
        """The rows of another one, which come after these."""
        self._running.merge(later._running)
        if self.cells is not None and later.cells is not None:
            self.cells.merge(later.cells)
        self.grouped = self.grouped or later.grouped
        self._unit_rows += later._unit_rows
        self._unit_sums += later._unit_sums
        self._replicates.clear()
        self.rows += later.rows

    @property
    def independent(self) -> bool:
        """Whether rows are taken to be independent."""
        return not self.grouped and self.cells is None

    @property
    def units(self) -> int:
        """The number of units in use."""
        return int((self._unit_rows > 0).sum())

    def value(self, contrast: Contrast) -> float:
        """The sum of the parts."""
        return float(_values(self._running.mean[None], contrast)[0])

    def variance(self, contrast: Contrast) -> float:
        """The sample variance of a row's influence on the contrast: of the terms themselves, for a plain mean.

        Infinite where it is unknown: one row alone, or squares beyond all numbers.
        """
        slope = self._slope(contrast)
        used = np.flatnonzero(slope)  # what does not count must not overflow either
        with np.errstate(over="ignore", invalid="ignore"):
            found = float(slope[used] @ self._running.variance[np.ix_(used, used)] @ slope[used])
        return max(found, 0.0) if self.rows > 1 and np.isfinite(found) else np.inf

    def standard_error(self, contrast: Contrast) -> float:
        """By the delta method; from units where rows come in groups. Infinite where fewer than two units are there."""
        if not self.grouped:
            return float(np.sqrt(self.variance(contrast) / self.rows))
        if self.units < 2:
            return np.inf
        used, slope = self._unit_rows > 0, self._slope(contrast)
        with np.errstate(over="ignore", invalid="ignore"):
            influence = (self._unit_sums[used] - self._unit_rows[used, None] * self._running.mean) @ slope
            found = float(np.sqrt((influence**2).sum() * len(influence) / (len(influence) - 1)) / self.rows)
        return found if np.isfinite(found) else np.inf

    def constant(self, contrast: Contrast) -> bool:
        """Whether rows differ in their influence by no more than rounding: their spread then says nothing about other rows.

        A column's own spread is exact up to rounding of its mean; one that is left of several columns is a difference of
        squares, and known up to the root of the rounding error.
        """
        slope = np.abs(self._slope(contrast))
        used = np.flatnonzero(slope)
        spreads = np.sqrt(np.diag(self._running.variance)[used])
        rounding = EXACT * float(slope[used] @ np.abs(self._running.mean[used]))
        rounding += CANCELLED * float(slope[used] @ spreads) if len(used) > 1 else 0.0
        return not self.standard_error(contrast) * np.sqrt(self.rows) > rounding

    def effective_rows(self, column: int) -> float:
        """(sum)^2 / sum of squares of a column of weights (Kish): how many rows of equal weight would say as much."""
        mean = float(self._running.mean[column])
        if not mean > 0:
            return 0.0
        spread = np.sqrt(self._running.scatter[column, column] / self.rows) / mean
        with np.errstate(over="ignore"):
            return max(1.0, float(self.rows / (1.0 + spread**2)))

    def effective_units(self, column: int) -> float:
        """The same of groups, where rows come in them."""
        sums = self._unit_sums[:, column]
        if not self.grouped or not sums.max() > 0:
            return self.effective_rows(column)
        shares = sums / sums.max()
        return float(shares.sum() ** 2 / (shares**2).sum())

    def replicates(self, contrast: Contrast, count: int, seed: int) -> Array:
        """The contrast on `count` bootstrap samples of the units: each unit as often as a Poisson(1) variable says.

        All contrasts of one seed see the same samples, so that differences of replicates are paired.
        """
        if (count, seed) not in self._replicates:
            rng = np.random.default_rng(seed)
            used = np.flatnonzero(self._unit_rows > 0)
            table = np.column_stack([self._unit_sums[used], self._unit_rows[used]])
            sums = np.zeros((count, table.shape[1]))
            step = max(1, DRAWN // count)
            for start in range(0, len(used), step):
                part = table[start : start + step]
                sums += rng.poisson(1.0, (len(part), count)).T.astype(np.float64) @ part
            drawn = sums[:, -1] > 0  # a sample without any row says nothing; with more than a few rows there is none
            self._replicates[count, seed] = sums[drawn, :-1] / sums[drawn, -1:]
        return _values(self._replicates[count, seed], contrast)

    def block_replicates(self, contrast: Contrast, length: int, count: int, seed: int) -> Array:
        """The contrast on bootstrap samples of blocks of `length` cells of time."""
        assert self.cells is not None
        return _values(self.cells.means(length, count, seed), contrast)

    def dependence(self, contrast: Contrast) -> float:
        """How long blocks should be for a contrast, in cells."""
        assert self.cells is not None
        return self.cells.dependence(self._running.mean, self._slope(contrast))

    def _slope(self, contrast: Contrast) -> Array:
        """The derivative of the contrast by the columns' means."""
        slope = np.zeros(len(self._running.mean))
        for part in contrast:
            if part.over is None:
                slope[part.column] += part.sign
            elif self._running.mean[part.over] != 0:
                ratio = self._running.mean[part.column] / self._running.mean[part.over]
                slope[part.column] += part.sign / self._running.mean[part.over]
                slope[part.over] -= part.sign * ratio / self._running.mean[part.over]
        return slope


def _values(means: Array, contrast: Contrast) -> Array:
    """The contrast for rows of means (m, C); a ratio of nothing to nothing counts as 0."""
    out = np.zeros(len(means))
    for part in contrast:
        value = means[:, part.column]
        if part.over is not None:
            below = means[:, part.over]
            value = np.divide(value, below, out=np.zeros(len(means)), where=below != 0)
        out += part.sign * value
    return out


def _units_of(groups: AnyArray) -> Ints:
    """A unit for every row, the same for equal groups in any chunk and any run."""
    if groups.dtype.kind in "iub":
        mixed = groups.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)  # consecutive ids spread over the units
        return (mixed >> np.uint64(50)).astype(np.int64) % UNITS
    names, place = np.unique(groups.astype(str), return_inverse=True)
    hashes = np.array([zlib.crc32(name.encode()) for name in names.tolist()], dtype=np.int64)
    return hashes[place] % UNITS


__all__ = ["UNITS", "Contrast", "Moments", "Part", "RunningMoments"]
