"""Thompson sampling from a posterior that is narrower than the belief's: less is explored."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import Array, Bools, Ints
from manyarms.agents.decisions.base import DECISIONS, Decision, Pick, in_chunks
from manyarms.agents.decisions.optimistic import kth_largest
from manyarms.agents.decisions.thompson import best_of
from manyarms.agents.decisions.uniform import pick_uniformly
from manyarms.beliefs.actions.catalogue import Offer
from manyarms.beliefs.belief import Belief

SMALLEST, LARGEST = 1e-6, 1e6
TIED = 64 * float(np.finfo(np.float64).eps)


@DECISIONS.register("scaled-thompson")
@dataclass(frozen=True)
class ScaledThompson(Decision):
    """Thompson sampling whose draws are moved towards the posterior mean: scores ~ N(mean, scale^2 Cov), taken jointly.

    scale = 1 is Thompson sampling, and towards 0 it becomes greedy. Where rewards drift, or there are more actions than rounds,
    less than 1 is often better, and how much less has to be found out; KnowledgeGradient needs no such number.

    A draw of the scores r becomes mean + scale (r - mean). An unplayed action scores features . c(m) + sd z given the root m,
    with c linear: with the root moved to m' the score is scale (features . c(m' / scale) + sd z), what the search for the best
    unplayed action finds as it is. Propensities are estimated from draws.
    """

    scale: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", validate.number("scale", self.scale, least=SMALLEST, most=LARGEST))

    def pick(self, belief: Belief, X: Array, offer: Offer, k: int, rng: np.random.Generator) -> list[Pick]:
        number = len(offer.ids_of_slots())
        picks: list[Pick] = []
        for some in in_chunks(X, number):
            scores, roots = belief.draw_scores(some, offer, rng)
            if number:
                mean = belief.played_moments(some, offer, spread=False)[0]
                barred = offer.barred if offer.slots is None else offer.barred[:0]
                scores = _moved(scores, mean, self.scale, barred, rng)
            for x, root, row in zip(some, roots, scores, strict=True):
                if not x.any():
                    picks.append(pick_uniformly(offer, k, rng))
                    continue
                found = self._best_unplayed(belief, x, root, offer, kth_largest(row, k), k, rng)
                picks.append(best_of(row, found, k))
        return picks

    def _best_unplayed(
        self, belief: Belief, x: Array, root: Array, offer: Offer, floor: float, k: int, rng: np.random.Generator
    ) -> tuple[Array, Ints]:
        """The unplayed actions' scores above the floor among the best k, and their units' places."""
        scale = self.scale
        if not offer.fresh:
            return np.empty(0), np.empty(0, dtype=np.int64)
        if type(belief).best_unplayed is Belief.best_unplayed:
            mean = belief.root.mean()
            scores, units = belief.best_unplayed(x, mean / scale + (root - mean), offer, floor / scale, k, rng)
            return scale * scores, units
        # actions with centres of their own, alike until they are played: one unit with one mean
        (middle,) = belief.unplayed_moments(x, offer, spread=False)[0][:1].tolist()
        scores, units = belief.best_unplayed(x, root, offer, middle + (floor - middle) / scale, k, rng)
        return middle + scale * (scores - middle), units


def _moved(drawn: Array, mean: Array, scale: float, barred: Ints, rng: np.random.Generator) -> Array:
    """Scores moved towards their means (n, P), the best of which is one action; of barred ones -inf.

    Actions with equal features that share one parameter share every score, up to rounding, and so do contexts of zeros: of those
    that share the best one, any alike is put ahead.
    """
    scores: Array = mean + scale * (drawn - mean)
    rounding = TIED * np.maximum(np.abs(scores), np.abs(mean)).max(axis=1)
    scores[:, barred] = -np.inf
    near: Bools = scores >= (scores.max(axis=1) - rounding)[:, None]
    for i in np.flatnonzero(np.count_nonzero(near, axis=1) > 1).tolist():
        tied = np.flatnonzero(near[i])
        scores[i, tied[rng.integers(len(tied))]] = np.nextafter(scores[i].max(), np.inf)
    return scores


__all__ = ["ScaledThompson"]
