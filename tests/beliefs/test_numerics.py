"""Numbers stay sound: after very many updates, with contexts that nearly repeat, with tiny and with huge noise."""

from __future__ import annotations

from copy import deepcopy
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import manyarms as ma
from brute_force import covariance_matrix, covariance_of_root, random_case, random_rows
from exact_gaussian import inverse
from manyarms._base import linalg
from manyarms._base.typing import Array, Ints
from manyarms.agents.agent import Agent
from manyarms.beliefs import GaussianRoot
from manyarms.beliefs.growable import GrowableArray


def lower_factor(covariance: Array) -> Array:
    return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)


def whitened_errors(have: Array, want: Array, mean: Array, wanted_mean: Array) -> tuple[float, float]:
    """Largest relative error of a standard deviation in any direction, and of the mean in standard deviations."""
    lower = np.linalg.cholesky(want)
    ratio = np.linalg.eigvalsh(np.linalg.solve(lower, np.linalg.solve(lower, have).T))
    return float(np.abs(np.sqrt(np.abs(ratio)) - 1).max()), float(
        np.abs(np.linalg.solve(lower, mean - wanted_mean)).max()
    )


def from_sums(agent: Agent, X: Array, A: Ints, r: Array, noise: float) -> tuple[Array, Array, Array, Array]:
    """Root and action posteriors in the thesis's closed form (Section 3.2.2), from sums over all rows."""
    leaves = agent.belief.leaves
    b = leaves.mixing.features
    assert b is not None and leaves.shared
    K, d = len(b), agent.belief.dim
    prior = np.linalg.inv(leaves.covariance)
    root = agent.belief.root
    assert isinstance(root, GaussianRoot)
    arrays = root.arrays()
    precision = np.linalg.inv(arrays["prior_covariance"])
    information = precision @ arrays["prior_mean"]
    S, SB = np.empty((K, d, d)), np.empty((K, d))
    for a in range(K):
        G = X[a == A].T @ X[a == A] / noise**2
        B = X[a == A].T @ r[a == A] / noise**2
        S[a] = np.linalg.inv(prior + G)
        SB[a] = S[a] @ B
        precision = precision + np.kron(np.outer(b[a], b[a]), prior - prior @ S[a] @ prior)
        information = information + np.kron(b[a], prior @ SB[a])
    covariance: Array = np.asarray(np.linalg.inv(precision), dtype=np.float64)
    mean = covariance @ information
    P = S @ prior @ np.stack([np.kron(row, np.eye(d)) for row in b])
    return mean, covariance, SB + P @ mean, S + P @ covariance @ np.swapaxes(P, 1, 2)


@pytest.mark.slow
def test_a_hundred_thousand_rank_one_updates() -> None:
    """Row after row, nothing is ever factorised anew; still everything equals the closed form from sums to 1e-8."""
    rng = np.random.default_rng(1)
    K, L, d, n, noise = 4, 2, 2, 100_000, 0.8
    prior = ma.MixedEffectPrior(rng.uniform(-1, 1, (K, L)), rng.standard_normal((L, d)), 3 * np.eye(L * d), np.eye(d))
    agent = ma.meTS(prior, ma.Linear(noise), seed=0)
    X, A = rng.uniform(-1, 1, (n, d)), rng.integers(K, size=n)
    theta = rng.standard_normal((K, d))
    r = np.einsum("nd,nd->n", X, theta[A]) + noise * rng.standard_normal(n)
    for i, (x, a, y) in enumerate(zip(X, A.tolist(), r.tolist(), strict=True), 1):
        agent.belief.observe(x[None], np.array([a]), np.array([y]))
        if i in (100, 10_000, n):
            mean, covariance, means, covariances = from_sums(agent, X[:i], A[:i], r[:i], noise)
            deviation, distance = whitened_errors(
                covariance_of_root(agent.belief), covariance, agent.belief.root.mean(), mean
            )
            assert deviation < 1e-8 and distance < 1e-8, f"root after {i} rows"
            have_mean, have = agent.belief.action_posterior(np.arange(K))
            for a in range(K):
                deviation, distance = whitened_errors(have[a], covariances[a], have_mean[a], means[a])
                assert deviation < 1e-8 and distance < 1e-8, f"action {a} after {i} rows"


def rational_posterior(prior_variance: float, X: Array, r: Array, noise: float) -> tuple[Array, Array]:
    """Mean and covariance of one action with prior N(0, v I), in exact arithmetic until the end."""
    d = X.shape[1]
    x = [[Fraction(value) for value in row] for row in X.tolist()]
    y = [Fraction(value) for value in r.tolist()]
    weight = 1 / Fraction(noise) ** 2
    precision = [
        [
            weight * sum(row[i] * row[j] for row in x) + Fraction(int(i == j)) / Fraction(prior_variance)
            for j in range(d)
        ]
        for i in range(d)
    ]
    B = [weight * sum(row[i] * value for row, value in zip(x, y, strict=True)) for i in range(d)]
    S = inverse(precision)
    mean = [sum(u * v for u, v in zip(row, B, strict=True)) for row in S]
    return np.array(mean, dtype=np.float64), np.array(S, dtype=np.float64)


def hard_rows(
    rng: np.random.Generator, n: int, d: int, collinear: float | None, noise: float, size: float
) -> tuple[Array, Array]:
    """Contexts, nearly all on one line where `collinear` says how nearly, and rewards."""
    X = rng.uniform(-1, 1, (n, d))
    if collinear is not None:
        X = np.outer(rng.uniform(0.5, 1, n), np.ones(d)) + collinear * rng.standard_normal((n, d))
    return X, X @ (size * rng.standard_normal(d)) + noise * rng.standard_normal(n)


# (noise, collinear): how exact rows one by one and one batch are, in standard deviations. Where signal is 1e12 times the
# noise and contexts agree in six digits, a double has few digits left; it must still have some.
HARD = [
    (1e-6, None, 1e-4),
    (1e-6, 1e-6, 1e-2),
    (1e-3, None, 1e-6),
    (1e-3, 1e-6, 1e-6),
    (1.0, None, 1e-12),
    (1.0, 1e-6, 1e-10),
    (1.0, 1e-12, 1e-8),
    (1e3, 1e-6, 1e-12),
    (1e6, None, 1e-12),
    (1e6, 1e-6, 1e-12),
]


@pytest.mark.parametrize(("noise", "collinear", "tolerance"), HARD)
@pytest.mark.parametrize("batch", [False, True])
def test_tiny_and_huge_noise_and_collinear_contexts(
    noise: float, collinear: float | None, tolerance: float, batch: bool, rng: np.random.Generator
) -> None:
    """Against exact rational arithmetic."""
    d, n = 3, 40
    X, r = hard_rows(rng, n, d, collinear, noise, 1.0)
    agent = ma.LinTS(ma.ActionPrior(2, np.zeros(d), np.eye(d)), ma.Linear(noise), seed=0)
    if batch:
        agent.observe(X, np.zeros(n, dtype=np.int64), r)
    else:
        for x, y in zip(X, r, strict=True):
            agent.observe(x, 0, y)
    mean, covariance = agent.posterior(0)
    wanted_mean, wanted = rational_posterior(1.0, X, r, noise)
    deviation, distance = whitened_errors(covariance, wanted, mean, wanted_mean)
    assert deviation < tolerance
    assert distance < tolerance


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("noise", [1e-6, 1e-3, 1.0, 1e6])
@pytest.mark.parametrize("size", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("collinear", [None, 1e-3, 1e-8])
def test_nothing_breaks_in_extremes(
    noise: float, size: float, collinear: float | None, batch: bool, rng: np.random.Generator
) -> None:
    """Prior variances up to 1e20 times the noise's, beyond what a double resolves: finite, positive, and the data are fitted."""
    d, n = 6, 120
    X, r = hard_rows(rng, n, d, collinear, noise, size)
    prior = ma.HierarchicalPrior(3, np.zeros(d), size**2 * np.eye(d), size**2 * np.eye(d))
    for agent in (ma.HierTS(prior, ma.Linear(noise), seed=0), ma.LinTS(prior, ma.Linear(noise), seed=0)):
        actions = np.arange(n) % 2
        if batch:
            agent.observe(X, actions, r)
        else:
            for x, a, y in zip(X, actions.tolist(), r, strict=True):
                agent.observe(x, a, y)
        for action in range(3):
            mean, covariance = agent.posterior(action)
            assert np.isfinite(mean).all() and np.isfinite(covariance).all()
            values = np.linalg.eigvalsh(covariance)
            assert values.min() >= -1e-12 * values.max()
        assert set(np.unique(agent.decide(X))) <= {0, 1, 2}
        if batch and collinear == 1e-8 and size / noise > 1e9:
            continue  # sums of x x^T no longer tell these contexts apart; row by row still works
        mean, _ = agent.posterior(0)
        left = np.abs(X @ mean - r)[actions == 0].max()
        assert left <= 6 * noise + 1e-7 * size + (20 * size if noise > size else 0)


@given(seed=st.integers(0, 10**6), d=st.integers(1, 6), variance=st.sampled_from((1e-8, 1e-2, 1.0, 1e6)))
def test_the_square_root_update_is_the_information_form(seed: int, d: int, variance: float) -> None:
    """Potter's update against precision + u u^T / v and information + u y / v, several times in a row."""
    rng = np.random.default_rng(seed)
    covariance, mean = covariance_matrix(rng, d), rng.standard_normal(d)
    factor = lower_factor(covariance)
    precision = np.linalg.inv(covariance)
    information = precision @ mean
    for _ in range(5):
        u, y = rng.standard_normal(d), float(rng.standard_normal())
        linalg.condition_factor(factor, mean, u, variance, y)
        precision += np.outer(u, u) / variance
        information += u * y / variance
    wanted = np.linalg.inv(precision)
    scale = max(1e-9, 1e-12 / variance)
    assert_allclose(factor @ factor.T, wanted, rtol=0, atol=scale * np.abs(wanted).max())
    assert_allclose(mean, wanted @ information, rtol=0, atol=scale * max(1.0, np.abs(wanted @ information).max()))


@given(seed=st.integers(0, 10**6), d=st.integers(1, 6), noise=st.sampled_from((1e-4, 1.0, 1e4)))
def test_one_observation_of_a_covariance(seed: int, d: int, noise: float) -> None:
    """S' = S - S x x^T S / (x^T S x + s^2), which is (S^-1 + x x^T / s^2)^-1."""
    rng = np.random.default_rng(seed)
    S, x = covariance_matrix(rng, d), rng.standard_normal(d)
    new, gain, total = linalg.condition(S, x, noise**2)
    assert_allclose(total, x @ S @ x + noise**2)
    assert_allclose(gain, S @ x / total)
    assert_allclose(new, S - np.outer(S @ x, S @ x) / total, rtol=0, atol=1e-12)
    assert (new == new.T).all()
    assert np.linalg.eigvalsh(new).min() > 0


@given(seed=st.integers(0, 10**6), d=st.integers(1, 5), size=st.sampled_from((1e-6, 1.0, 1e6)))
def test_shrinking_a_covariance_is_adding_precision(seed: int, d: int, size: float) -> None:
    rng = np.random.default_rng(seed)
    Sigma = np.stack([covariance_matrix(rng, d) for _ in range(3)])
    X = rng.standard_normal((3, d, d + 2))
    G, b = size * X @ np.swapaxes(X, 1, 2), rng.standard_normal((3, d))
    S, Sb = linalg.shrink(lower_factor(Sigma), G, b)
    wanted = np.linalg.inv(np.linalg.inv(Sigma) + G)
    for have, want in ((S, wanted), (Sb, np.einsum("nij,nj->ni", wanted, b))):
        assert_allclose(have, want, rtol=0, atol=1e-9 * np.abs(want).max())
    assert (np.swapaxes(S, 1, 2) == S).all()


def test_shrinking_survives_what_rounding_makes_of_a_huge_precision() -> None:
    """G of one direction, 1e24 times the prior's precision: the sum is singular to working precision."""
    x = np.array([1.0, 1.0, 1.0]) / 3
    S, Sb = linalg.shrink(1e4 * np.eye(3)[None], 1e16 * np.outer(x, x)[None], 1e16 * x[None])
    assert np.isfinite(S).all() and np.isfinite(Sb).all()
    assert np.linalg.eigvalsh(S[0]).min() >= -1e-7
    assert_allclose(x @ Sb[0], 1.0, rtol=1e-3)  # what was seen so often, it says


@given(seed=st.integers(0, 10**6), d=st.integers(1, 7))
def test_packed_matrices(seed: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    pack = linalg.packing(d)
    S = np.stack([covariance_matrix(rng, d) for _ in range(4)])
    packed = pack.pack(S)
    assert packed.shape == (4, d * (d + 1) // 2)
    assert (pack.unpack(packed) == (np.triu(S) + np.swapaxes(np.triu(S, 1), 1, 2))).all()
    x, y = rng.standard_normal((2, d))
    assert_allclose(packed @ pack.bilinear(x, y), np.einsum("i,aij,j->a", x, S, y), atol=1e-12)


def test_a_factor_from_a_precision() -> None:
    precision = np.stack([covariance_matrix(np.random.default_rng(s), 4) for s in range(3)])
    S = linalg.factor_from_precision(precision)
    assert_allclose(S @ np.swapaxes(S, 1, 2), np.linalg.inv(precision), atol=1e-12)


def test_tables_grow_and_a_copy_stays_whole() -> None:
    """A copy's `rows` must be a view of the copy's own table; otherwise what is written there is lost when it grows."""
    table = GrowableArray((2,))
    for i in range(20):
        table.append([i, -i])
    twin = deepcopy(table)
    twin.rows[3] = 99.0
    twin.append([7.0, 7.0])
    assert twin.rows[3].tolist() == [99.0, 99.0]
    assert table.rows[3].tolist() == [3.0, -3.0] and len(table) == 20
    assert twin.rows[:, 0].tolist() == [0, 1, 2, 99, *range(4, 20), 7]


def test_repeated_rows_of_a_factored_root_stay_positive() -> None:
    for rule in ("mean-field", "blockwise"):
        case = random_case(4, "weights", factored=rule, noise=1e-3)
        X, A, r = random_rows(4, 400, 2, np.arange(5))
        for x, a, y in zip(X, A, r, strict=True):
            case.belief.observe(x[None], np.array([a]), np.array([y]))
        assert np.linalg.eigvalsh(covariance_of_root(case.belief)).min() > 0
