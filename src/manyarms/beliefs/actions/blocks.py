"""Blocks of similar actions, so that most unplayed actions need not be looked at.

The mean score of unit u is features_u . c. The first units are sorted into blocks by a kd-tree on the sketches of their features
(sketch.py: turned to the axes on which they vary most, in float32); inside a box with centre m and half-width h,
sketch . c <= m . c + h . |c|. One product with the boxes then bounds the means of everything inside. A block holds 64 to 1,024
units, so that there are about five hundred: few enough for a draw and a bound each, and small enough that most of them stay
closed where weights come from real data.

A unit that comes later goes down the same tree into a block, whose box grows to hold it; a block that is full is split in two. So
nothing is ever sorted anew, and what the blocks are follows from the units and their order alone: they are the same after a
catalogue was saved and loaded, whenever they were first needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sized
from dataclasses import dataclass

import numpy as np

from manyarms._base.typing import Array, Bools, Ints
from manyarms.beliefs.actions.sketch import SMALL, Singles, Sketch
from manyarms.beliefs.growable import GrowableArray, SteadyArray

SMALLEST, BLOCK = 64, 1024  # units that a block has room for, least and most
WIDE = 32
ABOUT = 512  # blocks that there should be
LOWEST = np.float32(-np.inf)
LOOKED_AT = 2048  # rows that choose where a large set is cut


@dataclass(slots=True)
class Asked:
    """What blocks say about the means in one question."""

    bounds: Array  # by block: no mean in it is higher
    singles: Singles  # coefficients for products with the members' sketches
    slack: Array  # how far a mean of each block can lie above such a product, but for the
    size: float  # of the coefficients
    unit: float  # of the products: times this they are means

    def above(self, products: Singles, blocks: Ints | slice) -> Array:
        """Bounds on means of each of these blocks, by products of its members' sketches."""
        bounds = self.slack[blocks] * self.size
        bounds += products
        bounds *= self.unit
        return bounds

    def thresholds(self, limits: Array, blocks: Ints) -> Singles:
        """What the product of a member of each of these blocks must exceed if its mean may exceed the block's limit."""
        return _singles_below(limits, self.unit, self.slack[blocks] * self.size)


@dataclass(slots=True)
class AskedMany:
    """The same for n questions: bounds (n, blocks), coefficients, sizes and units of each."""

    bounds: Array
    singles: Singles
    slack: Array
    sizes: Array
    units: Array

    def thresholds(self, limits: Array, questions: Ints, blocks: Ints) -> Singles:
        """What products must exceed, for pairs of a question and a block with a limit each."""
        return _singles_below(limits, self.units[questions], self.slack[blocks] * self.sizes[questions])


class Blocks:
    """kd-tree blocks over units, rows of features, with the number of members that each block has left."""

    def __init__(self, features: Array, counts: Ints, several: Bools) -> None:
        """The first units: their rows, members left, and whether they ever had more than one."""
        self.sketch = Sketch(features)
        width = self.sketch.width
        self.capacity = min(max(SMALLEST, 1 << ((len(features) - 1) // ABOUT).bit_length()), BLOCK)
        if width > WIDE:  # products of a vector with tables of such sizes take twice as long in between
            self.capacity = SMALLEST if self.capacity < BLOCK // 2 else BLOCK
        self.units = GrowableArray(
            (self.capacity,), np.int64
        )  # the units of each block; what lies beyond its length is void
        self.members = SteadyArray((width, self.capacity), np.float32)  # their sketches, by column; void likewise
        self.lengths = GrowableArray((), np.int64)
        self.sizes = GrowableArray(())  # members left in each block
        self.alone = GrowableArray((), np.bool_)  # no unit of the block ever had more than one member
        self.block_of = GrowableArray((), np.int64)  # the block of each unit
        self._low, self._high = GrowableArray((width,)), GrowableArray((width,))  # least and largest of each number
        # centre and half-width of the box made of them, and the error of products with sketches of rows as long as the longest
        self.boxes = GrowableArray((2 * width + 1,))
        # the tree: side and value of each cut, and what lies below and above: another cut, or ~block
        self._sides: list[int] = []
        self._cuts: list[float] = []
        self._children: list[list[int]] = []
        self._parents: list[tuple[int, int]] = []  # of each block: the cut, and on which side of it
        rows, lengths = self.sketch.rows(features)
        order, runs = self._sort(rows)
        self.block_of.extend(np.empty(len(order), dtype=np.int64))
        self.members.extend(np.stack([self._padded(rows[start:stop].T) for start, stop in runs]))
        for start, stop in runs:
            some = order[start:stop]
            self._append(some, rows[start:stop].T, counts[some], several[some], self._slack(lengths[some].max()))

    def __len__(self) -> int:
        return len(self.lengths)

    # ---- what a search asks -------------------------------------------------------------------------------------------

    def ask(self, c: Array) -> Asked:
        """Bounds on the mean scores features . c, of each block and of its members."""
        question = self.sketch.question(c)
        turned = question.turned
        coefficients = np.concatenate([turned, np.abs(turned), [question.size]])
        coefficients *= question.unit
        return Asked(
            self.boxes.rows @ coefficients, question.singles, self.boxes.rows[:, -1], question.size, question.unit
        )

    def sizes_without(self, withheld: Mapping[int, Sized]) -> Array:
        """Members left in each block, less those that an offer withholds: by unit, its members."""
        sizes = self.sizes.rows
        if withheld:
            sizes = sizes.copy()
            for unit, members in withheld.items():
                sizes[self.block_of.rows[unit]] -= len(members)
        return sizes

    def ask_many(self, C: Array) -> AskedMany:
        """The same for many questions, C (n, f)."""
        asked = self.sketch.questions(C)
        coefficients = np.column_stack([asked.turned, np.abs(asked.turned), asked.sizes]) * asked.units[:, None]
        boxes = self.boxes.rows
        return AskedMany(coefficients @ boxes.T, asked.singles, boxes[:, -1], asked.sizes, asked.units)

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
        (sketch,), (length,) = self.sketch.rows(row[None])
        unit, values = len(self.block_of), sketch.tolist()
        block = self._find(values, 0) if self._cuts else 0
        if self.lengths.rows[block] == self.capacity:
            self._split(block, counts, several)
            block = self._find(values, self._parents[block][0])
        self.block_of.append(block)
        n = int(self.lengths.rows[block])
        members = self.members.rows[block]
        members[:, n] = sketch
        self.members.replace(np.array([block]), members[None])
        self.units.rows[block, n] = unit
        self.lengths.rows[block] = n + 1
        self.sizes.rows[block] += counts[unit]
        self.alone.rows[block] &= not several[unit]
        self.boxes.rows[block, -1] = max(self.boxes.rows[block, -1], self._slack(length))
        low, high = self._low.rows[block], self._high.rows[block]
        if (sketch < low).any() or (sketch > high).any():
            self._box(block, np.minimum(low, sketch), np.maximum(high, sketch))

    def _find(self, values: list[float], node: int) -> int:
        """The block that a row belongs to, going down from a cut."""
        while node >= 0:
            node = self._children[node][values[self._sides[node]] >= self._cuts[node]]
        return ~node

    def _split(self, block: int, counts: Ints, several: Bools) -> None:
        """Make two blocks of a full one, at the median of its widest side."""
        units, members = self.units.rows[block].copy(), self.members.rows[block].copy()
        side, order = _halves(members.T, len(units) // 2)
        low, high = order[: len(units) // 2], order[len(units) // 2 :]
        node, (parent, where) = len(self._cuts), self._parents[block]
        self._sides.append(side)
        self._cuts.append(float(members[side, high[0]]))
        self._children.append([~block, ~len(self)])
        if parent >= 0:
            self._children[parent][where] = node
        self._parents[block] = (node, 0)
        self._parents.append((node, 1))
        slack = self.boxes.rows[block, -1]  # right for one of the two, and enough for the other
        self.members.append(self._padded(members[:, high]))
        self._append(units[high], members[:, high], counts[units[high]], several[units[high]], slack)
        kept = units[low]
        self.units.rows[block, : len(low)] = kept
        self.lengths.rows[block] = len(low)
        self.sizes.rows[block] = counts[kept].sum()
        self.alone.rows[block] = not several[kept].any()
        self.members.replace(np.array([block]), self._padded(members[:, low])[None])
        self._box(block, members[:, low].min(axis=1), members[:, low].max(axis=1))

    def _slack(self, length: float) -> float:
        return float(self.sketch.error * length + SMALL)

    # ---- making blocks ------------------------------------------------------------------------------------------------

    def _append(self, units: Ints, members: Singles, counts: Ints, several: Bools, slack: float) -> None:
        row = np.zeros(self.capacity, dtype=np.int64)
        row[: len(units)] = units
        block = len(self)
        self.units.append(row)
        self.lengths.append(len(units))
        self.sizes.append(counts.sum())
        self.alone.append(not several.any())
        self.block_of.rows[units] = block
        for table in (self._low, self._high, self.boxes):
            table.append(0.0)
        self.boxes.rows[block, -1] = slack
        self._box(block, members.min(axis=1), members.max(axis=1))

    def _padded(self, members: Singles) -> Singles:
        """The sketches of a block; the void repeats one of them, so that the largest product is a member's."""
        whole = np.repeat(members[:, :1], self.capacity, axis=1)
        whole[:, : members.shape[1]] = members
        return whole

    def _box(self, block: int, low: Array, high: Array) -> None:
        """The box of a block."""
        self._low.rows[block], self._high.rows[block] = low, high
        low, high = self._low.rows[block], self._high.rows[block]  # as doubles
        box = self.boxes.rows[block, :-1].reshape(2, -1)
        box[0], box[1] = (low + high) / 2, (high - low) / 2

    def _sort(self, rows: Singles) -> tuple[Ints, list[tuple[int, int]]]:
        """Put rows in kd-tree order: what was where, and the runs that are blocks, each with a sixteenth of its room left."""
        order = np.arange(len(rows))
        runs: list[tuple[int, int]] = []
        full = max(1, self.capacity - self.capacity // 16)
        todo = [(0, len(rows), -(-len(rows) // full), -1, 0)]
        while todo:
            start, stop, blocks, parent, where = todo.pop()
            if blocks == 1:
                child = ~len(runs)
                runs.append((start, stop))
                self._parents.append((parent, where))
            else:
                child, below = len(self._cuts), blocks // 2
                middle = (stop - start) * below // blocks
                side, halves = _halves(rows[start:stop], middle)
                order[start:stop] = order[start:stop][halves]
                rows[start:stop] = rows[start:stop][halves]
                middle += start
                self._sides.append(side)
                self._cuts.append(float(rows[middle, side]))
                self._children.append([0, 0])
                todo.append((middle, stop, blocks - below, child, 1))
                todo.append((start, middle, below, child, 0))  # popped first: runs come out in ascending order
            if parent >= 0:
                self._children[parent][where] = child
        return order, runs

    @property
    def nbytes(self) -> int:
        """Bytes of the tables."""
        tables = (self.members, self.units, self.block_of, self.sizes, self.lengths, self.boxes)
        return sum(table.nbytes for table in tables) + 2 * self._low.nbytes


def _singles_below(limits: Array, unit: Array | float, slack: Array) -> Singles:
    """limits / unit - slack, rounded down to float32: infinite where noise is larger than the means by more than they hold."""
    with np.errstate(over="ignore"):
        scaled = limits / unit
        scaled -= slack
        return np.nextafter(scaled.astype(np.float32), LOWEST)


def _halves(rows: Singles, middle: int) -> tuple[int, Ints]:
    """The side on which rows vary most, and an order of them whose first `middle` lie below the others on it."""
    some = rows[:: -(-len(rows) // LOOKED_AT)]
    side = int(np.argmax(some.astype(np.float64).var(axis=0)))
    return side, np.argpartition(rows[:, side], middle)


__all__ = ["BLOCK", "Asked", "AskedMany", "Blocks"]
