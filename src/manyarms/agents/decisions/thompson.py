"""Thompson sampling."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import Array, Ints
from manyarms.agents.decisions.base import DECISIONS, Decision, Pick, Propensity, in_chunks
from manyarms.agents.decisions.uniform import pick_uniformly
from manyarms.beliefs import batches
from manyarms.beliefs.actions.catalogue import Offer
from manyarms.beliefs.actions.members import actions_at
from manyarms.beliefs.belief import Belief
from manyarms.beliefs.contests import LARGEST_K

SMALLEST = float(np.finfo(np.float64).tiny)


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
            scores, roots = belief.draw_scores(some, offer, rng, best=k)
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
                    picks.append(best_of(row, belief.best_unplayed(x, root, offer, floor, k, rng), k))
        return picks

    def choose(self, belief: Belief, X: Array, offer: Offer, k: int, rng: np.random.Generator) -> Ints:
        """For many contexts at once, where the belief can (beliefs/batches.py); the law is that of `pick`."""
        if len(X) == 1 or X.ndim != 2 or not batches.possible(belief):
            return super().choose(belief, X, offer, k, rng)
        ids, rest = np.empty((len(X), k), dtype=np.int64), np.ones(len(X), dtype=np.bool_)
        some = np.flatnonzero(X.any(axis=1))  # with zeros all scores are equal
        if len(some):
            places, scores = batches.best_of_each(belief, X if len(some) == len(X) else X[some], offer, k, rng)
            ids[some] = actions_at(offer, places, rng)
            rest[some] = ~np.isfinite(scores[:, -1])  # and where no float holds them
        if rest.any():
            ids[rest] = super().choose(belief, X[rest], offer, k, rng)
        return ids

    def propensity_draws(self, belief: Belief) -> int:
        """Few, as each is a chance and not a yes or no (docs/propensities.md)."""
        return belief.propensity_draws

    def propensity(
        self, belief: Belief, x: Array, action: int, offer: Offer, k: int, draws: int, rng: np.random.Generator
    ) -> Propensity:
        """The mean over `draws` of the action's chance given what is drawn of the parameters that actions share.

        It has no bias, and is positive wherever each draw leaves the action a chance: always with a parameter for each action.
        A probability below the smallest normal float is given as that, and a mean above 1 (draws are weighted) as 1, which is a
        bias where few draws are taken of a probability near 1.
        """
        place = offer.place_of(action)
        if place is None:
            return Propensity(0.0, 0.0, exact=True)
        if not x.any():  # all scores are equal
            return Propensity(1.0 / offer.total, k / offer.total, exact=True)
        if offer.total == 1:
            return Propensity(1.0, 1.0, exact=True)
        if k > LARGEST_K:
            return super().propensity(belief, x, action, offer, k, draws, rng)
        validate.room("draws", draws, 64 + 8 * belief.root.dim + (8 * len(x) if x.ndim > 1 else 0), "draws")
        chances = belief.log_chances(x, offer, place, k, draws, rng)
        value, error = _mean(chances.first, chances.strata)
        inclusion, inclusion_error = (value, error) if k == 1 else _mean(chances.inside, chances.strata)
        if k == offer.total:
            inclusion, inclusion_error = 1.0, 0.0
        return Propensity(value, max(value, inclusion), False, draws, error, inclusion_error)


def _mean(logs: Array, strata: int) -> tuple[float, float]:
    """The mean of strata of equal probability, from logarithms, and its standard error: inf from less than two draws in each."""
    top = float(logs.max())
    if top == -np.inf:  # never a chance: it is known to be small, no more
        return 0.0, 1.0 / len(logs) if len(logs) > 1 else np.inf
    parts = np.array_split(np.exp(logs - top), strata)
    mean = float(np.mean([part.mean() for part in parts]))
    spread = sum(float(part.var(ddof=1)) / len(part) if len(part) > 1 else np.inf for part in parts)
    scale = float(np.exp(top))
    error = scale * float(np.sqrt(spread)) / strata if np.isfinite(spread) else np.inf
    if scale * mean < SMALLEST:  # less than a float holds
        return SMALLEST, SMALLEST
    return min(scale * mean, 1.0), error


def _best_one(top: int, floor: float, found: tuple[Array, Ints]) -> Pick:
    """The best played action, which scores `floor`, or the best of what was found among the unplayed, if that is better."""
    scores, units = found
    if len(scores):
        best = int(scores.argmax())
        if scores[best] > floor or top < 0:
            return Pick(np.array([False]), units[best : best + 1], uniform=True)
    return Pick(np.array([True]), np.array([top]), uniform=True)


def best_of(played: Array, found: tuple[Array, Ints], k: int) -> Pick:
    """The best k among the played scores and what was found among the unplayed, best first."""
    scores, units = found
    allowed = np.flatnonzero(played > -np.inf)
    if len(allowed) > k:
        allowed = allowed[np.argpartition(-played[allowed], k - 1)[:k]]
    everything = np.concatenate([played[allowed], scores])
    order = np.argsort(-everything, kind="stable")[:k]
    return Pick(order < len(allowed), np.concatenate([allowed, units])[order], uniform=True)


__all__ = ["Thompson", "best_of"]
