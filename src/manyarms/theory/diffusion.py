"""Upper bounds on dTS's Bayes regret where links and rewards are linear (thesis, Appendix B.4; the proof, Appendix B.5).

With one chain shared by all actions, Sigma_l = sigma_l^2 I, linear links W_l and rewards of noise sigma, for any delta in (0, 1],

    BR(T) <= sqrt(2 T (R^act + sum_l R_l^lat) log(1 / delta)) + c T delta

R^act is the cost of learning the actions given psi_1, R_l^lat that of learning psi_l given psi_(l+1). The proof, step by step:

1. A posterior's covariance is a sum over levels: Cov(theta_a | data) = S_a + sum_l P_l S_l P_l^T, with P_l the product of
   S_a Sigma_1^-1 W_1 and the factors S_i Sigma_(i+1)^-1 W_(i+1) (Appendix B.5). Each S is below its prior, so that with
   w_l = lambda_1(W_l^T W_l), ||x||^2 <= kappa_x and k_l = kappa_x w_1 ... w_l, level l adds at most v_l = k_l sigma_(l+1)^2 to
   the variance of x^T theta_a, and the action itself v_0 = kappa_x sigma_1^2.
2. An observation adds u_l u_l^T to the precision of psi_l | psi_(l+1), with ||u_l||^2 <= k_l / sigma^2, and
   u_l u_l^T >= P_l^T x x^T P_l / (sigma^2 q_l),  q_l = prod_(i <= l) (1 + v_(i-1) / sigma^2)  (Appendix B.5.3).
   The theorem has sigma_max^(2 l) in the place of q_l: the largest factor, l times.
3. Hence a variance x is at most c_l log(1 + x / sigma^2), c_l = v_l / log(1 + v_l / sigma^2), these logarithms telescope, and

       R^act   = c_0 d K log(1 + T kappa_x sigma_1^2 / (d sigma^2))
       R_l^lat = c_l q_l d_l log(1 + s_l),     s_l >= tr(sigma_(l+1)^2 G_l) / d_l,  G_l the evidence about psi_l

   d_l columns of W_l are not zero (d_l = d without assumption A5), and the others add nothing to the determinant.
4. For l >= 2 evidence comes through one latent: G_l <= W_l^T W_l / sigma_l^2, so s_l = w_l sigma_(l+1)^2 / sigma_l^2.

Where the print is corrected:

- The proof uses step 4 for l = 1 too (Appendix B.5.4), but G_1 is a sum over K actions: it only gives
  s_1 = K w_1 sigma_2^2 / sigma_1^2. The printed theorem has no K there. `first="printed"` shows the difference.
- Scenario (I) (Section 4.3.1) prints sigma_l = 2^l; its own rates are those of sigma_l^2 = 2^l. With d_l = d / 2^l the latents
  then add sum_l d_l 4^l = d (2^(L+1) - 2), not d L: the factor 2^L of LinTS becomes the summand 2^(L+1), and L is right only
  in scenario (II) (constant variances). `dts_rates` computes the sums themselves.

What the theorem's tilde hides: c_l >= sigma^2 however small the variance is (x / log(1 + x) tends to 1), so that the factor in
front of d K log T is max(sigma_1^2, sigma^2) rather than sigma_1^2. The scenarios assume sigma >= sigma_l; there the bounds of
dTS and LinTS differ by a constant and not by the ratio of their rates.

The theorem assumes ||x|| = 1 and w_l = 1 (A3, A4). Here kappa_x and w_l may be anything: worlds draw contexts from a cube.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import mul
from typing import Literal

import numpy as np

from manyarms._base import validate
from manyarms._base.tables import Shown
from manyarms.errors import InvalidInput
from manyarms.priors.diffusion import DiffusionPrior
from manyarms.theory.regret import (
    RegretBound,
    failure_share,
    learning_cost,
    mets_regret_bound,
    power,
    representable,
)

# Gaussian sampling in Abeille and Lazaric (2017): concentration c = c' = 2, chance of optimism p
CONCENTRATION, OPTIMISM = 2.0, 1 / (4 * math.sqrt(math.e * math.pi))


@dataclass(frozen=True, repr=False)
class DiffusionRegretBound(Shown):
    """A bound on dTS's Bayes regret after T rounds and its parts; total = leading + constant.

    action_term R^act and latent_terms R_1^lat, ..., R_L^lat stand under the root.
    """

    total: float
    leading: float
    constant: float
    action_term: float
    latent_terms: tuple[float, ...]
    delta: float


@dataclass(frozen=True, repr=False)
class DiffusionRates(Shown):
    """How the two bounds scale, without logarithms and constants (thesis, Section 4.3)."""

    dts: float
    lints: float


def dts_regret_bound(
    T: int,
    K: int,
    d: int,
    sigma: float,
    sigmas: Sequence[float],
    *,
    active: Sequence[int] | None = None,
    kappa_x: float = 1.0,
    gains: Sequence[float] | None = None,
    first: Literal["corrected", "printed"] = "corrected",
    tight: bool = False,
    delta: float | None = None,
) -> DiffusionRegretBound:
    """The theorem (thesis, Appendix B.4) and its sparse refinement (same section), for any kappa_x and W_l.

    sigmas: standard deviations sigma_1, ..., sigma_(L+1). active: d_1, ..., d_L, the columns of W_l that are not zero.
    gains: w_l = lambda_1(W_l^T W_l), 1 by assumption A4. first: the first latent term with K in its logarithm, as the proof
    needs it, or as printed. delta: 1 / T by default.

    tight=False has sigma_max^(2 l), sigma_max^2 = max_l (1 + v_(l-1) / sigma^2) over l <= L + 1, as the theorem. tight=True has
    q_l, and bounds the evidence also by the number of rounds, s_1 = w_1 sigma_2^2 K / (sigma_1^2 + K sigma^2 / (kappa_x T))
    and s_l <= T v_l / (d_l sigma^2), and R^act's logarithm by log(1 + T v_0 / (K d sigma^2)) (concavity): what matters where
    K > T.
    """
    T, K, d = (validate.count(name, value) for name, value in (("T", T), ("K", K), ("d", d)))
    noise = validate.positive("sigma", sigma) ** 2
    kappa_x = validate.positive("kappa_x", kappa_x)
    variances = _variances(sigmas)
    L = len(variances) - 1
    columns, w = _columns(active, L, d), _gains(gains, L)
    delta = failure_share(delta, T)
    validate.one_of("first", first, ("corrected", "printed"))
    tight = validate.flag("tight", tight)
    reach = list(accumulate([kappa_x, *w], mul))  # k_0 = kappa_x, k_1, ..., k_L
    v = [k * variance for k, variance in zip(reach, variances, strict=True)]  # v_0, ..., v_L
    steps = [1 + value / noise for value in v]
    carried = (
        list(accumulate(steps[:L], mul)) if tight else [power(max(steps), l) for l in range(1, L + 1)]
    )  # q_1, ..., q_L
    share = K if tight else 1
    action_term = learning_cost(v[0], noise) * d * K * math.log1p(T * v[0] / (share * d * noise))
    latent_terms = []
    for l in range(1, L + 1):
        below = variances[l - 1]
        if l > 1 or first == "printed":
            evidence = 1 / below
        else:
            evidence = K / (below + K * noise / (kappa_x * T)) if tight else K / below
        s = w[l - 1] * variances[l] * evidence
        if tight:
            s = min(s, T * v[l] / (columns[l - 1] * noise))  # the trace of what T observations add
        latent_terms.append(learning_cost(v[l], noise) * carried[l - 1] * columns[l - 1] * math.log1p(s))
    leading = math.sqrt(2 * T * (action_term + sum(latent_terms)) * math.log(1 / delta))
    constant = K * math.sqrt(2 / math.pi * sum(v)) * T * delta
    total = representable("sigma, sigmas, gains and kappa_x", leading + constant)
    return DiffusionRegretBound(total, leading, constant, action_term, tuple(latent_terms), delta)


def dts_regret_bound_of(
    prior: DiffusionPrior,
    T: int,
    *,
    sigma: float,
    kappa_x: float,
    first: Literal["corrected", "printed"] = "corrected",
    tight: bool = False,
    delta: float | None = None,
) -> DiffusionRegretBound:
    """The bound for a prior with linear links: w_l and d_l are those of its own W_l."""
    gains, active = link_sizes(prior)
    return dts_regret_bound(
        T, prior.actions, prior.dim, sigma, deviations(prior), active=active, kappa_x=kappa_x, gains=gains,
        first=first, tight=tight, delta=delta,
    )  # fmt: skip


def link_sizes(prior: DiffusionPrior) -> tuple[list[float], list[int]]:
    """w_l = lambda_1(W_l^T W_l) and d_l, the number of columns of W_l that are not zero."""
    validate.instance("prior", prior, DiffusionPrior, "a DiffusionPrior")
    if prior.matrices is None:
        raise InvalidInput("links", "links that are not linear", "linear links: the theorem is about these")
    gains = [float(np.linalg.norm(W, 2)) ** 2 for W in prior.matrices]
    return gains, [max(1, int(np.any(W != 0, axis=0).sum())) for W in prior.matrices]


def deviations(prior: DiffusionPrior) -> list[float]:
    """sigma_1, ..., sigma_(L+1) of a prior whose covariances are multiples of the identity."""
    variances = prior.covariances[:, 0, 0]
    if not np.allclose(prior.covariances, variances[:, None, None] * np.eye(prior.dim), rtol=1e-12, atol=0):
        raise InvalidInput("covariances", "covariances of other shapes", "multiples of the identity (assumption A4)")
    return [float(value) for value in np.sqrt(variances)]


def lints_regret_bound(
    T: int, K: int, d: int, sigma: float, deviation: float, *, kappa_x: float = 1.0, delta: float | None = None
) -> RegretBound:
    """The Bayesian bound of LinTS with K independent actions, theta_a ~ N(0, deviation^2 I) (thesis, Appendix B.6.5).

    sqrt(2 T d K c log(1 + T kappa_x s^2 / (d sigma^2)) log(1 / delta)) + c' T delta: meTS's without effects. For a chain s^2 is
    the largest eigenvalue of the marginal covariance, at most sigma_1^2 + sum_l sigma_(l+1)^2 w_1 ... w_l. In a chain's own
    world actions are not independent, LinTS's belief is not the posterior, and this is not a theorem about it: it is what the
    thesis compares with.
    """
    return mets_regret_bound(T, K, 1, d, sigma, deviation, 0.0, kappa_x, 0.0, delta)


def lints_frequentist_bound(
    T: int,
    K: int,
    d: int,
    sigma: float,
    radius: float,
    *,
    kappa_x: float = 1.0,
    ridge: float = 1.0,
    delta: float | None = None,
) -> float:
    """The frequentist bound of LinTS after Abeille and Lazaric (2017), of order (dK)^(3/2) sqrt(T).

    K parameters of dimension d are one of dimension n = dK, met by contexts that are zero but for the block of the action
    played. With beta(e) = sigma sqrt(2 log(((ridge + T) / ridge)^(n/2) / e)) + sqrt(ridge) radius, e = delta / (4 T),
    gamma = beta(e) sqrt(2 n log(2 n / e)) and p = 1 / (4 sqrt(e pi)), with probability at least 1 - delta

        R(T) <= (beta + gamma (1 + 4 / p)) sqrt(2 T n log(1 + T / ridge)) + 4 gamma / p sqrt(8 T / ridge log(4 / delta))

    radius bounds ||theta||. Contexts longer than 1 are scaled to length 1 and theta accordingly.
    """
    T, K, d = (validate.count(name, value) for name, value in (("T", T), ("K", K), ("d", d)))
    sigma, ridge = validate.positive("sigma", sigma), validate.positive("ridge", ridge)
    norm = math.sqrt(validate.positive("kappa_x", kappa_x)) * validate.positive("radius", radius)
    delta = failure_share(delta, T)
    n, e = d * K, delta / (4 * T)
    beta = sigma * math.sqrt(n * math.log1p(T / ridge) + 2 * math.log(1 / e)) + math.sqrt(ridge) * norm
    gamma = beta * math.sqrt(CONCENTRATION * n * math.log(CONCENTRATION * n / e))
    first = (beta + gamma * (1 + 4 / OPTIMISM)) * math.sqrt(2 * T * n * math.log1p(T / ridge))
    rest = 4 * gamma / OPTIMISM * math.sqrt(8 * T / ridge * math.log(4 / delta))
    return representable("sigma, radius, kappa_x and ridge", first + rest)


def dts_effective_actions(K: int, sigmas: Sequence[float], sigma: float) -> float:
    """K_eff = (K sigma_1^2 + sum_l sigma_(l+1)^2 sigma_max^(2 l)) / sum_l sigma_l^2 (thesis, Section 4.3).

    dTS's rate is sqrt(T d K_eff sum_l sigma_l^2): how many independent actions would be as hard as these K. It exceeds K where
    the latents cost more than they save, and grows like sigma_max^(2 L) with the depth.
    """
    K, variances = validate.count("K", K), _variances(sigmas)
    largest = 1 + max(variances) / validate.positive("sigma", sigma) ** 2
    effective = (K * variances[0] + _latents(variances, largest, [1] * (len(variances) - 1))) / sum(variances)
    return representable("sigma and sigmas", effective)


def dts_rates(
    T: int, K: int, d: int, sigmas: Sequence[float], *, active: Sequence[int] | None = None, sigma: float | None = None
) -> DiffusionRates:
    """How the bounds of dTS and LinTS scale (thesis, Section 4.3), at kappa_x = w_l = 1.

        dts     sqrt(T (d K sigma_1^2 + sum_l d_l sigma_(l+1)^2 sigma_max^(2 l)))
        lints   sqrt(T d K sum_l sigma_l^2)

    sigma: the noise; without it sigma_max^2 = 2, as the thesis simplifies where sigma >= sigma_l.
    """
    T, K, d = (validate.count(name, value) for name, value in (("T", T), ("K", K), ("d", d)))
    variances = _variances(sigmas)
    columns = _columns(active, len(variances) - 1, d)
    largest = 2.0 if sigma is None else 1 + max(variances) / validate.positive("sigma", sigma) ** 2
    dts = math.sqrt(T * (d * K * variances[0] + _latents(variances, largest, columns)))
    return DiffusionRates(
        dts=representable("sigma and sigmas", dts),
        lints=math.sqrt(T * d * K * sum(variances)),
    )


def rate_scenario(name: Literal["decreasing", "constant"], d: int) -> tuple[list[float], list[int]]:
    """sigma_1, ..., sigma_(L+1) and d_1, ..., d_L of the two scenarios (thesis, Section 4.3.1): L = log2 d, d_l = d // 2^l.

    decreasing: sigma_l^2 = 2^l (from the root down to the actions they decrease); constant: sigma_l = 1.
    """
    L = int(math.log2(validate.count("d", d, least=2)))
    validate.one_of("name", name, ("decreasing", "constant"))
    sigmas = [math.sqrt(2.0**l) if name == "decreasing" else 1.0 for l in range(1, L + 2)]
    return sigmas, [max(1, d // 2**l) for l in range(1, L + 1)]


def _latents(variances: Sequence[float], largest: float, columns: Sequence[float]) -> float:
    return sum(n * variances[l] * power(largest, l) for l, n in enumerate(columns, start=1))


def _variances(sigmas: Sequence[float]) -> list[float]:
    values = validate.as_array("sigmas", sigmas, (None,)).tolist()
    if len(values) < 2:
        raise InvalidInput("sigmas", f"{len(values)} of them", "sigma_1, ..., sigma_(L+1), at least two")
    # sigma_1 = 0 has no theorem: the evidence about psi_1 is not bounded by sigma_1 then
    return [validate.positive("sigmas", value) ** 2 for value in values]


def _columns(active: Sequence[int] | None, L: int, d: int) -> list[int]:
    """d_1, ..., d_L."""
    if active is None:
        return [d] * L
    found = validate.integers("active", active)
    if len(found) != L or (L > 0 and not 1 <= found.min() <= found.max() <= d):
        raise InvalidInput("active", validate.describe(active), f"{L} integers from 1 to d = {d}, one per link")
    return [int(one) for one in found]


def _gains(gains: Sequence[float] | None, L: int) -> list[float]:
    """w_1, ..., w_L."""
    if gains is None:
        return [1.0] * L
    found = validate.as_array("gains", gains, (L,))
    if found.min() < 0:
        raise InvalidInput("gains", validate.describe(gains), f"{L} numbers that are not negative, one per link")
    return [float(one) for one in found]


__all__ = [
    "DiffusionRates",
    "DiffusionRegretBound",
    "deviations",
    "dts_effective_actions",
    "dts_rates",
    "dts_regret_bound",
    "dts_regret_bound_of",
    "link_sizes",
    "lints_frequentist_bound",
    "lints_regret_bound",
    "rate_scenario",
]
