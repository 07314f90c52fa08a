"""The best of the actions that nobody has played, with the law of drawing a score for each of them.

Given the root, an unplayed action of unit u scores N(mean_u, sd_u^2), independently over actions, with
mean_u = features_u . c. Four ways to find the best k among all of them; they differ in cost and not in law:

- groups: few units. The largest of a unit's m normals is one draw, the next its successor (noise.py).
- blocks: many units with one common sd. The largest noise of a whole block is one draw; a block is opened only if its
  bound on the means plus that noise can still win, and inside it only members that can still win draw theirs, truncated
  below the block's largest, which belongs to a uniform member. Where the features have so many dimensions that the bounds say
  little, most blocks are looked into: that is the full product, but still without a draw for every action.
- scan: every unit draws, in pieces that stay in the cache. For units with an sd of their own.
- certain: no noise at all, for decisions that draw nothing.

All return (scores, units): every draw among the best k that exceeds `floor`, in no particular order, and possibly some more.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

from manyarms._base.noise import log_cdf_of_largest, normal_from_log_cdf
from manyarms._base.typing import Array, Bools, Ints
from manyarms.beliefs.actions.blocks import Blocks

PIECE = 1 << 14
FEW = 4096  # up to this many units are drawn directly
WAVE = 16  # blocks opened together at most

Found = tuple[Array, Ints]


def one_unit(mean: float, sd: float, count: int, floor: float, rng: np.random.Generator) -> Found:
    """The best of one unit: a single draw. What `groups` does, for the commonest case of all, without arrays."""
    tail = -math.expm1(-rng.standard_exponential() / count)
    score = mean - sd * float(ndtri(tail))
    return (np.array([score]), np.zeros(1, dtype=np.int64)) if score > floor else _nothing()


def successors(
    mean: Array,
    sd: Array | float,
    counts: Array | Ints,
    log_ceiling: Array | float,
    floor: float,
    k: int,
    rng: np.random.Generator,
) -> tuple[Array, Ints]:
    """Up to k order statistics of each unit's draws, as long as they exceed the floor: (scores, index of the unit).

    All draws of a unit lie below its ceiling, given as log Phi(ceiling).
    """
    which = np.flatnonzero(counts)
    if len(which) < len(counts):
        mean, counts, sd, log_ceiling = mean[which], counts[which], _some(sd, which), _some(log_ceiling, which)
    scores, owners = [np.empty(0)], [which[:0]]
    for _ in range(k):
        if not len(which):
            break
        log_cdf = log_cdf_of_largest(counts, log_ceiling, rng)
        score = mean + sd * normal_from_log_cdf(log_cdf)
        stay = score > floor
        scores.append(score[stay])
        owners.append(which[stay])
        stay &= counts > 1
        which, mean, counts, log_ceiling = which[stay], mean[stay], counts[stay] - 1, log_cdf[stay]
        sd = _some(sd, stay)
    return (scores[1], owners[1]) if len(scores) == 2 else (np.concatenate(scores), np.concatenate(owners))


def _some(values: Array | float, which: Ints | Bools) -> Array | float:
    return values if isinstance(values, float) else values[which]


def _nothing() -> Found:
    return np.empty(0), np.empty(0, dtype=np.int64)


def groups(mean: Array, sd: Array | float, counts: Ints, floor: float, k: int, rng: np.random.Generator) -> Found:
    """Few units: the order statistics of each, directly."""
    return successors(mean, sd, counts, 0.0, floor, k, rng)


def scan(
    columns: Array | None,
    c: Array,
    sd: Array | float,
    counts: Ints,
    floor: float,
    k: int,
    rng: np.random.Generator,
) -> Found:
    """Every unit draws. `columns` (f, U) are the features (None: all means equal c[0])."""
    size = len(counts)
    alone = bool(counts.max(initial=0) <= 1)
    best_scores, best_units = np.empty(0), np.empty(0, dtype=np.int64)
    buffer = np.empty(min(PIECE, size))
    for start in range(0, size, PIECE):
        stop = min(start + PIECE, size)
        mean = np.full(stop - start, c[0]) if columns is None else c @ columns[:, start:stop]
        piece_sd = sd if isinstance(sd, float) else sd[start:stop]
        here = counts[start:stop]
        if alone:
            score = buffer[: stop - start]
            rng.standard_normal(out=score)
            score *= piece_sd
            score += mean
            score[here == 0] = -np.inf
            top = _above(score, floor, k)
            found, units = score[top], top
        else:
            found, units = successors(mean, piece_sd, here, 0.0, floor, k, rng)
        if len(found):
            best_scores = np.concatenate([best_scores, found])
            best_units = np.concatenate([best_units, units + start])
            best_scores, best_units, floor = _best(best_scores, best_units, k, floor)
    return best_scores, best_units


def _above(score: Array, floor: float, k: int) -> Ints:
    """Places of (at least) the best k scores above the floor."""
    if k == 1:
        top = int(score.argmax())
        return np.array([top] if score[top] > floor else [], dtype=np.int64)
    above = np.flatnonzero(score > floor)
    return above if len(above) <= k else above[np.argpartition(-score[above], k - 1)[:k]]


def _best(scores: Array, units: Ints, k: int, floor: float) -> tuple[Array, Ints, float]:
    """The best k of what was found, and the floor that they raise."""
    if len(scores) < k:
        return scores, units, floor
    if len(scores) > k:
        top = np.argpartition(-scores, k - 1)[:k]
        scores, units = scores[top], units[top]
    return scores, units, max(floor, float(scores.min()))


def open_blocks(
    blocks: Blocks,
    c: Array,
    sd: float,
    counts: Ints,
    sizes: Array,
    floor: float,
    k: int,
    rng: np.random.Generator,
) -> Found:
    """Blocks in descending order of an upper bound on their best score; `sizes` are the members left in each block.

    They are opened in waves of 1, 2, 4, ... blocks: the first one or two usually raise the floor above most of the rest,
    and where many must be opened after all, work on whole waves costs less than block by block.
    """
    live = np.flatnonzero(sizes > 0)
    log_cdf = log_cdf_of_largest(sizes[live], 0.0, rng)
    largest = normal_from_log_cdf(log_cdf)
    upper = blocks.bounds(c)[live] + sd * largest
    hopeful = np.flatnonzero(upper > floor)
    hopeful = hopeful[np.argsort(-upper[hopeful])]
    scores, units = _nothing()
    start, wave = 0, 1
    while start < len(hopeful):
        some = hopeful[start : start + wave]
        start, wave = start + wave, min(2 * wave, WAVE)
        some = some[upper[some] > floor]
        if not len(some):
            break
        found, owners = _open(blocks, live[some], c, sd, counts, sizes, largest[some], log_cdf[some], floor, k, rng)
        if len(found):
            scores, units = np.concatenate([scores, found]), np.concatenate([units, owners])
            scores, units, floor = _best(scores, units, k, floor)
    return scores, units


def _open(
    blocks: Blocks,
    which: Ints,
    c: Array,
    sd: float,
    counts: Ints,
    sizes: Array,
    largest: Array,
    log_cdf: Array,
    floor: float,
    k: int,
    rng: np.random.Generator,
) -> Found:
    """Draws inside some blocks, given the largest noise of each and its log Phi."""
    mean = np.concatenate([c @ blocks.members[b] for b in which.tolist()])
    lengths = blocks.lengths.rows[which]
    ends = np.cumsum(lengths)
    can_win = np.flatnonzero(mean > np.repeat(floor - sd * largest, lengths))
    if not len(can_win):  # the boxes promised more than their members hold
        return _nothing()
    block = np.searchsorted(ends, can_win, side="right")
    place = can_win - (ends - lengths)[block]
    units = blocks.units.rows[which[block], place]
    mean = mean[can_win]
    # a block's largest noise belongs to a member chosen uniformly among *all* its members, those that cannot win included
    mine = place == _owners(blocks, which, lengths, counts, sizes, rng)[block]
    score, winners = successors(mean, sd, counts[units] - mine, log_cdf[block], floor, k, rng)
    return np.append(score, mean[mine] + sd * largest[block[mine]]), np.append(units[winners], units[mine])


def _owners(blocks: Blocks, which: Ints, lengths: Ints, counts: Ints, sizes: Array, rng: np.random.Generator) -> Ints:
    """A place in each block, with probability proportional to the members left there."""
    table = blocks.units.rows
    simple = blocks.alone.rows[which] & (2 * sizes[which] >= lengths)
    owner = np.zeros(len(which), dtype=np.int64)
    todo = np.flatnonzero(simple)
    while len(todo):  # most places have their one member: draw until one has
        owner[todo] = rng.integers(lengths[todo])
        todo = todo[counts[table[which[todo], owner[todo]]] == 0]
    for i in np.flatnonzero(~simple).tolist():
        ends = np.cumsum(counts[table[which[i], : lengths[i]]])
        owner[i] = np.searchsorted(ends, rng.integers(ends[-1]), side="right")
    return owner


def certain(score: Array, counts: Ints, k: int) -> Found:
    """No noise: units with members left whose score is among the best k, ties included."""
    live = np.flatnonzero(counts > 0)
    if not len(live):
        return np.empty(0), live
    values = score[live]
    if len(live) > k:
        threshold = -np.partition(-values, k - 1)[k - 1]
        live = live[values >= threshold]
    return score[live], live
