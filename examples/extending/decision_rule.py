"""A decision rule of one's own: Thompson sampling that shows anything with a small probability.

No offered action's propensity is then below share / m, for m actions on offer, which logs for off-policy evaluation want.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import manyarms as ma
from manyarms.agents.decisions import DECISIONS, Decision, Pick, Propensity, pick_uniformly
from manyarms.errors import InvalidInput


@DECISIONS.register("thompson-with-floor")
@dataclass(frozen=True)
class ThompsonWithFloor(Decision):
    """With probability `share` any offered actions, otherwise those of Thompson sampling."""

    share: float = 0.05

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise InvalidInput("share", self.share, "a number between 0 and 1")

    def pick(self, belief, X, offer, k: int, rng: np.random.Generator) -> list[Pick]:
        """k places in the offer for each context."""
        explore = rng.random(len(X)) < self.share
        drawn = ma.Thompson().pick(belief, X, offer, k, rng)
        return [pick_uniformly(offer, k, rng) if lucky else pick for lucky, pick in zip(explore, drawn, strict=True)]

    def propensity(self, belief, x, action: int, offer, k: int, draws: int, rng: np.random.Generator) -> Propensity:
        """The two branches mixed: the first is known exactly, the second estimated."""
        floor = ma.agents.Uniform().propensity(belief, x, action, offer, k, draws, rng)
        drawn = ma.Thompson().propensity(belief, x, action, offer, k, draws, rng)
        s, t = self.share, 1 - self.share
        return Propensity(
            s * floor.value + t * drawn.value,
            s * floor.inclusion + t * drawn.inclusion,
            drawn.exact,
            drawn.draws,
            t * drawn.standard_error,
            t * drawn.inclusion_standard_error,
        )


def meTSWithFloor(prior, likelihood=ma.Linear(), *, share: float = 0.05, seed=None) -> ma.Agent:  # noqa: B008
    """meTS whose propensities have a floor."""
    return ma.Agent(ma.beliefs.belief_of(prior, likelihood), ThompsonWithFloor(share), seed, "meTS-floor")
