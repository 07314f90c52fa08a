"""Contexts on one scale, for a prior that has one: a 1 in front, and numbers with mean 0 and deviation 1."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from manyarms._base.typing import Array
from manyarms.errors import InvalidInput
from manyarms.logs.data import CHUNK, LoggedData, LogSource


class Standardised:
    """A log whose contexts are 1 and the entries of the log's own that vary: as they are where they are 0 or 1, else scaled."""

    def __init__(self, log: LogSource) -> None:
        self._log = log
        rows, sums, squares, shift = 0, np.zeros(0), np.zeros(0), np.zeros(0)
        flags, varies = np.ones(0, dtype=np.bool_), np.zeros(0, dtype=np.bool_)
        for part in log.chunks():
            X = part.contexts
            if not rows:
                shift, sums, squares = X[0].copy(), np.zeros(log.dim), np.zeros(log.dim)
                flags, varies = np.ones(log.dim, dtype=np.bool_), np.zeros(log.dim, dtype=np.bool_)
            rows += len(X)
            away = X - shift  # from the first row, so that no digits are lost to a large mean
            sums += away.sum(axis=0)
            squares += np.einsum("nd,nd->d", away, away)
            flags &= ((X == 0) | (X == 1)).all(axis=0)
            varies |= (away != 0).any(axis=0)
        if not rows:
            raise InvalidInput("log", "no rows", "at least one")
        means = sums / rows
        deviations = np.sqrt(np.maximum(squares / rows - means**2, 0.0))
        self._kept = np.flatnonzero(varies & (flags | (deviations > 0)))
        plain = flags[self._kept]
        self._mean: Array = np.where(plain, 0.0, (shift + means)[self._kept])
        self._scale: Array = np.where(plain, 1.0, deviations[self._kept])

    @property
    def action_count(self) -> int:
        """K."""
        return self._log.action_count

    @property
    def dim(self) -> int:
        """d."""
        return 1 + len(self._kept)

    def chunks(self, rows: int = CHUNK) -> Iterator[LoggedData]:
        """The rounds, with these contexts."""
        for part in self._log.chunks(rows):
            X = (part.contexts[:, self._kept] - self._mean) / self._scale
            yield part.with_notes(contexts=np.column_stack([np.ones(len(X)), X]), encoder=None)


__all__ = ["Standardised"]
