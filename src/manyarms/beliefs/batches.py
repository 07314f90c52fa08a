"""Thompson sampling in many contexts at once: a draw of the posterior for each, and the best k of it.

What `Belief.draw_scores` and `best_unplayed` do for one context is here done for a slice of contexts: products of matrices with
matrices in place of vectors, read from the cache, and noise for those actions alone that can still win (actions/group_draws.py).
Each context has a root and noise of its own, so that n contexts have the law of n single decisions. Slices and tiles follow from
the sizes of the belief, and memory is bounded by them, whatever n is.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from manyarms._base.typing import Array, Ints
from manyarms.beliefs import leaf_scores
from manyarms.beliefs.actions import batch_search, search
from manyarms.beliefs.actions.best_of_each import BestOfEach
from manyarms.beliefs.actions.blocks import BLOCK
from manyarms.beliefs.actions.catalogue import Offer
from manyarms.beliefs.actions.group_draws import draw_group
from manyarms.beliefs.belief import Belief
from manyarms.beliefs.leaves import Leaves

SLICE = 1024  # contexts at a time, at most
TILE = 512  # played actions that are a group, at most, and at least
LEAST_TILE = 16
SCORES = 1 << 17  # of a group in all contexts: what stays in the cache
NUMBERS = 1 << 20  # in coefficients of a slice, and in the tables that are made for a tile

ASKED = ("draw_scores", "best_unplayed", "played_scores")


def possible(belief: Belief) -> bool:
    """Whether a belief answers what decisions ask as every two-level belief does; one with answers of its own is asked singly."""
    return all(getattr(type(belief), name) is getattr(Belief, name) for name in ASKED)


def best_of_each(belief: Belief, X: Array, offer: Offer, k: int, rng: np.random.Generator) -> tuple[Ints, Array]:
    """The places (n, k) of the best k of a draw for each context (best_of_each.py), best first, and their scores.

    Contexts in which less than k were found, which only scores that are no numbers can cause, have a last score of -inf.
    """
    places, scores = np.empty((len(X), k), dtype=np.int64), np.empty((len(X), k))
    leaves = belief.leaves
    features = leaves.mixing.features
    terms = (leaves.dim**2 if leaves.drifts else leaves.packing.size) * (
        1 if belief.root.known or features is None else 1 + features.shape[1]
    )
    blocks = len(leaves.catalogue.units.counts) // BLOCK
    step = min(SLICE, max(1, NUMBERS // max(terms, belief.root.dim, blocks, 16 * k)))
    for start in range(0, len(X), step):
        some = slice(start, start + step)
        best = BestOfEach(len(X[some]), k)
        M = belief.root.draw(rng, len(X[some]))
        first = leaves.catalogue.units.single  # a single draw, which raises the floor for all that were played
        if first:
            _unplayed(belief, best, X[some], M, offer, rng)
        _played(belief, best, X[some], M, offer, rng)
        if not first:
            _unplayed(belief, best, X[some], M, offer, rng)
        places[some], scores[some] = best.places, best.scores
    return places, scores


# ---- played actions ---------------------------------------------------------------------------------------------------


def _played(belief: Belief, best: BestOfEach, X: Array, M: Array, offer: Offer, rng: np.random.Generator) -> None:
    leaves = belief.leaves
    number = len(leaves.counts) if offer.slots is None else len(offer.slots)
    if not number:
        return
    score = PlayedScores(leaves, X, None if belief.root.known else M)
    for start in range(0, number, score.width):
        stop = min(start + score.width, number)
        slots: slice | Ints = slice(start, stop) if offer.slots is None else offer.slots[start:stop]
        mean, variance = score(slots)
        if offer.slots is None and len(offer.barred):
            low, high = np.searchsorted(offer.barred, (start, stop))
            mean[:, offer.barred[low:high] - start] = -np.inf
        np.maximum(variance, 0.0, out=variance)
        draw_group(best, mean, np.sqrt(variance, out=variance), None, np.arange(start, stop), rng)


class PlayedScores:
    """Means and variances of played actions' scores, given the roots: `leaf_scores.scores`, some actions at a time.

    With effects psi_l, the mean is sum_l b_al (x^T S_a Sigma^-1 psi_l) + x^T c_a. The products b_al S_a and c_a are put into one
    table of the tile, whose product with the coefficients of all contexts is the mean. Where actions drift, A_a has the place of
    S_a Sigma^-1, d^2 numbers of which none follows from another.
    """

    def __init__(self, leaves: Leaves, X: Array, M: Array | None) -> None:
        """Contexts X (n, d) and roots M (n, p) (None: known)."""
        self._leaves, self._X, self._M = leaves, X, M
        pack, n = leaves.packing, len(X)
        self._quadratic = pack.bilinear(X, X)
        simple = leaves.drifts or (leaves.shared and not leaves.steep)
        effects = leaves.mixing.effects(M) if M is not None and simple else None
        self._one_by_one = M is not None and effects is None
        self._linear = X
        if effects is not None:
            if leaves.drifts:
                coefficients = X[:, None, :, None] * effects[:, :, None, :]
            else:
                coefficients = pack.bilinear(X[:, None, :], effects @ leaves.precision)
            self._linear = np.concatenate([coefficients.reshape(n, -1), X], axis=1)
        self.width = max(LEAST_TILE, min(TILE, SCORES // n, NUMBERS // self._linear.shape[1]))

    def __call__(self, slots: slice | Ints) -> tuple[Array, Array]:
        """(n, P) both, for these slots."""
        leaves = self._leaves
        where = np.arange(len(leaves.counts))[slots] if isinstance(slots, slice) else slots
        if self._one_by_one:
            return leaf_scores.scores(leaves, self._X, self._M, where)
        if leaves.drifts:
            S, c = (table.T for table in leaves.posterior(where))
            pulls = S if self._M is None else leaves.pulls(where).reshape(len(where), -1).T
        else:
            S, c = leaves.S.rows[slots].T, leaves.c.rows[slots].T
            pulls = S
        if self._M is None:
            table = c
        elif leaves.played_weights is None:
            table = np.concatenate([pulls, c])
        else:
            weights = leaves.played_weights.rows[slots].T
            table = np.concatenate([(weights[:, None, :] * pulls).reshape(-1, c.shape[1]), c])
        return self._linear @ table, self._quadratic @ S


# ---- unplayed actions -------------------------------------------------------------------------------------------------


def _unplayed(belief: Belief, best: BestOfEach, X: Array, M: Array, offer: Offer, rng: np.random.Generator) -> None:
    if not offer.fresh:
        return
    leaves, units = belief.leaves, belief.leaves.catalogue.units
    C = leaves.mixing.coefficients(X, M)
    sd = np.sqrt(np.einsum("nd,nd->n", X @ leaves.covariance, X)) if leaves.shared else np.empty(0)
    if units.single:
        batch_search.one_unit(best, C[:, 0], sd, int(offer.counts[0]), rng)
    elif offer.units is None and leaves.shared and len(units.counts) > search.FEW:
        blocks = units.blocks(cast(Array, leaves.mixing.features))
        sizes = blocks.sizes_without(offer.withheld)
        rows, represent = cast(Array, leaves.mixing.features), units.represent
        batch_search.open_blocks(best, blocks, C, sd, offer.counts, sizes, lambda some: rows[represent[some]], rng)
    else:
        _units_in_tiles(belief, best, X, C, sd, offer, rng)


def _units_in_tiles(
    belief: Belief, best: BestOfEach, X: Array, C: Array, sd: Array, offer: Offer, rng: np.random.Generator
) -> None:
    leaves, units = belief.leaves, belief.leaves.catalogue.units
    features = leaves.mixing.features
    quadratic = None if leaves.shared else leaves.packing.bilinear(X, X)

    def moments(some: slice) -> tuple[Array, Array]:
        actions = units.represent[some] if offer.units is None else units.represent[offer.units[some]]
        mean = np.repeat(C[:, :1], len(actions), axis=1) if features is None else C @ features[actions].T
        if quadratic is None:
            return mean, sd[:, None]
        return mean, np.sqrt(np.maximum(quadratic @ leaves.covariances.rows[actions].T, 0.0))

    batch_search.tiles(best, moments, offer.counts, rng)


__all__ = ["PlayedScores", "best_of_each", "possible"]
