"""Decisions: what to do about a belief. Thompson, UCB, greedy, pessimistic; epsilon-greedy and uniform as controls.

A decision *picks* from an offer: for each context k entries, each either a played action (its place among the offered slots)
or a unit of interchangeable unplayed ones. Which member of a unit it is gets settled last: by a uniform draw where the decision
draws, by the lowest id where it does not. So every decision costs what the played actions and the units cost.

Ties: scores that are exactly equal are broken uniformly by decisions that draw (only a context of zeros makes them), and
by the lowest id by the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol, cast

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import Array, Bools, Ints
from manyarms.beliefs import Belief
from manyarms.beliefs.actions.catalogue import Offer
from manyarms.beliefs.actions.search import certain
from manyarms.errors import InvalidInput

SCORES_AT_A_TIME = 1 << 21  # contexts x played actions held at once

Pick = tuple[Bools, Ints]  # k entries: is it a played action, and its place


@dataclass(frozen=True)
class Propensity:
    """Probability that an action is chosen, and how well it is known.

    value: probability of the first place. inclusion: of a place among the best k (equal to `value` for k = 1).
    exact: known exactly; otherwise both are Monte-Carlo means over `draws`, with their standard errors.
    """

    value: float
    inclusion: float
    exact: bool
    draws: int = 0
    standard_error: float = 0.0
    inclusion_standard_error: float = 0.0


class Decision(Protocol):
    """What an agent needs of a decision."""

    kind: ClassVar[str]

    def pick(self, belief: Belief, X: Array, offer: Offer, k: int, rng: np.random.Generator) -> list[Pick]:
        """k entries for each context of X (n, d)."""

    def settle(self, offer: Offer, pick: Pick, rng: np.random.Generator) -> Ints:
        """The actions behind a pick."""

    def propensity(
        self, belief: Belief, x: Array, action: int, offer: Offer, k: int, draws: int, rng: np.random.Generator
    ) -> Propensity:
        """How likely `action` is."""

    def options(self) -> dict[str, object]:
        """What is needed to build it again."""


# ---- shared pieces ----------------------------------------------------------------------------------------------------


def settle_uniformly(offer: Offer, pick: Pick, rng: np.random.Generator) -> Ints:
    """Members of units by a uniform draw without replacement."""
    played, places = pick
    if len(places) == 1 and not played[0]:
        place, count = int(places[0]), int(offer.counts[places[0]])
        return np.array([offer.member(place, int(rng.integers(count)))])
    ids = np.empty(len(places), dtype=np.int64)
    ids[played] = offer.ids_of_slots()[places[played]]
    if played.all():
        return ids
    for place in set(places[~played].tolist()):
        where = np.flatnonzero(~played & (places == place))
        count = int(offer.counts[place])
        if len(where) == 1:
            ranks = [int(rng.integers(count))] if count > 1 else [0]
        else:
            ranks = rng.choice(count, size=len(where), replace=False).tolist()
        ids[where] = [offer.member(place, rank) for rank in ranks]
    return ids


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
    return played, places


def _in_chunks(X: Array, played: int) -> list[Array]:
    size = max(1, SCORES_AT_A_TIME // max(1, played))
    return [X[start : start + size] for start in range(0, len(X), size)]


def _best_of(played: Array, found: tuple[Array, Ints], k: int) -> Pick:
    """The best k among the played scores and what was found among the unplayed, best first."""
    scores, units = found
    if k == 1:
        top = int(played.argmax()) if len(played) else -1
        if not len(scores):
            return np.array([True]), np.array([top])
        best = int(scores.argmax())
        if top < 0 or scores[best] > played[top]:
            return np.array([False]), units[best : best + 1]
        return np.array([True]), np.array([top])
    allowed = np.flatnonzero(played > -np.inf)
    if len(allowed) > k:
        allowed = allowed[np.argpartition(-played[allowed], k - 1)[:k]]
    everything = np.concatenate([played[allowed], scores])
    order = np.argsort(-everything, kind="stable")[:k]
    is_played = order < len(allowed)
    places = np.concatenate([allowed, units])[order]
    return is_played, places


# ---- decisions that draw ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Thompson:
    """Draw the parameters from the posterior and take the best (thesis, lines 1003-1060).

    Scores are drawn instead of parameters: given the root, x^T theta_a is a scalar Gaussian, independent over actions.
    Every context has its own draw of the root and of the scores.
    """

    kind: ClassVar[str] = "thompson"

    def pick(self, belief: Belief, X: Array, offer: Offer, k: int, rng: np.random.Generator) -> list[Pick]:
        number = len(offer.ids_of_slots())
        picks: list[Pick] = []
        for some in _in_chunks(X, number):
            scores, roots = belief.draw_scores(some, offer, rng)
            if offer.slots is None and len(offer.barred):
                scores[:, offer.barred] = -np.inf
            for x, root, row in zip(some, roots, scores, strict=True):
                if not x.any():
                    picks.append(pick_uniformly(offer, k, rng))
                    continue
                if k == 1:
                    floor = float(row.max()) if number else -np.inf
                else:
                    floor = float(-np.partition(-row, k - 1)[k - 1]) if number >= k else -np.inf
                picks.append(_best_of(row, belief.best_unplayed(x, root, offer, floor, k, rng), k))
        return picks

    def settle(self, offer: Offer, pick: Pick, rng: np.random.Generator) -> Ints:
        return settle_uniformly(offer, pick, rng)

    def propensity(
        self, belief: Belief, x: Array, action: int, offer: Offer, k: int, draws: int, rng: np.random.Generator
    ) -> Propensity:
        """Share of `draws` decisions that pick the action; for an unplayed one, that pick its unit, divided by its size."""
        place = offer.place_of(action)
        if place is None:
            return Propensity(0.0, 0.0, exact=True)
        played, where = place
        share = 1.0 if played else 1.0 / float(offer.counts[where])
        first, inside = np.empty(draws), np.empty(draws)
        for i, (is_played, places) in enumerate(self.pick(belief, np.repeat(x[None], draws, axis=0), offer, k, rng)):
            hits = (is_played == played) & (places == where)
            first[i], inside[i] = share * hits[0], share * hits.sum()
        # draws that all agree do not make the estimate certain: its error is at least that of one draw among them
        spread = [max(float(hit.var(ddof=1)), share**2 / draws) if draws > 1 else np.inf for hit in (first, inside)]
        error = np.sqrt(np.array(spread) / draws)
        return Propensity(float(first.mean()), float(inside.mean()), False, draws, float(error[0]), float(error[1]))

    def options(self) -> dict[str, object]:
        return {}


@dataclass(frozen=True)
class Uniform:
    """Any offered action, all alike."""

    kind: ClassVar[str] = "uniform"

    def pick(self, belief: Belief, X: Array, offer: Offer, k: int, rng: np.random.Generator) -> list[Pick]:
        return [pick_uniformly(offer, k, rng) for _ in range(len(X))]

    def settle(self, offer: Offer, pick: Pick, rng: np.random.Generator) -> Ints:
        return settle_uniformly(offer, pick, rng)

    def propensity(
        self, belief: Belief, x: Array, action: int, offer: Offer, k: int, draws: int, rng: np.random.Generator
    ) -> Propensity:
        """1/m for the first of m offered actions, k/m for inclusion: exact."""
        if offer.place_of(action) is None:
            return Propensity(0.0, 0.0, exact=True)
        return Propensity(1.0 / offer.total, k / offer.total, exact=True)

    def options(self) -> dict[str, object]:
        return {}


# ---- decisions that do not draw ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Index:
    """Take the actions with the largest index mean + width * sd, on the scale of x^T theta or of the mean reward."""

    width: float = 0.0
    on_mean: bool = False

    def index(self, belief: Belief, mean: Array, variance: Array) -> Array:
        """The index from marginal mean and variance of x^T theta."""
        value = belief.likelihood.mean(mean) if self.on_mean else mean
        return value + self.width * np.sqrt(np.maximum(variance, 0.0)) if self.width else value

    def pick(self, belief: Belief, X: Array, offer: Offer, k: int, rng: np.random.Generator) -> list[Pick]:
        number, spread = len(offer.ids_of_slots()), bool(self.width)
        ids = offer.ids_of_slots()
        picks: list[Pick] = []
        for some in _in_chunks(X, number):
            if number:
                scores = self.index(belief, *belief.played_moments(some, offer, spread=spread))
                if offer.slots is None and len(offer.barred):
                    scores[:, offer.barred] = -np.inf
            else:
                scores = np.empty((len(some), 0))
            for x, row in zip(some, scores, strict=True):
                values = self.index(belief, *belief.unplayed_moments(x, offer, spread=spread))
                picks.append(_lowest_first(row, ids, certain(values, offer.counts, k), offer, k))
        return picks

    def settle(self, offer: Offer, pick: Pick, rng: np.random.Generator) -> Ints:
        """The lowest ids of each unit, in order."""
        played, places = pick
        ids = np.empty(len(places), dtype=np.int64)
        ids[played] = offer.ids_of_slots()[places[played]]
        for place in set(places[~played].tolist()):
            where = np.flatnonzero(~played & (places == place))
            ids[where] = [offer.member(place, rank) for rank in range(len(where))]
        return ids

    def propensity(
        self, belief: Belief, x: Array, action: int, offer: Offer, k: int, draws: int, rng: np.random.Generator
    ) -> Propensity:
        """1 or 0."""
        ids = self.settle(offer, self.pick(belief, x[None], offer, k, rng)[0], rng)
        return Propensity(float(ids[0] == action), float(action in ids), exact=True)


def _lowest_first(played: Array, ids: Ints, found: tuple[Array, Ints], offer: Offer, k: int) -> Pick:
    """Best k by score, equal scores by ascending id."""
    values, units = found
    allowed = np.flatnonzero(played > -np.inf)
    if len(allowed) > k:
        threshold = -np.partition(-played[allowed], k - 1)[k - 1]
        allowed = allowed[played[allowed] >= threshold]
    members, owners = offer.lowest(units, k)
    value_of = dict(zip(units.tolist(), values.tolist(), strict=True)) if len(units) <= 1024 else None
    if value_of is None:
        order = np.argsort(units)
        unit_values = values[order][np.searchsorted(units[order], owners)]
    else:
        unit_values = np.array([value_of[u] for u in owners.tolist()])
    everything = np.concatenate([played[allowed], unit_values])
    all_ids = np.concatenate([ids[allowed], members])
    best = np.lexsort((all_ids, -everything))[:k]
    return best < len(allowed), np.concatenate([allowed, owners])[best]


@dataclass(frozen=True)
class Greedy(_Index):
    """The largest posterior mean (sDM's decision; thesis, lines 1908-1915)."""

    kind: ClassVar[str] = "greedy"

    def __init__(self) -> None:
        object.__setattr__(self, "width", 0.0)
        object.__setattr__(self, "on_mean", False)

    def options(self) -> dict[str, object]:
        return {}


@dataclass(frozen=True)
class UCB(_Index):
    """Optimism: the largest mean + width * sd. With `on_mean` the mean is taken on the scale of rewards (GLM-UCB)."""

    kind: ClassVar[str] = "ucb"

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", validate.not_negative("width", self.width))

    def options(self) -> dict[str, object]:
        return {"width": self.width, "on_mean": self.on_mean}


@dataclass(frozen=True)
class Pessimistic(_Index):
    """Pessimism: the largest mean - width * sd, for policies learned from logs (thesis, lines 556-565)."""

    kind: ClassVar[str] = "pessimistic"

    def __init__(self, width: float = 1.0) -> None:
        object.__setattr__(self, "width", -validate.not_negative("width", width))
        object.__setattr__(self, "on_mean", False)

    def options(self) -> dict[str, object]:
        return {"width": -self.width}


@dataclass(frozen=True)
class EpsilonGreedy:
    """With probability epsilon any actions, otherwise the greedy ones; one coin for the whole list of k."""

    epsilon: float = 0.1
    kind: ClassVar[str] = "epsilon-greedy"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", validate.probability("epsilon", self.epsilon))

    def pick(self, belief: Belief, X: Array, offer: Offer, k: int, rng: np.random.Generator) -> list[Pick]:
        explore = rng.random(len(X)) < self.epsilon
        greedy = iter(Greedy().pick(belief, X[~explore], offer, k, rng) if not explore.all() else [])
        picks = []
        for lucky in explore.tolist():
            if lucky:
                picks.append(pick_uniformly(offer, k, rng))
            else:
                # greedy picks are settled by the lowest id; marking them lets `settle` tell the two apart
                played, places = next(greedy)
                picks.append((played, np.where(played, places, -1 - places)))
        return picks

    def settle(self, offer: Offer, pick: Pick, rng: np.random.Generator) -> Ints:
        played, places = pick
        if (places[~played] < 0).any():
            return Greedy().settle(offer, (played, np.where(places < 0, -1 - places, places)), rng)
        return settle_uniformly(offer, pick, rng)

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

    def options(self) -> dict[str, object]:
        return {"epsilon": self.epsilon}


DECISIONS = {
    "thompson": Thompson,
    "uniform": Uniform,
    "greedy": Greedy,
    "ucb": UCB,
    "pessimistic": Pessimistic,
    "epsilon-greedy": EpsilonGreedy,
}


def restore_decision(kind: str, options: dict[str, object]) -> Decision:
    """The decision that `kind` and `options()` describe."""
    if kind not in DECISIONS:
        raise InvalidInput("decision", repr(kind), f"one of {', '.join(sorted(DECISIONS))}")
    return cast(Decision, DECISIONS[kind](**options))
