"""One leaf through time: ageing and rows, on plain arrays; and rows that are kept for a while, so that late ones can be put in
their place.

A late row changes what all later rows of its action were worth, to the leaf and to the root. Where the leaf is still known as
it was before (`KeptRows`), the rows are filtered again with the late one among them, which is exact; the root exchanges what
they told it for what they tell now.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple, cast

import numpy as np

from manyarms._base import linalg
from manyarms._base.typing import Array


class Row(NamedTuple):
    """A linear row: its time, context, value and the variance of its noise."""

    time: float
    x: Array
    value: float
    noise_variance: float


class Told(NamedTuple):
    """What a row tells the root: towards^T W_a m was seen as `value`, with `variance`."""

    towards: Array
    variance: float
    value: float


@dataclass(slots=True)
class LeafState:
    """A leaf at a time: theta | m ~ N(c + A W m, S). At is A transposed; None where the root is known, and c all of the mean."""

    time: float
    S: Array
    c: Array
    At: Array | None

    def copy(self) -> LeafState:
        """One of its own."""
        return LeafState(self.time, self.S.copy(), self.c.copy(), None if self.At is None else self.At.copy())

    def learn(self, row: Row, g: float, Sigma: Array, centre: Array | None) -> Told:
        """In place: age by the correlation g and learn a row. centre: W m, where the root is known."""
        x, At = row.x, self.At
        S, c = self.S, self.c
        if g < 1.0:
            S = g * g * S + (1 - g * g) * Sigma
            c *= g
            if At is None:
                c += (1 - g) * cast(Array, centre)
            else:
                At *= g
                At.flat[:: len(c) + 1] += 1 - g
        self.S, gain, variance = linalg.condition(S, x, row.noise_variance)
        value = row.value - float(x @ c)
        c += gain * value
        self.time = row.time
        if At is None:
            return Told(x, variance, value)
        towards = At @ x
        At -= np.multiply.outer(towards, gain)
        return Told(towards, variance, value)

    def learn_late(self, row: Row, g: float, Sigma: Array, centre: Array | None) -> Told:
        """In place: learn a row of an earlier time, seen from now (leaves.py)."""
        x, At = row.x, self.At
        noise = row.noise_variance + (1 - g * g) * float(x @ Sigma @ x)
        self.S, gain, variance = linalg.condition(self.S, g * x, noise)
        value = row.value - g * float(x @ self.c)
        if At is None:
            value -= (1 - g) * float(x @ cast(Array, centre))
            self.c += gain * value
            return Told(x, variance, value)
        towards = g * (At @ x) + (1 - g) * x
        self.c += gain * value
        At -= np.multiply.outer(towards, gain)
        return Told(towards, variance, value)


@dataclass(slots=True)
class KeptRows:
    """A leaf as it was, and the rows that it has learned since, in the order of their times."""

    start: LeafState
    rows: list[Row] = field(default_factory=list)

    def place(self, time: float) -> int:
        """Where a row of that time belongs: behind those of the same time."""
        return bisect_right([row.time for row in self.rows], time)

    def find(self, x: Array, time: float | None) -> int | None:
        """The last row of this context, and of this time if one is given."""
        for i in range(len(self.rows) - 1, -1, -1):
            row = self.rows[i]
            if (time is None or row.time == time) and np.array_equal(row.x, x):
                return i
        return None


__all__ = ["KeptRows", "LeafState", "Row", "Told"]
