"""Rewards that were learned and turn out to be others: what was learned as `was` is replaced by `now`, and nothing else.

Linear rewards enter a belief through B_a = sum r x / sigma^2 alone; G_a, and with it every covariance and every precision, does
not depend on them. So a replaced reward takes nothing back: with b = x (now - was) / sigma^2,

    B_a <- B_a + b,    c_a <- c_a + S_a b,    information of the root <- information + W_a^T Sigma_a^-1 S_a b        (leaves.py)

whatever the root makes of its information, and whatever was learned in between. The posterior is that of the other rewards, for
every root that follows from the precision and the information it was told (all of them: known, Gaussian, mean-field, blockwise,
chains by any rule) and for centres that follow from what their leaf tells.

What a row moves, S_a x / sigma^2, is made of S_a as it is now, whose roundings it has; with v = tr S_a, and the prior variance
of W_a m with it where the root is not known, about

    2e-16 x^T x v / sigma^2        of (now - was) / |x|

which is nothing, unless the noise is far below what is still open about the action. Rows that come are learned without that loss;
of a row that is gone, sums and factors hold no more. Beyond `MOST`, four digits, replacing is refused.

A likelihood that is not exact keeps the rows of its actions: the reward is replaced there and the action is fitted again.
"""

from __future__ import annotations

import numpy as np

from manyarms._base import linalg
from manyarms._base.typing import Array, Ints
from manyarms.beliefs.growable import GrowableArray
from manyarms.beliefs.leaves import Leaves
from manyarms.beliefs.roots import Root
from manyarms.errors import InvalidInput

MOST = 1e-4 / float(np.finfo(np.float64).eps)  # x^T x v / sigma^2 at which a replaced reward has four digits

Corrections = tuple[
    Array, Ints, Array, Array
]  # contexts (n, d), actions (n,), rewards as they were (n,) and are now (n,)


def check_counts(leaves: Leaves, actions: Ints, per_action: bool) -> None:
    """Refuse more replacements than there are rewards: which ones they were, sums do not tell, but how many."""
    touched, asked = np.unique(actions, return_counts=True)
    slots = leaves.catalogue.slots(touched)
    seen = np.zeros(len(touched), dtype=np.int64)
    seen[slots >= 0] = leaves.counts.rows[slots[slots >= 0]]
    short = np.flatnonzero(asked > seen)
    if len(short):
        first = int(short[0])
        whose = f"action {touched[first]}" if per_action else "all actions"
        came = f"{asked[first]} rewards of {whose} to be replaced, of which {seen[first]} were observed"
        raise InvalidInput("action", came, "rewards that were observed before")


def check_digits(root: Root, leaves: Leaves, actions: Ints, X: Array, noise_variance: float) -> None:
    """Refuse rows that the sums of their actions, all of them played, hold too few digits of."""
    open_variances = leaves.packing.trace(leaves.S.rows[leaves.catalogue.slots(actions)])
    if not root.known:
        open_variances = open_variances + root.size() * leaves.mixing.sizes(actions, leaves.dim)
    ratio = float((np.einsum("nd,nd->n", X, X) * open_variances).max()) / noise_variance
    if ratio > MOST:
        came = f"rewards whose noise is {1 / np.sqrt(ratio):.3g} of the standard deviation that is still open"
        raise InvalidInput("was", came, f"at least {1 / np.sqrt(MOST):.3g} of it: no digits of such a row are kept")


def correct_sums(root: Root, leaves: Leaves, slots: Ints, X: Array, changes: Array) -> None:
    """Rewards of linear rows, contexts X (n, d) of these slots (n,), change by `changes` (n,) times the noise's variance."""
    order = np.argsort(slots, kind="stable")
    firsts = linalg.first_rows(slots[order])
    b = np.add.reduceat(X[order] * changes[order, None], firsts, axis=0)
    information = leaves.shift(slots[order[firsts]], b, root.mean() if root.known else None)
    if information is not None:
        root.inform(information)


def replaced(
    rows: list[tuple[GrowableArray, GrowableArray]], slots: Ints, X: Array, was: Array, now: Array
) -> dict[int, Array]:
    """The rewards of these slots, by slot, once each `was` of its context is `now`, one after the other.

    rows: contexts and rewards by slot. Of several rows alike the last is taken.
    """
    out: dict[int, Array] = {}
    for slot, x, before, after in zip(slots.tolist(), X, was.tolist(), now.tolist(), strict=True):
        contexts, seen = rows[slot]
        if slot not in out:
            out[slot] = seen.rows.copy()
        at = np.flatnonzero(out[slot] == before)
        at = at[(contexts.rows[at] == x).all(axis=1)]
        if not len(at):
            came = f"{before:g}, which this action was not observed to have in this context"
            raise InvalidInput("was", came, "the reward that was given to observe, or that replaced it since")
        out[slot][at[-1]] = after
    return out


__all__ = ["MOST", "Corrections", "check_counts", "check_digits", "correct_sums", "replaced"]
