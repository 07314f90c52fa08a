"""The best of very many units with one common sd, most of which are never looked at.

The largest noise of a whole block is one draw, and belongs to a member chosen uniformly, its *owner*; no other member has more.
A block is opened only if its bound on the means plus that noise can still win, and inside it only members that can still win
draw theirs, truncated below the block's largest. The law is that of a draw for every action.

Three things keep that cheap: bounds of boxes say which blocks to think of (blocks.py), products in float32 say which of their
members to think of (sketch.py), and exact means are computed for these alone. Where weights are of so many and so equal
dimensions that boxes say nothing, what is left is one product in float32 with all of them, in pieces that stay in the cache, and
still no draw for every action: about half of what the plain product and its normals take.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from manyarms._base.noise import above_normal, below, log_cdf_of_largest, normal_from_log_cdf
from manyarms._base.typing import Array, Ints
from manyarms.beliefs.actions.blocks import Blocks
from manyarms.beliefs.actions.search import Found, best_of, nothing, successors
from manyarms.beliefs.actions.sketch import Singles

MANY = 32  # blocks that may win, from which on all their members are bounded before any is opened
FIRST = 8  # blocks opened before all others then
DENSE = 0.4  # from this part of all blocks on, reading all is faster than picking those that may win
OPENED = 1 << 16  # members looked at together


def open_blocks(
    blocks: Blocks,
    c: Array,
    sd: float,
    counts: Ints,
    sizes: Array,
    means: Callable[[Ints], Array],
    floor: float,
    k: int,
    rng: np.random.Generator,
) -> Found:
    """Scores above the floor among the best k, and their units: features . c + sd noise for each of the `counts` of a unit.

    `sizes` are the members left in each block, `means` gives the exact means of units. The block with the highest bound comes
    first: it usually raises the floor above most of the rest.
    """
    opening = _Opening(blocks, c, sd, counts, sizes, means, floor, k, rng)
    opening.open_first()
    hopeful, largest = opening.hopeful()
    if len(hopeful) > MANY:
        upper = opening.tightened(hopeful, largest)
        first = top(upper, FIRST)
        first = first[upper[first] > opening.floor]
        if len(first):
            opening.open(hopeful[first], largest[first])
            upper[first] = -np.inf
        rest = (upper > opening.floor).nonzero()[0]
        hopeful, largest = hopeful[rest], largest[rest]
    together = max(1, OPENED // blocks.capacity)
    for start in range(0, len(hopeful), together):
        part = slice(start, start + together)
        opening.open(hopeful[part], largest[part])
    return opening.found


class _Opening:
    """The noise of all blocks, given which draws inside some of them are made; the best k so far, and the floor they raise."""

    def __init__(
        self,
        blocks: Blocks,
        c: Array,
        sd: float,
        counts: Ints,
        sizes: Array,
        means: Callable[[Ints], Array],
        floor: float,
        k: int,
        rng: np.random.Generator,
    ) -> None:
        self.blocks, self.sd, self.counts, self.means = blocks, sd, counts, means
        self.floor, self.k, self.rng = floor, k, rng
        self.found = nothing()
        self.asked = blocks.ask(c)
        self.bounds = self.asked.bounds  # of blocks that are not done with
        if sizes.min() <= 0:
            self.bounds[sizes <= 0] = -np.inf
            sizes = np.maximum(sizes, 1.0)
        # log Phi of the largest noise of each block; the noise itself is computed where it counts
        self.log_cdf = log_cdf_of_largest(sizes, 0.0, rng)

    def open_first(self) -> None:
        """Draw all members of the block with the highest bound, which is then done with."""
        block, blocks = int(self.bounds.argmax()), self.blocks
        largest = normal_from_log_cdf(self.log_cdf[block : block + 1])[0]
        if self.bounds[block] + self.sd * largest <= self.floor:
            return
        units = blocks.units.rows[block, : blocks.lengths.rows[block]]
        bound = (
            np.dot(self.asked.singles, blocks.members.rows[block])[: len(units)]
            + self.asked.slack[block] * self.asked.size
        )
        bound *= self.asked.unit
        place = int(self.rng.random() * len(units))
        if not blocks.alone.rows[block] or not self.counts[units[place]]:
            ends = self.counts[units].cumsum()
            place = int(ends.searchsorted(self.rng.integers(ends[-1]), side="right"))
        self._draw(bound, units, largest, self.log_cdf[block], np.array([place]))
        self.bounds[block] = -np.inf

    def hopeful(self) -> tuple[Ints, Array]:
        """The blocks that can still win, and the largest noise of each; none is larger than the largest of all blocks."""
        most = above_normal(float(self.log_cdf.max()))
        some = (self.bounds > self.floor - self.sd * most).nonzero()[0]
        largest = normal_from_log_cdf(self.log_cdf[some])
        stay = (self.bounds[some] + self.sd * largest > self.floor).nonzero()[0]
        return (some, largest) if len(stay) == len(some) else (some[stay], largest[stay])

    def tightened(self, some: Ints, largest: Array) -> Array:
        """Bounds on the scores in some blocks, by all their members in place of their boxes."""
        together = max(1, OPENED // self.blocks.capacity)
        number = len(self.bounds)
        if len(some) > DENSE * number:
            runs = [slice(start, start + together) for start in range(0, number, together)]  # as they lie in memory
            highest = np.concatenate([self._products(run).max(axis=1) for run in runs])[some]
        else:
            parts = [some[start : start + together] for start in range(0, len(some), together)]
            highest = np.concatenate([self._products(part).max(axis=1) for part in parts])
        return np.minimum(self.bounds[some], self.asked.above(highest, some)) + self.sd * largest

    def open(self, some: Ints, largest: Array) -> None:
        """Draw those members of some blocks that can still win; the largest noise of each block is known."""
        blocks, products = self.blocks, self._products(some)
        thresholds = self.asked.thresholds(self.floor - self.sd * largest, some)
        can_win = (products > thresholds[:, None]).ravel().nonzero()[0]
        if not len(can_win):  # the boxes promised more than their members hold
            return
        block, place = np.divmod(can_win, blocks.capacity)
        at = some[block]
        inside = (place < blocks.lengths.rows[at]).nonzero()[0]
        if len(inside) < len(block):
            if not len(inside):
                return
            can_win, block, place, at = can_win[inside], block[inside], place[inside], at[inside]
        units = blocks.units.rows[at, place]
        bound = self.asked.above(products.ravel()[can_win], at)
        # a block's largest noise belongs to a member chosen uniformly among *all* its members, those that cannot win included
        mine = (place == self._owners(some, block)[block]).nonzero()[0]
        self._draw(bound, units, largest[block], self.log_cdf[at], mine)

    def _owners(self, some: Ints, block: Ints) -> Ints:
        """The places of the owners in some blocks, at least in those of them that `block` names."""
        if len(some) <= MANY:
            return owners(self.blocks, some, self.counts, self.rng)
        named = np.zeros(len(some), dtype=np.bool_)
        named[block] = True
        here = named.nonzero()[0]
        places = np.empty(len(some), dtype=np.int64)
        places[here] = owners(self.blocks, some[here], self.counts, self.rng)
        return places

    def _products(self, some: Ints | slice) -> Singles:
        """(blocks, room of a block): sketches of the members of some blocks times the coefficients."""
        return cast(Singles, np.matmul(self.asked.singles, self.blocks.members.rows[some]))

    def _draw(self, bound: Array, units: Ints, largest: Array | float, log_cdf: Array | float, mine: Ints) -> None:
        """Scores of units: all noise lies below the largest, which belongs to those at `mine`.

        Noise first: means are known up to a bound, and exact ones are computed where bound and noise can still win.
        """
        counts = self.counts[units]
        own = self.sd * (largest[mine] if isinstance(largest, np.ndarray) else largest)
        others = np.count_nonzero(counts != 1)  # most units have their one member
        if others and counts.max() > 1:
            left = counts.copy()
            left[mine] -= 1
            # without the bound, which may be so far above the means that noise added to it would be lost
            zeros, floors = np.zeros(len(bound)), self.floor - bound
            spread, who = successors(zeros, self.sd, left, log_cdf, floors, self.k, self.rng)
            spread = np.concatenate([spread, np.broadcast_to(own, len(mine))])
            who = np.concatenate([who, mine])
            if not len(who):
                return
            units, upper = units[who], bound[who] + spread
        else:
            spread = below(largest, log_cdf, len(bound), self.rng)
            spread *= self.sd
            spread[mine] = own
            upper = bound + spread
            if others:
                upper[counts == 0] = -np.inf
        if self.k == 1:
            lead = int(upper.argmax())
            if upper[lead] <= self.floor:
                return
            one = units[lead : lead + 1]
            score = self.means(one) + spread[lead]
            if score[0] > self.floor:
                self.found, self.floor = (score, one), float(score[0])
            upper[lead] = -np.inf
        elif len(upper) > self.k:
            leads = top(upper, self.k)
            if upper[leads].min() > self.floor:
                least = (self.means(units[leads]) + spread[leads]).min()
                self.floor = max(self.floor, float(np.nextafter(least, -np.inf)))  # which they themselves exceed
        stay = (upper > self.floor).nonzero()[0]
        if len(stay):
            self._exact(units[stay], spread[stay])

    def _exact(self, units: Ints, spread: Array) -> None:
        """Add scores of exact means to what was found."""
        scores = np.concatenate([self.found[0], self.means(units) + spread])
        units = np.concatenate([self.found[1], units])
        scores, units, self.floor = best_of(scores, units, self.k, self.floor)
        self.found = scores, units


def top(values: Array, k: int) -> Ints:
    """Places of the largest k values."""
    return np.argpartition(values, len(values) - k)[len(values) - k :]


def owners(blocks: Blocks, which: Ints, counts: Ints, rng: np.random.Generator) -> Ints:
    """A place in each of these blocks, with probability proportional to the members left there."""
    lengths = blocks.lengths.rows[which]
    owner = (rng.random(len(which)) * lengths).astype(np.int64)
    # most places have their one member, and are taken as they come; elsewhere members are counted
    taken = blocks.alone.rows[which] & (counts[blocks.units.rows[which, owner]] > 0)
    rest = (~taken).nonzero()[0]
    if len(rest):
        ends = counts[blocks.units.rows[which[rest]]].cumsum(axis=1)  # what lies beyond a block's length comes last
        member = rng.integers(ends[np.arange(len(rest)), lengths[rest] - 1])
        owner[rest] = (ends <= member[:, None]).sum(axis=1)
    return cast(Ints, owner)


__all__ = ["open_blocks", "owners"]
