"""Posteriors of one action under a diffusion prior: the truth by importance sampling, dTS's approximations, and their distance.

With rows (x_i, r_i) of one action, noise sigma, G = sum x x^T / sigma^2 and b = sum r x / sigma^2, the model is

    m = f_1(psi_1) ~ the chain,    theta | m ~ N(m, Sigma_1),    log p(rows | theta) = b^T theta - theta^T G theta / 2 + constant

Only m is not Gaussian. Given m, theta | rows ~ N(S (Sigma_1^-1 m + b), S), S = (Sigma_1^-1 + G)^-1, and

    log p(rows | m) = (Sigma_1^-1 m + b)^T S (Sigma_1^-1 m + b) / 2 - m^T Sigma_1^-1 m / 2 + constant

so that many draws of m from the prior, weighted by this, and theta drawn given each are the posterior itself up to the error of
their number: the effective number of draws, (sum w)^2 / sum w^2, says how many they are worth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from manyarms._base.typing import Array
from manyarms.beliefs.messages import Chain
from manyarms.priors.diffusion import DiffusionPrior

PROJECTIONS = 128


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the rows of one action say: precision G (d, d) and information b (d,)."""

    G: Array
    b: Array

    @classmethod
    def of(cls, X: Array, r: Array, noise: float) -> Evidence:
        """The evidence of rows X (n, d) with rewards r (n,); none at n = 0."""
        return cls(X.T @ X / noise**2, X.T @ r / noise**2)


def _given_centre(evidence: Evidence, covariance: Array) -> tuple[Array, Array]:
    """S and Sigma_1^-1."""
    precision = cast(Array, np.linalg.inv(covariance))
    S = cast(Array, np.linalg.inv(precision + evidence.G))
    return S, precision


def _draw_actions(centres: Array, evidence: Evidence, covariance: Array, rng: np.random.Generator) -> Array:
    """theta given each of the centres m, (n, d)."""
    S, precision = _given_centre(evidence, covariance)
    mean = (centres @ precision + evidence.b) @ S
    return mean + rng.standard_normal(mean.shape) @ np.linalg.cholesky(S).T


def true_posterior(
    centres: Array, covariance: Array, evidence: Evidence, n: int, rng: np.random.Generator
) -> tuple[Array, float]:
    """n draws of theta | rows from draws of m from the prior (N, d), and the effective number of draws behind them."""
    S, precision = _given_centre(evidence, covariance)
    pulled = centres @ precision
    information = pulled + evidence.b
    logs = (np.einsum("nd,nd->n", information @ S, information) - np.einsum("nd,nd->n", pulled, centres)) / 2
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    # one uniform number places all draws: fewer repetitions than with independent choices
    places = (rng.random() + np.arange(n)) / n
    chosen = np.minimum(np.searchsorted(np.cumsum(weights), places), len(weights) - 1)
    return _draw_actions(centres[chosen], evidence, covariance, rng), float(1 / (weights**2).sum())


def approximate_posterior(chain: Chain, evidence: Evidence, n: int, rng: np.random.Generator) -> Array:
    """n draws of theta | rows as dTS makes them, with one chain for the action (`beliefs.independent_chains`)."""
    covariance = chain.prior.covariances[0]
    S, precision = _given_centre(evidence, covariance)
    G = precision @ S @ evidence.G
    layers = chain.up(((G + G.T) / 2)[None], (precision @ S @ evidence.b)[None])
    return _draw_actions(chain.down(layers, rng, n), evidence, covariance, rng)


def gaussian_posterior(mean: Array, covariance: Array, evidence: Evidence, n: int, rng: np.random.Generator) -> Array:
    """n draws of theta | rows under the prior N(mean, covariance)."""
    precision = np.linalg.inv(covariance)
    S = np.linalg.inv(precision + evidence.G)
    centre = S @ (precision @ mean + evidence.b)
    return centre + rng.standard_normal((n, len(mean))) @ np.linalg.cholesky(S).T


def prior_centres(prior: DiffusionPrior, n: int, seed: int) -> Array:
    """n draws of m = f_1(psi_1) from the prior, block by block."""
    rng = np.random.default_rng(seed)
    block = 20_000
    return np.concatenate([prior.draw_centres(rng, min(block, n - start)) for start in range(0, n, block)])


@dataclass(frozen=True)
class Distance:
    """How far a cloud of draws is from another, the first being the truth.

    mean: length of the difference of the means. covariance: Frobenius norm of the difference of the covariances over that of
    the true one. sliced: root of the mean, over directions, of the squared Wasserstein-2 distance of the projections.
    """

    mean: float
    covariance: float
    sliced: float


def distance(truth: Array, other: Array) -> Distance:
    """The distances of two clouds with the same number of points, (n, d) each."""
    C, D = (np.atleast_2d(np.cov(cloud.T)) for cloud in (truth, other))
    return Distance(
        float(np.linalg.norm(truth.mean(axis=0) - other.mean(axis=0))),
        float(np.linalg.norm(C - D) / np.linalg.norm(C)),
        sliced_wasserstein(truth, other),
    )


def sliced_wasserstein(first: Array, second: Array) -> float:
    """The sliced Wasserstein-2 distance of two clouds (n, d), over fixed directions: in the plane, evenly spread ones."""
    d = first.shape[1]
    if d == 2:
        angles = np.pi * (np.arange(PROJECTIONS) + 0.5) / PROJECTIONS
        directions = np.stack([np.cos(angles), np.sin(angles)])
    else:
        directions = np.random.default_rng(0).standard_normal((d, PROJECTIONS))
        directions /= np.linalg.norm(directions, axis=0)
    gaps = np.sort(first @ directions, axis=0) - np.sort(second @ directions, axis=0)
    return float(np.sqrt((gaps**2).mean()))


__all__ = [
    "Distance", "Evidence", "approximate_posterior", "distance", "gaussian_posterior", "prior_centres",
    "sliced_wasserstein", "true_posterior",
]  # fmt: skip
