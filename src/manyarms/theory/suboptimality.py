"""Upper bounds on the Bayesian suboptimality of sDM's greedy policy (thesis, Section 6.4.2 and Appendix C.3).

    BSO = E[V(pi*; theta*) - V(pi_hat; theta*)]        over theta* from the prior, the log, and a fresh context X

Both theorems were read with their proofs. The printed constants are right for ||x|| <= 1, Sigma_a = sigma0^2 I,
Sigma = tau^2 I and lambda_1(W_a W_a^T) <= 1 (of the assumption lambda_1 = lambda_d = 1 only the first half is used, so W_a
may have low rank). Here they are stated for ||x||^2 <= kappa_x and lambda_1(W_a W_a^T) <= kappa_w; kappa_x = kappa_w = 1 gives
the thesis's form:

    covariance-dependent   alpha_n E||X||_(Sigma_hat_(pi*(X))) + sqrt((2 log(2K) + 2) kappa_x (sigma0^2 + kappa_w tau^2) / n)
                           alpha_n^2 = d + 2 sqrt(d log(K n)) + 2 log(K n)
    explicit               the first term replaced by alpha_n sqrt(E[kappa_x (1/l + kappa_w tau^2 / (sigma0^4 l^2)) + kappa_x
                           (sigma0^2 + kappa_w tau^2) ((d + 1) exp(-n rho^2 / 2) + d (2/e)^(g m / (2 kappa_x)))]),
                           rho = p_(pi*(X)),  m = floor(n rho / 2),  l = g m / (2 sigma^2) + 1 / sigma0^2,  g = lambda_d(E[X X^T])

`tight` replaces two steps of the proofs by sharper ones and is a bound under the same assumptions:

- alpha_n comes from a ball around each theta_a, but only the scalars x^T (theta_a - mu_hat_a) matter: given the log and X
  they are Gaussian, so that a union bound over K of them gives alpha = sqrt(2 log(2 K n)) without d;
- the number of rows N of the best action is binomial, and its lower tail is at most exp(-n rho / 8) (Chernoff) where Hoeffding
  gives exp(-n rho^2 / 2), which at rho = 1/K says nothing before n is of the order K^2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.tables import Shown
from manyarms._base.typing import Array
from manyarms.errors import InvalidInput
from manyarms.rewards.bayesian import pessimism_width
from manyarms.theory.regret import representable


@dataclass(frozen=True, repr=False)
class SuboptimalityBound(Shown):
    """A bound and its parts: total = leading + remainder, leading = alpha * spread."""

    total: float
    leading: float
    remainder: float
    alpha: float
    spread: float


def sdm_covariance_bound(
    K: int,
    n: int,
    d: int,
    spread: float,
    *,
    sigma0: float,
    tau: float,
    kappa_x: float = 1.0,
    kappa_w: float = 1.0,
    tight: bool = False,
) -> SuboptimalityBound:
    """The covariance-dependent bound (thesis, Section 6.4.2), delta = 1/n.

    spread: E||X||_(Sigma_hat_(pi*(X))), the posterior standard deviation of the best action's score, averaged over theta*,
    logs and contexts; the bound is on the same average. sigma0 and tau are standard deviations.
    """
    K, n, d = (validate.count(name, value) for name, value in (("K", K), ("n", n), ("d", d)))
    spread, tight = validate.not_negative("spread", spread), validate.flag("tight", tight)
    largest = _largest_variance(sigma0, tau, kappa_x, kappa_w)
    alpha = math.sqrt(2 * math.log(2 * K * n)) if tight else pessimism_width(d, 1 / (K * n))
    remainder = math.sqrt((2 * math.log(2 * K) + 2) * largest / n)
    total = representable("sigma0, tau, kappa_x and kappa_w", alpha * spread + remainder)
    return SuboptimalityBound(total, alpha * spread, remainder, alpha, spread)


def sdm_explicit_bound(
    K: int,
    n: int,
    d: int,
    coverage: npt.ArrayLike,
    *,
    sigma: float,
    sigma0: float,
    tau: float,
    g: float,
    kappa_x: float = 1.0,
    kappa_w: float = 1.0,
    tight: bool = False,
) -> SuboptimalityBound:
    """The explicit bound (thesis, Appendix C.3.2), for a logging policy that does not look at the context.

    coverage: draws of rho_X = pi0(pi*(X)), over theta* and X; 1/K in every entry for a uniform policy. g: the smallest
    eigenvalue of E[X X^T], above 0 and at most kappa_x / d.
    """
    K, n, d = (validate.count(name, value) for name, value in (("K", K), ("n", n), ("d", d)))
    rho = np.atleast_1d(validate.as_floats("coverage", coverage))
    if rho.ndim > 1 or not rho.size or rho.min() < 0 or rho.max() > 1:
        raise InvalidInput("coverage", validate.describe(rho), "a list of probabilities, at least one")
    g, noise = validate.positive("g", g), validate.positive("sigma", sigma) ** 2
    kappa_x, kappa_w = validate.positive("kappa_x", kappa_x), validate.not_negative("kappa_w", kappa_w)
    if g > kappa_x / d * (1 + 1e-9):
        raise InvalidInput(
            "g", g, f"at most kappa_x / d = {kappa_x / d:g}: the eigenvalues of E[X X^T] sum to E||X||^2"
        )
    tight = validate.flag("tight", tight)
    with np.errstate(over="ignore", under="ignore"):  # infinite, and refused below
        second = second_moment(
            rho, n, d, noise=noise, sigma0=sigma0, tau=tau, g=g, kappa_x=kappa_x, kappa_w=kappa_w, tight=tight
        ).mean()
    spread = math.sqrt(representable("sigma, sigma0, tau, kappa_x and kappa_w", float(second)))
    return sdm_covariance_bound(K, n, d, spread, sigma0=sigma0, tau=tau, kappa_x=kappa_x, kappa_w=kappa_w, tight=tight)


def second_moment(
    rho: Array,
    n: int,
    d: int,
    *,
    noise: float,
    sigma0: float,
    tau: float,
    g: float,
    kappa_x: float,
    kappa_w: float,
    tight: bool,
) -> Array:
    """A bound on E[||X||^2_(Sigma_hat_(pi*(X))) | rho] for each rho (thesis, Appendix C.3.2)."""
    own, latent = validate.positive("sigma0", sigma0) ** 2, kappa_w * validate.not_negative("tau", tau) ** 2
    m = np.floor(n * rho / 2)
    l = g * m / (2 * noise) + 1 / own
    few = np.exp(-n * rho / 8) if tight else np.exp(-n * rho**2 / 2)
    flat = d * (2 / math.e) ** (g * m / (2 * kappa_x))
    fails = np.minimum((d + 1) * few + flat, 1.0) if tight else (d + 1) * few + flat
    return np.asarray(kappa_x * (1 / l + latent / (own * l) ** 2) + kappa_x * (own + latent) * fails)


def _largest_variance(sigma0: float, tau: float, kappa_x: float, kappa_w: float) -> float:
    """kappa_x (sigma0^2 + kappa_w tau^2): no score has a larger prior variance."""
    kappa_x, kappa_w = validate.positive("kappa_x", kappa_x), validate.not_negative("kappa_w", kappa_w)
    return kappa_x * (validate.not_negative("sigma0", sigma0) ** 2 + kappa_w * validate.not_negative("tau", tau) ** 2)


__all__ = ["SuboptimalityBound", "sdm_covariance_bound", "sdm_explicit_bound", "second_moment"]
