"""The online knowledge gradient: what an action earns now, and what one more look at it is worth while that still counts.

Before x^T theta_a ~ N(m_a, V_a) is observed with noise of variance sigma^2, the mean that it will have afterwards is
N(m_a, s_a^2), s_a^2 = V_a^2 / (V_a + sigma^2). With m the best mean of the others, the best mean of all grows by

    E max(m, m_a + s_a z) - max(m, m_a) = s_a f(u),    f(u) = phi(u) - u Phi(-u),    u = |m_a - m| / s_a

on average, whichever of the two is ahead. The reward that is earned now is m_a, and the gain is had in each of the H rounds for
which what is learned counts, so that the index of an action is (Ryzhov, Powell and Frazier, 2012)

    m_a + H s_a f(u)

**Contexts that vary.** The next contexts are others, and one look says less about them. In a context x' the mean of the action
moves by s_a r z with r = x'^T S_a x / x^T S_a x; if contexts point anywhere in d directions alike, |r| is about the cosine c of
the angle between two of them, with density proportional to (1 - c^2)^((d - 3) / 2), and with the gap taken to be that of now

    m_a + H s_a f_d(u),    f_d(u) = E[c f(u / c)]

f_1 = f: with one and the same context in every round this is the index above. Where contexts are one of d kinds, each round of a
kind counts for its own kind alone, 1 / d of them, and f_d is near f / d where it matters. Without this the rule explores far too
much: with d = 5 it acts as if whatever it learns in one context were known in all.

Nothing is tuned: where rewards drift with correlation rho from round to round, a gain g now is rho^t g after t rounds, and
H = rho + rho^2 + ... = rho / (1 - rho). Where information expires before it pays, little is spent on it: with many actions and
rewards that drift, Thompson sampling explores for ever, and this rule does not.

**How the index moves.** f' = -Phi(-u) and d(s f)/ds = phi(u). So the index rises with s_a, which rises with V_a, at the rate
H phi(u); and with the mean at the rate 1 + H Phi(-u) below the best other, 1 - H Phi(-u) above it. Hence it rises with mean and
variance for *every action but the single best one*, for which a larger lead may make another look worth less. That one alone has
a best other that is not the best mean of all, and its index is computed apart. Where several actions share the best mean, each
of them has a rival that is as good, u = 0, and none is apart; so it is with a unit of several interchangeable actions. So the
rule needs the two largest means, and then the largest of a rising function: both are found in blocks of similar actions where
there are many (beliefs/actions/index_search.py).

**What is approximate.** It looks one step ahead. What a reward of one action says of the others, through the root or a parameter
that they share, is not counted: V_a is the marginal variance, the root integrated out. With k > 1 the k largest indices are
taken, as if each were alone. For clicks and counts everything is on the scale of x^T theta, where a reward tells what one with
Gaussian noise of variance 1 / g'(m_a) would, g' being the slope of the expected reward at the mean; as that noise changes with
the mean, the index need not rise with it, and all units are looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import cast

import numpy as np
from scipy.special import erfcx, logsumexp, ndtr

from manyarms._base import validate
from manyarms._base.typing import Array, Ints
from manyarms.agents.decisions.base import DECISIONS, Decision, Pick, in_chunks
from manyarms.agents.decisions.optimistic import kth_largest, lowest_first
from manyarms.beliefs.actions.catalogue import Offer
from manyarms.beliefs.actions.index_search import UnitScores, unit_scores
from manyarms.beliefs.belief import Belief
from manyarms.errors import InvalidInput

LONGEST = 1e12  # rounds
MOST_DIRECTIONS = 1_000
LAST, POINTS, NODES = 14.0, 4097, 128  # of the table of f_d: beyond its end less than 1e-40
FAR = 40.0  # u from which on f(u) is 0 in floats
ROOT_TWO_PI = float(np.sqrt(2 * np.pi))


@DECISIONS.register("knowledge-gradient")
@dataclass(frozen=True)
class KnowledgeGradient(Decision):
    """The largest mean plus what one more look is worth, for as many rounds as it counts: for rewards that drift.

    horizon: that many rounds; None: what the belief says, rho / (1 - rho) where its rewards drift. Where nothing drifts it must
    be given: the number of rounds still to come. 0 is greedy. directions: in how many directions contexts vary, None: as many as
    they have numbers; 1: every context is the same, or as good as.

    Nothing is drawn: EpsilonMixed(KnowledgeGradient(), epsilon) has propensities that logs can be evaluated with.
    """

    draws = False

    horizon: float | None = None
    directions: int | None = None

    def __post_init__(self) -> None:
        if self.directions is not None:
            object.__setattr__(self, "directions", validate.count("directions", self.directions, most=MOST_DIRECTIONS))
        if self.horizon is not None:
            object.__setattr__(self, "horizon", validate.number("horizon", self.horizon, least=0, most=LONGEST))

    def pick(self, belief: Belief, X: Array, offer: Offer, k: int, rng: np.random.Generator) -> list[Pick]:
        H, ids = self.rounds(belief), offer.ids_of_slots()
        directions = min(belief.dim, MOST_DIRECTIONS) if self.directions is None else self.directions
        picks: list[Pick] = []
        for some in in_chunks(X, len(ids)):
            mean = variance = np.empty((len(some), 0))
            if len(ids):
                mean, variance = belief.played_moments(some, offer, spread=True)
                if offer.slots is None and len(offer.barred):
                    mean[:, offer.barred] = -np.inf
            for x, m, v in zip(some, mean, variance, strict=True):
                units = unit_scores(belief, x, offer, spread=True, rising=belief.likelihood.exact)
                picks.append(_Contest(belief, H, directions, m, v, units, offer).pick(ids, k))
        return picks

    def rounds(self, belief: Belief) -> float:
        """H: for how many rounds what is learned now counts."""
        horizon = self.horizon if self.horizon is not None else belief.horizon
        if horizon is None and belief.now is not None:
            horizon = 1.0  # by the clock, before two times are known: nobody knows yet how much time a round takes
        if horizon is None:
            raise InvalidInput(
                "horizon",
                "None, with a belief in which nothing drifts",
                "the number of rounds still to come, KnowledgeGradient(horizon=1_000), or a belief with drift=",
            )
        return min(horizon, LONGEST)


class _Contest:
    """One context: the moments of the played actions and of the units, and the two largest means among all of them."""

    def __init__(
        self, belief: Belief, H: float, directions: int, mean: Array, variance: Array, units: UnitScores, offer: Offer
    ) -> None:
        self.likelihood, self.H, self.directions = belief.likelihood, H, directions
        self.mean, self.variance, self.units, self.offer = mean, variance, units, offer
        # the two largest means: of a unit with several members they are the same
        own, fresh = units.two_means(kth_largest(mean, 2))
        ahead = np.argsort(-mean, kind="stable")[:2] if len(mean) > 2 else np.arange(len(mean))
        means = np.concatenate([mean[ahead], np.repeat(own, 2)])
        order = np.argsort(-means, kind="stable")
        places = np.concatenate([ahead, np.repeat(fresh, 2)])
        gone = np.zeros(len(means), dtype=np.bool_)
        gone[len(ahead) + 1 :: 2] = offer.counts[fresh] < 2
        first, *rest = order[~gone[order]].tolist()
        self.top = float(means[first])
        self.second = float(means[rest[0]]) if rest else -np.inf
        # who is alone at the top, if anybody is: among the played ones or among the units
        alone = self.second < self.top
        self.leader = int(places[first]) if alone and first < len(ahead) else -1
        self.lone_unit = int(places[first]) if alone and first >= len(ahead) else -1

    def pick(self, ids: Ints, k: int) -> Pick:
        """The k largest indices."""
        index = self.rising(self.mean, self.variance)
        if self.leader >= 0:
            at = slice(self.leader, self.leader + 1)
            index[at] = self.of_the_best(self.mean[at], self.variance[at])
        values, units = self.units.best(self.rising, k, kth_largest(index, k), self.top, self.lone_unit)
        if self.lone_unit >= 0:
            one = np.array([self.lone_unit])
            values = np.concatenate([values, self.of_the_best(*self.units.moments(one))])
            units = np.concatenate([units, one])
        return lowest_first(index, ids, (values, units), self.offer, k)

    def rising(self, mean: Array, variance: Array) -> Array:
        """The index of actions that are not the single best one."""
        return self._index(mean, variance, self.top)

    def of_the_best(self, mean: Array, variance: Array) -> Array:
        """The index of the single best one."""
        return self._index(mean, variance, self.second)

    def _index(self, mean: Array, variance: Array, other: float) -> Array:
        noise = self.likelihood.noise_variance
        with np.errstate(divide="ignore", over="ignore"):  # a slope of 0 has noise without end: nothing is learned
            sigma2 = 1.0 / self.likelihood.slope(mean) if noise is None else noise
        return mean + self.H * expected_gain(np.abs(mean - other), variance, sigma2, self.directions)


def expected_gain(gap: Array, variance: Array, noise_variance: Array | float, directions: int = 1) -> Array:
    """s f_d(gap / s), s^2 = V^2 / (V + noise): by how much the best mean of a round grows on average with one more reward.

    0 where V is. It falls with the gap, and rises with V.
    """
    V = np.maximum(variance, 0.0)
    total = V + noise_variance
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        s = V / np.sqrt(total)
        u = np.where(s > 0, np.minimum(gap / s, FAR), FAR)
    if directions > 1:
        grid, logs = _averaged(directions)
        return s * np.where(u <= grid[-1], np.exp(np.interp(u, grid, logs)), 0.0)
    f = np.exp(-0.5 * u * u) / ROOT_TWO_PI - u * ndtr(-u)
    return cast(Array, s * np.maximum(f, 0.0))


@lru_cache(maxsize=16)
def _averaged(directions: int) -> tuple[Array, Array]:
    """log f_d on a grid of u: between its points it falls as f_d does, so that an index still rises with mean and variance."""
    u = np.linspace(0.0, LAST, POINTS)
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    angles = (nodes + 1) * (np.pi / 4)  # c = cos(angle), whose density is sin(angle)^(d - 2)
    logs = np.log(weights) + (directions - 2) * np.log(np.sin(angles))
    c = np.cos(angles)
    v = u[:, None] / c
    # f(v) = phi(v) (1 - v Phi(-v) / phi(v)), the quotient being Mills' ratio
    rest = np.maximum(1 - v * np.sqrt(np.pi / 2) * erfcx(v / np.sqrt(2)), np.finfo(float).tiny)
    inside = np.log(rest) - 0.5 * v * v + np.log(c) + logs - logsumexp(logs)
    return u, logsumexp(inside, axis=1) - np.log(ROOT_TWO_PI)


__all__ = ["KnowledgeGradient", "expected_gain"]
