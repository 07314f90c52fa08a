"""A set of integers that knows ranks: how many lie below a number, and which number has so many free ones below it.

It holds which members of a unit are gone. They come and go one at a time, by the million, so that no step may go through all of
them: the integers lie sorted in chunks of a few hundred, and the sizes of the chunks in a tree of sums (Fenwick's), through
which a rank is found in as many steps as the number of chunks has digits. What it answers depends on the set alone, not on the
order of what was done.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence

import numpy as np

from manyarms._base.typing import Ints

CHUNK = 512


class SortedIntegers:
    """Distinct integers of at least 0; adding, removing and asking take microseconds however many there are."""

    def __init__(self, values: Sequence[int] = ()) -> None:
        """`values` ascending."""
        self._length = len(values)
        self._chunks = [array("q", values[i : i + CHUNK // 2]) for i in range(0, len(values), CHUNK // 2)] or [
            array("q")
        ]
        self._firsts = [0, *(chunk[0] for chunk in self._chunks[1:])]  # no integer of a chunk is below its first
        self._sums: list[int] = []
        self._add_up()

    def __len__(self) -> int:
        return self._length

    def _add_up(self) -> None:
        """The tree of sums: entry j has the sizes of the (j & -j) chunks that end before chunk j."""
        sums = [0, *map(len, self._chunks)]
        for j in range(1, len(sums)):
            above = j + (j & -j)
            if above < len(sums):
                sums[above] += sums[j]
        self._sums = sums

    def _count(self, chunk: int, change: int) -> None:
        sums, j = self._sums, chunk + 1
        while j < len(sums):
            sums[j] += change
            j += j & -j
        self._length += change

    def add(self, value: int) -> None:
        """Add an integer that is not there."""
        j = bisect_right(self._firsts, value) - 1
        chunk = self._chunks[j]
        insort(chunk, value)
        self._count(j, 1)
        if len(chunk) > CHUNK:
            half = len(chunk) // 2
            self._chunks[j : j + 1] = [chunk[:half], chunk[half:]]
            self._firsts.insert(j + 1, chunk[half])
            self._add_up()

    def remove(self, value: int) -> None:
        """Remove an integer that is there."""
        j = bisect_right(self._firsts, value) - 1
        chunk = self._chunks[j]
        del chunk[bisect_left(chunk, value)]
        self._count(j, -1)
        if not chunk and j:  # hundreds were removed since it was made: its place goes, too
            del self._chunks[j], self._firsts[j]
            self._add_up()

    def below(self, value: int) -> int:
        """How many of the integers are smaller."""
        j = bisect_right(self._firsts, value) - 1
        number, sums = bisect_left(self._chunks[j], value), self._sums
        while j:
            number += sums[j]
            j -= j & -j
        return number

    def skip(self, rank: int) -> int:
        """The rank-th integer (from 0) that is *not* there."""
        firsts, sums, number = self._firsts, self._sums, len(self._firsts)
        j, before = 0, 0  # the chunk that we stand at, and the integers before it
        step = 1 << (number.bit_length() - 1)
        while step:
            ahead = j + step
            if ahead < number and firsts[ahead] - before - sums[ahead] <= rank:
                j, before = ahead, before + sums[ahead]
            step >>= 1
        return before + skip(self._chunks[j], rank, before)

    def values(self) -> Ints:
        """All of them, ascending."""
        return np.concatenate([np.frombuffer(chunk, dtype=np.int64) for chunk in self._chunks])

    @property
    def nbytes(self) -> int:
        """Bytes of the integers."""
        return 8 * self._length


def skip(taken: Sequence[int], rank: int, before: int = 0) -> int:
    """The rank-th integer (from 0) that is not in the sorted list `taken`, less the `before` others that precede the list."""
    low, high = 0, len(taken)
    while low < high:  # taken[i] - before - i counts the free numbers before taken[i]
        middle = (low + high) // 2
        if taken[middle] - before - middle <= rank:
            low = middle + 1
        else:
            high = middle
    return rank + low


def free(taken: Sequence[int] | Ints, ranks: Ints) -> Ints:
    """The integers of these ranks that are not in the sorted list `taken`: `skip` for many."""
    if not len(taken):
        return ranks
    gone = np.asarray(taken, dtype=np.int64)
    return ranks + np.searchsorted(gone - np.arange(len(gone)), ranks, side="right")


__all__ = ["SortedIntegers", "free", "skip"]
