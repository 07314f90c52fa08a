"""Decisions by an index of each action, mean + width * sd: optimistic, greedy, pessimistic. Nothing is drawn."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import Array, Ints
from manyarms.agents.decisions.base import DECISIONS, Decision, Pick, in_chunks
from manyarms.beliefs.actions.catalogue import Offer
from manyarms.beliefs.actions.index_search import unit_scores
from manyarms.beliefs.belief import Belief


@dataclass(frozen=True)
class IndexDecision(Decision):
    """The actions with the largest index, a function of the marginal mean and variance of x^T theta_a."""

    draws = False

    rising: ClassVar[bool] = False
    """Whether the index never falls where the mean or the variance rises: then not all unplayed actions need be looked at."""

    @property
    def needs_variance(self) -> bool:
        """Whether the index looks at the variance."""
        return True

    @abstractmethod
    def index(self, belief: Belief, mean: Array, variance: Array) -> Array:
        """The index from marginal mean and variance of x^T theta; the variance may be anything where it is not needed."""

    def pick(self, belief: Belief, X: Array, offer: Offer, k: int, rng: np.random.Generator) -> list[Pick]:
        ids, spread = offer.ids_of_slots(), self.needs_variance
        picks: list[Pick] = []
        for some in in_chunks(X, len(ids)):
            scores = np.empty((len(some), 0))
            if len(ids):
                scores = self.index(belief, *belief.played_moments(some, offer, spread=spread))
                if offer.slots is None and len(offer.barred):
                    scores[:, offer.barred] = -np.inf
            for x, row in zip(some, scores, strict=True):
                units = unit_scores(belief, x, offer, spread=spread, rising=self.rising)
                found = units.best(partial(self.index, belief), k, kth_largest(row, k))
                picks.append(lowest_first(row, ids, found, offer, k))
        return picks


def kth_largest(values: Array, k: int) -> float:
    """The k-th largest value; -inf where there are fewer."""
    return float(-np.partition(-values, k - 1)[k - 1]) if len(values) >= k else -np.inf


def lowest_first(played: Array, ids: Ints, found: tuple[Array, Ints], offer: Offer, k: int) -> Pick:
    """Best k by score, equal scores by ascending id."""
    values, units = found
    allowed = np.flatnonzero(played > -np.inf)
    if len(allowed) > k:
        threshold = -np.partition(-played[allowed], k - 1)[k - 1]
        allowed = allowed[played[allowed] >= threshold]
    members, owners = offer.lowest(units, k)
    order = np.argsort(units)
    unit_values = values[order][np.searchsorted(units[order], owners)]
    everything = np.concatenate([played[allowed], unit_values])
    all_ids = np.concatenate([ids[allowed], members])
    best = np.lexsort((all_ids, -everything))[:k]
    return Pick(best < len(allowed), np.concatenate([allowed, owners])[best], uniform=False)


@DECISIONS.register("greedy")
@dataclass(frozen=True)
class Greedy(IndexDecision):
    """The largest posterior mean (sDM's decision; thesis, Section 6.3.2)."""

    rising = True

    @property
    def needs_variance(self) -> bool:
        """No."""
        return False

    def index(self, belief: Belief, mean: Array, variance: Array) -> Array:
        return mean


@DECISIONS.register("ucb")
@dataclass(frozen=True)
class UCB(IndexDecision):
    """Optimism: the largest mean + width * sd. With `on_mean` the mean is taken on the scale of rewards (GLM-UCB)."""

    rising = True

    width: float = 0.0
    on_mean: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", validate.not_negative("width", self.width))
        object.__setattr__(self, "on_mean", validate.flag("on_mean", self.on_mean))

    @property
    def needs_variance(self) -> bool:
        """Where the width is not 0."""
        return self.width > 0

    def index(self, belief: Belief, mean: Array, variance: Array) -> Array:
        value = belief.likelihood.mean(mean) if self.on_mean else mean
        return value + self.width * np.sqrt(np.maximum(variance, 0.0)) if self.width else value


@DECISIONS.register("pessimistic")
@dataclass(frozen=True)
class Pessimistic(IndexDecision):
    """Pessimism: the largest mean - width * sd, for policies learned from logs (thesis, Section 1.2.2)."""

    width: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", validate.not_negative("width", self.width))

    @property
    def needs_variance(self) -> bool:
        """Where the width is not 0."""
        return self.width > 0

    def index(self, belief: Belief, mean: Array, variance: Array) -> Array:
        return mean - self.width * np.sqrt(np.maximum(variance, 0.0)) if self.width else mean


__all__ = ["UCB", "Greedy", "IndexDecision", "Pessimistic", "kth_largest", "lowest_first"]
