"""Which unplayed actions are interchangeable, and how many of each kind are left.

Actions with the same prior (same W_a, same Sigma_a) are exchangeable until somebody plays them: only their *number*
matters for a decision, and which of them it is can be decided afterwards by a uniform draw. A *unit* is such a kind of
action with its count of members that can still be taken. A common prior makes one unit of a million actions; one-hot
categories make a unit each; distinct mixing weights make every action its own unit.

A new action joins the unit that has its row of features, or is the first of a new unit. Members of a unit stand in the order of
their ids, and an action's *position* is its place among all of them, gone or not.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left

import numpy as np

from manyarms._base.typing import Array, Ints
from manyarms.beliefs.actions.blocks import Blocks
from manyarms.beliefs.actions.rows import RowIndex, equal_rows, row_keys
from manyarms.beliefs.actions.sorted_integers import SortedIntegers, free
from manyarms.beliefs.growable import GrowableArray


class Units:
    """The units of actions 0 .. K-1, from their rows of features."""

    def __init__(self, actions: int, features: Array | None, distinct: bool) -> None:
        """`features` None: all alike, unless `distinct` says that every action has a prior covariance of its own."""
        self.founders = (
            actions  # the actions that were there when units were made; what follows goes by the order of arrival
        )
        self.size = actions
        self.single = features is None and not distinct
        self.distinct = distinct
        self._unit_of: Ints | None = None  # of the founders; None: one unit, or unit u is action u
        self._members: Ints | None = None  # the founders unit by unit, where units have several
        self._starts: Ints | None = None
        self._late_unit_of = GrowableArray((), np.int64)  # of the actions that came later
        self._joined: dict[int, array[int]] = {}  # later members of a unit, beside its first ones
        self._rows: RowIndex | None = None
        counts = np.array([actions]) if self.single else np.ones(actions, dtype=np.int64)
        first = np.zeros(1, dtype=np.int64) if self.single else np.arange(actions)
        if features is not None and not distinct:
            keys = row_keys(features)
            order = np.argsort(keys, kind="stable")
            self._unit_of = equal_rows(features, keys, order)
            if self._unit_of is not None:
                counts = np.bincount(self._unit_of)
                self._members = np.argsort(self._unit_of, kind="stable")
                self._starts = np.concatenate([[0], np.cumsum(counts)])
                first = self._members[self._starts[:-1]]
                keys = keys[first]
                order = np.argsort(keys, kind="stable")
            self._rows = RowIndex(keys[order], order)
        self.kinds = len(counts)  # units that the founders made
        self._counts = GrowableArray.of(counts)
        self._represent = GrowableArray.of(first)
        self._several = GrowableArray.of(counts > 1)
        self.alone = not self.single and self._unit_of is None  # no unit ever had more than one member
        self._taken: dict[int, SortedIntegers] = {}  # positions that are gone, of units with several members
        self._blocks: Blocks | None = None

    @property
    def counts(self) -> Ints:
        """Members left of each unit."""
        return self._counts.rows

    @property
    def represent(self) -> Ints:
        """An action of each unit, for its features."""
        return self._represent.rows

    @property
    def in_blocks(self) -> bool:
        """Whether somebody has asked for blocks."""
        return self._blocks is not None

    def blocks(self, features: Array) -> Blocks:
        """The units in blocks, made at the first use; from then on they follow every change."""
        made = self._blocks
        if made is None:
            counts, several, rows = self.counts, self._several.rows, features[self.represent]
            made = Blocks(rows[: self.kinds], counts[: self.kinds], several[: self.kinds])
            for row in rows[self.kinds :]:
                made.insert(row, counts, several)
            self._blocks = made
        return made

    # ---- where an action stands ---------------------------------------------------------------------------------------

    def unit(self, ids: Ints) -> Ints:
        """Unit of each action."""
        if self.single:
            return np.zeros(len(ids), dtype=np.int64)
        if self.distinct:
            return ids.astype(np.int64)
        late = ids >= self.founders
        result = ids.astype(np.int64) if self._unit_of is None else self._unit_of[np.where(late, 0, ids)]
        if late.any():
            result[late] = self._late_unit_of.rows[ids[late] - self.founders]
        return result

    def unit_of(self, action: int) -> int:
        """Unit of one action."""
        if self.single:
            return 0
        if self.distinct:
            return action
        if action >= self.founders:
            return int(self._late_unit_of.rows[action - self.founders])
        return action if self._unit_of is None else int(self._unit_of[action])

    def _first_members(self, unit: int) -> Ints:
        """The members of a unit beside those that joined it."""
        if self._members is None or self._starts is None or unit >= self.kinds:
            return self.represent[unit : unit + 1]
        return self._members[self._starts[unit] : self._starts[unit + 1]]

    def _position(self, action: int, unit: int) -> int:
        if self.single:
            return action
        first, joined = self._first_members(unit), self._joined.get(unit)
        if joined is not None and action >= joined[0]:
            return len(first) + bisect_left(joined, action)
        return int(np.searchsorted(first, action))

    def rank(self, action: int, unit: int) -> int:
        """Place of an action among the members of its unit that are left."""
        if not self._several.rows[unit]:
            return 0
        position = self._position(action, unit)
        taken = self._taken.get(unit)
        return position if taken is None else position - taken.below(position)

    def member(self, unit: int, rank: int) -> int:
        """The action of that place among the members that are left: the inverse of `rank`."""
        if not self._several.rows[unit]:
            return int(self.represent[unit])
        taken = self._taken.get(unit)
        position = rank if taken is None else taken.skip(rank)
        if self.single:
            return position
        first = self._first_members(unit)
        return int(first[position] if position < len(first) else self._joined[unit][position - len(first)])

    def members(self, unit: int, ranks: Ints) -> Ints:
        """The same for many ranks."""
        if not self._several.rows[unit]:
            return np.full(len(ranks), self.represent[unit])
        taken = self._taken.get(unit)
        positions = ranks if taken is None else free(taken.values(), ranks)
        if self.single:
            return positions
        first, joined = self._first_members(unit), self._joined.get(unit)
        if joined is not None:
            first = np.concatenate([first, np.frombuffer(joined, dtype=np.int64)])
        return first[positions]

    # ---- a catalogue that changes -------------------------------------------------------------------------------------

    def take(self, action: int) -> None:
        """Remove an action that has now been played or retired."""
        unit = self._count(action, -1)
        if self._several.rows[unit]:
            taken = self._taken.get(unit)
            if taken is None:
                taken = self._taken[unit] = SortedIntegers()
            taken.add(self._position(action, unit))

    def give_back(self, action: int) -> None:
        """Put back an action that was retired without having been played."""
        unit = self._count(action, 1)
        if self._several.rows[unit]:
            self._taken[unit].remove(self._position(action, unit))

    def _count(self, action: int, change: int) -> int:
        unit = self.unit_of(action)
        self.counts[unit] += change
        if self._blocks is not None:
            self._blocks.change(unit, change)
        return unit

    def take_all(self, ids: Ints) -> None:
        """The same as `take` of each of these actions."""
        if not self.alone:
            for action in ids.tolist():
                self.take(action)
            return
        units = self.unit(ids)  # every action is a unit of its own
        self.counts[units] -= 1
        if self._blocks is not None:
            self._blocks.change_all(units, -1)

    def add(self, number: int, features: Array | None) -> None:
        """New actions, whose rows are already at the end of the table of features."""
        first, self.size = self.size, self.size + number
        if self.single:  # more of the only kind there is
            self._mark_several(0)
            self.counts[0] += number
            return
        if self._rows is None or features is None:  # each a unit of its own
            self._counts.extend(np.ones(number, dtype=np.int64))
            self._represent.extend(np.arange(first, first + number))
            self._several.extend(np.zeros(number, dtype=np.bool_))
            return
        rows = features[first:]
        for action, unit in enumerate(self._rows.find(rows, features, self.represent), first):
            new = len(self._counts)
            unit = unit if unit >= 0 else self._rows.later(features[action], new)
            self._late_unit_of.append(unit)
            if unit < new:
                self._join(unit, action)
                continue
            self._counts.append(1)
            self._represent.append(action)
            self._several.append(False)
            if self._blocks is not None:
                self._blocks.insert(features[action], self.counts, self._several.rows)

    def _mark_several(self, unit: int) -> None:
        """A unit is about to have more than one member; until now its count told whether the only one is gone."""
        if self._several.rows[unit]:
            return
        if not self.counts[unit]:
            self._taken[unit] = SortedIntegers([0])
        self._several.rows[unit] = True
        self.alone = False
        if self._blocks is not None:
            self._blocks.mark_several(unit)

    def _join(self, unit: int, action: int) -> None:
        self._mark_several(unit)
        self._joined.setdefault(unit, array("q")).append(action)
        self.counts[unit] += 1
        if self._blocks is not None:
            self._blocks.change(unit, 1)

    @property
    def nbytes(self) -> int:
        """Bytes of the index tables."""
        tables = (self._unit_of, self._members, self._starts, self._rows, self._blocks)
        grown = (self._counts, self._represent, self._several, self._late_unit_of)
        members = sum(t.nbytes for t in self._taken.values()) + 8 * sum(map(len, self._joined.values()))
        return sum(t.nbytes for t in (*tables, *grown) if t is not None) + members


__all__ = ["Units"]
