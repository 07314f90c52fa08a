"""The best of the actions that nobody has played, with the law of drawing a score for each of them.

Given the root, an unplayed action of unit u scores N(mean_u, sd_u^2), independently over actions, with
mean_u = features_u . c. Four ways to find the best k among all of them; they differ in cost and not in law:

- groups: few units. The largest of a unit's m normals is one draw, the next its successor (noise.py).
- blocks: many units with one common sd, most of which are never looked at (block_search.py).
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

PIECE = 1 << 14
FEW = 4096  # up to this many units are drawn directly

Found = tuple[Array, Ints]


def one_unit(mean: float, sd: float, count: int, floor: float, rng: np.random.Generator) -> Found:
    """The best of one unit: a single draw. What `groups` does, for the commonest case of all, without arrays."""
    tail = -math.expm1(-rng.standard_exponential() / count)
    score = mean - sd * float(ndtri(tail))
    return (np.array([score]), np.zeros(1, dtype=np.int64)) if score > floor else nothing()


def successors(
    mean: Array,
    sd: Array | float,
    counts: Array | Ints,
    log_ceiling: Array | float,
    floor: Array | float,
    k: int,
    rng: np.random.Generator,
) -> tuple[Array, Ints]:
    """Up to k order statistics of each unit's draws, as long as they exceed the floor, or its own: (scores, index of the unit).

    All draws of a unit lie below its ceiling, given as log Phi(ceiling).
    """
    which = np.flatnonzero(counts)
    if len(which) < len(counts):
        mean, counts, sd, log_ceiling = mean[which], counts[which], _some(sd, which), _some(log_ceiling, which)
        floor = _some(floor, which)
    scores, owners = [np.empty(0)], [which[:0]]
    for _ in range(k):
        if not len(which):
            break
        log_cdf = log_cdf_of_largest(counts, log_ceiling, rng)
        score = mean + sd * normal_from_log_cdf(log_cdf)
        stay = score > floor
        scores.append(score[stay])
        owners.append(which[stay])
        if k == 1:
            break
        stay &= counts > 1
        which, mean, counts, log_ceiling = which[stay], mean[stay], counts[stay] - 1, log_cdf[stay]
        sd, floor = _some(sd, stay), _some(floor, stay)
    return (scores[1], owners[1]) if len(scores) == 2 else (np.concatenate(scores), np.concatenate(owners))


def _some(values: Array | float, which: Ints | Bools) -> Array | float:
    return values if isinstance(values, float) else values[which]


def nothing() -> Found:
    """Nobody."""
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
            best_scores, best_units, floor = best_of(best_scores, best_units, k, floor)
    return best_scores, best_units


def _above(score: Array, floor: float, k: int) -> Ints:
    """Places of (at least) the best k scores above the floor."""
    if k == 1:
        top = int(score.argmax())
        return np.array([top] if score[top] > floor else [], dtype=np.int64)
    above = np.flatnonzero(score > floor)
    return above if len(above) <= k else above[np.argpartition(-score[above], k - 1)[:k]]


def best_of(scores: Array, units: Ints, k: int, floor: float) -> tuple[Array, Ints, float]:
    """The best k of what was found, and the floor that they raise."""
    if len(scores) < k:
        return scores, units, floor
    if k == 1:
        one = int(scores.argmax())
        return scores[one : one + 1], units[one : one + 1], max(floor, float(scores[one]))
    if len(scores) > k:
        top = np.argpartition(-scores, k - 1)[:k]
        scores, units = scores[top], units[top]
    return scores, units, max(floor, float(scores.min()))


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
