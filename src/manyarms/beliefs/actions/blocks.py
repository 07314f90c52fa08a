"""Blocks of similar actions, so that most unplayed actions need not be looked at.

The mean score of unit u is features_u . c. The first units are sorted by a kd-tree on their features into blocks of at most a
thousand; inside a box with centre m and half-width h, features . c <= m . c + h . |c|. One product with the boxes then bounds
the means of everything inside. A unit that comes later goes down the same tree into a block, whose box grows to hold it; a
block that is full is split in two. So nothing is ever sorted anew, and what the blocks are follows from the units and their
order alone: they are the same after a catalogue was saved and loaded, whenever they were first needed.
"""

from __future__ import annotations

import numpy as np

from manyarms._base.typing import Array, Bools, Ints
from manyarms.beliefs.growable import GrowableArray

BLOCK = 1024


class Blocks:
    """kd-tree blocks over units, rows of features, with the number of members that each block has left."""

    def __init__(self, features: Array, counts: Ints, several: Bools) -> None:
        """The first units: their rows, members left, and whether they ever had more than one."""
        width = features.shape[1]
        self.capacity = BLOCK
        self.units = GrowableArray(
            (self.capacity,), np.int64
        )  # the units of each block; what lies beyond its length is void
        self.lengths = GrowableArray((), np.int64)
        self.sizes = GrowableArray(())  # members left in each block
        self.alone = GrowableArray((), np.bool_)  # no unit of the block ever had more than one member
        self.block_of = GrowableArray((), np.int64)  # the block of each unit
        self._low, self._high = GrowableArray((width,)), GrowableArray((width,))  # least and largest of each feature
        self.centre, self.half_width = GrowableArray((width,)), GrowableArray((width,))  # the box made of them
        # each block's features are held apart, by column: a product with it then reads one run of memory
        self.members: list[Array] = []
        # the tree: side and value of each cut, and what lies below and above: another cut, or ~block
        self._sides: list[int] = []
        self._cuts: list[float] = []
        self._children: list[list[int]] = []
        self._parents: list[tuple[int, int]] = []  # of each block: the cut, and on which side of it
        order, runs = self._sort(features)
        self.block_of.extend(np.empty(len(order), dtype=np.int64))
        for start, stop in runs:
            some = order[start:stop]
            self._append(some, features[some].T, counts[some], several[some])

    def __len__(self) -> int:
        return len(self.members)

    def bounds(self, c: Array) -> Array:
        """An upper bound on the mean scores in each block."""
        centre = self.centre.rows @ c
        bound = centre + self.half_width.rows @ np.abs(c)
        # the products themselves round, too
        bound += 1e-13 * (np.abs(bound) + np.abs(centre))
        return np.asarray(bound)

    # ---- a catalogue that changes -------------------------------------------------------------------------------------

    def change(self, unit: int, number: int) -> None:
        """So many more members of a unit are left."""
        self.sizes.rows[self.block_of.rows[unit]] += number

    def change_all(self, units: Ints, number: int) -> None:
        """The same for several units, each the same number."""
        np.add.at(self.sizes.rows, self.block_of.rows[units], number)

    def mark_several(self, unit: int) -> None:
        """A unit has more than one member from now on."""
        self.alone.rows[self.block_of.rows[unit]] = False

    def insert(self, row: Array, counts: Ints, several: Bools) -> None:
        """The next unit, with its row of features; `counts` and `several` are those of all units, this one included."""
        unit, values = len(self.block_of), row.tolist()
        block = self._find(values, 0) if self._cuts else 0
        if self.lengths.rows[block] == self.capacity:
            self._split(block, counts, several)
            block = self._find(values, self._parents[block][0])
        self.block_of.append(block)
        n = int(self.lengths.rows[block])
        members = self.members[block]
        table = members if members.base is None else members.base
        if table.shape != (len(row), self.capacity):
            table = np.empty((len(row), self.capacity))
            table[:, :n] = members
        table[:, n] = row
        self.members[block] = table[:, : n + 1]
        self.units.rows[block, n] = unit
        self.lengths.rows[block] = n + 1
        self.sizes.rows[block] += counts[unit]
        self.alone.rows[block] &= not several[unit]
        low, high = self._low.rows[block], self._high.rows[block]
        if (row < low).any() or (row > high).any():
            self._box(block, np.minimum(low, row), np.maximum(high, row))

    def _find(self, values: list[float], node: int) -> int:
        """The block that a row belongs to, going down from a cut."""
        while node >= 0:
            node = self._children[node][values[self._sides[node]] >= self._cuts[node]]
        return ~node

    def _split(self, block: int, counts: Ints, several: Bools) -> None:
        """Make two blocks of a full one, at the median of its widest side."""
        units, members = self.units.rows[block].copy(), self.members[block]
        side, order = _halves(members.T)
        middle = len(order) // 2
        low, high = order[:middle], order[middle:]
        node, (parent, where) = len(self._cuts), self._parents[block]
        self._sides.append(side)
        self._cuts.append(float(members[side, high[0]]))
        self._children.append([~block, ~len(self.members)])
        if parent >= 0:
            self._children[parent][where] = node
        self._parents[block] = (node, 0)
        self._parents.append((node, 1))
        self._append(units[high], members[:, high], counts[units[high]], several[units[high]])
        kept = units[low]
        self.units.rows[block, : len(low)] = kept
        self.lengths.rows[block] = len(low)
        self.sizes.rows[block] = counts[kept].sum()
        self.alone.rows[block] = not several[kept].any()
        self.members[block] = np.array(members[:, low], order="C")
        self._box(block, self.members[block].min(axis=1), self.members[block].max(axis=1))

    # ---- making blocks ------------------------------------------------------------------------------------------------

    def _append(self, units: Ints, members: Array, counts: Ints, several: Bools) -> None:
        row = np.zeros(self.capacity, dtype=np.int64)
        row[: len(units)] = units
        block = len(self.members)
        self.units.append(row)
        self.lengths.append(len(units))
        self.sizes.append(counts.sum())
        self.alone.append(not several.any())
        self.block_of.rows[units] = block
        self.members.append(np.array(members, order="C"))
        for table in (self._low, self._high, self.centre, self.half_width):
            table.append(0.0)
        self._box(block, members.min(axis=1), members.max(axis=1))

    def _box(self, block: int, low: Array, high: Array) -> None:
        """The box of a block."""
        self._low.rows[block], self._high.rows[block] = low, high
        centre, half_width = (low + high) / 2, (high - low) / 2
        # rounding of centre and half-width must never put a member outside its box
        half_width += 4 * np.finfo(float).eps * (np.abs(centre) + half_width)
        self.centre.rows[block], self.half_width.rows[block] = centre, half_width

    def _sort(self, features: Array) -> tuple[Ints, list[tuple[int, int]]]:
        """Rows in kd-tree order and the runs of at most `capacity` that are blocks: cut the widest side at the median."""
        order = np.arange(len(features))
        runs: list[tuple[int, int]] = []
        todo = [(0, len(features), -1, 0)]
        while todo:
            start, stop, parent, where = todo.pop()
            if stop - start <= self.capacity:
                child = ~len(runs)
                runs.append((start, stop))
                self._parents.append((parent, where))
            else:
                child, rows = len(self._cuts), order[start:stop]
                side, halves = _halves(features[rows])
                middle = start + (stop - start) // 2
                order[start:stop] = rows[halves]
                self._sides.append(side)
                self._cuts.append(float(features[order[middle], side]))
                self._children.append([0, 0])
                todo.append((middle, stop, child, 1))
                todo.append((start, middle, child, 0))  # popped first: runs come out in ascending order
            if parent >= 0:
                self._children[parent][where] = child
        return order, runs

    @property
    def nbytes(self) -> int:
        """Bytes of the tables."""
        features = sum((m if m.base is None else m.base).nbytes for m in self.members)
        return features + self.units.nbytes + self.block_of.nbytes + 4 * self.centre.nbytes


def _halves(rows: Array) -> tuple[int, Ints]:
    """The widest side, and an order of the rows whose two halves lie below and above the median on it."""
    side = int(np.argmax(rows.max(axis=0) - rows.min(axis=0)))
    return side, np.argpartition(rows[:, side], len(rows) // 2)


__all__ = ["BLOCK", "Blocks"]
