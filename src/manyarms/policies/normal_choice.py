"""The probability that each of K normal variables is the largest, in O(K) per quadrature node.

For scores z and independent eps_a ~ N(0, 1), with phi and Phi the standard normal density and distribution function,

    pi(a) = P(z_a + eps_a is the largest) = integral of phi(t - z_a) prod over b != a of Phi(t - z_b) dt,

which is the thesis's mean over one normal of a product of K - 1 factors (thesis, Appendix E.3.2) with t = z_a + eps. There every
action has its own product; here all share one, L(t) = sum over b of log Phi(t - z_b), and

    pi(a) = sum over nodes t of h phi(t - z_a) exp(L(t) - log Phi(t - z_a)).

exp(L) is the distribution function of the largest variable M, so the integrands of all actions together are M's density: nodes
need to lie only where M does. With m = max z and gaps g_b = m - z_b, counted in bins,

    P(M <= m + s) <= exp( sum over bins of count log Phi(s + the bin's largest gap) ),
    P(M >  m + s) <=      sum over bins of count Phi(-s - the bin's smallest gap),

and the ends are where these bounds fall to MISSED. Between them the midpoint rule on equal steps converges faster than any power,
since the density is analytic and vanishes at both ends. With many close scores M is sharply concentrated, but then the ends
close in with it. No number underflows: t - z_b >= t - m, and t - m never falls below LOWEST.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import log_ndtr, ndtr

from manyarms._base.typing import AnyArray, Array, Ints

MISSED = 1e-11  # the mass of the largest variable that may lie beyond either end
LOWEST, HIGHEST = -8.0, 10.0  # where ends are looked for, from the largest score: enough for a billion actions
BIN = 0.25  # width of a bin of gaps, in standard deviations
BINS = 48  # with the last for all larger gaps
NUMBERS = 1 << 18  # numbers in a block: 2 MB, so that the few arrays of a step stay in the cache
LEAST_NODES = 32
# pairs (nodes, actions): how many nodes are enough for 1e-8 up to how many actions. The worst that was found, over one action
# ahead of K - 1 equal ones at any distance and over random tiers, is below a quarter of it; one action ahead by 3 to 5, where two
# scales meet, is the hardest
ENOUGH = ((32, 50), (48, 1_000), (64, 10_000), (96, 10_000_000))
LOG_ROOT = 0.5 * float(np.log(2 * np.pi))  # -log phi(0)

GRID: Array = LOWEST + 0.125 * np.arange(1 + round((HIGHEST - LOWEST) / 0.125), dtype=np.float64)
"""Candidates for the ends, from the largest score."""
_FIRST: Array = BIN * np.arange(BINS + 1, dtype=np.float64)  # the smallest gap of a bin
LOG_BELOW: Array = np.vstack([log_ndtr(GRID + BIN + _FIRST[:-1, None]), np.zeros_like(GRID)])
"""(bins, grid): an upper bound on what one action of a bin adds to log P(M <= m + s)."""
ABOVE: Array = ndtr(-GRID - _FIRST[:, None])
"""(bins, grid): an upper bound on what one action of a bin adds to P(M > m + s)."""


def tolerance(nodes: int, actions: int) -> float:
    """How far, at most, probabilities of `nodes` nodes are from the integral, and their sum from 1."""
    if any(nodes >= least and actions <= most for least, most in ENOUGH):
        return 1e-8
    return 1e-5 if nodes >= 64 else 1e-4 if nodes >= 48 else 1e-2


def usual_nodes(actions: int) -> int:
    """The fewest nodes that are enough for 1e-8, and 64 where more would be needed: those of a policy that names none."""
    return min(64, next((least for least, most in ENOUGH if actions <= most), 64))


def gap_counts(gaps: Array) -> Ints:
    """(b, bins): how many of the gaps m - z (b, k) fall into each bin."""
    rows = len(gaps)
    place = np.minimum(gaps / BIN, BINS).astype(np.int64)
    place += (BINS + 1) * np.arange(rows)[:, None]
    return np.bincount(place.ravel(), minlength=rows * (BINS + 1)).reshape(rows, BINS + 1)


def ends(counts: AnyArray) -> tuple[Array, Array]:
    """(b,) and (b,): between which distances from the largest score the largest variable lies, but for 2 MISSED."""
    below = (counts @ LOG_BELOW <= np.log(MISSED)).sum(axis=1) - 1
    above = (counts @ ABOVE > MISSED).sum(axis=1)
    return GRID[np.maximum(below, 0)], GRID[np.minimum(above, len(GRID) - 1)]


def midpoints(low: Array, high: Array, nodes: int) -> tuple[Array, Array]:
    """Nodes (b, nodes) of the midpoint rule from low to high, from the largest score, and their step (b,)."""
    step = (high - low) / nodes
    return low[:, None] + step[:, None] * (np.arange(nodes) + 0.5), step


def log_products(at: Array, gaps: Array) -> Array:
    """(b, nodes): the sum over these actions of log Phi(t - z_b), at nodes t = m + at."""
    out = np.empty(at.shape)
    for part in _node_blocks(at, gaps):
        out[:, part] = log_ndtr(at[:, part, None] + gaps[:, None, :]).sum(axis=2)
    return out


def masses(at: Array, log_weights: Array, gaps: Array) -> Array:
    """(b, k): the probabilities of these actions, with log_weights (b, nodes) = L + log of the step."""
    out = np.zeros(gaps.shape)
    for part in _node_blocks(at, gaps):
        x = at[:, part, None] + gaps[:, None, :]
        power = log_weights[:, part, None] - log_ndtr(x)
        x *= x
        x *= 0.5
        power -= x
        power -= LOG_ROOT
        out += np.exp(power, out=power).sum(axis=1)
    return out


def _node_blocks(at: Array, gaps: Array) -> Iterator[slice]:
    """Blocks of nodes such that one number for every row, node and action of a block is held at once."""
    step = max(1, NUMBERS // max(1, gaps.size))
    for start in range(0, at.shape[1], step):
        yield slice(start, start + step)


__all__ = [
    "ABOVE",
    "BIN",
    "BINS",
    "GRID",
    "LEAST_NODES",
    "LOG_BELOW",
    "LOG_ROOT",
    "MISSED",
    "ends",
    "gap_counts",
    "log_products",
    "masses",
    "midpoints",
    "tolerance",
    "usual_nodes",
]
