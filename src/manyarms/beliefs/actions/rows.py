"""Rows of features that are equal to the last bit: grouped once, and looked up for every row that comes later."""

from __future__ import annotations

import numpy as np

from manyarms._base import linalg
from manyarms._base.typing import Array, Ints


def equal_rows(features: Array, keys: Array, order: Ints) -> Ints | None:
    """A label for each row, equal rows alike, numbered by first appearance; None where all rows differ.

    `keys` are the rows' numbers (`row_keys`), `order` sorts them stably.
    """
    starts = linalg.first_rows(keys[order])
    if len(starts) == len(features):
        return None
    lengths = np.diff(np.append(starts, len(features)))
    heads = np.repeat(order[starts], lengths)
    if (features[order] != features[heads]).any():  # two different rows with the same number: compare them in full
        _, heads_of, inverse = np.unique(features, axis=0, return_index=True, return_inverse=True)
        if len(heads_of) == len(features):
            return None
        first = heads_of[inverse.ravel()]
    else:
        first = np.empty(len(features), dtype=np.int64)
        first[order] = heads  # a stable sort puts the first appearance at the head of its run
    _, labels = np.unique(first, return_inverse=True)
    return labels.ravel().astype(np.int64)


def row_keys(features: Array) -> Array:
    """One number per row, made elementwise so that equal rows give equal numbers to the last bit."""
    keys = np.zeros(len(features))
    for column, factor in enumerate(np.random.default_rng(7).standard_normal((features.shape[1],)).tolist()):
        keys += features[:, column] * factor
    return keys


class RowIndex:
    """Which unit has this row of features? The first ones by their sorted numbers, later ones by their content."""

    def __init__(self, keys: Array, units: Ints) -> None:
        """Numbers of the first units' rows, ascending, and the units that they belong to."""
        self._keys, self._units = keys, units
        self._later: dict[bytes, int] = {}

    def find(self, rows: Array, features: Array, represent: Ints) -> list[int]:
        """The unit among the first ones with the same row, for each of these rows; -1 where there is none."""
        keys = row_keys(rows)
        found = [-1] * len(rows)
        starts = np.searchsorted(self._keys, keys)
        hits = np.flatnonzero(self._keys[np.minimum(starts, len(self._keys) - 1)] == keys)
        for i in hits.tolist():
            place = int(starts[i])
            while found[i] < 0 and place < len(self._keys) and self._keys[place] == keys[i]:
                unit = int(self._units[place])
                if (features[represent[unit]] == rows[i]).all():
                    found[i] = unit
                place += 1
        return found

    def later(self, row: Array, new: int) -> int:
        """The unit of a row that none of the first ones has: `new` where it is the first such row."""
        return self._later.setdefault((row + 0.0).tobytes(), new)  # -0.0 is equal to 0.0

    @property
    def nbytes(self) -> int:
        """Bytes of the tables."""
        return self._keys.nbytes + self._units.nbytes + 200 * len(self._later)


__all__ = ["RowIndex", "equal_rows", "row_keys"]
