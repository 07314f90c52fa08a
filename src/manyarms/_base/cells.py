"""Sums of columns by cell of time, in bounded memory, and bootstrap samples of blocks of neighbouring cells.

Rows that are near in time may depend on each other; blocks of them hardly do, if they are longer than the dependence. A circular
block bootstrap (Politis and Romano, 1992) draws blocks of b cells, which may begin anywhere on the circle that the m cells are
bent to, until they are as many as the cells. Nothing here grows with the number of rows.
"""

from __future__ import annotations

import math

import numpy as np

from manyarms._base.typing import Array, Ints

CELLS = 4096
DRAWN = 1 << 20  # block counts held at a time


class CellSums:
    """Sums of C columns and numbers of rows, for each of m cells of time."""

    def __init__(self, cells: int, columns: int) -> None:
        self.count = cells
        self._sums = np.zeros((cells, columns))
        self._rows = np.zeros(cells)
        self._means: dict[tuple[int, int, int], Array] = {}

    def add(self, columns: Array, cell: Ints) -> None:
        """Add rows (n, C), with the cell of each."""
        self._rows += np.bincount(cell, minlength=self.count)
        for column in range(columns.shape[1]):
            self._sums[:, column] += np.bincount(cell, weights=columns[:, column], minlength=self.count)

    def merge(self, other: CellSums) -> None:
        """The rows of another one, over the same cells."""
        self._rows += other._rows
        self._sums += other._sums
        self._means.clear()

    def blocks(self, length: int) -> int:
        """How many blocks of `length` cells, one behind the other, have any rows."""
        return int((np.add.reduceat(self._rows, np.arange(0, self.count, length)) > 0).sum())

    def means(self, length: int, count: int, seed: int) -> Array:
        """(count, C) at most: means over samples of blocks of `length` cells; all contrasts of one seed see the same samples."""
        key = (length, count, seed)
        if key not in self._means:
            table = np.column_stack([self._sums, self._rows])
            around = np.concatenate([np.zeros((1, table.shape[1])), np.cumsum(np.vstack([table, table]), axis=0)])
            blocks = around[length : length + self.count] - around[: self.count]  # of length cells from each on
            rng, drawn = np.random.default_rng(seed), max(1, round(self.count / length))
            parts, step = [], max(1, DRAWN // self.count)
            for start in range(0, count, step):
                often = rng.multinomial(drawn, np.full(self.count, 1 / self.count), size=min(step, count - start))
                parts.append(often.astype(np.float64) @ blocks)
            sums = np.concatenate(parts)
            sums = sums[sums[:, -1] > 0.5]  # a sample of empty stretches says nothing
            self._means[key] = sums[:, :-1] / sums[:, -1:]
        return self._means[key]

    def dependence(self, mean: Array, slope: Array) -> float:
        """The best length of a block by Politis and White (2004), in cells, from the autocovariances of cells' influences.

            b = (2 G^2 / D)^(1/3) m^(1/3),   G = sum of l(k/M) |k| R(k),   D = 4/3 (sum of l(k/M) R(k))^2

        with the flat-top window l, up to twice the lag after which no autocorrelation stands out.
        """
        z = (self._sums - self._rows[:, None] * mean) @ slope
        m = len(z)
        furthest = min(m - 1, math.ceil(math.sqrt(m)) + max(5, math.ceil(math.sqrt(math.log10(max(m, 2))))))
        power = np.abs(np.fft.rfft(z, 2 * m)) ** 2
        R = np.fft.irfft(power)[: furthest + 1] / m
        if not R[0] > 0:
            return 1.0
        silent = np.abs(R[1:]) < 2 * math.sqrt(math.log10(max(m, 2)) / m) * R[0]
        run = max(5, math.ceil(math.sqrt(math.log10(max(m, 2)))))
        starts = [i for i in range(len(silent)) if silent[i : i + run].all()]
        last = starts[0] if starts else furthest
        window = min(furthest, max(1, 2 * last))
        lags = np.arange(1, window + 1)
        share = np.clip(2 * (1 - lags / window), 0.0, 1.0)
        level = R[0] + 2 * float(share @ R[1 : window + 1])
        bend = 2 * float((share * lags) @ R[1 : window + 1])
        if not level > 0:
            return 1.0
        best = (2 * bend**2 / (4 / 3 * level**2)) ** (1 / 3) * m ** (1 / 3)
        return float(min(max(best, 1.0), math.ceil(min(3 * math.sqrt(m), m / 3))))


__all__ = ["CELLS", "CellSums"]
