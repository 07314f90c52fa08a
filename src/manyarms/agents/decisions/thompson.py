"""Thompson sampling."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyarms._base.typing import Array, Ints
from manyarms.agents.decisions.base import DECISIONS, Decision, Pick, in_chunks
from manyarms.agents.decisions.uniform import pick_uniformly
from manyarms.beliefs.actions.catalogue import Offer
from manyarms.beliefs.belief import Belief


@DECISIONS.register("thompson")
@dataclass(frozen=True)
class Thompson(Decision):
    """Draw the parameters from the posterior and take the best (thesis, Section 3.2).

    Scores are drawn instead of parameters: given the root, x^T theta_a is a scalar Gaussian, independent over actions.
    Every context has its own draw of the root and of the scores.
    """

    def pick(self, belief: Belief, X: Array, offer: Offer, k: int, rng: np.random.Generator) -> list[Pick]:
        number = len(offer.ids_of_slots())
        picks: list[Pick] = []
        for some in in_chunks(X, number):
            scores, roots = belief.draw_scores(some, offer, rng)
            if offer.slots is None and len(offer.barred):
                scores[:, offer.barred] = -np.inf
            for x, root, row in zip(some, roots, scores, strict=True):
                if not x.any():
                    picks.append(pick_uniformly(offer, k, rng))
                    continue
                if k == 1:
                    top = int(row.argmax()) if number else -1
                    floor = float(row[top]) if number else -np.inf
                    picks.append(_best_one(top, floor, belief.best_unplayed(x, root, offer, floor, 1, rng)))
                else:
                    floor = float(-np.partition(-row, k - 1)[k - 1]) if number >= k else -np.inf
                    picks.append(_best_of(row, belief.best_unplayed(x, root, offer, floor, k, rng), k))
        return picks


def _best_one(top: int, floor: float, found: tuple[Array, Ints]) -> Pick:
    """The best played action, which scores `floor`, or the best of what was found among the unplayed, if that is better."""
    scores, units = found
    if len(scores):
        best = int(scores.argmax())
        if scores[best] > floor or top < 0:
            return Pick(np.array([False]), units[best : best + 1], uniform=True)
    return Pick(np.array([True]), np.array([top]), uniform=True)


def _best_of(played: Array, found: tuple[Array, Ints], k: int) -> Pick:
    """The best k among the played scores and what was found among the unplayed, best first."""
    scores, units = found
    allowed = np.flatnonzero(played > -np.inf)
    if len(allowed) > k:
        allowed = allowed[np.argpartition(-played[allowed], k - 1)[:k]]
    everything = np.concatenate([played[allowed], scores])
    order = np.argsort(-everything, kind="stable")[:k]
    return Pick(order < len(allowed), np.concatenate([allowed, units])[order], uniform=True)


__all__ = ["Thompson"]
