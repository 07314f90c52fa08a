"""The regret bound: its formula, its limits, and the inequality that its proof is about."""

from __future__ import annotations

import itertools
from math import log, pi, sqrt

import numpy as np
import pytest

from manyarms.errors import InvalidInput
from manyarms.priors.gaussian import MixedEffectPrior
from manyarms.theory.regret import mets_effective_actions, mets_rates, mets_regret_bound, mets_regret_bound_of

USUAL = {
    "T": 5000,
    "K": 100,
    "L": 3,
    "d": 2,
    "sigma": 1.0,
    "sigma0": 1.0,
    "sigma_psi": sqrt(3),
    "kappa_x": 2.0,
    "kappa_b": 2.5,
}


def test_the_bound_is_the_printed_one() -> None:
    for T, K, L, d, s, s0, sp, kx, kb, delta in [
        (5000, 100, 3, 2, 1.0, 1.0, sqrt(3), 2.0, 3.0, None),
        (200, 7, 5, 4, 0.5, 0.2, 1.7, 4.0, 0.8, 0.05),
        (10, 1, 1, 1, 2.0, 3.0, 0.1, 0.3, 1.0, 0.5),
    ]:
        bound = mets_regret_bound(T, K, L, d, s, s0, sp, kx, kb, delta)
        level = 1 / T if delta is None else delta
        c_a = kx * s0**2 / log(1 + kx * s0**2 / s**2)
        r_a = d * K * c_a * log(1 + T * kx * s0**2 / (d * s**2))
        c_e = kx * kb * sp**2 * (1 + kx * s0**2 / s**2) / log(1 + kx * kb * sp**2 / s**2)
        r_e = d * L * c_e * log(1 + K * kb * sp**2 / (s0**2 + s**2 / (T * kx)))
        c = sqrt(2 / pi * kx * (s0**2 + kb * sp**2)) * K
        assert bound.action_term == pytest.approx(r_a, rel=1e-12)
        assert bound.effect_term == pytest.approx(r_e, rel=1e-12)
        assert bound.constant == pytest.approx(c * T * level, rel=1e-12)
        assert bound.total == pytest.approx(sqrt(2 * T * (r_a + r_e) * log(1 / level)) + c * T * level, rel=1e-12)
        assert bound.total == bound.leading + bound.constant and bound.delta == level


def random_prior(rng: np.random.Generator, K: int, L: int, d: int) -> MixedEffectPrior:
    def spd(size: int) -> np.ndarray:
        root = rng.normal(size=(size, size))
        return root @ root.T / size + 0.3 * np.eye(size)

    return MixedEffectPrior(
        rng.uniform(-1, 1, (K, L)), rng.normal(size=(L, d)), spd(L * d), np.stack([spd(d) for _ in range(K)])
    )


def test_the_general_bound_is_the_printed_one() -> None:
    prior = random_prior(np.random.default_rng(0), 6, 2, 3)
    T, s, kx = 300, 0.7, 3.0
    bound = mets_regret_bound_of(prior, T, sigma=s, kappa_x=kx)
    eigenvalues = np.linalg.eigvalsh(prior.action_covariance)
    top, low = eigenvalues.max(), eigenvalues.min()
    psi, kb = np.linalg.eigvalsh(prior.effect_covariance).max(), (prior.weights**2).sum(axis=1).max()
    ratio = top**2 / low**2
    c_e = kx * kb * ratio * psi * (1 + kx * top / s**2) / log(1 + kx * kb * ratio * psi / s**2)
    inside = 1 / low - 1 / (top**2 * (kx * T / s**2 + 1 / low))
    assert bound.effect_term == pytest.approx(3 * 2 * c_e * log(1 + 6 * kb * psi * inside), rel=1e-10)
    c_a = kx * top / log(1 + kx * top / s**2)
    assert bound.action_term == pytest.approx(3 * 6 * c_a * log(1 + T * kx * top / (s**2 * 3)), rel=1e-10)
    assert bound.constant == pytest.approx(6 * sqrt(2 / pi * kx * (top + ratio * psi * kb)), rel=1e-10)


def test_the_general_bound_of_an_isotropic_prior_is_the_simple_one() -> None:
    weights = np.random.default_rng(1).uniform(-1, 1, (9, 3))
    prior = MixedEffectPrior(weights, np.zeros((3, 2)), 3 * np.eye(6), 0.5 * np.eye(2))
    general = mets_regret_bound_of(prior, 400, sigma=0.8, kappa_x=2.0, delta=0.1)
    simple = mets_regret_bound(400, 9, 3, 2, 0.8, sqrt(0.5), sqrt(3), 2.0, (weights**2).sum(axis=1).max(), 0.1)
    assert general.total == pytest.approx(simple.total, rel=1e-10)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("isotropic", [True, False])
def test_posterior_variances_of_played_actions_sum_to_less_than_the_two_terms(seed: int, isotropic: bool) -> None:
    """The heart of the proof: sum_t Var(X_t^T theta_(A_t) | H_t) <= R^A + R^E, whatever was played and seen."""
    rng = np.random.default_rng(seed)
    K, L, d, T, s = 5, 2, 2, 150, 0.6
    prior = random_prior(rng, K, L, d)
    if isotropic:
        prior = MixedEffectPrior(prior.weights, prior.effect_mean, 2.0 * np.eye(L * d), 0.4 * np.eye(d))
    mixing = np.kron(prior.weights, np.eye(d))
    joint = mixing @ prior.effect_covariance @ mixing.T
    for a in range(K):
        own = slice(a * d, (a + 1) * d)
        joint[own, own] += prior.action_covariance if isotropic else prior.action_covariance[a]
    total, largest = 0.0, 0.0
    for t in range(T):
        x = rng.uniform(-1, 1, d)
        rows = np.kron(np.eye(K), x)  # one functional x^T theta_a an action
        variances = np.einsum("ij,jk,ik->i", rows, joint, rows)
        largest = max(largest, variances.max())
        row = rows[variances.argmax() if t % 2 else rng.integers(K)]
        total += row @ joint @ row
        gain = joint @ row
        joint = joint - np.outer(gain, gain) / (s**2 + row @ gain)
    bound = mets_regret_bound_of(prior, T, sigma=s, kappa_x=float(d))
    assert 0 < total <= bound.action_term + bound.effect_term
    assert sqrt(2 / pi * largest) * K <= bound.constant


def test_the_bound_grows_with_what_is_unknown() -> None:
    for name, values in {
        "T": [10, 100, 1000, 10_000],
        "K": [5, 50, 500],
        "L": [1, 3, 9],
        "d": [1, 2, 8],
        "sigma0": [0.0, 0.01, 0.3, 1.0, 4.0],
        "sigma_psi": [0.0, 0.01, 0.3, 1.0, 4.0],
        "kappa_b": [0.5, 1.0, 3.0],
        "kappa_x": [0.5, 1.0, 3.0],
    }.items():
        totals = [mets_regret_bound(**(USUAL | {name: value})).total for value in values]  # type: ignore[arg-type]
        assert all(a < b for a, b in itertools.pairwise(totals)), name


def test_known_effects_leave_the_bound_of_independent_actions() -> None:
    bound = mets_regret_bound(**(USUAL | {"sigma_psi": 0.0}))  # type: ignore[arg-type]
    assert bound.effect_term == 0
    assert bound == mets_regret_bound(**(USUAL | {"sigma_psi": 0.0, "L": 50, "kappa_b": 9.0}))  # type: ignore[arg-type]
    near = mets_regret_bound(**(USUAL | {"sigma_psi": 1e-7}))  # type: ignore[arg-type]
    assert near.total == pytest.approx(bound.total, rel=1e-6)


def test_exact_effects_leave_only_the_effects() -> None:
    bound = mets_regret_bound(**(USUAL | {"sigma0": 0.0}))  # type: ignore[arg-type]
    assert bound.action_term == 0
    near = mets_regret_bound(**(USUAL | {"sigma0": 1e-7}))  # type: ignore[arg-type]
    assert near.total == pytest.approx(bound.total, rel=1e-6)


def test_with_a_finer_level_exact_effects_cost_only_a_logarithm_of_the_actions() -> None:
    def total(K: int, delta: float) -> float:
        return mets_regret_bound(**(USUAL | {"sigma0": 0.0, "K": K, "delta": delta})).total  # type: ignore[arg-type]

    assert total(10**6, 1 / 5000) > 100 * total(10**3, 1 / 5000)  # the union bound over actions, linear in K
    assert total(10**6, 1 / (5000 * 10**6)) < 2 * total(10**3, 1 / (5000 * 10**3))


def test_a_small_action_variance_is_not_a_small_factor() -> None:
    small = mets_regret_bound(**(USUAL | {"T": 10**8, "sigma0": 0.03}))  # type: ignore[arg-type]
    assert small.action_term > 1000 * USUAL["d"] * USUAL["K"] * 0.03**2


def test_effective_actions() -> None:
    assert mets_effective_actions(100, 3, 1.0, sqrt(3)) == pytest.approx((100 + 3 * 3 * 2) / 4)
    assert mets_effective_actions(100, 3, 0.5, 0.0) == pytest.approx(100)
    assert mets_effective_actions(100, 3, 0.0, 0.5) == pytest.approx(3)
    assert mets_effective_actions(10**6, 5, 1e-3, 1.0) < 10
    with pytest.raises(InvalidInput, match="sigma0 and sigma_psi"):
        mets_effective_actions(10, 2, 0.0, 0.0)


def test_mets_rates() -> None:
    rates = mets_rates(1000, 50, 4, 3, 0.4, 1.3)
    assert rates.mets == pytest.approx(sqrt(1000 * 3 * mets_effective_actions(50, 4, 0.4, 1.3) * (0.4**2 + 1.3**2)))
    assert rates.known_effects == pytest.approx(mets_rates(1000, 50, 4, 3, 0.4, 0.0).mets)
    assert rates.exact_effects == pytest.approx(mets_rates(1000, 50, 4, 3, 0.0, 1.3).mets)
    assert rates.marginalised == pytest.approx(sqrt(1000 * 3 * 50 * (0.4**2 + 1.3**2)))
    far = mets_rates(1000, 10**6, 4, 3, 1e-6, 1.0)  # the gain is sqrt(K / L) where sigma_psi is far above sigma0
    assert far.marginalised / far.mets == pytest.approx(sqrt(10**6 / 4), rel=1e-3)


def test_bad_arguments_are_refused_by_name() -> None:
    for name, value in {
        "T": 0, "K": 0, "L": -1, "d": 1.5, "sigma": 0.0, "sigma0": -1.0, "sigma_psi": float("nan"),
        "kappa_x": 0.0, "kappa_b": -1.0, "delta": 0.0,
    }.items():  # fmt: skip
        with pytest.raises(InvalidInput, match=f"^{name}:"):
            mets_regret_bound(**(USUAL | {name: value}))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="delta"):
        mets_regret_bound(**USUAL, delta=1.1)  # type: ignore[arg-type]
    assert mets_regret_bound(**(USUAL | {"T": 1})).leading == 0  # type: ignore[arg-type]
