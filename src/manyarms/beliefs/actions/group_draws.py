"""The best of a group of independent normals in each of many contexts, without a draw for every one of them.

In a context, unit u of a group has c_u members with scores m_u + s_u z, z standard normal (a played action is a unit of one).
The largest z of the whole group is one draw, Z, and belongs to a member chosen uniformly; all other z are standard normals below
Z. No member of u can then score more than m_u + s_u Z. The owner of Z is scored first, then units are drawn, truncated below Z,
as long as this bound exceeds the floor, the k-th best score found so far in the context, here or elsewhere. Whether a unit is
drawn depends on what others have drawn, and not on its own noise; what is not drawn could not have come among the best k. So the
best k have the law of drawing everything. It is what `search` does with blocks, with a standard deviation for each unit.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from manyarms._base.noise import below, log_cdf_of_largest, normal_from_log_cdf
from manyarms._base.typing import Array, Ints
from manyarms.beliefs.actions.best_of_each import BestOfEach

LEADERS = 8  # units with the largest bounds that are drawn first, where many might still win


def draw_group(
    best: BestOfEach, mean: Array, sd: Array, counts: Ints | None, places: Ints, rng: np.random.Generator
) -> None:
    """Add the best of a group to what was found: mean (n, U), sd (n, U) or (n, 1), members of each unit (None: one), places (U,).

    A mean of -inf takes a unit out.
    """
    n, size = mean.shape
    members = size if counts is None else int(counts.sum())
    if not members:
        return
    rows = np.arange(n)
    log_top = log_cdf_of_largest(np.full(n, members), 0.0, rng)
    top = normal_from_log_cdf(log_top)
    bound = sd * top[:, None]
    bound = np.add(bound, mean, out=bound) if bound.shape == mean.shape else bound + mean
    if counts is None:
        owner = cast(Ints, rng.integers(size, size=n))
    else:
        bound[:, counts == 0] = -np.inf
        owner = cast(Ints, np.searchsorted(np.cumsum(counts), rng.integers(members, size=n), side="right"))
    best.add(rows, bound[rows, owner], places[owner])
    alone = rows if counts is None else np.flatnonzero(counts[owner] == 1)
    bound[alone, owner[alone]] = -np.inf  # nobody else is left there
    bounds, means = bound.ravel(), mean.ravel()

    def draw(which: Ints) -> None:
        row, unit = np.divmod(which, size)
        spread = sd[row, 0] if sd.shape[1] == 1 else sd.ravel()[which]
        left = None if counts is None else counts[unit] - (owner[row] == unit)
        draw_units(best, row, means[which], spread, left, top[row], log_top[row], places[unit], rng)

    hopeful = np.flatnonzero(bound > best.floor[:, None])
    if len(hopeful) > 2 * LEADERS * n and size >= 4 * LEADERS:
        width = size // LEADERS
        first = bound[:, : LEADERS * width].reshape(n, LEADERS, width).argmax(axis=2)
        leaders = (rows[:, None] * size + np.arange(LEADERS) * width + first).ravel()
        leaders = leaders[bounds[leaders] > best.floor[leaders // size]]
        draw(leaders)
        bounds[leaders] = -np.inf
        hopeful = hopeful[bounds[hopeful] > best.floor[hopeful // size]]
    if len(hopeful):
        draw(hopeful)


def draw_units(
    best: BestOfEach,
    rows: Ints,
    mean: Array,
    sd: Array,
    counts: Ints | None,
    top: Array,
    log_top: Array,
    places: Ints,
    rng: np.random.Generator,
) -> None:
    """Draw the best of so many members (None: one) of each of these units, whose noise lies below `top`, log Phi of it given."""
    if counts is not None:
        here = np.flatnonzero(counts)
        if len(here) < len(counts):
            rows, mean, sd, counts, top = rows[here], mean[here], sd[here], counts[here], top[here]
            log_top, places = log_top[here], places[here]
        if (counts == 1).all():
            counts = None
    if not len(rows):
        return
    if counts is None:
        noise = below(top, log_top, len(rows), rng)
        noise *= sd
        noise += mean
        best.add(rows, noise, places)
        return
    floor = best.floor[rows]  # as it is now: it may only rise
    for _ in range(best.scores.shape[1]):
        log_top = log_cdf_of_largest(counts, log_top, rng)
        scores = mean + sd * normal_from_log_cdf(log_top)
        best.add(rows, scores, places)
        stay = np.flatnonzero((scores > floor) & (counts > 1))
        if not len(stay):
            return
        rows, mean, sd, places, floor = rows[stay], mean[stay], sd[stay], places[stay], floor[stay]
        counts, log_top = counts[stay] - 1, log_top[stay]


__all__ = ["draw_group", "draw_units"]
