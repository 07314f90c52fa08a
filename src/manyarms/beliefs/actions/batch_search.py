"""The best of the actions that nobody has played, in many contexts at once, with the law of `search` in each of them.

Three ways, as there, and each is a few products of matrices where `search` has one of a vector for every context:

- one unit: its order statistics, one draw for each of them and each context.
- tiles: some hundred units at a time are a group (group_draws.py), with a standard deviation for each where they have their own.
- blocks: the largest noise of all actions in blocks is one draw, and belongs to a block chosen by its members; blocks whose bound
  with this noise can still win draw their own largest noise below it, and are opened from the best on. Of an open block only
  those members are looked at that have noise enough to win if their mean were the block's bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, cast

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from manyarms._base.noise import log_cdf_of_largest, normal_from_log_cdf
from manyarms._base.typing import Array, Ints
from manyarms.beliefs.actions import block_search
from manyarms.beliefs.actions.best_of_each import BestOfEach
from manyarms.beliefs.actions.blocks import AskedMany, Blocks
from manyarms.beliefs.actions.group_draws import draw_group, draw_units

TILE = 512  # units that are a group
FIRST = 4  # blocks that are opened together first in each context, and then twice as many each time
LOOSE = 4  # from so many members on that are expected to pass the floor, a block's bound is made of all its members
FEW_MEMBERS = 64  # up to so many members of a block that are expected to pass the floor are chosen one by one
TINY = 1e-300  # in place of an sd of 0, which a context near zero has
HELD = 1 << 18  # members of scanned blocks that can win, before they draw


def one_unit(best: BestOfEach, mean: Array, sd: Array, count: int, rng: np.random.Generator) -> None:
    """One unit of `count` members, with mean (n,) and sd (n,)."""
    n, k = best.scores.shape
    number = min(k, count)
    steps = rng.standard_exponential((n, number)) / (count - np.arange(number))
    scores = mean[:, None] + sd[:, None] * normal_from_log_cdf(-np.cumsum(steps, axis=1))
    best.add(np.repeat(np.arange(n), number), scores.ravel(), np.full(n * number, ~0))


def tiles(
    best: BestOfEach,
    moments: Callable[[slice], tuple[Array, Array]],
    counts: Ints,
    rng: np.random.Generator,
) -> None:
    """Units with means and perhaps sds of their own: `moments` gives (n, U) and (n, U) or (n, 1) for a slice of them."""
    for start in range(0, len(counts), TILE):
        some = slice(start, min(start + TILE, len(counts)))
        mean, sd = moments(some)
        draw_group(best, mean, sd, counts[some], ~np.arange(some.start, some.stop), rng)


def open_blocks(
    best: BestOfEach,
    blocks: Blocks,
    C: Array,
    sd: Array,
    counts: Ints,
    sizes: Array,
    features: Callable[[Ints], Array],
    rng: np.random.Generator,
) -> None:
    """Many units: coefficients C (n, f), one sd for each context (n,), members left of units and blocks, features of units."""
    members = int(sizes.sum())
    log_all = log_cdf_of_largest(np.full(len(C), members), 0.0, rng)
    largest_of_all = normal_from_log_cdf(log_all)
    owners = np.searchsorted(np.cumsum(sizes), rng.integers(members, size=len(C)), side="right")
    asked = blocks.ask_many(C)
    bound = asked.bounds
    bound[:, sizes == 0] = -np.inf
    rows, which = np.nonzero(bound > (best.floor - sd * largest_of_all)[:, None])
    mine = owners[rows] == which
    log_cdf = np.where(mine, log_all[rows], log_cdf_of_largest(sizes[which], log_all[rows], rng))
    largest = normal_from_log_cdf(log_cdf)
    largest[mine] = largest_of_all[rows[mine]]
    bound = bound[rows, which]
    pairs = Pairs(rows, which, bound, bound + sd[rows] * largest, largest, log_cdf)
    pairs = pairs.some(np.flatnonzero(pairs.upper > best.floor[rows]))
    pairs = pairs.some(np.lexsort((-pairs.upper, pairs.rows)))
    # the place of each pair in the order of its context
    ends = np.cumsum(np.bincount(pairs.rows, minlength=len(C)))
    rank = np.arange(len(pairs.rows)) - np.concatenate([[0], ends[:-1]])[pairs.rows]
    last, wave = FIRST, FIRST
    while len(rank):
        now = rank < last
        _open(best, blocks, asked, pairs.some(np.flatnonzero(now)), C, sd, counts, sizes, features, rng)
        later = np.flatnonzero(~now & (pairs.upper > best.floor[pairs.rows]))
        pairs, rank = pairs.some(later), rank[later]
        wave *= 2
        last += wave


class Pairs(NamedTuple):
    """Pairs of a context and a block: bounds on the means, on the scores, the largest noise, and log Phi of it."""

    rows: Ints
    which: Ints
    bound: Array
    upper: Array
    largest: Array
    log_cdf: Array

    def some(self, index: Ints) -> Pairs:
        """Those of an index."""
        rows, which, bound, upper, largest, log_cdf = self
        return Pairs(rows[index], which[index], bound[index], upper[index], largest[index], log_cdf[index])


def _open(
    best: BestOfEach,
    blocks: Blocks,
    asked: AskedMany,
    pairs: Pairs,
    C: Array,
    sd: Array,
    counts: Ints,
    sizes: Array,
    features: Callable[[Ints], Array],
    rng: np.random.Generator,
) -> None:
    """Draws inside blocks.

    A block's largest noise Z belongs to a member chosen uniformly among *all* its members, those that cannot win included. The
    others' noise lies below Z, and whoever is to pass the floor needs more than t = (floor - bound) / sd. So many as pass t, a
    binomial number, are chosen uniformly, and their noise lies between t and Z. Where they would be many, or the members of the
    block are hard to choose from, the block is scanned.
    """
    which = pairs.which
    owners = block_search.owners(blocks, which, counts, rng)
    units = blocks.units.rows[which, owners]
    best.add(pairs.rows, _means(features(units), C[pairs.rows]) + sd[pairs.rows] * pairs.largest, ~units)
    open_ = np.flatnonzero((pairs.upper > best.floor[pairs.rows]) & (sizes[which] > 1))
    pairs, owners = pairs.some(open_), owners[open_]
    least, chance = _passing(best, pairs, sd)
    loose = np.flatnonzero((sizes[pairs.which] - 1) * chance > LOOSE)
    if len(loose):  # members' means may lie well below the bound of their box
        pairs.bound[loose] = np.minimum(pairs.bound[loose], _bounds(blocks, asked, pairs.some(loose)))
        open_ = np.flatnonzero(pairs.bound + sd[pairs.rows] * pairs.largest > best.floor[pairs.rows])
        pairs, owners = pairs.some(open_), owners[open_]
        least, chance = _passing(best, pairs, sd)
    which, lengths = pairs.which, blocks.lengths.rows[pairs.which]
    simple = blocks.alone.rows[which] & (2 * sizes[which] >= lengths)
    few = simple & (least > 0) & ((sizes[which] - 1) * chance <= FEW_MEMBERS)
    scan = np.flatnonzero(~few)
    if len(scan):
        _scan(best, blocks, asked, pairs.some(scan), owners[scan], C, sd, counts, features, rng)
    some = np.flatnonzero(few)
    number = rng.binomial((sizes[which[some]] - 1).astype(np.int64), chance[some])
    pair = np.repeat(some, number)
    if not len(pair):
        return
    units = _others(blocks, which[pair], pair, owners[pair], lengths[pair], counts, rng)
    rows = pairs.rows[pair]
    low, high = -np.expm1(pairs.log_cdf[pair]), ndtr(-least[pair])  # tails of Z and of t
    noise = -ndtri(low + rng.random(len(pair)) * (high - low))
    best.add(rows, _means(features(units), C[rows]) + sd[rows] * noise, ~units)


def _passing(best: BestOfEach, pairs: Pairs, sd: Array) -> tuple[Array, Array]:
    """The noise t that a member with the bound for a mean needs to pass the floor, and its chance to have more."""
    least = (best.floor[pairs.rows] - pairs.bound) / np.maximum(sd[pairs.rows], TINY)
    return least, np.maximum(-np.expm1(log_ndtr(least) - pairs.log_cdf), 0.0)


def _bounds(blocks: Blocks, asked: AskedMany, pairs: Pairs) -> Array:
    """Bounds on the means of blocks by the sketches of all their members; contexts that look at one block share a product."""
    order = np.argsort(pairs.which, kind="stable")
    rows, which = pairs.rows[order], pairs.which[order]
    coefficients, products = asked.singles[rows], np.empty(len(rows))
    for start, stop in _runs(which):
        products[start:stop] = (coefficients[start:stop] @ blocks.members.rows[which[start]]).max(axis=1)
    out = np.empty(len(rows))
    out[order] = (products + asked.slack[which] * asked.sizes[rows]) * asked.units[rows]
    return out


def _runs(which: Ints) -> Iterator[tuple[int, int]]:
    """Where equal numbers in a sorted array start and stop."""
    starts = np.flatnonzero(np.diff(which, prepend=-1)).tolist()
    return zip(starts, [*starts[1:], len(which)], strict=True)


def _others(
    blocks: Blocks, which: Ints, pair: Ints, owners: Ints, lengths: Ints, counts: Ints, rng: np.random.Generator
) -> Ints:
    """A unit of its block for each entry: not the owner, not gone, and no two alike where the pair is the same.

    What cannot stay is drawn again. Nothing depends on the places but whether they are allowed and equal, so that all choices
    have the same chance.
    """
    place, table = np.empty(len(pair), dtype=np.int64), blocks.units.rows
    again = looked = np.arange(len(pair))
    while len(again):
        place[again] = rng.integers(lengths[again])
        bad = (place[looked] == owners[looked]) | (counts[table[which[looked], place[looked]]] == 0)
        key = pair[looked] * blocks.capacity + place[looked]
        order = np.argsort(key, kind="stable")
        bad[order[1:][key[order[1:]] == key[order[:-1]]]] = True
        again = looked[bad]
        looked = looked[np.isin(pair[looked], pair[again])]
    return cast(Ints, table[which, place])


def _means(features: Array, C: Array) -> Array:
    return cast(Array, np.einsum("ij,ij->i", features, C))


def _scan(
    best: BestOfEach,
    blocks: Blocks,
    asked: AskedMany,
    pairs: Pairs,
    owners: Ints,
    C: Array,
    sd: Array,
    counts: Ints,
    features: Callable[[Ints], Array],
    rng: np.random.Generator,
) -> None:
    """The same with a bound on the mean of every member; contexts that look at one block share a product."""
    order = np.argsort(pairs.which, kind="stable")
    (rows, which, _, _, largest, log_cdf), owners = pairs.some(order), owners[order]
    reach, coefficients = sd[rows] * largest, asked.singles[rows]
    threshold = asked.thresholds(best.floor[rows] - reach, rows, which)[:, None]
    held, found = 0, list[tuple[int, Ints]]()
    for start, stop in _runs(which):
        bound = coefficients[start:stop] @ blocks.members.rows[which[start]]
        can_win = np.flatnonzero(bound > threshold[start:stop])
        found.append((start, can_win))
        held += len(can_win)
        if held <= HELD and stop < len(which):
            continue
        first = np.repeat([start for start, _ in found], [len(some) for _, some in found])
        pair, place = np.divmod(np.concatenate([some for _, some in found]), blocks.capacity)
        pair += first
        inside = place < blocks.lengths.rows[which[pair]]
        pair, place = pair[inside], place[inside]
        here, units = rows[pair], blocks.units.rows[which[pair], place]
        mean = _means(features(units), C[here])
        left = counts[units] - (place == owners[pair])
        draw_units(best, here, mean, sd[here], left, largest[pair], log_cdf[pair], ~units, rng)
        held, found = 0, []
        threshold = asked.thresholds(best.floor[rows] - reach, rows, which)[:, None]


__all__ = ["one_unit", "open_blocks", "tiles"]
