"""Which unplayed actions are interchangeable, and how many of each kind are left.

Actions with the same prior (same W_a, same Sigma_a) are exchangeable until somebody plays them: only their *number*
matters for a decision, and which of them it is can be decided afterwards by a uniform draw. A *unit* is such a kind of
action with its count of members that can still be taken. A common prior makes one unit of a million actions; one-hot
categories make a unit each; distinct mixing weights make every action its own unit.
"""

from __future__ import annotations

from bisect import bisect_left, insort

import numpy as np

from manyarms._base import linalg
from manyarms._base.typing import Array, Ints

LATECOMERS = 1024  # actions added after the units were made are units of their own until there are this many


class Units:
    """The units of actions 0 .. K-1, from their rows of features."""

    def __init__(self, actions: int, features: Array | None, distinct: bool) -> None:
        """`features` None: all alike, unless `distinct` says that every action has a prior covariance of its own."""
        self.grouped = actions  # how many actions were there when the units were made
        self.size = actions
        self.unit_of: Ints | None = None  # None: one unit, or unit u is action u
        self.single = features is None and not distinct
        self._members: Ints | None = None
        self._starts: Ints | None = None
        if self.single:
            self.counts = np.array([actions], dtype=np.int64)
        elif distinct or features is None:
            self.counts = np.ones(actions, dtype=np.int64)
        else:
            self.unit_of = _equal_rows(features)
            if self.unit_of is None:
                self.counts = np.ones(actions, dtype=np.int64)
            else:
                self.counts = np.bincount(self.unit_of)
                self._members = np.argsort(self.unit_of, kind="stable")
                self._starts = np.concatenate([[0], np.cumsum(self.counts)[:-1]])
        self.kinds = len(self.counts)  # units that come from the grouping; latecomers follow
        self.represent: Ints = self._first_members()  # an action of each unit, for its features
        self._taken: dict[int, list[int]] = {}  # positions inside a unit that are gone, sorted
        self.log: list[int] = []  # the units of all actions taken, in order: indexes above catch up from it

    def _first_members(self) -> Ints:
        if self.single:
            return np.zeros(1, dtype=np.int64)
        if self._members is not None and self._starts is not None:
            return self._members[self._starts]
        return np.arange(self.size)

    def unit(self, ids: Ints) -> Ints:
        """Unit of each action."""
        late = ids >= self.grouped
        if self.single:
            result = np.zeros(len(ids), dtype=np.int64)
        elif self.unit_of is not None:
            result = self.unit_of[np.where(late, 0, ids)].astype(np.int64)
        else:
            result = ids.astype(np.int64)
        if late.any():
            result[late] = self.kinds + ids[late] - self.grouped
        return result

    def _position(self, action: int, unit: int) -> int:
        """Place of an action among all members of its unit, in ascending order of ids."""
        if self._members is None or self._starts is None:
            return action if self.single else 0
        start = int(self._starts[unit])
        stop = int(self._starts[unit + 1]) if unit + 1 < self.kinds else len(self._members)
        return int(np.searchsorted(self._members[start:stop], action))

    def _plural(self, unit: int) -> bool:
        return unit < self.kinds and (self.single or self._members is not None)

    def take(self, action: int) -> int:
        """Remove an action that has now been played or retired; returns its unit."""
        unit = int(self.unit(np.array([action]))[0])
        self.counts[unit] -= 1
        self.log.append(unit)
        if self._plural(unit):
            insort(self._taken.setdefault(unit, []), self._position(action, unit))
        return unit

    def rank(self, action: int, unit: int) -> int:
        """Place of an action among the members of its unit that are left."""
        if not self._plural(unit):
            return 0
        position = self._position(action, unit)
        return position - bisect_left(self._taken.get(unit, ()), position)

    def member(self, unit: int, rank: int) -> int:
        """The action of that place among the members that are left: the inverse of `rank`."""
        if unit >= self.kinds:
            return self.grouped + unit - self.kinds
        if not self._plural(unit):
            return unit
        position = skip(self._taken.get(unit, []), rank)
        if self._members is None or self._starts is None:
            return position
        return int(self._members[int(self._starts[unit]) + position])

    def add(self, number: int) -> bool:
        """Room for new actions, each a unit of its own for now; False when it is time to group anew."""
        if self.single:  # one more of the only kind there is
            self.counts[0] += number
            self.size += number
            self.grouped += number
            return True
        if self.size + number - self.grouped > max(LATECOMERS, self.grouped // 64):
            return False
        new = np.arange(self.size, self.size + number)
        self.counts = np.concatenate([self.counts, np.ones(number, dtype=np.int64)])
        self.represent = np.concatenate([self.represent, new])
        self.size += number
        return True

    @property
    def nbytes(self) -> int:
        """Bytes of the index tables."""
        tables = (self.counts, self.represent, self.unit_of, self._members, self._starts)
        return sum(t.nbytes for t in tables if t is not None) + 32 * sum(map(len, self._taken.values()))


def skip(taken: list[int], rank: int) -> int:
    """The rank-th integer (from 0) that is not in the sorted list `taken`."""
    low, high = 0, len(taken)
    while low < high:  # taken[i] - i counts the free numbers before taken[i]
        middle = (low + high) // 2
        if taken[middle] - middle <= rank:
            low = middle + 1
        else:
            high = middle
    return rank + low


def _equal_rows(features: Array) -> Ints | None:
    """A label for each row, equal rows alike, numbered by first appearance; None where all rows differ."""
    # one number per row, made elementwise so that equal rows give equal numbers to the last bit
    keys = np.zeros(len(features))
    factors = np.random.default_rng(7).standard_normal((features.shape[1],)).tolist()
    for column, factor in enumerate(factors):
        keys += features[:, column] * factor
    order = np.argsort(keys, kind="stable")
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
