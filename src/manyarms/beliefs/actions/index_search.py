"""The units with the largest index, a function of the mean and the variance of a score, without a draw.

An *index* is what rules that draw nothing rank actions by: the mean, mean + width sd, a knowledge gradient. With the root
integrated out, an unplayed action of unit u has mean features_u . c and variance v + b_u^T Q b_u, b_u being its mixing weights, v
the variance of its own and Q (L, L) what the root leaves open. Two ways to find the best k, with the same answer:

- scan: both moments and the index of every unit.
- blocks: many units that share a covariance, ranked by an index that *rises with the mean and with the variance*. A box bounds
  the means inside it (blocks.py) and the variances (`BlockForm`), and so the index: blocks are opened in falling order of
  their bounds until the next cannot win. Inside an open block the index, at the block's largest variance, says which mean a
  member needs; products in float32 say who may have it, and where they are many, who has the variance; these alone are
  computed exactly, from their own rows.

**Variances of a box** with centre m and half-width h, S^T S = Q = sum_i l_i a_i a_i^T. Two bounds, and the smaller one counts:

    b^T Q b <= w^T |Q| w,  w = |m| + h           exact for a box where Q is diagonal
    b^T Q b <= sum_i l_i (|a_i . m| + |a_i| . h)^2    exact for a point, and where Q has one direction that counts

Both in the coordinates of the sketches (sketch.py); what a sketch leaves out, and its rounding, are added to |S b|.

Ties stay in: all units whose index equals the k-th largest are found, so that a rule can break ties by its own order. Exact
products go row by row in one order: a unit has the same index whichever units it is computed with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, cast

import numpy as np

from manyarms._base.typing import Array, Ints
from manyarms.beliefs.actions import search
from manyarms.beliefs.actions.blocks import Blocks
from manyarms.beliefs.actions.catalogue import Offer
from manyarms.beliefs.actions.search import Found
from manyarms.beliefs.belief import Belief
from manyarms.beliefs.leaves import Leaves
from manyarms.beliefs.mixing import MixingWeights

Index = Callable[[Array, Array], Array]
"""From means and variances (n,) to indices (n,)."""

FIRST = 2  # blocks opened before any other
DENSE = 0.4  # from this part of all blocks on, reading all is faster than picking some
OPENED = 1 << 16  # members looked at together
STEPS = 12  # halvings that find which mean a member of a block needs
FEW = 2048  # members of open blocks whose index is computed at once; of more, those with large variances come first
SMALLEST = 1e-100  # the size of a form, from which on nothing that counts underflows
GUARD = 1e-12  # of the largest number that has a part in an index: more than its rounding


class UnitScores(Protocol):
    """The scores of the units of an offer in one context."""

    def best(self, index: Index, k: int, floor: float = -np.inf, highest: float = np.inf, without: int = -1) -> Found:
        """Indices among the best k of units with members left, none below the floor, ties included, with the places of the units.

        highest: no mean is above it. without: a unit that has no part.
        """

    def two_means(self, floor: float) -> Found:
        """The two largest means of units with members left, none below the floor, with the places of the units."""

    def moments(self, places: Ints) -> tuple[Array, Array]:
        """Means and variances at some places."""


class Scanned:
    """Units by their moments."""

    def __init__(self, mean: Array, variance: Array, counts: Ints) -> None:
        self.mean, self.variance, self.counts = mean, variance, counts

    def best(self, index: Index, k: int, floor: float = -np.inf, highest: float = np.inf, without: int = -1) -> Found:
        """By the index of each."""
        values, units = search.certain(index(self.mean, self.variance), self.counts, k + (without >= 0))
        stay = (values >= floor) & (units != without)
        return values[stay], units[stay]

    def two_means(self, floor: float) -> Found:
        """By the mean of each."""
        return _two(*self.best(_mean, 2, floor))

    def moments(self, places: Ints) -> tuple[Array, Array]:
        """Means and variances at some places."""
        return self.mean[places], self.variance[places]


class Blocked:
    """Units in blocks, all with one covariance, for indices that rise with the mean and with the variance."""

    def __init__(self, leaves: Leaves, offer: Offer, c: Array, variance: float, Q: Array | None) -> None:
        """Coefficients c of the means; `variance` of the actions' own, and Q from the root (None: none)."""
        units = leaves.catalogue.units
        self.features, self.represent = cast(Array, leaves.mixing.features), units.represent
        self.counts, self.c, self.variance, self.Q = offer.counts, c, variance, Q
        self.blocks = blocks = units.blocks(self.features)
        self.empty = blocks.sizes_without(offer.withheld) <= 0
        self.asked = blocks.ask(c)
        self.highest = self.asked.bounds  # of the means in each block; lowered where its members have been looked at
        width = blocks.sketch.width
        # how far apart the means of a block may lie, but for roundings
        self.spread = 2 * blocks.boxes.rows[:, width : 2 * width] @ np.abs(self.asked.singles) * self.asked.unit
        self.form = None if Q is None else BlockForm(blocks, Q)
        self.largest = variance + (np.zeros(len(blocks)) if self.form is None else self.form.bounds)
        self.products = np.empty(
            (len(blocks), blocks.capacity), dtype=np.float32
        )  # of the members' sketches, where `seen`
        self.seen = np.zeros(len(blocks), dtype=np.bool_)

    def two_means(self, floor: float) -> Found:
        """As `best` has them; with coefficients of 0 all are 0."""
        if self.c.any():
            return _two(*self.best(_mean, 2, floor))
        left = np.flatnonzero(self.counts)[:2]
        return np.zeros(len(left)), left

    def best(self, index: Index, k: int, floor: float = -np.inf, highest: float = np.inf, without: int = -1) -> Found:
        """By bounds of blocks, in falling order."""
        opening = _Opening(self, index, k, floor, highest, without)
        opening.open(opening.hopeful()[:FIRST])
        rest = opening.hopeful()
        if len(rest):
            self.look(rest)
            opening.bound(rest)
            rest, start, number = opening.hopeful(), 0, FIRST
            while start < len(rest) and opening.upper[rest[start]] >= opening.least:
                opening.open(rest[start : start + number])
                start, number = start + number, min(2 * number, self.together)
        return opening.found

    @property
    def together(self) -> int:
        """Blocks looked at together."""
        return max(1, OPENED // self.blocks.capacity)

    def look(self, some: Ints) -> None:
        """Multiply the sketches of the members of some blocks, which bounds their means more closely than a box."""
        some = some[~self.seen[some]]
        parts: list[slice | Ints]
        if len(some) > DENSE * len(self.seen):  # as they lie in memory
            parts = [slice(start, start + self.together) for start in range(0, len(self.seen), self.together)]
        else:
            parts = [some[start : start + self.together] for start in range(0, len(some), self.together)]
        for part in parts:
            products = np.matmul(self.asked.singles, self.blocks.members.rows[part])
            self.products[part], self.seen[part] = products, True
            closer = self.asked.above(products.max(axis=1), part)
            self.highest[part] = np.minimum(self.highest[part], closer)

    def moments(self, places: Ints) -> tuple[Array, Array]:
        """Means and variances of units, each by its own row."""
        rows = self.features[self.represent[places]]
        mean = np.einsum("ul,l->u", rows, self.c)
        if self.Q is None:
            return mean, np.full(len(places), self.variance)
        return mean, self.variance + np.maximum(np.einsum("ul,ul->u", np.einsum("ul,lm->um", rows, self.Q), rows), 0.0)


class _Opening:
    """The best k so far of one index, the floor that they raise, and bounds by block."""

    def __init__(self, scores: Blocked, index: Index, k: int, floor: float, highest: float, without: int) -> None:
        self.scores, self.index, self.k, self.floor, self.without = scores, index, k, floor, without
        self.found: Found = search.nothing()
        self.cap, self.guard = highest, 0.0
        self.upper = np.empty(len(scores.blocks))
        self.bound(np.arange(len(self.upper)))
        self.upper[scores.empty] = -np.inf

    def bound(self, some: Ints) -> None:
        """Bounds on the index in some blocks; a row that is too long for a sketch is looked at itself."""
        mean, variance = np.minimum(self.scores.highest[some], self.cap), self.scores.largest[some]
        sound = np.isfinite(mean) & np.isfinite(variance)
        upper = self.index(mean[sound], variance[sound])
        self.upper[some] = np.inf
        self.upper[some[sound]] = upper
        size = max(float(np.abs(mean[sound]).max(initial=0.0)), float(np.abs(upper).max(initial=0.0)))
        self.guard = max(self.guard, GUARD * size)

    @property
    def least(self) -> float:
        """What is below this is not among the best, whatever was rounded."""
        return self.floor - self.guard - GUARD * abs(self.floor) if self.floor > -np.inf else -np.inf

    def hopeful(self) -> Ints:
        """Blocks in which there may be more, the highest bounds first, without those that were opened."""
        some = np.flatnonzero((self.upper >= self.least) & (self.upper > -np.inf))
        return some[np.argsort(-self.upper[some], kind="stable")]

    def open(self, some: Ints) -> None:
        """Find those members of some blocks that are among the best."""
        scores, blocks = self.scores, self.scores.blocks
        scores.look(some)
        products = scores.products[some]
        needed = scores.asked.thresholds(self._needed(some), some)
        can_win = (products > needed[:, None]).ravel().nonzero()[0]
        block, place = np.divmod(can_win, blocks.capacity)
        units = blocks.units.rows[some[block], place]
        here = place < blocks.lengths.rows[some[block]]
        here &= (scores.counts[units] > 0) & (units != self.without)
        units, block, can_win = units[here], block[here], can_win[here]
        if len(units) > FEW and scores.form is not None:
            mean = np.minimum(scores.asked.above(products.ravel()[can_win], some[block]), self.cap)
            variance = scores.variance + scores.form.members(some).ravel()[can_win]
            units = self._screened(units, mean, variance)
        self._add(units)
        self.upper[some] = -np.inf

    def _screened(self, units: Ints, mean: Array, variance: Array) -> Ints:
        """Of some units, with bounds on their moments, those that may be among the best."""
        sound = np.isfinite(mean) & np.isfinite(variance)
        upper = np.full(len(units), np.inf)
        upper[sound] = self.index(mean[sound], variance[sound])
        if len(upper) > self.k:  # the exact index of a few raises the floor for the others
            lead = np.argpartition(-upper, self.k - 1)[: self.k]
            self._add(units[lead])
            upper[lead] = -np.inf
        return units[(upper >= self.least) & (upper > -np.inf)]

    def _add(self, units: Ints) -> None:
        """Units with members left, by their exact index."""
        values = np.concatenate([self.found[0], self.index(*self.scores.moments(units))])
        units = np.concatenate([self.found[1], units])
        if len(values) >= self.k:
            self.floor = max(self.floor, float(-np.partition(-values, self.k - 1)[self.k - 1]))
        stay = values >= self.floor
        self.found = values[stay], units[stay]

    def _needed(self, some: Ints) -> Array:
        """A mean for each of some blocks, with which or below which no member is among the best."""
        scores, index, least = self.scores, self.index, self.least
        needed = np.full(len(some), -np.inf)
        if least == -np.inf:
            return needed
        high, variance = np.minimum(scores.highest[some], self.cap), scores.largest[some]
        low = high - scores.spread[some]
        sound = np.flatnonzero(np.isfinite(low) & np.isfinite(variance))
        low, high, variance = low[sound], high[sound], variance[sound]
        lost = index(low, variance) < least
        for _ in range(STEPS):
            middle = (low + high) / 2
            below = index(middle, variance) < least
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        needed[sound[lost]] = low[lost]
        return needed


class BlockForm:
    """Bounds on a quadratic form b^T Q b of the rows b in blocks: of each block, and of its members."""

    def __init__(self, blocks: Blocks, Q: Array) -> None:
        self.blocks, self.form = blocks, blocks.sketch.form(Q)
        self.sound = bool(np.isfinite(self.form.matrix).all()) and self.form.size > SMALLEST
        self.bounds = np.full(len(blocks), np.inf if Q.any() else 0.0)
        """By block: no b^T Q b of a row b in it is larger; infinite where floats do not hold it."""
        if not self.sound:
            return
        boxes, width, kept = blocks.boxes.rows, blocks.sketch.width, len(self.form.matrix)
        centre, half = boxes[:, :kept], boxes[:, width : width + kept]
        powers, axes = np.linalg.eigh(self.form.matrix)
        with np.errstate(over="ignore", invalid="ignore"):
            away = np.abs(centre) + half
            square = np.einsum("bi,bi->b", away @ np.abs(self.form.matrix), away)
            reach = np.abs(centre @ axes) + half @ np.abs(axes)
            square = np.minimum(square, np.square(reach) @ np.maximum(powers, 0.0))
            length = np.sqrt(square) + self.form.size * boxes[:, -1]
            if kept < width:  # the length of the rest is the last number of a sketch
                length += self.form.rest * (boxes[:, kept] + boxes[:, width + kept])
            square = np.square(length) * (1 + 1e-9)
        self.bounds = np.where(np.isfinite(square), square, np.inf)
        self._root = (np.sqrt(np.maximum(powers, 0.0))[:, None] * axes.T / self.form.size).astype(np.float32)

    def members(self, some: Ints) -> Array:
        """(blocks, room of a block): the same for each member of some blocks, by its sketch in float32."""
        if not self.sound:
            return np.repeat(self.bounds[some][:, None], self.blocks.capacity, axis=1)
        sketches, kept = self.blocks.members.rows[some], len(self.form.matrix)
        along = np.matmul(self._root, sketches[:, :kept])
        # squares and their sum are rounded as well
        length = np.sqrt(np.einsum("brm,brm->bm", along, along).astype(np.float64)) * (1 + (kept + 3) * 2.0**-23)
        with np.errstate(over="ignore", invalid="ignore"):
            length += self.blocks.boxes.rows[some, -1:]
            length *= self.form.size
            if kept < self.blocks.sketch.width:
                length += self.form.rest * sketches[:, kept].astype(np.float64)  # which a float32 may not hold
            square = np.square(length) * (1 + 1e-9)
        return np.where(np.isfinite(square), square, np.inf)


def _mean(mean: Array, variance: Array) -> Array:
    return mean


def _two(values: Array, units: Ints) -> Found:
    """The two largest of what was found, of equal ones any."""
    order = np.argsort(-values, kind="stable")[:2]
    return values[order], units[order]


def unit_scores(belief: Belief, x: Array, offer: Offer, *, spread: bool, rising: bool) -> UnitScores:
    """The units of an offer in context x, for an index that asks for variances or not (`spread`).

    rising: the index rises with both, so that blocks may serve: without candidates, for units that share a covariance and are
    more than a scan takes in its stride.
    """
    leaves = belief.leaves
    mixing, units = leaves.mixing, leaves.catalogue.units
    if (
        rising
        and offer.units is None
        and offer.fresh
        and leaves.shared
        and len(units.counts) > search.FEW
        and mixing.features is not None
        and type(belief).unplayed_moments is Belief.unplayed_moments
    ):
        c = mixing.coefficients(x[None], belief.root.mean()[None])[0]
        own = float(leaves.prior_variances(x, None)[0]) if spread else 0.0
        if not spread or belief.root.known:
            if c.any():  # else all are alike
                return Blocked(leaves, offer, c, own, None)
        elif isinstance(mixing, MixingWeights) and x.any():
            return Blocked(leaves, offer, c, own, mixing.root_form(x, belief.root.factor()))
    return Scanned(*belief.unplayed_moments(x, offer, spread=spread), offer.counts)


__all__ = ["BlockForm", "Blocked", "Index", "Scanned", "UnitScores", "unit_scores"]
