"""Upper bounds on meTS's Bayes regret in the linear world (thesis, Section 3.3; the proof, Appendices A.3.4 and A.4).

In expectation over the prior, contexts and rewards, for any delta in (0, 1],

    BR(T) <= sqrt(2 T (R^A(T) + R^E(T)) log(1 / delta)) + c T delta

R^A is the cost of learning the actions given the effects, R^E that of learning the effects, and c T delta
what the proof gives away on the event that a confidence interval fails.

The printed theorem agrees with its proof, constant by constant. Three remarks from reading it:

- c has a factor K, from a union bound over actions (Appendix A.3.4). With delta = 1 / T the last
  term is constant in T but linear in K; delta = 1 / (K T) costs only a logarithm and makes the bound with
  sigma_0 = 0 grow like log K.
- the tilde of the simplified rates hides more than logarithms of T: c_A is at least sigma^2 however small
  sigma_0 is (u / log(1 + u) tends to 1, not to 0), so that for a fixed small sigma_0 and large T, R^A is of
  the order d K sigma^2 log T and not d K sigma_0^2. The same holds of c_E and sigma_Psi. The rates are right
  where the prior variances are not small beside sigma^2.
- the rate given for the marginalised agent (Section 3.3.2) is the bound of a world of independent actions
  with the same marginals. The proof needs decisions drawn from the true posterior, and that agent's belief,
  which drops the correlations, is not it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from manyarms._base import validate
from manyarms._base.tables import Shown
from manyarms.errors import InvalidInput
from manyarms.priors.gaussian import MixedEffectPrior

LIMIT = 1e-290


@dataclass(frozen=True, repr=False)
class RegretBound(Shown):
    """A bound on the Bayes regret after T rounds and its parts; total = leading + constant.

    action_term R^A and effect_term R^E stand under the root, leading = sqrt(2 T (R^A + R^E) log(1 / delta)),
    constant = c T delta.
    """

    total: float
    leading: float
    constant: float
    action_term: float
    effect_term: float
    delta: float


@dataclass(frozen=True, repr=False)
class MetsRates(Shown):
    """The simplified rates of the thesis, Section 3.3, without logarithms and constants."""

    mets: float
    known_effects: float
    exact_effects: float
    marginalised: float


def mets_regret_bound(
    T: int,
    K: int,
    L: int,
    d: int,
    sigma: float,
    sigma0: float,
    sigma_psi: float,
    kappa_x: float,
    kappa_b: float,
    delta: float | None = None,
) -> RegretBound:
    """The theorem of the thesis, Section 3.3.1.

    Sigma_0,a = sigma0^2 I, Sigma_Psi = sigma_psi^2 I, ||x||^2 <= kappa_x, ||b_a||^2 <= kappa_b:

        R^A = d K c_A log(1 + T kappa_x sigma0^2 / (d sigma^2))
        c_A = kappa_x sigma0^2 / log(1 + kappa_x sigma0^2 / sigma^2)
        R^E = d L c_E log(1 + K kappa_b sigma_psi^2 / (sigma0^2 + sigma^2 / (T kappa_x)))
        c_E = v (1 + kappa_x sigma0^2 / sigma^2) / log(1 + v / sigma^2),   v = kappa_x kappa_b sigma_psi^2
        c   = K sqrt(2 / pi kappa_x (sigma0^2 + kappa_b sigma_psi^2))

    All sigmas are standard deviations; sigma0 = 0 and sigma_psi = 0 give the limits. By default delta = 1 / T.
    """
    action, effect = _variances(sigma0, sigma_psi)
    return _bound(
        T, K, L, d, sigma=sigma, largest=action, smallest=action, effect=effect,
        kappa_x=kappa_x, kappa_b=kappa_b, delta=delta,
    )  # fmt: skip


def mets_regret_bound_of(
    prior: MixedEffectPrior, T: int, *, sigma: float, kappa_x: float, delta: float | None = None
) -> RegretBound:
    """The general version (thesis, Appendix A.3.4), for any covariances, from the prior's eigenvalues.

    lambda_1,0 and lambda_d,0 are the largest and smallest eigenvalues of the actions' covariances,
    lambda_1,Psi the largest of the effects'. Against the isotropic form sigma_psi^2 becomes lambda_1,Psi
    (lambda_1,0 / lambda_d,0)^2 wherever an action's posterior carries the effects' uncertainty, so the bound
    is loose for badly conditioned action covariances.
    """
    validate.instance("prior", prior, MixedEffectPrior, "a MixedEffectPrior")
    eigenvalues = np.linalg.eigvalsh(prior.action_covariance)
    return _bound(
        T, prior.actions, prior.effects, prior.dim,
        sigma=sigma, largest=float(eigenvalues.max()), smallest=float(eigenvalues.min()),
        effect=float(np.linalg.eigvalsh(prior.effect_covariance).max()),
        kappa_x=kappa_x, kappa_b=float((prior.weights**2).sum(axis=1).max()), delta=delta,
    )  # fmt: skip


def _bound(
    T: int,
    K: int,
    L: int,
    d: int,
    *,
    sigma: float,
    largest: float,
    smallest: float,
    effect: float,
    kappa_x: float,
    kappa_b: float,
    delta: float | None,
) -> RegretBound:
    """The general theorem with lambda_1,0 = largest, lambda_d,0 = smallest, lambda_1,Psi = effect."""
    T, K, L, d = (validate.count(name, value) for name, value in (("T", T), ("K", K), ("L", L), ("d", d)))
    noise = validate.positive("sigma", sigma) ** 2
    kappa_x, kappa_b = validate.positive("kappa_x", kappa_x), validate.not_negative("kappa_b", kappa_b)
    delta = failure_share(delta, T)
    # (lambda_1,0 / lambda_d,0)^2; equal eigenvalues, zero among them, give 1
    stretch = 1.0 if largest == smallest else power(largest / smallest, 2)
    carried = stretch * effect * kappa_b  # the effects' part of an action's largest posterior variance
    # 1 / lambda_d,0 - 1 / (lambda_1,0^2 (kappa_x T / sigma^2 + 1 / lambda_d,0)), written so that 0 is allowed
    pulled = kappa_x * T / noise
    uneven = 0.0 if stretch == 1.0 else (stretch - 1) / smallest
    evidence = (uneven + stretch * pulled) / (stretch * (1 + smallest * pulled))
    action_term = d * K * learning_cost(kappa_x * largest, noise) * math.log1p(T * kappa_x * largest / (d * noise))
    effect_term = (
        d * L * learning_cost(kappa_x * carried, noise) * (1 + kappa_x * largest / noise)
        * math.log1p(K * kappa_b * effect * evidence)
    )  # fmt: skip
    leading = math.sqrt(2 * T * (action_term + effect_term) * math.log(1 / delta))
    constant = K * math.sqrt(2 / math.pi * kappa_x * (largest + carried)) * T * delta
    total = representable("sigma, kappa_x, kappa_b and the prior", leading + constant)
    return RegretBound(total, leading, constant, action_term, effect_term, delta)


def failure_share(delta: float | None, T: int) -> float:
    """delta, 1 / T unless it is given."""
    delta = 1.0 / T if delta is None else validate.positive("delta", delta)
    if delta > 1:
        raise InvalidInput("delta", delta, "a number above 0 and at most 1")
    return delta


def learning_cost(variance: float, noise: float) -> float:
    """The smallest c with x <= c log(1 + x / s) for all x in [0, v]: v / log(1 + v / s), and s where v = 0."""
    # so far below s the quotient has lost its digits, and c is s in double precision
    return noise if variance / noise < LIMIT else variance / math.log1p(variance / noise)


def power(base: float, exponent: int) -> float:
    """base^exponent; infinite where a float's own power would raise an error."""
    with np.errstate(over="ignore"):
        return float(np.float64(base) ** exponent)


def representable(arguments: str, value: float) -> float:
    """A number that was computed from arguments, refused where it is beyond what a float can hold."""
    if not math.isfinite(value):
        raise InvalidInput(arguments, "numbers whose products overflow", "numbers nearer to 1")
    return value


def _variances(sigma0: float, sigma_psi: float) -> tuple[float, float]:
    return validate.not_negative("sigma0", sigma0) ** 2, validate.not_negative("sigma_psi", sigma_psi) ** 2


def mets_effective_actions(K: int, L: int, sigma0: float, sigma_psi: float) -> float:
    """K_eff = (K sigma0^2 + L sigma_psi^2 (1 + sigma0^2)) / (sigma0^2 + sigma_psi^2) (thesis, Section 3.3.1).

    How many independent actions would be as hard as these K, at kappa_x = kappa_b = sigma = 1. It is K with
    sigma_psi = 0 and L with sigma0 = 0, and exceeds K where L (1 + sigma0^2) > K.
    """
    K, L = validate.count("K", K), validate.count("L", L)
    action, effect = _variances(sigma0, sigma_psi)
    if action + effect == 0:
        raise InvalidInput("sigma0 and sigma_psi", "both 0", "at least one above 0: nothing is left to learn")
    return representable("sigma0 and sigma_psi", (K * action + L * effect * (1 + action)) / (action + effect))


def mets_rates(T: int, K: int, L: int, d: int, sigma0: float, sigma_psi: float) -> MetsRates:
    """How Bayes regret scales, at kappa_x = kappa_b = sigma = 1 (thesis, Section 3.3).

        mets           sqrt(T d (K sigma0^2 + L sigma_psi^2 (1 + sigma0^2)))
        known_effects  sqrt(T d K sigma0^2)                     Psi is told: sigma_psi = 0
        exact_effects  sqrt(T d L sigma_psi^2)                  theta_a = sum_l b_al psi_l: sigma0 = 0
        marginalised   sqrt(T d K (sigma0^2 + sigma_psi^2))     every action learned alone

    The first is also sqrt(T d K_eff (sigma0^2 + sigma_psi^2)). See the module's remarks on what they leave out.
    """
    T, K, L, d = (validate.count(name, value) for name, value in (("T", T), ("K", K), ("L", L), ("d", d)))
    action, effect = _variances(sigma0, sigma_psi)
    return MetsRates(
        mets=representable("sigma0 and sigma_psi", math.sqrt(T * d * (K * action + L * effect * (1 + action)))),
        known_effects=math.sqrt(T * d * K * action),
        exact_effects=math.sqrt(T * d * L * effect),
        marginalised=math.sqrt(T * d * K * (action + effect)),
    )


__all__ = [
    "MetsRates",
    "RegretBound",
    "failure_share",
    "learning_cost",
    "mets_effective_actions",
    "mets_rates",
    "mets_regret_bound",
    "mets_regret_bound_of",
    "power",
    "representable",
]
