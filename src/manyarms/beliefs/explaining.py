"""Explaining a score: what each feature, the root and the action's own leaf have added to it.

    theta_a | m, data ~ N(c_a + P_a m, S_a),    P_a = S_a Sigma_a^-1 W_a        (leaves.py)

    mean of x^T theta_a      sum over j of x_j (P_a E[m])_j    from the root,    + x_j c_aj    from the leaf
    variance                 x^T P_a Cov(m) P_a^T x            from the root,    + x^T S_a x   from the leaf

Where nobody has played the action, c_a = 0, P_a = W_a and S_a = Sigma_a: all of its mean comes from the root. A known root
(independent actions) is their prior mean, and has no variance. Actions with centres of their own share nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from manyarms._base.explanation import Explanation
from manyarms._base.typing import Array
from manyarms.beliefs.leaves import Leaves
from manyarms.beliefs.roots import Root
from manyarms.errors import InvalidInput

if TYPE_CHECKING:
    from manyarms.beliefs.belief import Belief


def explain(belief: Belief, x: npt.ArrayLike, action: object) -> Explanation:
    """The score of an action in one context, checked and split."""
    row = belief.catalogue.check_one("action", action, retired=True)
    X, single = belief.observed_contexts(x, row)
    if not single:
        raise InvalidInput("x", f"shape {X.shape}", "one context")
    return belief._explained(X[0], row)


def of_two_levels(root: Root, leaves: Leaves, x: Array, action: int, quantity: str) -> Explanation:
    """By root and leaf."""
    ids = np.array([action])
    slots = leaves.catalogue.slots(ids)
    if slots[0] >= 0:
        packed, own = leaves.posterior(slots)
        S, pull, c = leaves.packing.unpack(packed[0]), leaves.pulls(slots)[0], own[0]
    else:
        S, pull, c = leaves.prior_covariance(ids)[0], np.eye(len(x)), np.zeros(len(x))
    shared = pull @ leaves.mixing.apply(ids, root.mean())[0]
    if root.known and slots[0] >= 0:
        c = c - shared  # with a known root, c_a is all of the mean
    V, of_root = S, 0.0
    if not root.known:
        pulled = (
            leaves.mixing.lift_all(np.repeat(ids, len(x)), pull) @ root.factor()
        )  # (d, p): rows of P_a times a factor
        along = x @ pulled
        V, of_root = S + pulled @ pulled.T, float(along @ along)
    return Explanation(
        x.copy(), x * c, x * shared, max(0.0, float(x @ S @ x)), of_root, _shares(x, V), quantity=quantity
    )


def of_moments(mean: Array, covariance: Array, x: Array, quantity: str) -> Explanation:
    """By mean and covariance of theta_a alone."""
    variance = max(0.0, float(x @ covariance @ x))
    return Explanation(
        x.copy(), x * mean, leaf_variance=variance, variance_shares=_shares(x, covariance), quantity=quantity
    )


def _shares(x: Array, V: Array) -> Array:
    """(d,): the features' shares of x^T V x; 0 where there is nothing to share."""
    parts = x * (V @ x)
    total = float(parts.sum())
    return parts / total if total > 0 else np.zeros(len(x))


__all__ = ["explain", "of_moments", "of_two_levels"]
