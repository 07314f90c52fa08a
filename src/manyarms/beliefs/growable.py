"""Arrays that grow by rows, so that state follows what has been played and not the size of the catalogue."""

from __future__ import annotations

import copy
import math
from typing import Any, Self

import numpy as np
import numpy.typing as npt


class GrowableArray:
    """An array whose first axis grows by appending; `rows` is a view of what is there.

    `by_column` stores rows of numbers column after column: `rows` looks the same, and a product `v @ rows.T` with few vectors v,
    which is how decisions read these tables, goes through memory in long runs and takes half the time.
    """

    def __init__(
        self, row_shape: tuple[int, ...], dtype: npt.DTypeLike = np.float64, *, by_column: bool = False
    ) -> None:
        self._axis = len(row_shape) if by_column else 0
        shape = (*row_shape, 0) if by_column else (0, *row_shape)
        self._data: npt.NDArray[Any] = np.empty(shape, dtype=dtype)
        self._length = 0
        self.rows: npt.NDArray[Any] = self._view(0, 0)

    @classmethod
    def of(cls, rows: npt.NDArray[Any]) -> Self:
        """A table that starts with a copy of `rows`."""
        table = cls(rows.shape[1:], rows.dtype)
        table.extend(rows)
        return table

    def __len__(self) -> int:
        return self._length

    def __deepcopy__(self, memo: dict[int, Any]) -> GrowableArray:
        # a view must stay a view of its own data, which copying attribute by attribute would not keep
        twin = copy.copy(self)
        twin._data = self._data.copy(order="K")
        twin.rows = twin._view(0, twin._length)
        return twin

    def append(self, row: npt.ArrayLike) -> None:
        """Add one row."""
        self._make_room(1)
        self._view(self._length, self._length + 1)[0] = row
        self._length += 1
        self.rows = self._view(0, self._length)

    def extend(self, rows: npt.NDArray[Any]) -> None:
        """Add several rows."""
        self._make_room(len(rows))
        self._view(self._length, self._length + len(rows))[:] = rows
        self._length += len(rows)
        self.rows = self._view(0, self._length)

    def keep(self, places: npt.NDArray[np.int64]) -> None:
        """Leave out all rows but those at these places, ascending, which move up."""
        rows = self.rows[places]
        self._length = len(places)
        self.rows = self._view(0, self._length)
        self.rows[:] = rows

    def reserve(self, number: int) -> None:
        """Room for so many rows in all; what is not used of it costs no memory."""
        self._make_room(number - self._length)

    def _view(self, start: int, stop: int) -> npt.NDArray[Any]:
        return self._view_of(self._data, start, stop)

    def _view_of(self, data: npt.NDArray[Any], start: int, stop: int) -> npt.NDArray[Any]:
        return data[..., start:stop].T if self._axis else data[start:stop]

    def _make_room(self, more: int) -> None:
        need, room = self._length + more, self._data.shape[self._axis]
        if need <= room:
            return
        old = self._view(0, self._length)
        self._data = self._larger(need)
        self._view(0, self._length)[:] = old

    def _larger(self, need: int) -> npt.NDArray[Any]:
        """Room for more rows than there is now."""
        room = self._data.shape[self._axis]
        bytes_held = self._data.itemsize * self._length * max(1, math.prod(self._data.shape) // max(1, room))
        # small tables double; large ones grow by a quarter, so that at most a fifth of them lies unused
        growth = 2.0 if bytes_held < 1 << 24 else 1.25
        room = max(need, int(self._length * growth), 8)
        if self._axis:
            room += -room % 8 + 8  # columns that lie a power of two apart would share the same lines of the cache
        shape = list(self._data.shape)
        shape[self._axis] = room
        return np.empty(shape, dtype=self._data.dtype)

    @property
    def nbytes(self) -> int:
        """Bytes held, unused room included."""
        return int(self._data.nbytes)


class SteadyArray(GrowableArray):
    """A growable array that no single append makes wait; rows that are there change by `replace` alone.

    A table of a million rows is not copied at once when its room is at an end: while the last sixteenth of the room fills, each
    append takes a few of the old rows along to the larger room, about sixteen for each new one.
    """

    SPARE = 16

    def __init__(
        self, row_shape: tuple[int, ...], dtype: npt.DTypeLike = np.float64, *, by_column: bool = False
    ) -> None:
        super().__init__(row_shape, dtype, by_column=by_column)
        self._next: npt.NDArray[Any] | None = None
        self._moved = 0  # rows that are in the larger room, too

    def __deepcopy__(self, memo: dict[int, Any]) -> SteadyArray:
        twin = super().__deepcopy__(memo)
        assert isinstance(twin, SteadyArray)
        twin._next = None if self._next is None else self._next.copy(order="K")
        return twin

    def replace(self, index: npt.NDArray[np.int64], rows: npt.NDArray[Any]) -> None:
        """Write other rows at these places."""
        self.rows[index] = rows
        if self._next is not None:  # those that have moved already are read there later
            moved = index < self._moved
            self._view_of(self._next, 0, self._moved)[index[moved]] = rows[moved]

    def _make_room(self, more: int) -> None:
        left = self._data.shape[self._axis] - self._length
        if more > left and self._next is None:  # the first rows, or very many at once
            super()._make_room(more + (self._length + more) // self.SPARE)
            return
        if self._next is None and left - more < self._length // self.SPARE:
            self._next, self._moved = self._larger(self._data.shape[self._axis] + more + 1), 0
        if self._next is None:
            return
        if more < left:
            self._move(self._moved - (self._moved - self._length) * more // left)
            return
        self._move(self._length)
        self._data, self._next = self._next, None
        self._make_room(more)

    def _move(self, stop: int) -> None:
        assert self._next is not None
        self._view_of(self._next, self._moved, stop)[:] = self._view(self._moved, stop)
        self._moved = stop

    @property
    def nbytes(self) -> int:
        """Bytes held, unused room included."""
        return super().nbytes + (0 if self._next is None else int(self._next.nbytes))
