"""What no score of a played action is above, given the root m and the noise z_a that was drawn for it.

A posterior is never wider than its prior. With Sigma = C C^T, the same for all actions, and S_a = C M_a C^T we have
0 <= M_a <= r_a I with r_a <= 1, so that for y = C^T x and any v

    x^T S_a x = y^T M_a y <= r_a |y|^2    and    y^T M_a v <= r_a (|y| |v| + y^T v) / 2.

(The second for |y| = |v| = 1: y^T M v = ((y + v)^T M (y + v) - (y - v)^T M (y - v)) / 4 <= r |y + v|^2 / 4 = r (1 + y^T v) / 2.)
It is used for v_a = C^T Sigma^-1 W_a (m - m'), where m' is a root near which draws fall, the mean of a moment ago: with
e_a = c_a + S_a Sigma^-1 W_a m', kept for every played action,

    score_a <= x^T e_a + r_a (|y| |v_a| + y^T v_a) / 2 + sqrt(r_a) |y| max(z_a, 0).

Where the root is known, x^T c_a is the mean, and only the last part is bounded.

The r_a start at 1 and are made smaller where too many actions could win: with the mean and the standard deviation s of the d
eigenvalues of Sigma^-1 S_a, none of them is above mean + s sqrt(d - 1) (Samuelson's inequality). Before d rows have come some
direction is as wide as it was, and nothing can be gained.

All this is derived from the leaves and not saved. Readers make a table aside and put it in its place in one step; learners, who
are alone, change it in place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from manyarms._base.typing import Array, Ints
from manyarms.beliefs import leaf_scores
from manyarms.beliefs.growable import GrowableArray
from manyarms.beliefs.leaves import Leaves
from manyarms.beliefs.roots import Root

EPS = float(np.finfo(np.float64).eps)
# Rounding, as shares of what could be rounded: of S_a, which every row rounds anew, and of single products. Both are far above
# what they stand for, d^2 2^-52 or so (and that times the rows), and let hardly another action through.
DRIFT, ROUNDING = 1e-6, 1e-8


class Draw:
    """What was drawn for the played actions in one context, and what follows from it for all of them."""

    def __init__(
        self, bounds: PlayedBounds, x: Array, m: Array, z: Array, slots: Ints | None, mean: Array | None
    ) -> None:
        """slots: whose numbers z (P,) are, None: everybody's. mean (P,): of the scores, where the root m is known."""
        self.leaves, self.x, self.m, self.z, self.slots, self.mean = bounds.leaves, x, m, z, slots, mean
        self.y = x @ bounds.factor
        self.length = math.sqrt(self.y @ self.y)
        self.size = math.sqrt(x * x @ bounds.diagonal)  # |D^1/2 x|, D the diagonal of Sigma
        if mean is None:
            self.effects = effects(self.leaves, m)
            self.pulled = self.effects @ self.leaves.precision

    def slots_at(self, places: Ints) -> Ints:
        """Whose scores stand at these places."""
        return places if self.slots is None else self.slots[places]

    def scores(self, places: Ints) -> Array:
        """The scores, each summed on its own: the same numbers to the last bit whoever else is asked for."""
        leaves, slots = self.leaves, self.slots_at(places)
        if len(places) > leaves.chunk:
            cuts = range(0, len(places), leaves.chunk)
            return np.concatenate([self.scores(places[i : i + leaves.chunk]) for i in cuts])
        S = leaves.packing.unpack_rows(_gathered(leaves.S, slots))
        S *= self.x
        Sx = S.sum(axis=2)
        if self.mean is not None:
            scores = self.mean[places]
        else:
            pull = self.pulled
            if leaves.played_weights is not None:
                pull = (_gathered(leaves.played_weights, slots)[:, :, None] * self.pulled).sum(axis=1)
            scores = (_gathered(leaves.c, slots) * self.x).sum(axis=1) + (Sx * pull).sum(axis=1)
        Sx *= self.x
        scores += np.sqrt(np.maximum(Sx.sum(axis=1), 0.0)) * self.z[places]
        return scores


@dataclass
class Centres:
    """e_a of the played actions, for one root m'."""

    effects: Array  # (L, d): what W_a m' is made of
    pull: float  # |D^1/2 Sigma^-1 effects|
    rows: GrowableArray  # by slot e_a, and where there are weights b_a and |b_a|
    weight: float = 1.0  # the largest |b_a|, or more
    length: float = 0.0  # the largest |D^-1/2 c_a| + |D^-1/2 e_a|
    stale: set[int] = field(default_factory=set)  # slots that have learned since


class PlayedBounds:
    """Bounds on the scores of played actions."""

    def __init__(self, leaves: Leaves, root: Root) -> None:
        self.leaves, self.root = leaves, root
        linear = root.known or leaves.mixing.effects(np.zeros((1, leaves.root_dim))) is not None
        self.able = leaves.shared and linear and (root.known or not leaves.steep) and not leaves.drifts
        self.factor = np.linalg.cholesky(leaves.covariance) if leaves.shared else np.empty((0, 0))
        self.diagonal = np.diagonal(leaves.covariance).copy() if leaves.shared else np.empty(0)
        self._roots: tuple[Array, Ints] | None = None  # sqrt(r_a) by slot, and the rows behind it
        self._centres: Centres | None = None
        self._learned = 0  # rows, since this was made
        self._next = 0  # how many of them must have come before the centres are made anew

    # ---- learners -----------------------------------------------------------------------------------------------------

    def changed(self, actions: Ints) -> None:
        """The leaves of these actions, named once or more often, have learned."""
        self._learned += len(actions)
        if self._roots is None and self._centres is None:
            return
        slots = self.leaves.catalogue.slots(actions)
        if self._roots is not None:
            roots, rows = self._roots
            known = slots[slots < len(roots)]
            roots[known], rows[known] = 1.0, 0
        if self._centres is not None:
            stale, played = self._centres.stale, len(self.leaves.counts)
            stale.update(slots.tolist())
            if 4 * len(stale) > played:
                self._centres = None
            elif len(stale) > 32 + played // 256:
                self._renew(self._centres, np.array(sorted(stale)))

    def _renew(self, centres: Centres, slots: Ints) -> None:
        """Compute the rows of these slots, new ones among them in their order."""
        leaves, table = self.leaves, centres.rows
        v = centres.effects @ leaves.precision
        for start in range(0, len(slots), leaves.chunk):
            some = slots[start : start + leaves.chunk]
            S, c, parts = leaves.packing.unpack_rows(_gathered(leaves.S, some)), _gathered(leaves.c, some), []
            if leaves.played_weights is not None:
                b = _gathered(leaves.played_weights, some)
                parts = [b, _lengths(b)[:, None]]
                centres.weight = max(centres.weight, float(parts[1].max()))
                e = c + np.matmul(S, (b @ v)[:, :, None])[:, :, 0]
            else:
                e = c + S @ v[0]
            scale = np.sqrt(self.diagonal)
            centres.length = max(centres.length, float((_lengths(c / scale) + _lengths(e / scale)).max()))
            rows, old = np.hstack([e, *parts]), some < len(table)
            table.rows[some[old]] = rows[old]
            table.extend(rows[~old])
        centres.stale.clear()

    # ---- readers ------------------------------------------------------------------------------------------------------

    def upper(self, draw: Draw) -> Array:
        """(P,): what no score is above."""
        r = self._reach(draw.slots)
        upper = np.maximum(draw.z, 0.0)
        drift = float(np.sqrt(DRIFT)) * draw.size
        upper *= draw.length + drift if r is None else draw.length * r + drift
        if draw.mean is not None:
            upper += draw.mean
            return upper
        centres = self._centred()
        means = self._means(draw, r, centres)
        upper[: len(means)] += means  # new slots have no bound yet
        return _opened(upper, draw, centres)

    def upper_from_all(self, draw: Draw) -> Array:
        """The same from the scores of everybody, with nothing but rounding between the two."""
        leaves, centres = self.leaves, None
        if draw.mean is None:
            centres = self._centred()
            means, variances = leaf_scores.scores(leaves, draw.x[None], draw.m[None], draw.slots)
            mean, variance = means[0] + self._roundings(draw, centres), variances[0]
        else:
            table = leaves.S.rows if draw.slots is None else leaves.S.rows[draw.slots]
            mean, variance = draw.mean, leaves.packing.bilinear(draw.x, draw.x) @ table.T
        # a sum of n terms is off by n eps / 2 times that of their sizes, and sum_ij |x_i S_ij x_j| <= d |D^1/2 x|^2
        variance += np.copysign(4 * EPS * leaves.packing.size * leaves.dim * draw.size**2, draw.z)
        upper = np.sqrt(np.maximum(variance, 0.0, out=variance), out=variance)
        upper *= draw.z
        upper += mean
        return upper if centres is None else _opened(upper, draw, centres)

    def _means(self, draw: Draw, r: Array | None, centres: Centres) -> Array:
        """(P,): what no mean is above; |v_a| <= |b_a| |V| where v_a = sum_l b_al V_l."""
        leaves, d = self.leaves, self.leaves.dim
        V = (draw.effects - centres.effects) @ leaves.precision @ self.factor
        across, longest = V @ draw.y, draw.length * _spectral(V)
        table = (
            centres.rows.rows
            if draw.slots is None
            else centres.rows.rows[np.minimum(draw.slots, len(centres.rows) - 1)]
        )
        if leaves.played_weights is None:
            apart = max(0.0, 0.5 * (longest + float(across[0])))
            found = table @ draw.x
            found += apart if r is None else apart * r[: len(table)] ** 2
        elif r is None:
            found = table @ np.concatenate([draw.x, 0.5 * across, [0.5 * longest]])
        else:
            found = table[:, d:] @ np.append(0.5 * across, 0.5 * longest)
            np.maximum(found, 0.0, out=found)
            found *= r[: len(table)] ** 2
            found += table[:, :d] @ draw.x
        found += self._roundings(draw, centres)
        return found

    def _roundings(self, draw: Draw, centres: Centres) -> float:
        """How far rounding can move a mean, and what bounds it.

        An error of S_a of no more than t sqrt(Sigma_ii Sigma_jj) moves x^T S_a v by t d |D^1/2 x| |D^1/2 v| at most.
        """
        pulls = centres.weight * (self._pull(draw.pulled) + centres.pull)
        return self.leaves.dim * draw.size * (DRIFT * pulls + ROUNDING * centres.length)

    def _pull(self, pulled: Array) -> float:
        """|D^1/2 Sigma^-1 effects|, from the product of the last two."""
        return math.sqrt((pulled * pulled).sum(axis=0) @ self.diagonal)

    def _centred(self) -> Centres:
        """The centres, made anew where there are none."""
        centres = self._centres
        if centres is None:
            leaves = self.leaves
            found = effects(leaves, self.root.mean()).copy()  # the root learns in place
            weights = leaves.played_weights
            width = leaves.dim + (0 if weights is None else weights.rows.shape[1] + 1)
            table = GrowableArray((width,), by_column=True)
            centres = Centres(found, self._pull(found @ leaves.precision), table)
            self._renew(centres, np.arange(len(leaves.counts)))
            self._centres, self._next = centres, 2 * self._learned + 256
        return centres

    def _reach(self, slots: Ints | None) -> Array | None:
        """(P,): sqrt(r_a); None where all are 1."""
        held = self._roots
        if held is None:
            return None
        roots = held[0]
        new = len(self.leaves.counts) - len(roots)
        if slots is not None:
            return np.where(slots < len(roots), roots[np.minimum(slots, len(roots) - 1)], 1.0)
        return np.concatenate([roots, np.ones(new)]) if new else roots

    def tighten(self, slots: Ints) -> bool:
        """Make the bounds of these slots better, where that may help; whether anything was done."""
        done = False
        if self._centres is not None and self._learned >= self._next:  # the root has moved on
            self._centres, done = None, True
        leaves, played, held = self.leaves, len(self.leaves.counts), self._roots
        slots = slots[leaves.counts.rows[slots] >= leaves.dim]
        if not len(slots) or leaves.steep:
            return done
        roots, rows = np.ones(played), np.zeros(played, dtype=np.int64)
        if held is not None:
            before = len(held[0])
            roots[:before], rows[:before] = held
        slots = slots[leaves.counts.rows[slots] >= 2 * rows[slots]]
        if not len(slots):
            return done
        for start in range(0, len(slots), leaves.chunk):
            some = slots[start : start + leaves.chunk]
            A = leaves.packing.unpack_rows(_gathered(leaves.S, some)) @ leaves.precision
            mean = np.trace(A, axis1=1, axis2=2) / leaves.dim
            variance = np.einsum("nij,nji->n", A, A) / leaves.dim - mean**2
            top = mean + np.sqrt((leaves.dim - 1) * np.maximum(variance, 0.0))
            roots[some] = np.sqrt(np.minimum(top + DRIFT, 1.0))
        rows[slots] = leaves.counts.rows[slots]
        self._roots = roots, rows
        return True

    @property
    def nbytes(self) -> int:
        """Bytes of the derived tables."""
        roots, centres = self._roots, self._centres
        return (0 if roots is None else roots[0].nbytes + roots[1].nbytes) + (
            0 if centres is None else centres.rows.nbytes
        )


def effects(leaves: Leaves, m: Array) -> Array:
    """(L, d): W_a m = sum_l b_al effects_l, where it is such a sum."""
    return cast(Array, cast(Array, leaves.mixing.effects(m[None]))[0])


def _gathered(table: GrowableArray, slots: Ints) -> Array:
    """Some rows of a table that is stored by column, row after row: their sums then add in one order, however many there are."""
    return cast(Array, np.ascontiguousarray(table.rows.T[:, slots].T))


def _spectral(V: Array) -> float:
    """No less than the largest singular value of V (L, d): by Samuelson's inequality for the eigenvalues of V V^T."""
    gram = V @ V.T
    mean, number = float(gram.trace()) / len(gram), len(gram)
    spread = max(float(np.vdot(gram, gram)) / number - mean**2, 0.0)
    return math.sqrt(mean + math.sqrt((number - 1) * spread))


def _opened(upper: Array, draw: Draw, centres: Centres) -> Array:
    """Bounds, with none on those whose centres are out of date."""
    if centres.stale:
        some = np.array(sorted(centres.stale))
        upper[some if draw.slots is None else np.isin(draw.slots, some)] = np.inf
    return upper


def _lengths(rows: Array) -> Array:
    """(n,): of each row."""
    return cast(Array, np.sqrt(np.einsum("nd,nd->n", rows, rows)))


__all__ = ["Draw", "PlayedBounds"]
