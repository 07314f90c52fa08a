"""Running mean, variance and range of numbers that come in chunks."""

from __future__ import annotations

import numpy as np

from manyarms._base.typing import Array, Bools


class RunningMoments:
    """Count, mean, variance, least and largest of rows of numbers, entry by entry; exact up to rounding, in any chunks.

    With counts m, n, means a, b and sums of squared deviations A, B of two parts (Chan, Golub and LeVeque, 1983),

        mean = a + (b - a) n / (m + n),    squares = A + B + (b - a)² m n / (m + n)
    """

    def __init__(self, shape: tuple[int, ...] = ()) -> None:
        self.count: Array = np.zeros(shape)
        self.mean: Array = np.zeros(shape)
        self.least: Array = np.full(shape, np.inf)
        self.largest: Array = np.full(shape, -np.inf)
        self._squares: Array = np.zeros(shape)

    def add(self, values: Array, missing: Bools | None = None) -> None:
        """Add rows (n, *shape); missing, of the same shape: entries that do not count."""
        present = np.ones(values.shape, dtype=np.bool_) if missing is None else ~missing
        count = present.sum(axis=0).astype(np.float64)
        mean = np.where(present, values, 0.0).sum(axis=0) / np.maximum(count, 1)
        squares = (np.where(present, values - mean, 0.0) ** 2).sum(axis=0)
        total, step = np.maximum(self.count + count, 1), mean - self.mean
        self._squares = self._squares + squares + step**2 * self.count * count / total
        self.mean = self.mean + step * count / total
        self.count = self.count + count
        self.least = np.minimum(self.least, np.min(values, axis=0, where=present, initial=np.inf))
        self.largest = np.maximum(self.largest, np.max(values, axis=0, where=present, initial=-np.inf))

    @property
    def deviation(self) -> Array:
        """The standard deviation, with the count in the denominator; 0 where nothing was counted."""
        return np.asarray(np.sqrt(self._squares / np.maximum(self.count, 1)))


__all__ = ["RunningMoments"]
