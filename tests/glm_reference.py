"""Generalised linear rewards written out: draws, log-likelihood and gradient, and posteriors by quadrature."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from manyarms._base.typing import Array, Ints
from manyarms.beliefs import Logistic, Poisson

GLM = Logistic | Poisson


def rewards(likelihood: GLM, u: Array, rng: np.random.Generator) -> Array:
    if isinstance(likelihood, Logistic):
        return np.asarray(rng.random(u.shape) < expit(u), dtype=np.float64)
    return rng.poisson(np.exp(u)).astype(np.float64)


def log_likelihood(likelihood: GLM, X: Array, r: Array, theta: Array) -> Array:
    """Up to a constant, for one parameter (d,) or many (m, d)."""
    u = theta @ X.T
    potential = np.logaddexp(0.0, u) if isinstance(likelihood, Logistic) else np.exp(u)
    return np.asarray((r * u - potential).sum(axis=-1))


def gradient(likelihood: GLM, X: Array, r: Array, theta: Array) -> Array:
    """Of the log-likelihood."""
    u = X @ theta
    return (r - (expit(u) if isinstance(likelihood, Logistic) else np.exp(u))) @ X


def glm_rows(likelihood: GLM, seed: int, n: int, K: int, d: int) -> tuple[Array, Ints, Array]:
    rng = np.random.default_rng(seed)
    X, A = rng.uniform(-1, 1, (n, d)), rng.integers(K, size=n)
    theta = rng.standard_normal((K, d))
    return X, A, rewards(likelihood, np.einsum("nd,nd->n", X, theta[A]), rng)


def by_quadrature(likelihood: GLM, X: Array, r: Array, covariance: Array) -> tuple[Array, Array]:
    """Posterior mean and covariance for the prior N(0, covariance), on a grid of eight standard deviations around the mode."""
    d = X.shape[1]
    precision = np.linalg.inv(covariance)
    mode = np.zeros(d)
    for _ in range(200):
        hessian = (X * likelihood.slope(X @ mode)[:, None]).T @ X + precision
        mode = mode + 0.5 * np.linalg.solve(hessian, gradient(likelihood, X, r, mode) - precision @ mode)
    lower = np.linalg.cholesky(np.linalg.inv(hessian))
    axis = np.linspace(-8, 8, 41)  # on smooth densities equal steps converge like Gauss's
    grid = mode + np.stack(np.meshgrid(*[axis] * d, indexing="ij"), -1).reshape(-1, d) @ lower.T
    logs = log_likelihood(likelihood, X, r, grid) - 0.5 * np.einsum("nd,de,ne->n", grid, precision, grid)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    mean = weights @ grid
    return mean, (grid - mean).T @ ((grid - mean) * weights[:, None])
