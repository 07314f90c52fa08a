"""Actions whose features change: the belief becomes that of a prior with the new W_a, which has seen the same rows.

What a leaf knows given the root, S_a and c_a, does not depend on W_a. What it tells about W_a m is (D_a, e_a) (leaves.py), which
the root has as (W_a^T D_a W_a, W_a^T e_a). So of a played action that block alone is exchanged, and of one that nobody has played
nothing but its features. Where the root is known, c_a is all of the mean, and moves with W_a m.

Taking a block back costs digits where it was most of what is known: with w a bound on the prior variance of W_a m, before and
after, about w tr D_a x 1e-16 of the root. Up to `MOST` of it, summed over the actions, blocks are exchanged; beyond, the root is
made anew from its prior and from what all leaves tell, which costs what folding as many actions costs.

A likelihood that is not exact holds evidence (G_a, B_a) that was expanded around a prior of its own: where that has W_a in it,
the action's rows are fitted again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from manyarms._base import linalg, validate
from manyarms._base.typing import Array, Ints
from manyarms.beliefs import folding, limits
from manyarms.beliefs.leaves import Leaves
from manyarms.beliefs.roots import Root
from manyarms.errors import InvalidInput

if TYPE_CHECKING:
    from manyarms.beliefs.belief import Belief

MOST = 1e4  # what an exchange may take back, in units of the prior: good to 1e-12


def check(belief: Belief, actions: object, weights: object) -> tuple[Ints, Array]:
    """Rows of actions, and the features that they are to have: those that differ from what they have."""
    leaves = belief.leaves
    features = leaves.mixing.features
    if features is None or not belief.per_action:
        raise InvalidInput(
            "weights", validate.describe(weights), "an agent whose actions have mixing weights of their own"
        )
    if leaves.drifts:
        raise InvalidInput(
            "weights", validate.describe(weights), "nothing: with drift=Drift(...) weights cannot be changed"
        )
    ids = belief.catalogue.check("actions", actions, unique=True, retired=True)
    rows, number = leaves.mixing.check_rows(weights, None)
    if number != len(ids):
        raise InvalidInput("weights", f"{number} rows", f"{len(ids)}, one for each action")
    packed = None if leaves.shared else leaves.covariances.rows[ids]
    limits.check_new_actions(belief.root, leaves, rows, packed, belief.likelihood.noise_variance, belief.most_signal)
    rows = cast(Array, rows)
    other = np.flatnonzero((features[ids] != rows).any(axis=1))
    return ids[other], np.ascontiguousarray(rows[other])


def update(root: Root, leaves: Leaves, ids: Ints, rows: Array, *, exact: bool) -> Ints:
    """Give actions other features; the slots of those that have been played. exact: as is the likelihood."""
    mixing, slots = leaves.mixing, leaves.catalogue.slots(ids)
    played = slots >= 0
    where, mine = slots[played], ids[played]
    if root.known:
        centre = mixing.apply(mine, root.mean())
        _replace(leaves, ids, rows)
        moved = mixing.apply(mine, root.mean()) - centre
        for start in range(0, len(where), leaves.chunk):
            some = slice(start, start + leaves.chunk)
            leaves.c.rows[where[some]] += np.einsum("nij,nj->ni", leaves.pulls(where[some]), moved[some])
        return where
    energy = _energy(root, leaves, where)
    before = _told(root, leaves, where)
    _replace(leaves, ids, rows)
    energy += _energy(root, leaves, where)
    if not len(where):
        return where
    if energy > MOST and root.can_forget:
        make_anew(root, leaves, exact=exact)
        return where
    precision, information = (after - was for after, was in zip(_told(root, leaves, where), before, strict=True))
    if exact:
        root.exchange(precision, information)
    else:  # all evidence has come, and comes, in blocks
        root.learn(precision, information)
    return where


def _replace(leaves: Leaves, ids: Ints, rows: Array) -> None:
    """The features themselves, and what follows from them in the tables of the leaves."""
    leaves.mixing.replace(ids, rows, leaves.dim)
    leaves.catalogue.regroup(cast(Array, leaves.mixing.features))
    if leaves.played_weights is not None:
        slots = leaves.catalogue.slots(ids)
        leaves.played_weights.rows[slots[slots >= 0]] = rows[slots >= 0]


def _energy(root: Root, leaves: Leaves, slots: Ints) -> float:
    """The sum over these slots of w tr D_a, w = size(m) |W_a|^2."""
    found = 0.0
    for some in _chunks(leaves, slots):
        sizes = leaves.mixing.sizes(leaves.catalogue.played.rows[some], leaves.dim)
        found += float(sizes @ np.trace(leaves.told(some)[0], axis1=1, axis2=2))
    return root.size() * found


def _told(root: Root, leaves: Leaves, slots: Ints) -> tuple[Array, Array]:
    """What these slots tell the root: a precision, in its parts where it has several, and an information."""
    p = leaves.root_dim
    part = p // root.parts
    precision = np.zeros((p, p) if root.parts == 1 else (root.parts, part, part))
    information = np.zeros(p)
    for some in _chunks(leaves, slots):
        one, other = _gathered(root, leaves, some, *leaves.told(some))
        precision += one
        information += other
    return precision, information


def _gathered(root: Root, leaves: Leaves, slots: Ints, D: Array, e: Array) -> tuple[Array, Array]:
    ids, mixing = leaves.catalogue.played.rows[slots], leaves.mixing
    return mixing.gather(ids, D, e) if root.parts == 1 else mixing.gather_parts(ids, D, e, root.parts)


def make_anew(root: Root, leaves: Leaves, *, exact: bool) -> None:
    """The root from its prior, and from what all leaves tell: as sums where they are good to 1e-8, otherwise as rows."""
    root.forget()
    for some in _chunks(leaves, np.arange(len(leaves.counts))):
        D, e = leaves.told(some)
        ids = leaves.catalogue.played.rows[some]
        sizes = root.size() * leaves.mixing.sizes(ids, leaves.dim)
        heavy = (sizes * np.trace(D, axis1=1, axis2=2) > folding.MOST) & exact
        if not heavy.all():
            root.learn(*_gathered(root, leaves, some[~heavy], D[~heavy], e[~heavy]))
        if heavy.any():
            rows, values = linalg.rows_of_sums(D[heavy], e[heavy])
            lifted = leaves.mixing.lift_all(np.repeat(ids[heavy], leaves.dim), rows.reshape(-1, leaves.dim))
            root.learn_rows(lifted, values.ravel())


def _chunks(leaves: Leaves, slots: Ints) -> list[Ints]:
    return [slots[start : start + leaves.chunk] for start in range(0, len(slots), leaves.chunk)]


__all__ = ["MOST", "check", "make_anew", "update"]
