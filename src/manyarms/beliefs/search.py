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

import numpy as np

from manyarms._typing import Array, Ints
from manyarms.beliefs.blocks import Blocks
from manyarms.noise import log_cdf_of_largest, normal_from_log_cdf

PIECE = 1 << 14
FEW = 4096  # up to this many units are drawn directly

Found = tuple[Array, Ints]


def successors(
    mean: Array,
    sd: Array | float,
    counts: Array | Ints,
    log_ceiling: float,
    floor: float,
    k: int,
    rng: np.random.Generator,
) -> tuple[Array, Ints]:
    """Up to k order statistics of each unit's draws, as long as they exceed the floor: (scores, index of the unit).

    All draws lie below a common ceiling, given as log Phi(ceiling).
    """
    which = np.flatnonzero(counts)
    if len(which) < len(counts):
        mean, counts = mean[which], counts[which]
        sd = sd if isinstance(sd, float) else sd[which]
    ceiling: Array | float = log_ceiling
    scores, owners = [np.empty(0)], [which[:0]]
    for _ in range(k):
        if not len(which):
            break
        log_cdf = log_cdf_of_largest(counts, ceiling, rng)
        score = mean + sd * normal_from_log_cdf(log_cdf)
        stay = score > floor
        scores.append(score[stay])
        owners.append(which[stay])
        stay &= counts > 1
        which, mean, counts, ceiling = which[stay], mean[stay], counts[stay] - 1, log_cdf[stay]
        sd = sd if isinstance(sd, float) else sd[stay]
    return (scores[1], owners[1]) if len(scores) == 2 else (np.concatenate(scores), np.concatenate(owners))


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
            best_scores, best_units, floor = _keep(best_scores, best_units, k, floor)
    return best_scores, best_units


def _above(score: Array, floor: float, k: int) -> Ints:
    """Places of (at least) the best k scores above the floor."""
    if k == 1:
        top = int(score.argmax())
        return np.array([top] if score[top] > floor else [], dtype=np.int64)
    above = np.flatnonzero(score > floor)
    return above if len(above) <= k else above[np.argpartition(-score[above], k - 1)[:k]]


def _keep(scores: Array, units: Ints, k: int, floor: float) -> tuple[Array, Ints, float]:
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
    alone: bool,
    floor: float,
    k: int,
    rng: np.random.Generator,
) -> Found:
    """Blocks in descending order of what they can reach; `sizes` are the members left in each block.

    `alone`: no unit has more than one member, so that a block as large as it was built has lost none.
    """
    live = np.flatnonzero(sizes > 0)
    log_cdf = log_cdf_of_largest(sizes[live], 0.0, rng)
    largest = normal_from_log_cdf(log_cdf)
    reach = blocks.bounds(c)[live] + sd * largest
    hopeful = np.flatnonzero(reach > floor)
    hopeful = hopeful[np.argsort(-reach[hopeful])]
    scores, units = np.empty(0), np.empty(0, dtype=np.int64)
    for j in hopeful.tolist():
        if reach[j] <= floor:
            break
        block = int(live[j])
        mean = c @ blocks.members[block]
        margin = floor - sd * largest[j]
        if mean.max() <= margin:  # the box promised more than its members hold
            continue
        start = int(blocks.starts[block])
        whole = alone and sizes[block] == len(mean)
        left = None if whole else counts[blocks.order[start : start + len(mean)]]
        found, owners = _open(mean, sd, left, float(largest[j]), float(log_cdf[j]), margin, floor, k, rng)
        if len(found):
            scores = np.concatenate([scores, found])
            units = np.concatenate([units, blocks.order[start + owners]])
            scores, units, floor = _keep(scores, units, k, floor)
    return scores, units


def _open(
    mean: Array,
    sd: float,
    counts: Ints | None,
    largest: float,
    log_ceiling: float,
    margin: float,
    floor: float,
    k: int,
    rng: np.random.Generator,
) -> Found:
    """Draws inside one block, given that its largest noise is `largest`; `counts` None: one member in each unit."""
    can_win = np.flatnonzero(mean > margin)
    # the largest noise belongs to a member chosen uniformly among *all* members, those that cannot win included
    if counts is None:
        owner = int(rng.integers(len(mean)))
        left = np.ones(len(can_win))
    else:
        ends = np.cumsum(counts)
        owner = int(np.searchsorted(ends, rng.integers(ends[-1]), side="right"))
        left = counts[can_win].astype(np.float64)
    mine = can_win == owner
    left[mine] -= 1
    score, which = successors(mean[can_win], sd, left, log_ceiling, floor, k, rng)
    which = can_win[which]
    if mine.any():
        score, which = np.append(score, mean[owner] + sd * largest), np.append(which, owner)
    return score, which


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
