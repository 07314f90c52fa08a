"""Leaves that wander: an Ornstein-Uhlenbeck process for each action, around what it takes from the root.

    theta_a(t) = W_a m + delta_a(t),    Cov(delta_a(t)) = Sigma_a,    corr over a time s: g = exp(-rate s)

Given the root and the rows up to the time tau_a of its last one, theta_a(tau_a) ~ N(c_a + A_a W_a m, S_a). As time goes on, in
closed form for any gap (a convex combination with the prior, in which nothing can grow without bound):

    c <- g c,    A <- g A + (1 - g) I,    S <- g^2 S + (1 - g^2) Sigma                                                   (ageing)

and a row (x, r) at that time is the rank-one change of a leaf that stays (leaves.py): with s = S x, v = sigma^2 + x^T s, k = s
/ v,

    c <- c + k (r - x^T c),    A <- A - k x^T A,    S <- S - k s^T,    the root sees (W_a^T A^T x)^T m = r - x^T c, variance v

Without drift A = S Sigma^-1 follows from S. With it A is a state of its own, sums of rows do not suffice, and rows must come in
order. The tables hold every leaf at the time of its last row; decisions age them on the way (`scores`), so that a round costs
what the played actions cost and no leaf is touched but the one that is played.

**A late row** (x, r), of a time t before tau_a, is put in its place where the action's rows since then are kept (`keep`,
filtering.py): exact. Otherwise it is the best linear estimate from what is known at tau_a. With g the correlation between the two
times and T = Cov(theta(tau_a), theta(t) | rows),

    r - (g x^T (c + A W m) + (1 - g) x^T W m)    has the variance    v = sigma^2 + x^T ((1 - g^2) Sigma + 2 g T - g^2 S) x

and the covariance T x with theta(tau_a): k = T x / v. T depends on the action's rows in between, of which only an estimate of
their number is left (`LeafState.look_back`): an approximation, whose error docs/drift.md has. Rows of other actions in between do
not matter in either case: the root stays.
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple, Self, cast

import numpy as np

from manyarms._base import linalg
from manyarms._base.typing import AnyArray, Array, Ints
from manyarms.beliefs.drift import saved_leaves
from manyarms.beliefs.drift.filtering import KeptRows, LeafState, Row, Told
from manyarms.beliefs.growable import GrowableArray
from manyarms.beliefs.leaves import Leaves
from manyarms.beliefs.mixing import Mixing
from manyarms.errors import InvalidInput

BEFORE = -1e16  # earlier than any time
MOST_ROWS = 10_000  # that a late row is taken to have missed


class Exchange(NamedTuple):
    """A change of what an action tells about W_a m: a precision (d, d), of either sign, and an information (d,)."""

    action: int
    precision: Array
    information: Array


class DriftingLeaves(Leaves):
    """Conditional posteriors of the played actions, each as of the time of its last row."""

    drifts: ClassVar[bool] = True

    def __init__(self, mixing: Mixing, covariance: Array, actions: int | None = None, rate: float = 0.0) -> None:
        """rate: the correlation over a time s is exp(-rate s)."""
        super().__init__(mixing, covariance, actions)
        self.rate = rate
        self.now = 0.0
        self.keep = 0.0  # for how long rows are kept
        self.known: Array | None = None  # the root, where it is known
        self.G, self.B = GrowableArray((0,)), GrowableArray((0,))  # sums say nothing here
        self.times, self.firsts = GrowableArray(()), GrowableArray(())  # of the last row, and of the first
        self.lates = GrowableArray((), np.int64)  # rows that came late since the last that did not
        # A_a transposed: entry [i, j] of all A_a lies in one run of memory, so that x^T A_a of all actions is d short products
        self.At = GrowableArray((self.dim, self.dim), by_column=True)
        self.kept: dict[int, KeptRows] = {}  # by slot

    @property
    def tables(self) -> tuple[GrowableArray, ...]:
        return (*super().tables, self.times, self.firsts, self.lates, *(() if self.known is not None else (self.At,)))

    # ---- learning -----------------------------------------------------------------------------------------------------

    def slot(self, action: int, known: Array | None) -> int:
        slot = super().slot(action, known)
        if slot == len(self.times):
            self.times.append(self.now)
            self.firsts.append(self.now)
            self.lates.append(0)
            if known is None:
                self.At.append(np.eye(self.dim))
        return slot

    def learn_row(self, action: int, row: Row) -> Told | Exchange:
        """Learn one row; returns what the root sees, or how what it has seen changes (nothing to a known root)."""
        slot = self.slot(action, self.known)
        state, kept = self.state(slot), self.kept.get(slot)
        if row.time >= state.time:
            if self.keep:
                self._keep(slot, action, state, row)
            told = state.learn(
                row, self.correlation(row.time - state.time), self._own_prior(action), self._centre(action)
            )
            self._put(slot, state)
            self.counts.rows[slot] += 1
            self.lates.rows[slot] = 0
            return told
        if kept is not None and row.time >= kept.start.time:
            rows = kept.rows.copy()
            rows.insert(kept.place(row.time), row._replace(x=row.x.copy()))
            self.counts.rows[slot] += 1
            return self._filter_again(action, slot, kept, rows)
        self.lates.rows[slot] += 1
        told = self._learn_late(slot, action, row, state if kept is None else kept.start)
        if kept is None:
            self._put(slot, state)
        else:  # the rows that are kept come after it
            self._filter_again(action, slot, kept, kept.rows)
        self.counts.rows[slot] += 1
        return told

    def _learn_late(self, slot: int, action: int, row: Row, state: LeafState) -> Told:
        g, rows = self.correlation(state.time - row.time), self._rows_since(slot, row.time, state.time)
        return state.learn_late(row, g, self._own_prior(action), self._centre(action), rows, int(self.lates.rows[slot]))

    def _rows_since(self, slot: int, time: float, until: float) -> int:
        """About how many rows a slot has had since a time, from how often it has them; 0 where it has had one in all."""
        last, first, number = float(self.times.rows[slot]), float(self.firsts.rows[slot]), int(self.counts.rows[slot])
        if number < 2:
            return 0
        if not last > first:
            return 1
        return max(1, min(MOST_ROWS, round((until - time) / (last - first) * (number - 1))))

    def correlation(self, gap: float) -> float:
        """g over a time."""
        return math.exp(-self.rate * abs(gap))

    def state(self, slot: int) -> LeafState:
        """The leaf of a slot; c and A are those of the tables, S is a copy."""
        At = cast(Array, self.At.rows[slot]) if self.known is None else None
        S = self.packing.unpack(self.S.rows[slot])
        return LeafState(float(self.times.rows[slot]), S, self.c.rows[slot], At)

    def _put(self, slot: int, state: LeafState) -> None:
        """Write a leaf back, whose c and A are those of the tables."""
        self.S.rows[slot] = self.packing.pack(state.S)
        self.times.rows[slot] = state.time

    def _own_prior(self, action: int) -> Array:
        return self.covariance if self.shared else self.prior_covariance(np.array([action]))[0]

    def _centre(self, action: int) -> Array | None:
        """W_a m, where the root is known."""
        return None if self.known is None else self.mixing.apply(np.array([action]), self.known)[0]

    # ---- rows that are kept

    def _keep(self, slot: int, action: int, state: LeafState, row: Row) -> None:
        """Keep a row that comes next, and let those go that are too old by now."""
        kept = self.kept.get(slot)
        if kept is None:
            kept = self.kept[slot] = KeptRows(state.copy())
            if not self.counts.rows[slot]:
                kept.start.time = BEFORE  # the prior is the law at any time
        kept.rows.append(Row(row.time, row.x.copy(), row.value, row.noise_variance))
        old = 0
        while kept.rows[old].time < row.time - self.keep:
            old += 1
        for gone in kept.rows[:old]:
            kept.start.learn(
                gone, self.correlation(gone.time - kept.start.time), self._own_prior(action), self._centre(action)
            )
        del kept.rows[:old]

    def forget_rows(self) -> None:
        """Let the rows go of actions that have had none for longer than rows are kept."""
        old = [slot for slot, kept in self.kept.items() if kept.rows[-1].time < self.now - self.keep]
        for slot in old:
            del self.kept[slot]

    def _filter_again(self, action: int, slot: int, before: KeptRows, rows: list[Row]) -> Exchange:
        """Be as if these rows had come since the leaf was as it is kept."""
        was, _ = self._filtered(action, before.start, before.rows)
        now, state = self._filtered(action, before.start, rows)
        before.rows = rows
        self.c.rows[slot] = state.c
        if state.At is not None:
            self.At.rows[slot] = state.At
        self._put(slot, state)
        return Exchange(action, now[0] - was[0], now[1] - was[1])

    def _filtered(self, action: int, start: LeafState, rows: list[Row]) -> tuple[tuple[Array, Array], LeafState]:
        """What rows tell about W_a m, a precision and an information, and the leaf after them."""
        state, Sigma, centre = start.copy(), self._own_prior(action), self._centre(action)
        precision, information = np.zeros((self.dim, self.dim)), np.zeros(self.dim)
        for row in rows:
            told = state.learn(row, self.correlation(row.time - state.time), Sigma, centre)
            precision += np.multiply.outer(told.towards, told.towards / told.variance)
            information += told.towards * (told.value / told.variance)
        return (precision, information), state

    def replace_value(self, slot: int, x: Array, change: float, noise_variance: float, time: float | None) -> Exchange:
        """The value of a row of this context and time (None: the last) was higher by `change`; how that changes what was told.

        Exact where the row is kept, and for the last row of an action. Otherwise as for late rows, by Cov(theta(tau), theta(t)).
        """
        action, kept = int(self.catalogue.played.rows[slot]), self.kept.get(slot)
        found = None if kept is None else kept.find(x, time)
        if kept is not None and found is not None:
            rows = kept.rows.copy()
            rows[found] = rows[found]._replace(
                value=rows[found].value + change * rows[found].noise_variance / noise_variance
            )
            return self._filter_again(action, slot, kept, rows)
        state = self.state(slot) if kept is None or time is None else kept.start
        T, towards = state.S, x if state.At is None else state.At @ x
        if time is not None and time < state.time:
            between = self._rows_since(slot, time, state.time)
            back = state.look_back(self.correlation(state.time - time), self._own_prior(action), between)
            T, towards = back.covariance, x if state.At is None else back.towards(state.At, x)
        own, nothing = towards * (change / noise_variance), np.zeros((self.dim, self.dim))
        if kept is None or state is not kept.start:
            state.c += (change / noise_variance) * (T @ x)
            return Exchange(action, nothing, own)
        was, _ = self._filtered(action, state, kept.rows)
        state.c += (change / noise_variance) * (T @ x)
        now, _ = self._filtered(action, state, kept.rows)
        self._filter_again(action, slot, kept, kept.rows)
        return Exchange(action, nothing, own + now[1] - was[1])

    def release(self, slots: Ints) -> None:
        stay = np.delete(np.arange(len(self.counts)), slots)
        place = dict(zip(stay.tolist(), range(len(stay)), strict=True))
        super().release(slots)
        self.kept = {place[slot]: kept for slot, kept in self.kept.items() if slot in place}

    # ---- as of now ----------------------------------------------------------------------------------------------------

    def decays(self, slots: Ints | None) -> Array:
        """(n,): g between the last rows of these slots (None: all) and now."""
        ages = self.now - (self.times.rows if slots is None else self.times.rows[slots])
        np.abs(
            ages, out=ages
        )  # of a time before a row, which only late rows ask for: the process looks the same backwards
        ages *= -self.rate
        return cast(Array, np.exp(ages, out=ages))

    def posterior(self, slots: Ints) -> tuple[Array, Array]:
        g = self.decays(slots)[:, None]
        ids = self.catalogue.played.rows[slots]
        prior = self.packing.pack(self.covariance) if self.shared else self.covariances.rows[ids]
        c = g * self.c.rows[slots]
        if self.known is not None:
            c += (1 - g) * self.mixing.apply(ids, self.known)
        return g * g * self.S.rows[slots] + (1 - g * g) * prior, c

    def pulls(self, slots: Ints) -> Array:
        """(n, d, d): A_a, how the mean of theta_a moves with W_a m."""
        if self.known is not None:  # asked for by explanations, where c_a is all of the mean
            return np.broadcast_to(np.eye(self.dim), (len(slots), self.dim, self.dim))
        g = self.decays(slots)[:, None, None]
        return cast(Array, g * np.swapaxes(self.At.rows[slots], 1, 2) + (1 - g) * np.eye(self.dim))

    def towards(self, slots: Ints, Sx: Array, x: Array) -> Array:
        """(n, d): A_a^T x, how scores move with W_a m."""
        g = self.decays(slots)[:, None]
        return cast(Array, g * np.einsum("nij,nj->ni", self.At.rows[slots], x) + (1 - g) * x)

    def pulled(self, x: Array, slots: Ints) -> Array:
        """(n, p): W_a^T A_a^T x, how the score of each slot moves with the root."""
        g, At = self.decays(slots), self.At.rows[linalg.as_slice(slots)]
        moved = np.matmul(x, At.transpose(1, 2, 0))  # (d, n), as in `_pulled_scores`
        moved -= x[:, None]
        moved *= g
        moved += x[:, None]
        return self.mixing.lift_all(self.catalogue.played.rows[slots], moved.T)

    def scores(self, X: Array, M: Array | None, slots: Ints | None) -> tuple[Array, Array]:
        """Mean and variance (n, P) of x^T theta_a now, given the roots M (n, p) (None: known), for contexts X (n, d).

        mean g (x^T c + x^T A W m) + (1 - g) x^T W m,    variance g^2 x^T S x + (1 - g^2) x^T Sigma x
        """
        S, c = self.S.rows, self.c.rows
        if slots is not None:
            S, c = S[slots], c[slots]
        g, mean = self.decays(slots), X @ c.T
        prior, centre = self._prior_scores(X, M, slots)
        if M is not None:
            mean += self._pulled_scores(X, M, slots)
        mean -= centre
        mean *= g
        mean += centre
        variance = self.packing.bilinear(X, X) @ S.T
        variance -= prior
        variance *= g * g
        variance += prior
        return mean, variance

    def _prior_scores(self, X: Array, M: Array | None, slots: Ints | None) -> tuple[Array, Array]:
        """x^T Sigma_a x and x^T W_a m, (n, 1) where they are the same for all actions, else (n, P)."""
        mixing, features = self.mixing, self.mixing.features
        if M is None:
            M = np.broadcast_to(cast(Array, self.known), (len(X), self.root_dim))
        coefficients = mixing.coefficients(X, M)
        if self.played_weights is not None:
            weights = self.played_weights.rows if slots is None else self.played_weights.rows[slots]
            coefficients = coefficients @ weights.T
        elif features is not None:
            ids = self.catalogue.played.rows if slots is None else self.catalogue.played.rows[slots]
            coefficients = coefficients @ features[ids].T
        if self.shared:
            return np.einsum("nd,nd->n", X @ self.covariance, X)[:, None], coefficients
        ids = self.catalogue.played.rows if slots is None else self.catalogue.played.rows[slots]
        return self.packing.bilinear(X, X) @ self.covariances.rows[ids].T, coefficients

    def _pulled_scores(self, X: Array, M: Array, slots: Ints | None) -> Array:
        """(n, P): x^T A_a W_a m, as of the leaves' own times."""
        effects = self.mixing.effects(M)
        table = self.At.rows if slots is None else self.At.rows[slots]
        if effects is None or len(X) > 1:
            ids = self.catalogue.played.rows if slots is None else self.catalogue.played.rows[slots]
            out = np.empty((len(X), len(table)))
            for start in range(0, len(table), self.chunk):
                some = slice(start, start + self.chunk)
                for i, (x, m) in enumerate(zip(X, M, strict=True)):
                    out[i, some] = np.einsum("ai,ai->a", table[some] @ x, self.mixing.apply(ids[some], m))
            return out
        # rows [p, j, i] = A_ij lie as (i, j, p): for each j, x times a matrix whose rows are runs of memory
        moved = np.matmul(X[0], table.transpose(1, 2, 0))  # (j, P): x^T A_a
        if self.played_weights is None:
            return cast(Array, effects[0] @ moved)
        weights = self.played_weights.rows if slots is None else self.played_weights.rows[slots]
        centres = effects[0].T @ weights.T  # (j, P): W_a m
        centres *= moved
        return cast(Array, centres.sum(axis=0)[None])

    def told(self, slots: Ints) -> tuple[Array, Array]:
        raise InvalidInput("weights", "other weights for actions that drift", "an agent without `drift=Drift(...)`")

    # ---- state --------------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, AnyArray]:
        sums = ("G", "B", "sharp", "sharp_slots")
        out = {name: array for name, array in super().arrays().items() if name not in sums}
        out |= {
            "times": self.times.rows,
            "firsts": self.firsts.rows,
            "lates": self.lates.rows,
            "At": np.ascontiguousarray(self.At.rows),
        }
        return out | saved_leaves.kept_arrays(self.kept, self.dim)

    @classmethod
    def restored(cls, mixing_kind: str, arrays: dict[str, AnyArray], dim: int) -> Self:
        leaves = super().restored(mixing_kind, saved_leaves.with_empty_sums(arrays, dim), dim)
        times, firsts, lates, At = saved_leaves.checked(arrays, dim)
        leaves.times.extend(times)
        leaves.firsts.extend(firsts)
        leaves.lates.extend(lates)
        leaves.At.extend(At)
        leaves.kept = saved_leaves.kept_rows(arrays, dim)
        return leaves


__all__ = ["DriftingLeaves", "Exchange"]
