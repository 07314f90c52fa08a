"""The logging policy as a multinomial logistic regression of the action on the context.

    p(a | x) ∝ exp(w_aᵀ z + b_a)        over the S actions seen, z the standardised context
    minimise  -(1/n) Σ log p(a_i | x_i) + ridge / (2n) Σ_a |w_a|²

by L-BFGS, in blocks of rows: memory for n × d and d × S numbers, never for n × S.

Actions of very different shares make this ill-conditioned: the curvature in w_a is about q_a ZᵀZ + ridge, with q_a the action's
share. In the eigenvectors of ZᵀZ (eigenvalues λ_e) that is diagonal, so the search goes over

    v_ea = w_ea √(q_a λ_e + ridge)        and v_a = b_a √(q_a n) for the intercepts

in which all curvatures are near 1, and a few dozen steps do for thousands of actions as they do for three. Small problems are
solved to six digits; from SMALL cells of rows × actions on, products are in single precision and the search ends when a step
gains less than a millionth of the loss, which is far below what the sample can tell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import AnyArray, Array, Ints

CELLS = 1 << 21  # of rows × actions at a time
SMALL = 5_000_000  # cells of rows × actions up to which nothing is gained by haste
STEPS = 300
GRADIENT = 1e-6  # largest entry, of the mean loss in the coordinates above, at which the search ends
GAIN = 1e-6  # of the loss in a step, relative, at which it ends for large problems


@dataclass(frozen=True, eq=False)
class MultinomialModel:
    """The model above, fitted. Actions never seen have probability 0."""

    seen: Ints  # (S,)
    weights: Array  # (d + 1, S), the last row is b
    centre: Array
    scale: Array
    action_count: int

    def own(self, X: Array, actions: Ints, labels: AnyArray | None = None, numbers: Ints | None = None) -> Array:
        """p(a_i | x_i), (n,)."""
        place = np.full(self.action_count, -1)
        place[self.seen] = np.arange(len(self.seen))
        found, block = np.empty(len(X)), _block(len(self.seen))
        for start in range(0, len(X), block):
            p = self._of_seen(X[start : start + block])
            at = place[actions[start : start + block]]
            found[start : start + block] = np.where(at >= 0, p[np.arange(len(p)), at], 0.0)
        return found

    def every(self, X: Array, labels: AnyArray | None = None, numbers: Ints | None = None) -> Array:
        """p(· | x_i), (n, K); for a few rows at a time."""
        p = np.zeros((len(X), self.action_count))
        p[:, self.seen] = self._of_seen(X)
        return p

    def _of_seen(self, X: Array) -> Array:
        scores: Array = ((X - self.centre) / self.scale) @ self.weights[:-1] + self.weights[-1]
        return _softmax(scores)


def fit_multinomial(X: Array, actions: Ints, action_count: int, ridge: float) -> MultinomialModel:
    """The model of rows of contexts and actions; a step costs rows × actions seen × length of a context."""
    from scipy.optimize import minimize  # slow to import

    seen, codes = np.unique(actions, return_inverse=True)
    rows, dim = X.shape
    validate.room("log", len(seen), 30 * 8 * (dim + 1), "actions seen")  # L-BFGS keeps ten steps and gradients
    centre, scale = X.mean(axis=0), X.std(axis=0)
    scale = np.where(scale > 1e-12 * np.abs(centre), scale, 1.0)
    Z = (X - centre) / scale
    values, vectors = np.linalg.eigh(Z.T @ Z)
    Z = np.column_stack([Z @ vectors, np.ones(rows)])  # (n, d + 1)
    shares = np.bincount(codes) / rows
    stretch = np.sqrt(np.vstack([np.outer(np.maximum(values, 0.0), shares) + ridge, shares * rows])) / np.sqrt(rows)
    penalty = np.full((dim + 1, 1), ridge / rows)
    penalty[-1] = 0.0
    block, large = _block(len(seen)), rows * len(seen) > SMALL
    Z = Z.astype(np.float32) if large else Z

    def loss(flat: Array) -> tuple[float, Array]:
        W = flat.reshape(stretch.shape) / stretch
        value, gradient, products = 0.5 * float((penalty * W**2).sum()), penalty * W, W.astype(Z.dtype)
        for start in range(0, rows, block):
            z, own = Z[start : start + block], codes[start : start + block]
            scores = z @ products
            scores -= scores.max(axis=1, keepdims=True)
            mine = scores[np.arange(len(z)), own]
            np.exp(scores, out=scores)
            total = scores.sum(axis=1)
            value += float((np.log(total) - mine).sum(dtype=np.float64)) / rows
            scores /= total[:, None]
            scores[np.arange(len(z)), own] -= 1.0
            gradient += z.T @ scores / rows
        return value, (gradient / stretch).ravel()

    start = np.zeros(stretch.shape)
    start[-1] = np.log(shares) * stretch[-1]
    options = {"maxiter": STEPS, "gtol": GRADIENT} | ({"ftol": GAIN} if large else {})
    best = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    weights = best.x.reshape(stretch.shape) / stretch
    weights[:-1] = vectors @ weights[:-1]
    return MultinomialModel(seen, weights, centre, scale, action_count)


def _block(actions: int) -> int:
    """Rows at a time."""
    return max(1, CELLS // actions)


def _softmax(scores: Array) -> Array:
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    scores /= scores.sum(axis=1, keepdims=True)
    return scores


__all__ = ["MultinomialModel", "fit_multinomial"]
