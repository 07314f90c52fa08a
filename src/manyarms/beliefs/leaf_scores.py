"""Scores of actions given the root: mean and variance of x^T theta_a, which decisions draw from.

    x^T theta_a | m, data ~ N(x^T c_a + x^T S_a Sigma_a^-1 W_a m, x^T S_a x)        (leaves.py)

For the played actions in one context, all of it is linear in the packed table of S_a; where every action has a context of its own
(`listed_scores`), actions that nobody has played are scored beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from manyarms._base.typing import Array, Ints
from manyarms.beliefs.action_priors import FULL_AT_A_TIME
from manyarms.beliefs.drift.leaves import DriftingLeaves
from manyarms.beliefs.leaves import Leaves


def scores(leaves: Leaves, X: Array, M: Array | None, slots: Ints | None) -> tuple[Array, Array]:
    """Mean and variance (n, P) of x^T theta_a given the root, for contexts X (n, d) and roots M (n, p) (None: known)."""
    if isinstance(leaves, DriftingLeaves):
        return leaves.scores(X, M, slots)
    S, c = leaves.S.rows, leaves.c.rows
    if slots is not None:
        S, c = S[slots], c[slots]
    n = len(X)
    mean = X @ c.T
    quadratic = leaves.packing.bilinear(X, X)
    if M is None:
        return mean, quadratic @ S.T
    effects = leaves.mixing.effects(M) if leaves.shared and not leaves.steep else None
    if effects is None:
        return _scores_one_by_one(leaves, X, M, slots, mean, quadratic @ S.T)
    # sum_l b_al x^T S_a Sigma^-1 psi_l: with the effects' coefficients stacked under those of the variance, one product
    # with the table of S_a gives everything
    psi = effects @ leaves.precision
    coefficients = np.concatenate([quadratic[:, None], leaves.packing.bilinear(X[:, None, :], psi)], axis=1)
    table = (coefficients.reshape(-1, leaves.packing.size) @ S.T).reshape(n, -1, len(c))
    if leaves.played_weights is None:
        mean += table[:, 1]
    else:
        weights = leaves.played_weights.rows if slots is None else leaves.played_weights.rows[slots]
        mean += np.einsum("nlp,lp->np", table[:, 1:], weights.T)
    return mean, table[:, 0]


def lines(leaves: Leaves, x: Array, slots: Ints, known: bool) -> tuple[Array, Array, Array | None]:
    """The same scores as functions of the root, for one context: at the root 0 (P,), variances (P,), slopes (P, p).

    Slopes are W_a^T Sigma_a^-1 S_a x; None where the root is known, the first being the means then.
    """
    S, c = leaves.S.rows, leaves.c.rows
    if leaves.drifts or len(slots) < len(c) or (slots[1:] < slots[:-1]).any():  # not all of them in their order
        S, c = leaves.posterior(slots)
    ids = leaves.catalogue.played.rows[slots]
    if known:
        return c @ x, S @ leaves.packing.bilinear(x, x), None
    # S_a x, one column of coefficients for each of its entries
    Sx = S @ leaves.packing.bilinear(np.eye(len(x)), np.broadcast_to(x, (len(x), len(x)))).T
    if not len(slots):
        return c @ x, Sx @ x, np.empty((0, leaves.root_dim))
    u = leaves.towards(slots, Sx, np.broadcast_to(x, Sx.shape))
    return c @ x, Sx @ x, leaves.mixing.lift_all(ids, u)


def _scores_one_by_one(
    leaves: Leaves, X: Array, M: Array, slots: Ints | None, mean: Array, variance: Array
) -> tuple[Array, Array]:
    """The general form, x^T S_a Sigma_a^-1 W_a m, in chunks of actions with full matrices."""
    slots = np.arange(len(leaves.counts)) if slots is None else slots
    ids = leaves.catalogue.played.rows[slots]
    for start in range(0, len(ids), leaves.chunk):
        some = slice(start, start + leaves.chunk)
        pulls = np.swapaxes(leaves.pulls(slots[some]), 1, 2)
        for i, (x, m) in enumerate(zip(X, M, strict=True)):
            mean[i, some] += np.einsum("ai,ai->a", pulls @ x, leaves.mixing.apply(ids[some], m))
    return mean, variance


def listed_scores(
    leaves: Leaves,
    Z: Array,
    ids: Ints,
    known: Array | None,
    centre: Callable[[int, Ints], Array],
    factor: Array | None = None,
) -> tuple[Array, Array]:
    """Mean and variance (n, m) of z_a^T theta_a for listed actions, played or not, each with its own context Z (n, m, d).

        mean z_a^T c_a + u_a^T w_a,    variance z_a^T S_a z_a + |F^T W_a^T u_a|^2,    u_a = Sigma_a^-1 S_a z_a

    centre(i, ids) gives w_a = W_a m of the i-th context, (len(ids), d). `known`: the root where it is known, c_a being
    the whole mean then. `factor` F of the root's covariance, where it is to be integrated out. Where nobody has
    played a, S_a = Sigma_a, c_a = 0 and u_a = z_a.
    """
    n, m, d = Z.shape
    mean, variance = np.empty((n, m)), np.empty((n, m))
    slots = leaves.catalogue.slots(ids)
    same = n > 1 and Z.strides[0] == 0  # one matrix of contexts, repeated: all but the root's part is computed once
    if same:
        Z = Z[:1]
    step = max(1, FULL_AT_A_TIME // (d * (d + len(Z))))
    for start in range(0, m, step):
        some = slice(start, start + step)
        z, here, played = Z[:, some], ids[some], slots[some] >= 0
        where = slots[some][played]
        own_S, own_c = leaves.posterior(where)
        if leaves.shared:
            Sz = z @ leaves.covariance
            Sz[:, played] = _times(leaves.packing.unpack(own_S), z[:, played])
        else:
            S = leaves.covariances.rows[here]
            S[played] = own_S
            Sz = _times(leaves.packing.unpack(S), z)
        c = np.zeros((len(here), d)) if known is None else leaves.mixing.apply(here, known).copy()
        c[played] = own_c
        mean[:, some] = np.einsum("nad,ad->na", z, c)
        variance[:, some] = np.einsum("nad,nad->na", z, Sz)
        if known is not None:
            continue
        u = z.copy()
        if len(where):
            if leaves.steep or leaves.drifts:
                u[:, played] = _times(np.swapaxes(leaves.pulls(where), 1, 2), z[:, played])
            elif leaves.shared:
                u[:, played] = Sz[:, played] @ leaves.precision
            else:
                u[:, played] = _times(leaves.prior_precision(here[played]), Sz[:, played])
        for i in range(n):
            ui = u[0 if same else i]
            mean[i, some] += np.einsum("ad,ad->a", ui, centre(i, here))
            if factor is not None:
                pulled = leaves.mixing.lift_all(here, ui) @ factor
                variance[i, some] += np.einsum("ap,ap->a", pulled, pulled)
    return mean, variance


def _times(matrices: Array, z: Array) -> Array:
    """(n, m, d): A_a z_na for one matrix for each action (m, d, d)."""
    return cast(Array, np.matmul(matrices, np.ascontiguousarray(z.transpose(1, 2, 0))).transpose(2, 0, 1))


__all__ = ["lines", "listed_scores", "scores"]
