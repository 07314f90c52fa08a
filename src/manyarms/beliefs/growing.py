"""Tables that grow by rows, so that state follows what has been played and not the size of the catalogue."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt


class Growing:
    """An array whose first axis grows by appending; `rows` is a view of what is there."""

    def __init__(self, row_shape: tuple[int, ...], dtype: npt.DTypeLike = np.float64) -> None:
        self._data: npt.NDArray[Any] = np.empty((0, *row_shape), dtype=dtype)
        self._length = 0
        self.rows: npt.NDArray[Any] = self._data[:0]

    @classmethod
    def of(cls, rows: npt.NDArray[Any]) -> Growing:
        """A table that starts with a copy of `rows`."""
        table = cls(rows.shape[1:], rows.dtype)
        table.extend(rows)
        return table

    def __deepcopy__(self, memo: dict[int, Any]) -> Growing:
        """Copied attribute by attribute, `rows` would be an array of its own and no longer a view of the table."""
        return Growing.of(self.rows)

    def __len__(self) -> int:
        return self._length

    def append(self, row: npt.ArrayLike) -> None:
        """Add one row."""
        self._make_room(1)
        self._data[self._length] = row
        self._length += 1
        self.rows = self._data[: self._length]

    def extend(self, rows: npt.NDArray[Any]) -> None:
        """Add several rows."""
        self._make_room(len(rows))
        self._data[self._length : self._length + len(rows)] = rows
        self._length += len(rows)
        self.rows = self._data[: self._length]

    def _make_room(self, more: int) -> None:
        need = self._length + more
        if need <= len(self._data):
            return
        row_bytes = max(1, self._data.itemsize * math.prod(self._data.shape[1:]))
        # small tables double; large ones grow by a quarter, so that at most a fifth of them lies unused
        growth = 2.0 if self._length * row_bytes < 1 << 24 else 1.25
        data = np.empty((max(need, int(self._length * growth), 8), *self._data.shape[1:]), dtype=self._data.dtype)
        data[: self._length] = self._data[: self._length]
        self._data = data

    @property
    def nbytes(self) -> int:
        """Bytes held, unused room included."""
        return int(self._data.nbytes)
