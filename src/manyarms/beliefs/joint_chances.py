"""Chances of an action where all actions share one parameter, theta ~ N(mu, F F^T) with scores phi_b^T theta.

Scores depend on each other through theta, and nothing less than theta makes them independent. But with e a unit vector,

    theta = mu + F (z - (z^T e) e) + t F e,    t ~ N(0, 1) independent of the rest,

and given the rest all scores are linear in t: action a is ahead of b on a half-line of t. So a is the best on an interval,
and among the best k on a union of intervals, whose probability is a sum of differences of normal distribution functions. Its
average over z is unbiased for any e that does not depend on z; e is the direction in which a gains on the best of the others
at the mean, F^T (phi_a - phi_b). A draw may leave a no interval: then it counts 0. The average is 0 where all draws do.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr, logsumexp

from manyarms._base.typing import Array
from manyarms.beliefs.chances import Chances


def along_a_line(Z: Array, place: int, means: Array, factor: Array, k: int, rng: np.random.Generator) -> Chances:
    """The chances of the action at a place of the features Z (m, d), given one of `means` (n, d) and all but t each."""
    n, mine = len(means), Z[place]
    same = (mine == Z).all(axis=1)  # these always tie, and any of them alike is put ahead
    tied, others = int(same.sum()), Z[~same]
    if not len(others):
        return Chances(np.full(n, -np.log(tied)), np.full(n, np.log(min(k, tied) / tied)))
    rival = others[int(np.argmax(others @ means.mean(axis=0)))]
    e = factor.T @ (mine - rival)
    size = float(np.linalg.norm(e))
    e = e / size if size > 0 else np.eye(len(e))[0]
    z = rng.standard_normal(means.shape)
    z -= np.outer(z @ e, e)
    rest = means + z @ factor.T
    gain = (mine - others) @ (factor @ e)  # how the lead over each other action grows with t
    first, inside = np.empty(n), np.empty(n)
    for i, theta in enumerate(rest):
        lead = (mine - others) @ theta
        first[i] = _ahead_of_all(lead, gain) - np.log(tied)
        inside[i] = _among(lead, gain, k, tied) if k > 1 else first[i]
    return Chances(first, inside)


def _ahead_of_all(lead: Array, gain: Array) -> float:
    """log P(lead + t gain > 0 for all)."""
    up, down, level = gain > 0, gain < 0, gain == 0
    if (lead[level] <= 0).any():
        return -np.inf
    low = float(np.max(-lead[up] / gain[up], initial=-np.inf))
    high = float(np.min(-lead[down] / gain[down], initial=np.inf))
    return float(_log_between(np.array([low]), np.array([high]))[0])


def _among(lead: Array, gain: Array, k: int, tied: int) -> float:
    """log of the chance of a place among the best k, if `tied` actions, the one asked for among them, have its score."""
    up, down, level = gain > 0, gain < 0, gain == 0
    turns = np.concatenate([-lead[up] / gain[up], -lead[down] / gain[down]])
    steps = np.concatenate([np.full(int(up.sum()), -1), np.full(int(down.sum()), 1)])
    order = np.argsort(turns)
    ends = np.concatenate([[-np.inf], turns[order], [np.inf]])
    # how many are ahead on each piece of the line, from t = -inf on
    ahead = int(up.sum()) + int((lead[level] <= 0).sum()) + np.concatenate([[0], np.cumsum(steps[order])])
    share = np.clip(k - ahead, 0, tied) / tied
    here = np.flatnonzero(share)
    if not len(here):
        return -np.inf
    return min(0.0, float(logsumexp(_log_between(ends[here], ends[here + 1]) + np.log(share[here]))))


def _log_between(low: Array, high: Array) -> Array:
    """log(Phi(high) - Phi(low)), -inf where low >= high; in the lower tail, where nothing cancels."""
    flip = low > 0
    low, high = np.where(flip, -high, low), np.where(flip, -low, high)
    with np.errstate(divide="ignore", invalid="ignore"):
        top, bottom = log_ndtr(high), log_ndtr(low)
        out = top + np.log1p(-np.exp(np.minimum(bottom - top, 0.0)))
    return np.where(low < high, out, -np.inf)


__all__ = ["along_a_line"]
