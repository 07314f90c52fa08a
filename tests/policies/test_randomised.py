"""Policies of randomised parameters: their probabilities are those of what they draw, at any number of actions."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.special import log_ndtr, ndtr

import manyarms as ma
from manyarms.errors import InvalidInput, UnknownAction
from manyarms.policies import EpsilonMixture, GaussianPolicy, Layers, MixedLogitPolicy, Policy, Projection, gaussian_kl
from manyarms.policies import mixed_logit as mixed_logit_module
from manyarms.policies.base import ACTIONS, ROWS
from manyarms.policies.normal_choice import (
    BINS,
    ENOUGH,
    MISSED,
    ends,
    gap_counts,
    log_products,
    masses,
    midpoints,
    tolerance,
)

D = 3


def choice_probabilities(z, nodes=64):
    """(b, K): the probability that each of the variables z_a + eps_a is the largest, for rows of scores z (b, K)."""
    gaps = z.max(axis=1, keepdims=True) - z
    at, width = midpoints(*ends(gap_counts(gaps)), nodes)
    return masses(at, log_products(at, gaps) + np.log(width)[:, None], gaps)


def enough_nodes(actions):
    """The fewest nodes that are stated to be enough for this many actions."""
    return next(nodes for nodes, most in ENOUGH if actions <= most)


def by_adaptive_quadrature(z, a):
    """pi(a), from the integral as the thesis writes it: over eps, with the factors of the other actions."""
    others = np.delete(z, a)

    def integrand(eps):
        return np.exp(-(eps**2) / 2 + log_ndtr(eps + z[a] - others).sum()) / np.sqrt(2 * np.pi)

    middle = max(0.0, float(others.max() - z[a])) / 2  # where the integrand of an action far behind lives
    edges = np.linspace(-14, 14 + 2 * middle, 57)
    return sum(integrate.quad(integrand, left, right, epsabs=1e-14, epsrel=1e-12)[0] for left, right in pairwise(edges))


def on_a_fine_grid(z, points=1201):
    """All probabilities by the same integral on a far wider and finer grid; equal scores are counted."""
    scores, place, counts = np.unique(z, return_inverse=True, return_counts=True)
    t, h = np.linspace(z.max() - 12, z.max() + 12, points, retstep=True)
    out = np.empty(len(scores))
    parts = np.array_split(np.arange(len(scores)), 1 + len(scores) // 500)
    L = sum(log_ndtr(t[:, None] - scores[part]) @ counts[part] for part in parts)
    for part in parts:
        x = t[:, None] - scores[part]
        out[part] = h * np.exp(L[:, None] - log_ndtr(x) - x**2 / 2).sum(axis=0) / np.sqrt(2 * np.pi)
    return out[place]


# ---- the arithmetic


@pytest.mark.parametrize("z", [[0.0, 0.0], [1.0, -2.0, 0.5], [3.0, 3.0, 2.9, -9.0], [0.0, -40.0], [0.2] * 12], ids=str)
def test_probabilities_are_the_integral(z):
    z = np.array(z)
    truth = [by_adaptive_quadrature(z, a) for a in range(len(z))]
    np.testing.assert_allclose(choice_probabilities(z[None])[0], truth, atol=1e-10)
    np.testing.assert_allclose(choice_probabilities(z[None], nodes=32)[0], truth, atol=1e-10)


def test_two_actions_have_a_closed_form(rng):
    """P(z_0 + eps_0 > z_1 + eps_1) = Phi((z_0 - z_1) / sqrt 2)."""
    z = 3 * rng.standard_normal((500, 2))
    np.testing.assert_allclose(choice_probabilities(z)[:, 0], ndtr((z[:, 0] - z[:, 1]) / np.sqrt(2)), atol=2 * MISSED)


def test_probabilities_are_shares_of_brute_force_draws(rng):
    z = np.array([[0.0, 0.3, 1.0, -1.0, 1.1], [5.0, 5.0, 5.0, 4.0, -30.0]])
    n = 200_000
    for row, p in zip(z, choice_probabilities(z), strict=True):
        won = np.bincount((row + rng.standard_normal((n, 5))).argmax(axis=1), minlength=5)
        assert (np.abs(won / n - p) <= 4.5 * np.sqrt(p * (1 - p) / n) + 1e-9).all()


@given(st.integers(2, 200), st.sampled_from([0.0, 0.1, 1.0, 5.0, 100.0]), st.integers(0, 10**6))
@settings(max_examples=40)
def test_probabilities_sum_to_one(K, spread, seed):
    z = spread * np.random.default_rng(seed).standard_normal((4, K))
    for nodes in (64, enough_nodes(K)):
        p = choice_probabilities(z, nodes)
        assert (p >= 0).all()
        np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-8)


@pytest.mark.parametrize("K", [most for _, most in ENOUGH[:3]])
def test_stated_tolerances_hold_where_two_scales_meet(K):
    """One action ahead of K - 1 equal ones: a wide law beside a narrow one, the hardest case that is known."""
    nodes = enough_nodes(K)
    for ahead in (0.0, 1.0, 3.0, 4.0, 5.0, 40.0):
        z = np.full(K, -ahead)
        z[0] = 0.0
        found, truth = choice_probabilities(z[None], nodes)[0], on_a_fine_grid(z, 4001)
        assert np.abs(found - truth).max() <= tolerance(nodes, K) == 1e-8
        assert abs(found.sum() - 1) <= 1e-8


def test_ten_thousand_actions(rng):
    for z in (np.zeros(10_000), rng.standard_normal(10_000), 4 * rng.standard_normal(10_000)):
        p = choice_probabilities(z[None])[0]
        assert abs(p.sum() - 1) <= 1e-8
        np.testing.assert_allclose(p, on_a_fine_grid(z, 601), atol=1e-9)
        assert p.max() == p[z.argmax()]
    np.testing.assert_allclose(choice_probabilities(np.zeros((1, 10_000))), 1e-4, rtol=1e-8)


def test_far_ahead_and_ties():
    p = choice_probabilities(np.array([[0.0, -40.0, -40.0], [7.0, 7.0, -1e9], [-1e150, 1e150, 0.0]]))
    np.testing.assert_allclose(p, [[1, 0, 0], [0.5, 0.5, 0], [0, 1, 0]], atol=1e-10)
    np.testing.assert_allclose(choice_probabilities(np.full((1, 300), 12345.678))[0], 1 / 300, rtol=1e-8)


def test_scores_count_by_their_differences(rng):
    z = rng.standard_normal((5, 30))
    np.testing.assert_allclose(choice_probabilities(z + 1e3), choice_probabilities(z), atol=1e-11)


@given(st.integers(1, 400), st.sampled_from([0.3, 3.0, 30.0]), st.integers(0, 10**6))
def test_no_more_than_promised_lies_beyond_the_ends(K, spread, seed):
    gaps = spread * np.random.default_rng(seed).random((1, K))
    gaps[0, 0] = 0.0
    counts = gap_counts(gaps)
    assert counts.shape == (1, BINS + 1) and counts.sum() == K
    (low,), (high,) = ends(counts)
    assert np.exp(log_ndtr(low + gaps).sum()) <= MISSED
    assert -np.expm1(log_ndtr(high + gaps).sum()) <= MISSED


# ---- the policies


def scores_of(policy, X):
    h = X if policy.encoder is None else policy.encoder.encode(X)
    return h @ policy.actions.T, policy.sigma * np.linalg.norm(h, axis=1, keepdims=True)


def dense(policy, X):
    """All probabilities, written out; of a mixed logit with the policy's own noise."""
    scores, scale = scores_of(policy, X)
    if isinstance(policy, GaussianPolicy):
        return choice_probabilities(scores / np.where(scale > 0, scale, 1.0))
    logits = scores[:, None, :] + scale[:, :, None] * policy._noise.block(0, policy.action_count).T
    e = np.exp(logits - logits.max(axis=2, keepdims=True))
    return (e / e.sum(axis=2, keepdims=True)).mean(axis=1)


def made(K, rng):
    mu, wide = rng.standard_normal((K, D)), rng.standard_normal((K, 4))
    network = Layers([rng.standard_normal((D, 5)), rng.standard_normal((5, 4))], [np.ones(5), np.zeros(4)], "tanh")
    few = 64 if K < 100 else 8
    return {
        "gaussian": GaussianPolicy(mu, 0.7),
        "gaussian, projection": GaussianPolicy(wide, 2.0, Projection(rng.standard_normal((D, 4))), nodes=72),
        "gaussian, network": GaussianPolicy(wide, 0.5, network),
        "mixed logit": MixedLogitPolicy(mu, 0.7, draws=few, seed=3),
        "mixed logit, network": MixedLogitPolicy(wide, 1.5, network, draws=few),
        "mixed logit, steep": MixedLogitPolicy(100 * mu, 90.0, draws=few),
    }


NAMES = list(made(6, np.random.default_rng(0)))


@pytest.fixture(params=[(name, K) for K in (6, ACTIONS + 90) for name in NAMES], ids=str)
def case(request, rng):
    """A policy, its contexts (over two blocks of rows where there are few actions), and its dense probabilities."""
    name, K = request.param
    policy = made(K, rng)[name]
    X = rng.standard_normal((ROWS + 9 if K == 6 else 5, D))
    return policy, X, dense(policy, X)


def test_what_is_streamed_is_what_is_written_out(case, rng):
    policy, X, truth = case
    K = policy.action_count
    assert isinstance(policy, Policy)
    ids = rng.integers(K, size=(len(X), 4))
    np.testing.assert_allclose(policy.probabilities_of_many(X, ids), np.take_along_axis(truth, ids, 1), atol=1e-10)
    best = truth.argmax(axis=1)
    np.testing.assert_allclose(policy.probabilities_of(X, best), truth.max(axis=1), atol=1e-10)
    theta = rng.standard_normal((K, D))
    found = policy.expectation(X, lambda x, some: np.sin(x @ theta[some].T))
    np.testing.assert_allclose(found, (truth * np.sin(X @ theta.T)).sum(axis=1), atol=1e-8)
    groups, wanted = rng.integers(4, size=K), rng.integers(5, size=len(X))
    np.testing.assert_allclose(
        policy.group_mass(X, groups, wanted), (truth * (groups == wanted[:, None])).sum(axis=1), atol=1e-8
    )
    some = np.array([3, 0])
    rows = policy.rows(X[:5])
    np.testing.assert_allclose(rows.only(some).mass(1, 6), truth[some, 1:6], atol=1e-10)


def test_the_best_action_has_the_largest_mean(case):
    policy, X, _ = case
    scores, _ = scores_of(policy, X)
    np.testing.assert_array_equal(policy.decide(X), scores.argmax(axis=1))
    np.testing.assert_array_equal(policy.decide(X[0], k=3), np.argsort(-scores[0])[:3])
    barred = int(scores[0].argmax())
    assert policy.decide(X[0], exclude=[barred]) == np.argsort(-scores[0])[1]


@pytest.mark.parametrize("name", NAMES)
def test_draws_have_the_law(name, rng):
    """Chi-square of draws against probabilities; a mixed logit's from many draws of noise, whose error is counted in."""
    policy = made(6, rng)[name]
    if isinstance(policy, MixedLogitPolicy):
        policy = MixedLogitPolicy(policy.actions, policy.sigma, policy.encoder, draws=400_000, seed=1)
    n, x = 8_000, rng.standard_normal((1, D))
    p = policy.probabilities_of_many(x, np.arange(6)[None])[0]
    seen = np.bincount(policy.sample(np.repeat(x, n, axis=0), rng), minlength=6)
    often = p * n >= 5
    counts, expected = np.append(seen[often], seen[~often].sum()), np.append(p[often], p[~often].sum()) * n
    kept = expected > 1e-3
    assert counts[~kept].sum() == 0
    assert stats.chisquare(counts[kept], expected[kept] * counts.sum() / expected[kept].sum()).pvalue > 1e-6


def test_draws_over_many_blocks_of_actions(rng):
    """Groups of actions, since single ones are rare; the law of the largest of normals, not the softmax's."""
    K = ACTIONS + 500
    mu = rng.standard_normal((K, D))
    policy, x = GaussianPolicy(mu, 0.8), rng.standard_normal((1, D))
    X = np.repeat(x, 600, axis=0)
    order = np.argsort(-(mu @ x[0]))
    labels = np.empty(K, dtype=int)
    labels[order] = np.searchsorted([1, 4, 15, 60], np.arange(K), side="right")
    p = np.array([policy.group_mass(x, labels, [g])[0] for g in range(5)])
    seen = np.bincount(labels[policy.sample(X, rng)], minlength=5)
    assert abs(p.sum() - 1) < policy.tolerance
    assert stats.chisquare(seen, p / p.sum() * len(X)).pvalue > 1e-6


def test_a_zero_context_makes_all_actions_alike(rng):
    X = np.zeros((1, D))
    for policy in (GaussianPolicy(rng.standard_normal((7, D))), MixedLogitPolicy(rng.standard_normal((7, D)), draws=9)):
        np.testing.assert_allclose(policy.probabilities_of_many(X, np.arange(7)[None]), 1 / 7, atol=1e-10)
        assert np.bincount(policy.sample(np.zeros((3000, D)), rng), minlength=7).min() > 300


@pytest.mark.parametrize("seed", range(12))
def test_small_and_large_sigmas(seed):
    """However two sums of the same products are rounded: with one seed they may agree, with twelve they do not."""
    rng = np.random.default_rng(seed)
    mu, X = rng.standard_normal((5, D)), rng.standard_normal((4, D))
    ids = np.tile(np.arange(5), (4, 1))
    greedy = np.eye(5)[(X @ mu.T).argmax(axis=1)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for sigma in (1e-50, 1e-9):
            np.testing.assert_allclose(GaussianPolicy(mu, sigma).probabilities_of_many(X, ids), greedy, atol=1e-9)
        np.testing.assert_allclose(GaussianPolicy(mu, 1e50).probabilities_of_many(X, ids), 0.2, atol=1e-9)
        e = np.exp(X @ mu.T)
        soft = MixedLogitPolicy(mu, 1e-9, draws=16).probabilities_of_many(X, ids)
        np.testing.assert_allclose(soft, e / e.sum(axis=1, keepdims=True), atol=1e-7)
        wild = MixedLogitPolicy(mu, 1e6, draws=4096).probabilities_of_many(X, ids)
        np.testing.assert_allclose(wild, 0.2, atol=0.05)


def test_single_precision(rng):
    mu, X = rng.standard_normal((40, D)), rng.standard_normal((20, D))
    ids = rng.integers(40, size=(20, 5))
    for kind in (GaussianPolicy, lambda m, s: MixedLogitPolicy(m, s, draws=64)):
        whole, single = kind(mu, 0.7), kind(mu.astype(np.float32), 0.7)
        assert single.actions.dtype == np.float32
        np.testing.assert_allclose(single.probabilities_of_many(X, ids), whole.probabilities_of_many(X, ids), atol=2e-6)


def test_mixed_logits_error_is_the_one_it_states(rng):
    """Over many seeds, estimates scatter around the mean of all as the standard errors say."""
    mu, X, actions = rng.standard_normal((5, D)), rng.standard_normal((6, D)), np.arange(6) % 5
    runs = [MixedLogitPolicy(mu, 2.0, draws=50, seed=seed) for seed in range(300)]
    found = np.array([policy.probabilities_of(X, actions) for policy in runs])
    stated = np.array([policy.standard_errors(X, actions) for policy in runs])
    exact = MixedLogitPolicy(mu, 2.0, draws=300_000, seed=77)
    truth = exact.probabilities_of(X, actions)
    np.testing.assert_allclose(np.sqrt((stated**2).mean(axis=0)), found.std(axis=0), rtol=0.2)
    assert (np.abs(found.mean(axis=0) - truth) < 5 * found.std(axis=0) / np.sqrt(300)).all()
    assert (found.std(axis=0) < 1.2 * runs[0].largest_error).all()


def test_probabilities_draw_by_draw(rng):
    for policy in (MixedLogitPolicy(rng.standard_normal((6, D)), 0.7, draws=20), made(6, rng)["mixed logit, steep"]):
        X, actions = rng.standard_normal((ROWS, D)), rng.integers(6, size=ROWS)
        rows = policy.rows(X)
        drawn = rows.draws_at(actions)
        assert drawn.shape == (ROWS, policy.draws)
        np.testing.assert_allclose(drawn.mean(axis=1), policy.probabilities_of(X, actions), rtol=1e-10)
        np.testing.assert_allclose(sum(rows.draws_at(np.full(ROWS, a)) for a in range(6)), 1.0, rtol=1e-10)


def test_noise_is_the_same_in_whatever_part_it_is_drawn(rng, monkeypatch):
    kept = mixed_logit_module.Noise(300, 8, seed=5)
    whole = kept.block(0, 300)
    monkeypatch.setattr(mixed_logit_module, "CACHED", 0)
    anew = mixed_logit_module.Noise(300, 8, seed=5)
    for first, last in ((0, 300), (60, 70), (64, 128), (299, 300)):
        np.testing.assert_array_equal(anew.block(first, last), whole[first:last])
    ids = rng.integers(300, size=50)
    np.testing.assert_array_equal(anew.at(ids), whole[ids])
    assert abs(np.corrcoef(mixed_logit_module.Noise(128, 4000, 6).block(0, 128)) - np.eye(128)).max() < 0.1


def test_saved_policies_are_the_same(rng, tmp_path):
    X, ids = rng.standard_normal((20, D)), np.tile(np.arange(6), (20, 1))
    mixture = EpsilonMixture(GaussianPolicy(rng.standard_normal((6, D)), 0.3), 0.1)
    for number, policy in enumerate([*made(6, rng).values(), mixture]):
        policy.save(tmp_path / str(number))
        again = ma.load(tmp_path / str(number))
        assert type(again) is type(policy)
        assert repr(again) == repr(policy)
        np.testing.assert_array_equal(again.probabilities_of_many(X, ids), policy.probabilities_of_many(X, ids))
        np.testing.assert_array_equal(again.sample(X, 4), policy.sample(X, 4))


# ---- the divergence


@given(st.floats(0.01, 100), st.floats(0.01, 100), st.integers(0, 10**6))
def test_kl_is_torchs(sigma, sigma0, seed):
    rng = np.random.default_rng(seed)
    mu, mu0 = rng.standard_normal((4, 3)), rng.standard_normal((4, 3))
    normal = torch.distributions.Normal
    q, p = normal(torch.as_tensor(mu), sigma), normal(torch.as_tensor(mu0), sigma0)
    truth = float(torch.distributions.kl_divergence(q, p).sum())
    np.testing.assert_allclose(gaussian_kl(mu, sigma, mu0, sigma0), truth, rtol=1e-9, atol=1e-9)
    assert GaussianPolicy(mu, sigma).kl(mu0, sigma0) == gaussian_kl(mu, sigma, mu0, sigma0)


@given(st.floats(0.01, 1.0))
def test_kl_is_below_the_thesis_bound_and_zero_at_the_prior(sigma):
    mu = np.arange(6.0).reshape(2, 3)
    assert gaussian_kl(mu, sigma, mu, sigma) == 0
    assert 0 <= gaussian_kl(mu, sigma, 0.0, 1.0) <= (mu**2).sum() / 2 + 3 * np.log(1 / sigma**2)
    assert gaussian_kl(mu, sigma, 0.0, 1.0) == MixedLogitPolicy(mu, sigma, draws=2).kl(np.zeros((2, 3)), 1.0)


# ---- bad input


def test_bad_input_is_named():
    mu = np.eye(3)
    for make, what in (
        (lambda: GaussianPolicy(mu, 0.0), "sigma"),
        (lambda: GaussianPolicy(mu, -1.0), "sigma"),
        (lambda: GaussianPolicy(mu, float("nan")), "sigma"),
        (lambda: GaussianPolicy(mu, 1e-60), "sigma.*1e-50"),
        (lambda: MixedLogitPolicy(mu, float("inf")), "sigma"),
        (lambda: GaussianPolicy(mu, nodes=8), "nodes"),
        (lambda: GaussianPolicy(mu * np.nan), "actions"),
        (lambda: GaussianPolicy(mu[0]), "actions"),
        (lambda: GaussianPolicy(mu, encoder=Projection(np.ones((3, 2)))), "encoder.*length 2"),
        (lambda: MixedLogitPolicy(mu, draws=1), "draws"),
        (lambda: MixedLogitPolicy(mu, draws=10.5), "draws"),
        (lambda: MixedLogitPolicy(mu, seed=-1), "seed"),
        (lambda: GaussianPolicy(mu).sample(np.ones((2, 4))), "X"),
        (lambda: GaussianPolicy(mu).probabilities_of([[1.0, np.nan, 0.0]], [0]), "X"),
        (lambda: gaussian_kl(mu, 0.0, 0.0, 1.0), "sigma"),
        (lambda: gaussian_kl(mu, 1.0, 0.0, -1.0), "sigma0"),
        (lambda: gaussian_kl(mu, 1.0, np.zeros(3), 1.0), "mu0"),
        (lambda: gaussian_kl(mu + np.inf, 1.0, 0.0, 1.0), "mu"),
    ):
        with pytest.raises(InvalidInput, match=what):
            make()
    with pytest.raises(UnknownAction):
        MixedLogitPolicy(mu, draws=4).standard_errors(mu, [0, 1, 3])


def test_a_policy_takes_no_more_nodes_than_its_actions_need() -> None:
    wanted = {2: 32, 50: 32, 51: 48, 1_000: 48, 1_001: 64, 10_000: 64, 10_001: 64}
    assert {K: GaussianPolicy(np.zeros((K, 1))).nodes for K in wanted} == wanted
    assert all(GaussianPolicy(np.zeros((K, 1))).tolerance == 1e-8 for K in wanted if K <= 10_000)
    assert GaussianPolicy(np.zeros((2, 1)), nodes=40).nodes == 40  # what is asked for
