"""Uniform play: the control that every method must beat."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyarms._base.typing import Array
from manyarms.agents.decisions.base import DECISIONS, Decision, Pick, Propensity
from manyarms.beliefs.actions.catalogue import Offer
from manyarms.beliefs.belief import Belief


@DECISIONS.register("uniform")
@dataclass(frozen=True)
class Uniform(Decision):
    """Any offered action, all alike."""

    exact = True

    def pick(self, belief: Belief, X: Array, offer: Offer, k: int, rng: np.random.Generator) -> list[Pick]:
        return [pick_uniformly(offer, k, rng) for _ in range(len(X))]

    def propensity(
        self, belief: Belief, x: Array, action: int, offer: Offer, k: int, draws: int, rng: np.random.Generator
    ) -> Propensity:
        """1/m for the first of m offered actions, k/m for inclusion: exact."""
        if offer.place_of(action) is None:
            return Propensity(0.0, 0.0, exact=True)
        return Propensity(1.0 / offer.total, k / offer.total, exact=True)


def pick_uniformly(offer: Offer, k: int, rng: np.random.Generator) -> Pick:
    """k of the offered actions, all subsets and orders alike."""
    slots = np.arange(len(offer.ids_of_slots()))
    if offer.slots is None and len(offer.barred):
        slots = np.delete(slots, offer.barred)
    numbers = rng.choice(offer.total, size=k, replace=False)
    played = numbers < len(slots)
    places = np.empty(k, dtype=np.int64)
    places[played] = slots[numbers[played]]
    if not played.all():
        ends = np.cumsum(offer.counts)
        places[~played] = np.searchsorted(ends, numbers[~played] - len(slots), side="right")
    return Pick(played, places, uniform=True)


__all__ = ["Uniform", "pick_uniformly"]
