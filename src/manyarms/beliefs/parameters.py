"""Parameters of many actions at once: posterior means and joint draws of theta_a, for whatever scores actions elsewhere.

    theta_a | m ~ N(c_a + S_a Sigma_a^-1 W_a m, S_a),    where nobody has played a:  N(W_a m, Sigma_a)        (leaves.py)

A joint draw has one root for all actions. Given the root, actions are independent, so that they are drawn in blocks.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from manyarms._base import linalg
from manyarms._base.typing import Array, Ints
from manyarms.beliefs.action_priors import FULL_AT_A_TIME
from manyarms.beliefs.belief import Belief
from manyarms.beliefs.independent_centres import IndependentCentres
from manyarms.errors import InvalidInput


def posterior_means(belief: Belief, ids: Ints) -> Array:
    """(n, d): the posterior means of these actions' parameters, those that a greedy decision scores with."""
    _require_own_parameters(belief)
    dim, out = belief.dim, np.empty((len(ids), belief.dim))
    step = max(1, FULL_AT_A_TIME // (2 * dim**2))
    for start in range(0, len(ids), step):
        some = ids[start : start + step]
        # with the unit vectors as contexts: the score of the j-th is the j-th number of theta_a
        Z = np.broadcast_to(np.eye(dim)[:, None, :], (dim, len(some), dim))
        out[start : start + len(some)] = belief.listed_moments(Z, some, spread=False)[0].T
    return out


def draw_parameters(belief: Belief, ids: Ints, draws: int, rng: np.random.Generator) -> Iterator[tuple[slice, Array]]:
    """Joint draws of these actions' parameters, for blocks of actions: (draws, b, d)."""
    _require_own_parameters(belief)
    leaves, roots = belief.leaves, belief.root.draw(rng, draws)
    step = max(1, FULL_AT_A_TIME // (3 * belief.dim**2))
    for start in range(0, len(ids), step):
        some = ids[start : start + step]
        slots = leaves.catalogue.slots(some)
        played = slots >= 0
        covariance = leaves.prior_covariance(some).copy()
        S, own = leaves.posterior(slots[played])
        covariance[played] = leaves.packing.unpack(S)
        half = linalg.half(covariance)
        pulls = None if belief.root.known else leaves.pulls(slots[played])
        found = np.empty((draws, len(some), belief.dim))
        for draw, root in zip(found, roots, strict=True):
            centres = _centres(belief, some, slots, root, rng)
            draw[:] = np.einsum("nij,nj->ni", half, rng.standard_normal(draw.shape))
            draw[~played] += centres[~played]
            draw[played] += own if pulls is None else own + np.einsum("nij,nj->ni", pulls, centres[played])
        yield slice(start, start + len(some)), found


def _centres(belief: Belief, ids: Ints, slots: Ints, root: Array, rng: np.random.Generator) -> Array:
    """(n, d): W_a m of a draw of the root, or a draw of each action's own centre."""
    if not isinstance(belief, IndependentCentres):
        return belief.leaves.mixing.apply(ids, root)
    out = np.empty((len(ids), belief.dim))
    played = slots >= 0
    if played.any():
        out[played] = belief._draw_centres(slots[played], rng)
    if not played.all():
        out[~played] = belief._draw_prior_centres(int((~played).sum()), rng)
    return out


def _require_own_parameters(belief: Belief) -> None:
    if not belief.per_action:
        raise InvalidInput("belief", "one parameter for all actions", "a parameter for each action")


__all__ = ["draw_parameters", "posterior_means"]
