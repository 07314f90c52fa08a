"""A belief seen through listed actions, each with a context of its own.

    score of action a = z_a^T theta_a,    z_a the features of this action in this round

With one context for all, actions that nobody has played and that have the same prior are interchangeable. With a context each
they are not: every listed action has a place of its own in the offer and is scored, whether or not it was ever played. To a
decision that is an offer in which all actions are 'played', and so every rule works as it is; its contexts X are (n, m, d).
"""

from __future__ import annotations

import numpy as np

from manyarms._base.typing import Array, Ints
from manyarms.beliefs.actions.catalogue import ActionCatalogue, Offer, Place
from manyarms.beliefs.belief import Belief
from manyarms.beliefs.chances import Chances
from manyarms.errors import InvalidInput

TINY = 1e-300  # breaks ties between scores of exactly 0, and is below every other score


class ListedOffer(Offer):
    """An offer of listed actions, all in places of their own, in the order of their contexts."""

    def __init__(self, catalogue: ActionCatalogue, ids: Ints) -> None:
        none = np.empty(0, dtype=np.int64)
        super().__init__(catalogue, np.arange(len(ids)), none, none, none, len(ids))
        self.ids = ids

    def ids_of_slots(self) -> Ints:
        return self.ids

    def place_of(self, action: int) -> Place | None:
        where = np.flatnonzero(self.ids == action)
        return Place(True, int(where[0])) if len(where) else None


Listed = tuple["ListedActions", Array, ListedOffer]
"""A view, the contexts of its actions, and the offer."""


class ListedActions(Belief):
    """What decisions ask of a belief, answered for the listed actions `ids` (m,) with contexts X (n, m, d)."""

    def __init__(self, belief: Belief, ids: Ints) -> None:
        # a view: the parts are the belief's own
        self.belief, self.ids = belief, ids
        self.root, self.leaves, self.likelihood, self.unplayed = (
            belief.root, belief.leaves, belief.likelihood, belief.unplayed,
        )  # fmt: skip
        self.memory = belief.memory

    @property
    def catalogue(self) -> ActionCatalogue:
        return self.belief.catalogue

    def draw_scores(
        self, X: Array, offer: Offer, rng: np.random.Generator, best: int | None = None
    ) -> tuple[Array, Array]:
        """A draw of the posterior for each row of X: scores (n, m), and nothing for the unplayed."""
        scores = self.belief.draw_listed(X, self.ids, rng)
        zeros = ~X.any(axis=2)
        if zeros.any():  # a context of zeros scores 0 whatever theta is: of several, any is as good
            scores[zeros] = TINY * rng.random(int(zeros.sum()))
        return scores, np.empty((len(X), 0))

    def best_unplayed(
        self, x: Array, root: Array, offer: Offer, floor: float, k: int, rng: np.random.Generator
    ) -> tuple[Array, Ints]:
        """Nothing: everything offered is listed."""
        return np.empty(0), np.empty(0, dtype=np.int64)

    def log_chances(self, x: Array, offer: Offer, place: Place, k: int, n: int, rng: np.random.Generator) -> Chances:
        """The same for one of the listed actions, x being their contexts (m, d)."""
        return self.belief.listed_log_chances(x, self.ids, place.position, k, n, rng)

    @property
    def propensity_draws(self) -> int:
        return self.belief.propensity_draws

    def played_moments(self, X: Array, offer: Offer, *, spread: bool) -> tuple[Array, Array]:
        """Marginal mean and, if `spread`, variance (n, m)."""
        return self.belief.listed_moments(X, self.ids, spread=spread)

    def unplayed_moments(self, x: Array, offer: Offer, *, spread: bool) -> tuple[Array, Array]:
        """Nothing: everything offered is listed."""
        return np.empty(0), np.empty(0)


def view_of(belief: Belief, Z: Array, listed: tuple[Ints, Ints, int], *, whole: bool) -> Listed:
    """The belief through the actions offered, their contexts (n, m, d) and the offer.

    Z (n, rows, d): row i belongs to action i of the whole catalogue (`whole`), or to candidates[i]. listed: what
    `catalogue.lists` says of the candidates.
    """
    catalogue = belief.catalogue
    ids, places, number = listed
    places, number = (ids, catalogue.size) if whole else (places, number)
    if Z.shape[1] != number:
        whose = "one for every action, retired ones too" if whole else "one for each candidate"
        raise InvalidInput("action_contexts", f"contexts of {Z.shape[1]} actions", f"{number}, {whose}")
    return ListedActions(belief, ids), Z if len(ids) == number else Z[:, places], ListedOffer(catalogue, ids)


__all__ = ["Listed", "ListedActions", "ListedOffer", "view_of"]
