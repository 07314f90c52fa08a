"""Mixtures of decisions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import Array
from manyarms.agents.decisions.base import DECISIONS, Decision, Pick, Propensity
from manyarms.agents.decisions.optimistic import Greedy
from manyarms.agents.decisions.uniform import Uniform, pick_uniformly
from manyarms.beliefs.actions.catalogue import Offer
from manyarms.beliefs.belief import Belief


@DECISIONS.register("epsilon-greedy")
@dataclass(frozen=True)
class EpsilonGreedy(Decision):
    """With probability epsilon any actions, otherwise the greedy ones; one coin for the whole list of k."""

    epsilon: float = 0.1

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", validate.probability("epsilon", self.epsilon))

    def pick(self, belief: Belief, X: Array, offer: Offer, k: int, rng: np.random.Generator) -> list[Pick]:
        explore = rng.random(len(X)) < self.epsilon
        greedy = iter(Greedy().pick(belief, X[~explore], offer, k, rng))
        return [pick_uniformly(offer, k, rng) if lucky else next(greedy) for lucky in explore.tolist()]

    def propensity(
        self, belief: Belief, x: Array, action: int, offer: Offer, k: int, draws: int, rng: np.random.Generator
    ) -> Propensity:
        """Exact: the two branches' propensities, mixed."""
        any_action = Uniform().propensity(belief, x, action, offer, k, draws, rng)
        greedy = Greedy().propensity(belief, x, action, offer, k, draws, rng)
        explore, exploit = self.epsilon, 1 - self.epsilon
        return Propensity(
            explore * any_action.value + exploit * greedy.value,
            explore * any_action.inclusion + exploit * greedy.inclusion,
            exact=True,
        )


__all__ = ["EpsilonGreedy"]
