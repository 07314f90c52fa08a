"""Chances of an action given draws of what all actions share, whose average is its propensity under Thompson sampling.

One draw of the root makes one contest (contests.py). Draws differ only by what the root does to the chance, and most of that
happens along one direction of it: the gradient of the log-chance at the root's mean. With t the standard normal coordinate along
it, t is drawn from N(b, 1), where the chance times the density of t has its top, weighted by exp(-b t + b^2/2), in n/2 strata of
equal probability with two or three draws in each. The average over strata is unbiased whatever the direction and b are, and the
differences inside the strata give its variance, without bias too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtri

from manyarms._base.typing import Array, Bools
from manyarms.beliefs import leaf_scores
from manyarms.beliefs.actions.catalogue import Offer, Place
from manyarms.beliefs.contests import HALF_LOG_2PI, MANY, TINY, Contest, Found, binned, chance, rivals

if TYPE_CHECKING:
    from manyarms.beliefs.belief import Belief

GRID = 1024


class Chances(NamedTuple):
    """Logarithms of unbiased estimates (n,) of the chance of the first place, and of a place among the best k.

    strata: in how many strata of equal probability they were drawn, in order; sizes differ by at most one.
    """

    first: Array
    inside: Array
    strata: int = 1


def of_contests(contests: Iterable[Contest], k: int, n: int, rng: np.random.Generator) -> Chances:
    """The chances in n contests."""
    first, inside = np.empty(n), np.empty(n)
    shifts = rng.random((n, 2))
    shifts[shifts == 0.0] = 0.5
    best: Found | None = None
    among: Found | None = None
    for i, contest in enumerate(contests):
        best = chance(contest, 1, shifts[i, 0], best)
        first[i] = best.log
        if k > 1:
            among = chance(contest, k, shifts[i, 1], among)
            inside[i] = among.log
    return Chances(first, inside if k > 1 else first)


def of_listed(mean: Array, variance: Array, moved: Bools, place: int, k: int, rng: np.random.Generator) -> Chances:
    """The chances of one of m actions with independent scores N(mean, variance) (n, m).

    moved: which have a context other than zeros (m,). The others score 0, whatever is drawn, and are put in any order alike:
    one of them is first where no other score is positive, and then with the chance of each.
    """
    n, m = mean.shape
    others = np.delete(np.arange(m), place)
    sd = np.sqrt(np.maximum(variance, 0.0))
    if moved[place]:
        one = np.ones(m - 1)
        contests = (
            Contest(float(a[place]), float(b[place]), rivals([(a[others], b[others], one)]))
            for a, b in zip(mean, sd, strict=True)
        )
        return of_contests(contests, k, n, rng)
    still, others = m - int(moved.sum()), np.flatnonzero(moved)
    first, inside = np.empty(n), np.empty(n)
    for i in range(n):
        fewer = rivals([(mean[i, others], sd[i, others], np.ones(len(others)))]).ahead(np.zeros(1), k)[0]
        first[i], inside[i] = fewer[0], logsumexp(fewer[::-1][: min(k, still)])
    return Chances(first - np.log(still), inside - np.log(still))


class Roots(NamedTuple):
    """Draws of a root (n, p), the logarithms of their weights (n,), and in how many strata they were drawn."""

    draws: Array
    log_weights: Array
    strata: int


class TwoLevel:
    """Contests of one action of a two-level belief in one context, as functions of the root."""

    def __init__(self, belief: Belief, x: Array, offer: Offer, place: Place) -> None:
        self.x, self.root, self.leaves = x, belief.root, belief.leaves
        slots = np.arange(len(self.leaves.counts)) if offer.slots is None else offer.slots
        self.at, self.variance, self.slopes = leaf_scores.lines(self.leaves, x, slots, self.root.known)
        self.mine = place.position if place.played else None
        # the rivals among the played actions
        self.played = np.ones(len(slots), dtype=bool)
        self.played[offer.barred if offer.slots is None else slice(0)] = False
        self.played[place.position if place.played else slice(0)] = False
        # and the others, by units: their members, and a row of features for each, from the table itself where units are actions
        units, features = self.leaves.catalogue.units, self.leaves.mixing.features
        ids = units.represent if offer.units is None else units.represent[offer.units]
        self.counts = offer.counts.astype(np.float64)
        whole = features is not None and offer.units is None and units.alone and len(ids) == len(features)
        self.rows = np.ones((len(ids), 1)) if features is None else features if whole else features[ids]
        self.unit_variance = self.leaves.prior_variances(x, None if whole else ids)  # one, or one for each unit
        if not place.played:
            self.counts[place.position] -= 1
            self.own_row = self.rows[place.position]
            self.own_variance = float(self.unit_variance[place.position if len(self.unit_variance) > 1 else 0])

    def contests(self, M: Array) -> Iterator[Contest]:
        """The contest that each root makes."""
        if self.root.known:
            contest = self.contest(M[0])
            for _ in M:
                yield contest
        else:
            yield from map(self.contest, M)

    def contest(self, m: Array) -> Contest:
        """The contest, given the root."""
        c, keep = self._coefficients(m), self.played
        mean = self.at if self.slopes is None else self.at + self.slopes @ m
        pieces = [(mean[keep], np.sqrt(np.maximum(self.variance[keep], 0.0)), np.ones(int(keep.sum())))]
        if len(self.counts):
            means, sd = self.rows @ c, np.sqrt(np.maximum(self.unit_variance, 0.0))
            pieces.append(binned(means, sd, self.counts))
        if self.mine is None:
            return Contest(float(self.own_row @ c), float(np.sqrt(max(self.own_variance, 0.0))), rivals(pieces))
        own = float(mean[self.mine]), float(np.sqrt(max(self.variance[self.mine], 0.0)))
        return Contest(*own, rivals(pieces))

    def roots(self, k: int, n: int, rng: np.random.Generator) -> Roots:
        """n draws of the root, tilted and stratified where it is normal."""
        if not self.root.normal or n < 4:
            return Roots(self.root.draw(rng, n), np.zeros(n), 1)
        mean, factor = self.root.mean(), self.root.factor()
        middle, gradient = self._gradient(mean)
        along = gradient @ factor
        slope = float(np.linalg.norm(along))
        z = rng.standard_normal((n, self.root.dim))
        if not 0 < slope < np.inf:
            return Roots(mean + z @ factor.T, np.zeros(n), 1)
        along /= slope
        # log-chance ~ slope t - bend t^2 / 2 on the line, so that times a normal density it has its top at slope / (1 + bend)
        far = float(np.clip(slope, 0.5, 3.0))
        there = chance(self.contest(mean + far * (factor @ along)), 1, 0.5, middle).log
        bend = max(2 * (slope * far - (there - middle.log)) / far**2, 0.0)
        tilt = slope / (1 + bend) / (1 if k == 1 else 2)
        strata = n // 2
        which = np.repeat(np.arange(strata), [len(some) for some in np.array_split(np.arange(n), strata)])
        t = tilt + ndtri(np.clip((which + rng.random(n)) / strata, TINY, 1 - 1e-16))
        z += np.outer(t - z @ along, along)
        return Roots(mean + z @ factor.T, tilt * (tilt / 2 - t), strata)

    def _coefficients(self, m: Array) -> Array:
        return cast(Array, self.leaves.mixing.coefficients(self.x[None], m[None])[0])

    def _gradient(self, m: Array) -> tuple[Found, Array]:
        """The chance of the first place, and (p,) how its logarithm moves with the root, at the mode of its integrand.

        With s = mu_a + sd_a z the score there, log F(s) moves by h_b (slope_a - slope_b) for each rival b, where
        h_b = phi / Phi at (s - mu_b) / sd_b, over sd_b.
        """
        c, slopes, p = self._coefficients(m), cast(Array, self.slopes), self.root.dim
        contest = self.contest(m)
        found = chance(contest, 1, 0.5)
        s = contest.mean + contest.sd * found.mode
        played = _hazards(self.at + slopes @ m, np.sqrt(np.maximum(self.variance, TINY)), self.played, s)
        unplayed = self._unit_hazards(c, s)
        # the coefficients are linear in the root: one row for each of its entries
        lift = self.leaves.mixing.coefficients(np.broadcast_to(self.x, (p, len(self.x))), np.eye(p))
        own = lift @ self.own_row if self.mine is None else slopes[self.mine]
        total = float(played.sum() + unplayed.sum())
        return found, total * own - played @ slopes - lift @ (unplayed @ self.rows)

    def _unit_hazards(self, c: Array, s: float) -> Array:
        """h of each unit, times its members; from a table, where many units share an sd."""
        means, sd = self.rows @ c, np.sqrt(np.maximum(self.unit_variance, TINY))
        if len(sd) > 1 or len(means) <= MANY:
            return _hazards(means, sd, self.counts, s)
        low, high = float(means.min()), float(means.max())
        grid = np.linspace(low, high, GRID)
        which = ((means - low) * ((GRID - 1) / max(high - low, TINY))).astype(np.int64)
        return self.counts * _hazards(grid, sd, np.ones(GRID), s)[np.clip(which, 0, GRID - 1)]


def _hazards(mean: Array, sd: Array, counts: Array | Bools, s: float) -> Array:
    with np.errstate(over="ignore"):
        z = (s - mean) / sd
        return cast(Array, counts * np.exp(np.minimum(-0.5 * z * z - HALF_LOG_2PI - log_ndtr(z), 600.0)) / sd)


__all__ = ["Chances", "TwoLevel", "of_contests", "of_listed"]
