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

    def learn_late(self, row: Row, g: float, Sigma: Array, centre: Array | None, rows: int, late: int = 1) -> Told:
        """In place: learn a row of an earlier time, seen from now (leaves.py).

        rows: how many of the action came in between. late: how many late rows there have been since the last that was not, this
        one among them. What they say of theta(t) alone they say together: n of them hold 1 / (its variance + noise / n).
        """
        x, At = row.x, self.At
        noise, Tx = row.noise_variance, self.look_back(g, Sigma, rows).covariance @ x
        seen = float(Tx @ np.linalg.solve(self.S, Tx))
        between = (1 - g * g) * float(x @ Sigma @ x) + 2 * g * float(x @ Tx) - g * g * float(x @ self.S @ x)
        shared = max(0.0, between - seen)
        variance = seen + (late * shared + noise) * ((late - 1) * shared + noise) / noise
        gain = Tx / variance
        self.S = self.S - np.multiply.outer(gain, Tx)
        value = row.value - g * float(x @ self.c)
        if At is None:
            value -= (1 - g) * float(x @ cast(Array, centre))
            self.c += gain * value
            return Told(x, variance, value)
        towards = g * (At @ x) + (1 - g) * x
        self.c += gain * value
        At -= np.multiply.outer(towards, gain)
        return Told(towards, variance, value)

    def look_back(self, g: float, Sigma: Array, rows: int) -> LookBack:
        """At the leaf at an earlier time; g: the correlation of the two times, rows: how many came in between.

        By the smoother of Rauch, Tung and Striebel, G = f S (f^2 S + (1 - f^2) Sigma)^-1 leads from each step to the one before
        it, f being its correlation: here as if the steps had been equal, and S the same at all of them. Where no row came in
        between, nothing is known of the time then but what is known now, and G = g.
        """
        if rows == 0:
            return LookBack(g * self.S, np.full(len(self.c), g), np.full(len(self.c), 1 - g), np.eye(len(self.c)))
        C = np.linalg.cholesky(Sigma)
        half = np.linalg.solve(C, np.linalg.solve(C, self.S).T)
        values, vectors = np.linalg.eigh((half + half.T) / 2)
        values = np.clip(values, 0.0, 1.0)
        f = g ** (1 / rows)
        with np.errstate(divide="ignore", invalid="ignore"):
            k = np.nan_to_num(f * values / (f * f * values + (1 - f * f)), nan=1.0)
            sums = np.where(k < 1, (1 - k**rows) / (1 - k), float(rows))
        Q = C @ vectors
        # A_s = G^n A + (I + ... + G^(n-1)) (A - G (f A + (1 - f) I)), by eigenvalues: of A, and of I
        of_A, of_I = k**rows + sums * (1 - k * f), -sums * k * (1 - f)
        return LookBack(cast(Array, (Q * (k**rows * values)) @ Q.T), of_A, of_I, Q)


class LookBack(NamedTuple):
    """At a leaf at an earlier time: T = Cov(theta now, theta then | rows), and how A then follows from A now.

    A then = Q (diag(of_A) Q^-1 A + diag(of_I) Q^-1).
    """

    covariance: Array
    of_A: Array
    of_I: Array
    Q: Array

    def towards(self, At: Array, x: Array) -> Array:
        """A_s^T x, with A_s that of then: how the score then moves with W m."""
        Qx = self.Q.T @ x
        return cast(Array, At @ np.linalg.solve(self.Q.T, self.of_A * Qx) + np.linalg.solve(self.Q.T, self.of_I * Qx))


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
