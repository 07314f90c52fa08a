"""What a decision is: a rule that picks from what a belief says of the actions on offer.

An *offer* lists the played actions one by one and the others as units, groups of actions that nobody has played and that the
belief cannot tell apart. So a decision picks places in the offer (`Pick`), and which member of a unit it is gets resolved last:
by a uniform draw where the decision draws, by the lowest id where it does not. Every decision costs what the played actions and
the units cost.

Ties: scores that are exactly equal are broken uniformly by decisions that draw (only a context of zeros makes them), and
by the lowest id by the others.

A new decision is a frozen dataclass in a file of its own that derives from `Decision`, defines `pick` and registers its name with
`DECISIONS`; it is then saved and restored by that name, and `manyarms.checks.check_agent` holds it to what agents promise.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from manyarms._base import validate
from manyarms._base.registry import Registry
from manyarms._base.tables import Shown, Table
from manyarms._base.text import counted, number
from manyarms._base.typing import JSON, Array, Bools, Ints, Spec
from manyarms.beliefs.actions.catalogue import Offer
from manyarms.beliefs.belief import Belief

SCORES_AT_A_TIME = 1 << 21  # contexts x played actions held at once


@dataclass(frozen=True, repr=False)
class Propensity(Shown):
    """Probability that an action is chosen, and how well it is known.

    value: probability of the first place. inclusion: of a place among the best k (equal to `value` for k = 1).
    exact: known exactly; otherwise both are means over `draws`, without bias, with their standard errors.
    """

    value: float
    inclusion: float
    exact: bool
    draws: int = 0
    standard_error: float = 0.0
    inclusion_standard_error: float = 0.0

    @property
    def kind(self) -> str:
        """ "exact" or "estimated", as logs of decisions have it."""
        return "exact" if self.exact else "estimated"

    @property
    def relative_error(self) -> float:
        """The standard error of `value` as a share of it."""
        return self.standard_error / self.value if self.value > 0 else math.inf if self.standard_error > 0 else 0.0

    @property
    def inverse_bias(self) -> float:
        """By how much 1/value is too large on average, as a share: about the squared relative error, E[1/p'] = (1 + cv^2) / p.

        Weights of IPS inherit it. Learning can live with it, certificates cannot: they want exact propensities.
        """
        return self.relative_error**2

    def _table(self) -> Table:
        kind = "exact" if self.exact else f"estimated from {counted(self.draws, 'draw')}"
        rows = [
            ("first place", self.value, self.standard_error),
            ("among the best k", self.inclusion, self.inclusion_standard_error),
        ]
        return Table(f"propensity {number(self.value)}, {kind}", ("of", "probability", "std. error"), rows)


@dataclass(slots=True)
class Pick:
    """k places in an offer, best first.

    played: which of them are played actions, (k,). places: among the played actions' scores or among the units, (k,).
    uniform: members of units are drawn uniformly; otherwise they are those with the lowest ids.
    """

    played: Bools
    places: Ints
    uniform: bool

    def actions(self, offer: Offer, rng: np.random.Generator) -> Ints:
        """The ids of the actions picked, (k,)."""
        played, places = self.played, self.places
        if len(places) == 1 and played[0]:
            return offer.ids_of_slots()[places]
        if self.uniform and len(places) == 1:
            place, count = int(places[0]), int(offer.counts[places[0]])
            return np.array([offer.member(place, int(rng.integers(count)) if count > 1 else 0)])
        ids = np.empty(len(places), dtype=np.int64)
        ids[played] = offer.ids_of_slots()[places[played]]
        if played.all():
            return ids
        for place in set(places[~played].tolist()):
            where = np.flatnonzero(~played & (places == place))
            count = int(offer.counts[place])
            if not self.uniform:
                ranks = list(range(len(where)))
            elif len(where) == 1:
                ranks = [int(rng.integers(count))] if count > 1 else [0]
            else:
                ranks = rng.choice(count, size=len(where), replace=False).tolist()
            ids[where] = [offer.member(place, rank) for rank in ranks]
        return ids


@dataclass(frozen=True)
class Decision(ABC):
    """A rule that picks actions; its fields are its settings."""

    draws: ClassVar[bool] = True
    """Whether chance plays a part: then propensities are Monte-Carlo estimates unless the rule knows better."""

    exact: ClassVar[bool] = False
    """Whether its propensities are known exactly although it draws."""

    from_draws: ClassVar[bool] = False
    """Whether propensities are those given what a decision has drawn: they are then made of its own random numbers."""

    @property
    def kind(self) -> str:
        """The name it is registered and saved under."""
        return DECISIONS.name_of(type(self))

    @abstractmethod
    def pick(self, belief: Belief, X: Array, offer: Offer, k: int, rng: np.random.Generator) -> list[Pick]:
        """k places for each context of X (n, d); where each action has a context of its own, X is (n, m, d)."""

    def choose(self, belief: Belief, X: Array, offer: Offer, k: int, rng: np.random.Generator) -> Ints:
        """(n, k): the actions that it picks, by their rows; rules that can decide for many contexts at once do it here."""
        return np.array([pick.actions(offer, rng) for pick in self.pick(belief, X, offer, k, rng)])

    def propensity(
        self, belief: Belief, x: Array, action: int, offer: Offer, k: int, draws: int, rng: np.random.Generator
    ) -> Propensity:
        """How likely `action` is in context x.

        1 or 0 where nothing is drawn. Otherwise the share of `draws` decisions that pick the action; for an unplayed one,
        that pick its unit, divided by the unit's size.
        """
        if not self.draws:
            ids = self.pick(belief, x[None], offer, k, rng)[0].actions(offer, rng)
            return Propensity(float(ids[0] == action), float(action in ids), exact=True)
        place = offer.place_of(action)
        if place is None:
            return Propensity(0.0, 0.0, exact=True)
        share = 1.0 if place.played else 1.0 / float(offer.counts[place.position])
        # a context, what is counted, and a pick of two small arrays and their places
        validate.room("draws", draws, 16 + (x.nbytes if x.ndim == 1 else 0) + 400 + 16 * k, "draws")
        first, inside = np.empty(draws), np.empty(draws)
        # matrices (a context for each action) are not copied: what does not change from draw to draw is then computed once
        X = np.repeat(x[None], draws, axis=0) if x.ndim == 1 else np.broadcast_to(x, (draws, *x.shape))
        for i, pick in enumerate(self.pick(belief, X, offer, k, rng)):
            hits = (pick.played == place.played) & (pick.places == place.position)
            first[i], inside[i] = share * hits[0], share * hits.sum()
        # draws that all agree do not make the estimate certain: its error is at least that of one draw among them
        spread = [max(float(hit.var(ddof=1)), share**2 / draws) if draws > 1 else np.inf for hit in (first, inside)]
        error = np.sqrt(np.array(spread) / draws)
        return Propensity(float(first.mean()), float(inside.mean()), False, draws, float(error[0]), float(error[1]))

    def propensity_draws(self, belief: Belief) -> int:
        """How many draws `propensity` takes unless it is told otherwise."""
        return 1000

    def options(self) -> Spec:
        """What is needed to build it again."""
        return asdict(self)


DECISIONS: Registry[type[Decision]] = Registry(
    "decision", package="manyarms.agents.decisions", group="manyarms.decisions"
)


def restore_decision(spec: Mapping[str, JSON]) -> Decision:
    """The decision that its kind and options describe."""
    options: dict[str, Any] = {
        name: restore_decision(value) if isinstance(value, Mapping) else value for name, value in spec.items()
    }
    return DECISIONS[options.pop("kind")](**options)


def in_chunks(X: Array, played: int) -> Iterator[Array]:
    """Contexts in chunks, so that they and their scores of the played actions fit into memory."""
    size = max(1, SCORES_AT_A_TIME // max(1, played, math.prod(X.shape[1:])))
    for start in range(0, len(X), size):
        yield X[start : start + size]


__all__ = ["DECISIONS", "Decision", "Pick", "Propensity", "in_chunks", "restore_decision"]
