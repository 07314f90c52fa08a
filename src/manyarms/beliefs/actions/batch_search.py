"""The best of the actions that nobody has played, in many contexts at once, with the law of `search` in each of them.

Three ways, as there, and each is a few products of matrices where `search` has one of a vector for every context:

- one unit: its order statistics, one draw for each of them and each context.
- tiles: some hundred units at a time are a group (group_draws.py), with a standard deviation for each where they have their own.
- blocks: the largest noise of all actions in blocks is one draw, and belongs to a block chosen by its members; blocks whose bound
  with this noise can still win draw their own largest noise below it, and are opened from the best on. Contexts that open the
  same block share one product.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from manyarms._base.noise import log_cdf_of_largest, normal_from_log_cdf
from manyarms._base.typing import Array, Ints
from manyarms.beliefs.actions import search
from manyarms.beliefs.actions.best_of_each import BestOfEach
from manyarms.beliefs.actions.blocks import Blocks
from manyarms.beliefs.actions.group_draws import draw_group, draw_units

TILE = 512  # units that are a group
HELD = 1 << 18  # members of open blocks that can win, before they draw


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
    best: BestOfEach, blocks: Blocks, C: Array, sd: Array, counts: Ints, sizes: Array, rng: np.random.Generator
) -> None:
    """Many units with features: coefficients C (n, f), one sd for each context (n,); `sizes` are the members left by block."""
    members = int(sizes.sum())
    log_all = -rng.standard_exponential(len(C)) / members
    largest_of_all = normal_from_log_cdf(log_all)
    owners = np.searchsorted(np.cumsum(sizes), rng.integers(members, size=len(C)), side="right")
    bound = bounds(blocks, C)
    bound[:, sizes == 0] = -np.inf
    rows, which = np.nonzero(bound > (best.floor - sd * largest_of_all)[:, None])
    mine = owners[rows] == which
    log_cdf = np.where(mine, log_all[rows], log_cdf_of_largest(sizes[which], log_all[rows], rng))
    largest = normal_from_log_cdf(log_cdf)
    largest[mine] = largest_of_all[rows[mine]]
    upper = bound[rows, which] + sd[rows] * largest
    hopeful = np.flatnonzero(upper > best.floor[rows])
    hopeful = hopeful[np.lexsort((-upper[hopeful], rows[hopeful]))]
    # the place of each pair of context and block in the order of its context
    ends = np.cumsum(np.bincount(rows[hopeful], minlength=len(C)))
    rank = np.arange(len(hopeful)) - np.concatenate([[0], ends[:-1]])[rows[hopeful]]
    first, wave = 0, 1
    while len(hopeful):
        now = rank < first + wave
        some = hopeful[now]
        _open(best, blocks, rows[some], which[some], C, sd, counts, sizes, largest[some], log_cdf[some], rng)
        later = np.flatnonzero(~now)
        later = later[upper[hopeful[later]] > best.floor[rows[hopeful[later]]]]
        hopeful, rank = hopeful[later], rank[later]
        first, wave = first + wave, min(2 * wave, search.WAVE)


def bounds(blocks: Blocks, C: Array) -> Array:
    """(n, blocks): `blocks.bounds` for many contexts."""
    centre = C @ blocks.centre.rows.T
    bound = centre + np.abs(C) @ blocks.half_width.rows.T
    bound += 1e-13 * (np.abs(bound) + np.abs(centre))
    return cast(Array, bound)


def _open(
    best: BestOfEach,
    blocks: Blocks,
    rows: Ints,
    which: Ints,
    C: Array,
    sd: Array,
    counts: Ints,
    sizes: Array,
    largest: Array,
    log_cdf: Array,
    rng: np.random.Generator,
) -> None:
    """Draws inside pairs of a context and a block, given the largest noise of each and its log Phi."""
    order = np.argsort(which, kind="stable")
    rows, which, largest, log_cdf = rows[order], which[order], largest[order], log_cdf[order]
    # a block's largest noise belongs to a member chosen uniformly among *all* its members, those that cannot win included
    lengths = blocks.lengths.rows[which]
    owners = search._owners(blocks, which, lengths, counts, sizes, rng)
    reach, coefficients = sd[rows] * largest, C[rows]
    threshold = (best.floor[rows] - reach)[:, None]
    starts = np.flatnonzero(np.diff(which, prepend=-1)).tolist()
    ends = [*starts[1:], len(which)]
    # arrays of this size are expensive to ask for anew each time
    most = max(stop - start for start, stop in zip(starts, ends, strict=True)) * int(lengths.max())
    means, wins = np.empty(most), np.empty(most, dtype=np.bool_)
    held, found = 0, list[tuple[int, Ints, Array]]()
    for start, stop in zip(starts, ends, strict=True):
        members = blocks.members[which[start]]
        shape = stop - start, members.shape[1]
        mean, win = means[: shape[0] * shape[1]], wins[: shape[0] * shape[1]]
        np.matmul(coefficients[start:stop], members, out=mean.reshape(shape))
        np.greater(mean.reshape(shape), threshold[start:stop], out=win.reshape(shape))
        can_win = np.flatnonzero(win)
        found.append((start, can_win, mean[can_win]))
        held += len(can_win)
        if held <= HELD and stop < len(which):
            continue
        numbers = [len(some) for _, some, _ in found]
        first = np.repeat([start for start, _, _ in found], numbers)
        flat, mean = np.concatenate([some for _, some, _ in found]), np.concatenate([some for _, _, some in found])
        pair, place = np.divmod(flat, lengths[first])
        pair += first
        mine = place == owners[pair]
        here, units = rows[pair], blocks.units.rows[which[pair], place]
        best.add(here[mine], (mean + reach[pair])[mine], ~units[mine])
        left = counts[units] - mine
        draw = np.flatnonzero((mean + reach[pair] > best.floor[here]) & (left > 0))
        here, pair = here[draw], pair[draw]
        draw_units(best, here, mean[draw], sd[here], left[draw], largest[pair], log_cdf[pair], ~units[draw], rng)
        held, found = 0, []
        threshold = (best.floor[rows] - reach)[:, None]


__all__ = ["bounds", "one_unit", "open_blocks", "tiles"]
