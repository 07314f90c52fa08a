"""An agent that is not told how fast its world drifts: it plays as if nothing did, and after some rounds asks its own log.

`rewards.choose_drift` finds the half-life, or none, under which these rounds were least surprising, each predicted from those
before it. What was learned so far is then learned again with the half-life chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import manyarms as ma
from manyarms._base.typing import AnyArray, Array
from manyarms.beliefs import Likelihood
from manyarms.priors.gaussian import ActionPrior, HierarchicalPrior, MixedEffectPrior
from manyarms_thesis.drift.replaced import Replaced

Prior = ActionPrior | HierarchicalPrior | MixedEffectPrior


class Choosing(Replaced):
    """`make(h)` gives an agent of half-life h (None: nothing drifts): make(None) plays `first` rounds, then the one chosen."""

    def __init__(self, make: Callable[[float | None], Any], prior: Prior, likelihood: Likelihood, first: int) -> None:
        self._make, self._prior, self._likelihood, self._first = make, prior, likelihood, first
        super().__init__()
        self.agent, self._rows = make(None), 0
        self.half_life = math.nan  # not chosen yet

    def observe(self, x: Array, a: int, r: float) -> None:
        """Learn the row; after the first rounds, choose."""
        self._tell("observe", x, a, r)
        self._rows += 1
        if self._rows == self._first:
            self._choose()

    def retire(self, ids: AnyArray) -> None:
        """Do not choose these any more."""
        self._tell("retire", ids)

    def add_actions(self, *arguments: Any, **options: Any) -> AnyArray:
        """New actions."""
        if self._rows < self._first:
            self._prior = with_more(self._prior, *arguments, **options)
        return np.asarray(self._tell("add_actions", *arguments, **options))

    def _tell(self, name: str, *arguments: Any, **options: Any) -> Any:
        if self._rows < self._first:
            self._told.append((name, arguments, options))
        return getattr(self.agent, name)(*arguments, **options)

    def _choose(self) -> None:
        X, actions, rewards = zip(*(arguments for name, arguments, _ in self._told if name == "observe"), strict=True)
        log = ma.LoggedData(np.stack(X), np.array(actions), np.array(rewards), action_count=self._prior.actions)
        best = ma.rewards.choose_drift(log, self._prior, self._likelihood).best
        self.half_life = math.inf if best is None else float(best)
        if best is not None:
            self.agent = self._make(best)
            for name, arguments, options in self._told:
                getattr(self.agent, name)(*arguments, **options)
        self._told = []


def with_more(prior: Prior, number: int | None = None, *, weights: Array | None = None) -> Prior:
    """A prior with some actions more: with these mixing weights, or so many where all actions are alike."""
    if not isinstance(prior, MixedEffectPrior):
        return replace(prior, actions=prior.actions + (number or 0))
    more = np.zeros((0, prior.effects)) if weights is None else weights
    shared = prior.effect_covariance if prior.effect_blocks is None else prior.effect_blocks
    return MixedEffectPrior(np.concatenate((prior.weights, more)), prior.effect_mean, shared, prior.action_covariance)


__all__ = ["Choosing", "with_more"]
