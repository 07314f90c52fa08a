"""Actions with centres of their own: theta_a | m_a ~ N(m_a, Sigma_1), the centres independent draws of one law.

The leaves are the same as ever. What a leaf would tell a root, it tells its own centre,

    precision  Sigma_1^-1 - Sigma_1^-1 S_a Sigma_1^-1 = Sigma_1^-1 S_a G_a,    information  Sigma_1^-1 c_a        (leaves.py)

and given the centre theta_a ~ N(c_a + S_a Sigma_1^-1 m_a, S_a). Actions that nobody has played are interchangeable, one unit.
Kinds of this belief differ in the law of the centres and in its posterior: `IndependentChains`, `ParticleBelief`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

import numpy as np

from manyarms._base import validate
from manyarms._base.explanation import Explanation
from manyarms._base.typing import AnyArray, Array, Ints
from manyarms.beliefs import chances, explaining, leaf_scores, saved_state
from manyarms.beliefs.actions.catalogue import Offer, Place
from manyarms.beliefs.belief import Belief, noisy
from manyarms.beliefs.contests import Cloud, Contest, Piece, binned, rivals
from manyarms.beliefs.growable import GrowableArray
from manyarms.beliefs.leaves import Leaves
from manyarms.beliefs.likelihoods.base import Likelihood
from manyarms.beliefs.mixing import IdentityMixing
from manyarms.beliefs.roots import KnownRoot
from manyarms.errors import InvalidInput

CENTRES = 1 << 15  # of unplayed actions, drawn at a time


class _NoRoot(KnownRoot):
    """Nothing is shared: evidence goes to the centre of the action itself."""

    known = False

    def gaussian_prior(self) -> None:
        return None


class IndependentCentres(Belief):
    """What both kinds share: rows go to leaves, evidence to the centres of the actions touched, draws of centres into scores."""

    def __init__(self, leaves: Leaves, likelihood: Likelihood, tables: dict[str, GrowableArray]) -> None:
        """`tables`: what is known of the centres of the played actions, by slot."""
        super().__init__(_NoRoot(np.zeros(leaves.dim)), leaves, likelihood)
        self._tables = tables

    # ---- what a kind must say

    @abstractmethod
    def _learn_centres(self, slots: Ints, G: Array, B: Array) -> None:
        """Write the tables of these slots anew, from the evidence (n, d, d), (n, d) about their centres."""

    @abstractmethod
    def _draw_centres(self, slots: Ints, rng: np.random.Generator) -> Array:
        """(n, d): a draw of the centre of each of these slots from its posterior."""

    @abstractmethod
    def _mean_centres(self, slots: Ints) -> Array:
        """(n, d): the centres' posterior means, or what stands for them."""

    @abstractmethod
    def _draw_prior_centres(self, n: int, rng: np.random.Generator) -> Array:
        """(n, d): draws of the centres of unplayed actions."""

    @abstractmethod
    def _centre_moments(self) -> tuple[Array, Array]:
        """Mean (d,) and covariance (d, d) of a centre before any evidence."""

    @abstractmethod
    def _draw_best_unplayed(self, x: Array, sd: float, count: int, k: int, rng: np.random.Generator) -> Array:
        """At least the min(k, count) largest of `count` independent scores x^T m + sd z of unplayed actions."""

    def _unplayed_rivals(self, x: Array, sd: float, count: int, rng: np.random.Generator) -> tuple[Piece, Cloud | None]:
        """`count` unplayed actions as rivals, given draws of their centres; or as a cloud, the centres integrated out."""
        parts = [self._draw_prior_centres(min(CENTRES, count - i), rng) @ x for i in range(0, count, CENTRES)]
        means = np.concatenate([np.empty(0), *parts])
        return binned(means, np.array([sd]), np.ones(len(means))), None

    # ---- learning

    def _learned(self, actions: Ints) -> None:
        """The centres of these actions are updated."""
        leaves, slots = self.leaves, self.catalogue.slots(np.unique(actions))
        for table in self._tables.values():
            new = len(leaves.counts) - len(table)
            if new:
                table.extend(np.zeros((new, *table.rows.shape[1:]), dtype=table.rows.dtype))
        for start in range(0, len(slots), leaves.chunk):
            some = slots[start : start + leaves.chunk]
            self._learn_centres(some, *leaves.told(some))

    # ---- what decisions ask

    def _slots(self, offer: Offer) -> Ints:
        return np.arange(len(self.leaves.counts)) if offer.slots is None else offer.slots

    def draw_scores(
        self, X: Array, offer: Offer, rng: np.random.Generator, best: int | None = None
    ) -> tuple[Array, Array]:
        nothing, slots = np.zeros((len(X), 1)), self._slots(offer)
        if not len(slots):
            return np.empty((len(X), 0)), nothing
        mean, variance = leaf_scores.scores(self.leaves, X, None, offer.slots)
        for i, x in enumerate(X):
            mean[i] += np.einsum("ad,ad->a", self.leaves.pulled(x, slots), self._draw_centres(slots, rng))
        return noisy(mean, variance, rng), nothing

    def best_unplayed(
        self, x: Array, root: Array, offer: Offer, floor: float, k: int, rng: np.random.Generator
    ) -> tuple[Array, Ints]:
        count, sd = offer.fresh, self.leaves.common_spread(x)
        scores = self._draw_best_unplayed(x, sd, count, min(k, count), rng) if count else np.empty(0)
        scores = largest(scores[scores > floor], k)
        return scores, np.zeros(len(scores), dtype=np.int64)  # all unplayed actions are one unit

    def log_chances(
        self, x: Array, offer: Offer, place: Place, k: int, n: int, rng: np.random.Generator
    ) -> chances.Chances:
        """The same, given n draws of all centres."""
        slots = self._slots(offer)
        at, variance = leaf_scores.scores(self.leaves, x[None], None, offer.slots)
        pulled, sd = self.leaves.pulled(x, slots), np.sqrt(np.maximum(variance[0], 0.0))
        keep = np.ones(len(slots), dtype=bool)
        if offer.slots is None:
            keep[offer.barred] = False
        keep[place.position if place.played else slice(0)] = False
        fresh, unplayed_sd = offer.fresh - (not place.played), self.leaves.common_spread(x)

        def contests() -> Iterator[Contest]:
            for _ in range(n):
                mean = at[0] + np.einsum("ad,ad->a", pulled, self._draw_centres(slots, rng)) if len(slots) else at[0]
                if place.played:
                    own = float(mean[place.position]), float(sd[place.position])
                else:
                    own = float(self._draw_prior_centres(1, rng)[0] @ x), unplayed_sd
                rest, cloud = self._unplayed_rivals(x, unplayed_sd, fresh, rng)
                yield Contest(*own, rivals([(mean[keep], sd[keep], np.ones(int(keep.sum()))), rest], cloud))

        return chances.of_contests(contests(), k, n, rng)

    def listed_given_draws(self, Z: Array, ids: Ints, rng: np.random.Generator) -> tuple[Array, Array]:
        """Played actions draw their centres from the posterior, the others from the prior; each context has draws of its own."""

        def centres(_: int, some: Ints) -> Array:
            slots, out = self.catalogue.slots(some), np.empty((len(some), self.dim))
            played = slots >= 0
            if played.any():
                out[played] = self._draw_centres(slots[played], rng)
            if not played.all():
                out[~played] = self._draw_prior_centres(int((~played).sum()), rng)
            return out

        return leaf_scores.listed_scores(self.leaves, Z, ids, None, centres)

    def listed_moments(self, Z: Array, ids: Ints, *, spread: bool) -> tuple[Array, Array]:
        """Means as `played_moments` and `unplayed_moments` have them; variances given the centres."""

        def centres(_: int, some: Ints) -> Array:
            slots = self.catalogue.slots(some)
            out = np.tile(self._centre_moments()[0], (len(some), 1))
            out[slots >= 0] = self._mean_centres(slots[slots >= 0])
            return out

        return leaf_scores.listed_scores(self.leaves, Z, ids, None, centres)

    def _explained(self, x: Array, action: int) -> Explanation:
        mean, covariance = self.action_posterior(np.array([action]))
        return explaining.of_moments(mean[0], covariance[0], x, self._score_is)

    def _without_own_rows(self, slots: Ints) -> tuple[Array, Array]:
        """The marginal prior, the same for all: nothing is shared, so that a cavity is no more than that."""
        mean, covariance = self._centre_moments()
        shape = (len(slots), self.dim)
        return np.broadcast_to(mean, shape), np.broadcast_to(covariance + self.leaves.covariance, (*shape, self.dim))

    # ---- state

    def _remembers_root(self) -> bool:
        return False

    def _table_arrays(self) -> dict[str, AnyArray]:
        return {name: table.rows for name, table in self._tables.items()}

    def _restore(self, arrays: dict[str, AnyArray], tables: dict[str, AnyArray]) -> None:
        """Take over the rows of a likelihood that keeps them, and the tables."""
        self._restore_rows(arrays)
        for name, table in self._tables.items():
            shape, dtype = (len(self.leaves.counts), *table.rows.shape[1:]), table.rows.dtype
            table.extend(saved_state.table(tables, name, shape, dtype))

    @property
    def nbytes(self) -> int:
        """Bytes of everything it holds."""
        return super().nbytes + sum(table.nbytes for table in self._tables.values())


def identical_leaves(leaves: object) -> Leaves:
    """Leaves whose actions differ in nothing before they are played, or an error."""
    if not isinstance(leaves, Leaves) or type(leaves.mixing) is not IdentityMixing or not leaves.shared:
        raise InvalidInput("leaves", validate.describe(leaves), "Leaves(IdentityMixing(), one covariance, K)")
    return leaves


def largest(scores: Array, k: int) -> Array:
    """The k largest scores, or all where there are no more."""
    return scores if len(scores) <= k else -np.partition(-scores, k - 1)[:k]


__all__ = ["IndependentCentres", "identical_leaves", "largest"]
