"""Deterministic rules mixed with uniform play, and Thompson sampling from a few draws: decisions with exact propensities.

Both have a floor, epsilon / m for each of the m actions offered, so that importance weights are at most m / epsilon, whatever
policy is evaluated: epsilon = m / 100 keeps them below 100, 0.1 with ten candidates. With more than a hundred candidates no
epsilon does: offer fewer. With epsilon = 0 support is lost: what neither the rule nor a draw chooses has propensity 0, and no
log of such decisions tells anything about it.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import Array, Spec
from manyarms.agents.decisions.base import DECISIONS, Decision, Pick, Propensity
from manyarms.agents.decisions.optimistic import Greedy
from manyarms.agents.decisions.thompson import Thompson
from manyarms.agents.decisions.uniform import Uniform, pick_uniformly
from manyarms.beliefs.actions.catalogue import Offer
from manyarms.beliefs.belief import Belief
from manyarms.errors import InvalidInput

GREEDY = Greedy()


class WithUniform(Decision):
    """With probability epsilon any actions, otherwise those of a rule that draws nothing; one coin for the whole list of k."""

    epsilon: float

    exact = True

    @property
    @abstractmethod
    def certain(self) -> Decision:
        """The rule."""

    def pick(self, belief: Belief, X: Array, offer: Offer, k: int, rng: np.random.Generator) -> list[Pick]:
        explore = rng.random(len(X)) < self.epsilon
        ruled = iter(self.certain.pick(belief, X[~explore], offer, k, rng))
        return [pick_uniformly(offer, k, rng) if lucky else next(ruled) for lucky in explore.tolist()]

    def propensity(
        self, belief: Belief, x: Array, action: int, offer: Offer, k: int, draws: int, rng: np.random.Generator
    ) -> Propensity:
        """Exact: the two branches' propensities, mixed."""
        ruled = self.certain.propensity(belief, x, action, offer, k, draws, rng)
        return _mixed(self.epsilon, belief, x, action, offer, k, ruled.value, ruled.inclusion)


def _mixed(
    epsilon: float, belief: Belief, x: Array, action: int, offer: Offer, k: int, value: float, inclusion: float
) -> Propensity:
    """Exact: epsilon of uniform play and the rest of what has these propensities."""
    uniform = Uniform().propensity(belief, x, action, offer, k, 1, np.random.default_rng(0))
    rest = 1 - epsilon
    return Propensity(
        epsilon * uniform.value + rest * value, epsilon * uniform.inclusion + rest * inclusion, exact=True
    )


@DECISIONS.register("epsilon-greedy")
@dataclass(frozen=True)
class EpsilonGreedy(WithUniform):
    """With probability epsilon any actions, otherwise the greedy ones: EpsilonMixed(Greedy(), epsilon)."""

    epsilon: float = 0.1

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", validate.probability("epsilon", self.epsilon))

    @property
    def certain(self) -> Decision:
        """Greedy."""
        return Greedy()


@DECISIONS.register("epsilon-mixed")
@dataclass(frozen=True)
class EpsilonMixed(WithUniform):
    """With probability epsilon any actions, otherwise those of `rule`: Greedy(), UCB(), Pessimistic(), whatever draws nothing.

    Its propensities are exact: epsilon / m for each of the m actions offered, and 1 - epsilon more for the rule's. epsilon = 0
    loses support: every other action has propensity 0.
    """

    rule: Decision = GREEDY
    epsilon: float = 0.1

    def __post_init__(self) -> None:
        rule = self.rule
        if not isinstance(rule, Decision) or rule.draws:
            raise InvalidInput(
                "rule", validate.describe(rule), "a decision that draws nothing, such as Greedy() or UCB(1.0)"
            )
        object.__setattr__(self, "rule", rule)
        object.__setattr__(self, "epsilon", validate.probability("epsilon", self.epsilon))

    @property
    def certain(self) -> Decision:
        """The rule."""
        return self.rule

    def options(self) -> Spec:
        return {"rule": {"kind": self.rule.kind, **self.rule.options()}, "epsilon": self.epsilon}


@DECISIONS.register("ensemble")
@dataclass(frozen=True)
class Ensemble(Decision):
    """Thompson sampling with exact propensities: `draws` draws of the posterior at once, one of which is taken at random.

    With probability epsilon any actions, otherwise the list of one of the draws, all alike. Given the draws, an action that
    heads c of M lists has propensity (1 - epsilon) c / M + epsilon / m, with m actions on offer, and that is exact. A draw
    that ends at a unit of interchangeable actions leaves its member open to the last: each has its share of the count.
    `inclusion` counts the lists that an action is on. epsilon = 0 loses support: all that heads no list has propensity 0.

    The law is that given the draws of one decision. So its propensity belongs to the decision's number: ask with `draw=n`,
    and with the same x, filters and k, for a decision about a single context.
    """

    draws: int = 32  # type: ignore[assignment,misc]  # a rule that draws, and how often
    epsilon: float = 0.1

    exact = True
    from_draws: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "draws", validate.count("draws", self.draws))
        validate.room("draws", self.draws, 1000, "draws")
        object.__setattr__(self, "epsilon", validate.probability("epsilon", self.epsilon))

    def lists(self, belief: Belief, x: Array, offer: Offer, k: int, rng: np.random.Generator) -> list[Pick]:
        """What each draw would pick."""
        return Thompson().pick(belief, np.broadcast_to(x, (self.draws, *x.shape)), offer, k, rng)

    def pick(self, belief: Belief, X: Array, offer: Offer, k: int, rng: np.random.Generator) -> list[Pick]:
        picks = []
        for x in X:
            lists = self.lists(belief, x, offer, k, rng)
            lucky, which = rng.random() < self.epsilon, int(rng.integers(self.draws))
            picks.append(pick_uniformly(offer, k, rng) if lucky else lists[which])
        return picks

    def propensity(
        self, belief: Belief, x: Array, action: int, offer: Offer, k: int, draws: int, rng: np.random.Generator
    ) -> Propensity:
        """Exact, given the draws that a decision makes with the same random numbers; `draws` has no part in it."""
        place = offer.place_of(action)
        if place is None:
            return Propensity(0.0, 0.0, exact=True)
        share = 1.0 if place.played else 1.0 / float(offer.counts[place.position])
        hits = np.array(
            [(p.played == place.played) & (p.places == place.position) for p in self.lists(belief, x, offer, k, rng)]
        )
        value, inclusion = share * float(hits[:, 0].mean()), share * float(hits.sum(axis=1).mean())
        return _mixed(self.epsilon, belief, x, action, offer, k, value, inclusion)


__all__ = ["Ensemble", "EpsilonGreedy", "EpsilonMixed", "WithUniform"]
