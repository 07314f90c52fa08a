"""Posteriors against conditioning in rational numbers: however the rows come, and however unlike the scales are.

The error that the documentation states (docs/accuracy.md): means in units of the prior's standard deviation, covariances in units
of their largest entry, are right to 1e-8, or to 1e-15 times the ratio of that standard deviation and the noise if that is more;
a covariance beside what a change of the action covariance by 1e-15 of its largest entry makes of it.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import manyarms as ma
from brute_force import covariance_matrix
from exact_gaussian import TwoLevels, covariance_of_condition
from manyarms._base import linalg
from manyarms._base.typing import Array, Ints
from manyarms.agents.agent import Agent
from manyarms.beliefs import Belief, GaussianRoot, Leaves, MixingMatrices, belief_of

K, ROWS = 3, 24


@dataclass(frozen=True)
class Scales:
    """What a prior and its rows are like."""

    condition: float = 1.0  # of the action covariance
    action: float = 1.0  # its largest eigenvalue
    root: float = 1.0  # variance of the root
    weight: float = 1.0  # of the mixing
    noise: float = 0.1
    rows: int = ROWS
    dim: int = 3


@dataclass(frozen=True)
class Case:
    """A belief to be made, rows, and the exact posterior."""

    make: Callable[[], Agent]
    rows: tuple[Array, Ints, Array]
    means: Array
    covariances: Array
    sizes: Array
    roundings: Array  # what the last digits of Sigma_a make of a covariance
    bound: float

    def holds(self, agent: Agent) -> None:
        """The agent's posteriors are the exact ones, as far as the documentation says, and so are the scores it decides by."""
        belief = agent.belief
        X = self.rows[0][:3]
        offer = belief.catalogue.offer()
        score, spread = belief.played_moments(X, offer, spread=True)
        for a in range(K):
            mean, covariance = agent.posterior(a)
            assert np.abs(mean - self.means[a]).max() <= self.bound * self.sizes[a]
            largest = np.abs(self.covariances[a]).max()
            error = self.bound * largest + self.roundings[a]
            assert np.abs(covariance - self.covariances[a]).max() <= error
            slot = belief.catalogue.slot_of.get(a)
            if slot is not None:
                lengths = np.abs(X).sum(axis=1)
                assert (np.abs(score[:, slot] - X @ self.means[a]) <= self.bound * lengths * self.sizes[a]).all()
                wanted = np.einsum("nd,de,ne->n", X, self.covariances[a], X)
                assert (np.abs(spread[:, slot] - wanted) <= error * lengths**2).all()


def case(kind: str, scales: Scales, seed: int = 3) -> Case:
    rng = np.random.default_rng(seed)
    d, L = scales.dim, 2
    one = covariance_of_condition(rng, d, scales.condition, scales.action)
    Sigma = np.stack([one] * K)
    prior: ma.priors.ParameterPrior
    if kind == "LinTS":
        mean = np.sqrt(scales.action) * rng.standard_normal(d)
        truth = TwoLevels(mean, None, np.stack([np.eye(d)] * K), Sigma)
        prior = ma.ActionPrior(K, mean, one)
    elif kind == "HierTS":
        mean, Omega = np.sqrt(scales.root) * rng.standard_normal(d), scales.root * covariance_matrix(rng, d)
        truth = TwoLevels(mean, Omega, np.stack([np.eye(d)] * K), Sigma)
        prior = ma.HierarchicalPrior(K, mean, Omega, one)
    else:
        mean = np.sqrt(scales.root) * rng.standard_normal(L * d)
        Omega, b = scales.root * covariance_matrix(rng, L * d), scales.weight * rng.uniform(-1, 1, (K, L))
        W = np.stack([np.kron(row, np.eye(d)) for row in b])
        if kind == "an own covariance each":
            Sigma = np.stack([covariance_of_condition(rng, d, scales.condition, scales.action) for _ in range(K)])
        truth = TwoLevels(mean, Omega, W, Sigma)
        prior = ma.MixedEffectPrior(b, mean.reshape(L, d), Omega, one)
    X, A = rng.uniform(-1, 1, (scales.rows, d)), rng.integers(K - 1, size=scales.rows)
    root = truth.mean if truth.covariance is None else rng.multivariate_normal(truth.mean, truth.covariance)
    theta = np.stack([truth.W[a] @ root + np.linalg.cholesky(Sigma[a]) @ rng.standard_normal(d) for a in range(K)])
    r = np.einsum("nd,nd->n", X, theta[A]) + scales.noise * rng.standard_normal(scales.rows)
    means, covariances, moves = truth.posterior(X, A, r, scales.noise)
    sizes = np.maximum(truth.sizes(), np.abs(means).max(axis=1))
    likelihood = ma.Linear(scales.noise)

    def make() -> Agent:
        if kind == "an own covariance each":
            leaves = Leaves(MixingMatrices(truth.W), truth.Sigma)
            assert truth.covariance is not None
            return Agent(Belief(GaussianRoot(truth.mean, truth.covariance), leaves, likelihood), ma.Thompson(), 0)
        return Agent(belief_of(prior, likelihood), ma.Thompson(), 0)

    bound = max(1e-8, 1e-15 * float(truth.sizes().max()) / scales.noise)
    roundings = 1e-15 * moves * np.abs(Sigma).max(axis=(1, 2))
    return Case(make, (X, A, r), means, covariances, sizes, roundings, bound)


def by_rows(agent: Agent, X: Array, A: Ints, r: Array) -> None:
    for x, a, y in zip(X, A.tolist(), r.tolist(), strict=True):
        agent.observe(x, a, y)


def by_batch(agent: Agent, X: Array, A: Ints, r: Array) -> None:
    agent.observe(X, A, r)


def by_halves(agent: Agent, X: Array, A: Ints, r: Array) -> None:
    half = len(A) // 2
    by_rows(agent, X[:half], A[:half], r[:half])
    agent.observe(X[half:], A[half:], r[half:])


def by_chunks(agent: Agent, X: Array, A: Ints, r: Array) -> None:
    agent.belief.fold((X[i : i + 5], A[i : i + 5], r[i : i + 5]) for i in range(0, len(A), 5))


WAYS = {"rows": by_rows, "a batch": by_batch, "rows, then a batch": by_halves, "chunks": by_chunks}
KINDS = ("LinTS", "HierTS", "meTS", "an own covariance each")
EXTREMES = {
    **{f"condition {c:g}": Scales(condition=c) for c in (1.0, 1e3, 1e6, 1e8, 1e9, 1e10, 1e12)},
    **{f"condition {c:g}, little noise": Scales(condition=c, noise=1e-5) for c in (1e4, 1e8, 1e12)},
    **{f"condition {c:g}, much noise": Scales(condition=c, root=0.1, noise=1.0, dim=2) for c in (1e5, 3e5, 9e5)},
    **{f"condition {c:g}, less noise": Scales(condition=c, root=0.1, noise=1e-2) for c in (1e5, 3e5, 9e5)},
    **{f"weights of {w:g}": Scales(weight=w) for w in (1e4, 1e8)},
    "small weights": Scales(weight=1e-8),
    **{f"action variances of {v:g}": Scales(action=v) for v in (1e-12, 1e-6, 1e6, 1e12)},
    **{f"root variances of {v:g}": Scales(root=v) for v in (1e-12, 1e12)},
    "a wide root and narrow actions": Scales(root=1e8, action=1e-8),
    **{f"noise of {s:g}": Scales(noise=s) for s in (1e-8, 1e-4, 1e4)},
    "few rows with little noise": Scales(noise=1e-8, rows=4),
    "few rows, large weights": Scales(weight=1e8, rows=4),
    "one dimension": Scales(dim=1, noise=1e-6, weight=1e4),
    "everything": Scales(condition=1e12, action=1e4, root=1e6, weight=1e3, noise=1e-3),
}


FIRST = (
    "condition 1",
    "condition 1e+08",
    "condition 1e+12",
    *(f"condition {c:g}, much noise" for c in (1e5, 3e5, 9e5)),
    "weights of 1e+08",
    "action variances of 1e-12",
    "noise of 1e-08",
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "name", [name if name in FIRST else pytest.param(name, marks=pytest.mark.slow) for name in EXTREMES]
)
def test_however_rows_come_the_posterior_is_the_exact_one(kind: str, name: str) -> None:
    wanted = case(kind, EXTREMES[name])
    for learn in WAYS.values():
        agent = wanted.make()
        learn(agent, *wanted.rows)
        wanted.holds(agent)
        agent.decide(wanted.rows[0])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("condition", [1e8, 2e11])
def test_few_rows_of_little_noise_and_nearly_singular_priors(condition: float, seed: int) -> None:
    """Rows tell more than Sigma_a^-1 in some directions and nothing in others: neither of G_a and Sigma_a^-1 is the smaller."""
    rng, d, noise = np.random.default_rng(seed), 3, 1e-6
    Sigma = np.stack([covariance_of_condition(rng, d, condition) for _ in range(K)])
    truth = TwoLevels(rng.standard_normal(2), np.eye(2), rng.standard_normal((K, d, 2)), Sigma)
    X, A, root = rng.standard_normal((8, d)), rng.integers(K, size=8), truth.mean + rng.standard_normal(2)
    theta = truth.W @ root + np.stack([np.linalg.cholesky(each) @ rng.standard_normal(d) for each in Sigma])
    r = np.einsum("nd,nd->n", X, theta[A]) + noise * rng.standard_normal(8)
    means, covariances, _ = truth.posterior(X, A, r, noise)
    # what the last digits of Sigma_a make of it, for some of their changes
    moved_means, moved = np.zeros(K), np.zeros(K)
    for _ in range(4):
        signs = rng.choice([-1.0, 1.0], Sigma.shape)
        signs = np.triu(signs) + np.swapaxes(np.triu(signs, 1), 1, 2)
        near = Sigma + 1e-15 * np.abs(Sigma).max(axis=(1, 2), keepdims=True) * signs
        other_means, other, _ = replace(truth, Sigma=near).posterior(X, A, r, noise)
        moved_means = np.maximum(moved_means, np.abs(other_means - means).max(axis=1))
        moved = np.maximum(moved, np.abs(other - covariances).max(axis=(1, 2)))
    sizes = np.maximum(truth.sizes(), np.abs(means).max(axis=1))
    assert truth.covariance is not None
    for learn in (by_rows, by_batch):
        root_belief = GaussianRoot(truth.mean, truth.covariance)
        agent = Agent(Belief(root_belief, Leaves(MixingMatrices(truth.W), Sigma), ma.Linear(noise)), ma.Thompson(), 0)
        learn(agent, X, A, r)
        for a in range(K):
            mean, covariance = agent.posterior(a)
            assert np.abs(mean - means[a]).max() <= 1e-8 * sizes[a] + moved_means[a]
            error = 1e-8 * np.abs(covariances[a]).max() + moved[a]
            assert np.abs(covariance - covariances[a]).max() <= error


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("wide", [1e6, 1e8, 2.5e9])
def test_rows_that_look_along_the_narrow_directions_first(wide: float, seed: int) -> None:
    """No row of the first ones is sharp, and what they tell would be lost in the roundings of the direction seen last."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    Sigma = (Q * (wide * np.array([1.0, 0.05, 0.0025]))) @ Q.T
    Sigma = (Sigma + Sigma.T) / 2
    X = np.repeat(Q.T[::-1], 2, axis=0) + 1e-3 * rng.standard_normal((6, 3))
    A, r, mean = np.zeros(6, dtype=np.int64), np.sqrt(wide) * rng.standard_normal(6), np.zeros(3)
    truth = TwoLevels(mean, np.eye(3), np.eye(3)[None], Sigma[None])
    means, covariances, moves = truth.posterior(X, A, r, 1.0)
    agent = ma.HierTS(ma.HierarchicalPrior(1, mean, np.eye(3), Sigma), ma.Linear(1.0), seed=0)
    by_rows(agent, X, A, r)
    have, covariance = agent.posterior(0)
    assert np.abs(have - means[0]).max() <= 1e-8 * max(truth.sizes()[0], np.abs(means).max())
    error = 1e-8 * np.abs(covariances[0]).max() + 1e-15 * moves[0] * np.abs(Sigma).max()
    assert np.abs(covariance - covariances[0]).max() <= error


@pytest.mark.parametrize("name", ["condition 1e+12", "weights of 1e+08", "action variances of 1e-12", "noise of 1e-08"])
@pytest.mark.parametrize("kind", ["HierTS", "meTS"])
def test_what_is_saved_goes_on_to_the_last_bit(kind: str, name: str, tmp_path: Path) -> None:
    wanted = case(kind, EXTREMES[name])
    agent = wanted.make()
    agent.observe(*wanted.rows)
    agent.save(tmp_path / "agent")
    again = ma.load(tmp_path / "agent")
    assert (again.decide(wanted.rows[0]) == agent.decide(wanted.rows[0])).all()
    for each in (agent, again):
        by_rows(each, *(part[-2:] for part in wanted.rows))
        each.observe(*wanted.rows)
    for a in range(K):
        for have, want in zip(again.posterior(a), agent.posterior(a), strict=True):
            assert (have == want).all()


@pytest.mark.parametrize("rule", ["mean-field", "blockwise"])
@pytest.mark.parametrize("name", ["condition 1e+12", "weights of 1e+08", "action variances of 1e-12", "noise of 1e-08"])
def test_factored_roots_learn_batches_as_rows(rule: str, name: str) -> None:
    scales = EXTREMES[name]
    rng = np.random.default_rng(0)
    b, Sigma = (
        scales.weight * rng.uniform(-1, 1, (K, 2)),
        covariance_of_condition(rng, 2, scales.condition, scales.action),
    )
    prior = ma.MixedEffectPrior(b, np.zeros((2, 2)), np.eye(4), Sigma)
    X, A = rng.uniform(-1, 1, (30, 2)), rng.integers(K, size=30)
    r = scales.weight * rng.standard_normal(30)
    agents = [ma.meTS(prior, ma.Linear(scales.noise), factored=rule, seed=0) for _ in range(2)]
    by_rows(agents[0], X, A, r)
    agents[1].observe(X, A, r)
    for a in range(K):
        (mean, covariance), (other, spread) = (agent.posterior(a) for agent in agents)
        size = np.abs(mean).max() + np.sqrt(np.trace(covariance))
        assert_allclose(other, mean, rtol=0, atol=1e-6 * size)
        assert_allclose(spread, covariance, rtol=0, atol=1e-6 * np.abs(covariance).max())
    agents[1].decide(X)


@pytest.mark.parametrize(
    ("shared", "rule"),
    [
        (True, "moments"),
        (True, "thesis"),
        (True, "jacobian"),
        *((False, rule) for rule in ("moments", "thesis", "jacobian", "particles")),
    ],
)
@pytest.mark.parametrize("condition", [1e8, 1e12])
def test_chains_learn_batches_as_rows(shared: bool, rule: str, condition: float) -> None:
    rng = np.random.default_rng(1)
    links = [ma.priors.NetworkLink.random(2, 4, rng, scaled=True) for _ in range(2)]
    covariances = np.stack([covariance_of_condition(rng, 2, condition), np.eye(2), np.eye(2)])
    prior = ma.DiffusionPrior(K, 2, links, covariances, shared)
    X, A, r = rng.uniform(-1, 1, (30, 2)), rng.integers(K - 1, size=30), rng.standard_normal(30)
    agents = [ma.dTS(prior, ma.Linear(0.3), approximation=rule, seed=0) for _ in range(2)]
    by_rows(agents[0], X, A, r)
    agents[1].observe(X, A, r)
    for a in range(K):
        for have, want in zip(agents[1].posterior(a), agents[0].posterior(a), strict=True):
            assert_allclose(have, want, rtol=0, atol=1e-7)
    agents[1].decide(X)


@pytest.mark.parametrize("likelihood", [ma.Logistic(), ma.Logistic(expansion="cavity"), ma.beliefs.Poisson()])
@pytest.mark.parametrize("name", ["condition 1e+12", "weights of 10000", "action variances of 1e-12"])
def test_glm_leaves_can_be_fitted_again_and_again(likelihood: ma.beliefs.Likelihood, name: str) -> None:
    """Row after row and all at once end at the same likelihood, so at the same posterior."""
    scales = EXTREMES[name]
    rng = np.random.default_rng(2)
    b, Sigma = (
        scales.weight * rng.uniform(-1, 1, (K, 2)),
        covariance_of_condition(rng, 2, scales.condition, scales.action),
    )
    prior = ma.MixedEffectPrior(b, np.zeros((2, 2)), np.eye(4) / scales.weight, Sigma)
    X, A, r = rng.uniform(-1, 1, (20, 2)), rng.integers(K, size=20), rng.integers(2, size=20).astype(float)
    agents = [ma.meTS(prior, likelihood, seed=0) for _ in range(2)]
    by_rows(agents[0], X, A, r)
    agents[1].observe(X, A, r)
    for agent in agents:
        agent.decide(X)
        mean, covariance = agent.posterior(0)
        assert np.isfinite(mean).all() and np.linalg.eigvalsh(covariance).min() > -1e-12 * np.abs(covariance).max()
    if likelihood.expansion == "mode":
        for a in range(K):
            (mean, covariance), (other, spread) = (agent.posterior(a) for agent in agents)
            assert_allclose(other, mean, rtol=0, atol=1e-3 * np.sqrt(np.abs(covariance).max()))
            assert_allclose(spread, covariance, rtol=0, atol=1e-3 * np.abs(covariance).max())


@pytest.mark.parametrize("values", [(1.0, 1e-3, 1e-9), (1.0, 1e-2, 1e-4, 1e-9)])
def test_a_nearly_singular_covariance_is_seen_in_any_coordinates(values: tuple[float, ...]) -> None:
    """Pivots may all be far above the smallest eigenvalue: the worst of many rotations, among own covariances of actions."""
    rng, d = np.random.default_rng(0), len(values)
    Q = np.linalg.qr(rng.standard_normal((3000, d, d)))[0]
    turned = (Q * np.array(values)) @ np.swapaxes(Q, 1, 2)
    turned = (turned + np.swapaxes(turned, 1, 2)) / 2
    pivots = np.diagonal(np.linalg.cholesky(turned), axis1=1, axis2=2).min(axis=1) ** 2
    worst = turned[pivots.argmax()]
    assert pivots.max() > 1e-6
    sound = covariance_matrix(rng, d)
    leaves = Leaves(MixingMatrices(np.stack([np.eye(d)] * 3)), np.stack([sound, worst, np.eye(d)]))
    assert leaves.steep and leaves.steep_of(np.arange(3)).tolist() == [False, True, False]
    later = Leaves(MixingMatrices(np.stack([np.eye(d)] * 2)), np.stack([sound, np.eye(d)]))
    assert not later.steep
    later.covariances.extend(later.packing.pack(worst[None]))
    assert later.steep
    assert Leaves(ma.beliefs.IdentityMixing(), worst, 2).steep
    # a root as wide as sums would still have been trusted with
    Sigma, root = np.stack([worst, np.eye(d)]), 0.9e6 / np.trace(np.linalg.inv(worst)) / d * np.eye(d)
    noise, X, A = float(np.sqrt(root[0, 0])), rng.standard_normal((16, d)), np.arange(16) % 2
    r = noise * rng.standard_normal(16)
    truth = TwoLevels(np.zeros(d), root, np.stack([np.eye(d)] * 2), Sigma)
    means, covariances, moves = truth.posterior(X, A, r, noise)
    for learn in (by_rows, by_batch):
        leaves = Leaves(ma.beliefs.IdentityMixing(), Sigma)
        agent = Agent(Belief(GaussianRoot(truth.mean, root), leaves, ma.Linear(noise)), ma.Thompson(), 0)
        learn(agent, X, A, r)
        for a in range(2):
            mean, covariance = agent.posterior(a)
            assert np.abs(mean - means[a]).max() <= 1e-8 * truth.sizes()[a]
            error = 1e-8 * np.abs(covariances[a]).max() + 1e-15 * moves[a] * np.abs(Sigma[a]).max()
            assert np.abs(covariance - covariances[a]).max() <= error


# ---- what is behind it ----------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6), d=st.integers(1, 4), n=st.integers(0, 60), number=st.integers(1, 5))
def test_triangles_are_the_sums_without_squares(seed: int, d: int, n: int, number: int) -> None:
    rng = np.random.default_rng(seed)
    Z, labels = rng.standard_normal((n, d)), rng.integers(number, size=n)
    half = n // 2
    first = linalg.triangles(Z[:half], labels[:half], number)
    for found in (linalg.triangles(Z, labels, number), linalg.triangles(Z[half:], labels[half:], number, first)):
        for a in range(number):
            own = Z[labels == a]
            assert_allclose(found[a].T @ found[a], own.T @ own, atol=1e-12 * (1 + n))
    G, B = np.stack([Z.T @ Z] * 2), np.stack([Z.sum(axis=0)] * 2)
    rows, values = linalg.rows_of_sums(G, B)
    assert_allclose(np.swapaxes(rows, 1, 2) @ rows, G, atol=1e-12 * (1 + n))
    assert_allclose(np.einsum("nkd,nk->nd", rows, values), B, atol=1e-9 * (1 + n))


@given(seed=st.integers(0, 10**6), d=st.integers(1, 4))
def test_blocks_of_rows_are_rows_one_after_the_other(seed: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    covariance, mean, X, y = (
        covariance_matrix(rng, d),
        rng.standard_normal(d),
        rng.standard_normal((d, d)),
        rng.standard_normal(d),
    )
    factor = np.linalg.cholesky(covariance)
    by_one, moved = factor.copy(), mean.copy()
    half, one = factor.copy(), covariance
    for x, value in zip(X, y, strict=True):
        linalg.condition_factor(by_one, moved, x, 1.0, value)
        half, gain, total = linalg.condition_half(half, x, 1.0)
        one, other_gain, other_total = linalg.condition(one, x, 1.0)
        assert_allclose(gain, other_gain, atol=1e-12)
        assert_allclose(total, other_total)
    together = linalg.condition_on_rows(factor, mean, X, y)
    block = linalg.condition_on_blocks(factor[None], mean[None], X[None], y[None])
    for have in (by_one, half, together[1], factor @ block.right[0]):
        assert_allclose(have @ have.T, one, atol=1e-11)
    assert_allclose(together[0], moved, atol=1e-11)
    assert_allclose(block.mean[0], moved, atol=1e-11)
    # what was told about the mean: precision S0^-1 - S0^-1 S S0^-1 and information S0^-1 (S X^T (y - X mean))
    own = np.linalg.inv(covariance)
    rows, values = block.told_rows[0], block.told_values[0]
    assert_allclose(rows.T @ rows, own - own @ one @ own, atol=1e-8 * (1 + np.abs(own).max()))
    assert_allclose(values @ rows, own @ one @ X.T @ (y - X @ mean), atol=1e-8 * (1 + np.abs(own).max()))
    D, e = linalg.told(own[None], (X.T @ X)[None], (y @ X)[None], one[None], (one @ (y @ X))[None])
    assert_allclose(D[0], own - own @ one @ own, atol=1e-8 * (1 + np.abs(own).max()))
    assert_allclose(e[0], own @ one @ (y @ X), atol=1e-8 * (1 + np.abs(own).max()))


def test_a_huge_evidence_leaves_a_factor() -> None:
    """Rounding may make the sum indefinite; what is known then lies between the prior and certainty."""
    v = np.array([1.0, 1.0, 1.0])
    for size in (1e8, *10.0 ** np.arange(14, 18, 0.2), 1e30):
        factor = linalg.evidence_factor(np.eye(3), size * np.outer(v, v))
        assert (np.diagonal(factor @ factor.T) <= 1 + 1e-6).all()
        assert np.abs(v @ factor).max() <= 1e-3


def test_readers_in_threads_see_one_posterior() -> None:
    """What is computed when it is first asked for is assigned whole."""
    rng = np.random.default_rng(0)
    prior = ma.MixedEffectPrior(rng.uniform(-1, 1, (8, 3)), np.zeros((3, 4)), np.eye(12), np.eye(4))
    X, A, r = rng.uniform(-1, 1, (64, 4)), rng.integers(8, size=64), rng.standard_normal(64)
    for factored in (False, True):
        alone, shared = (ma.meTS(prior, ma.Linear(0.5), factored=factored, seed=0) for _ in range(2))
        alone.observe(X, A, r)
        wanted = [part for a in range(8) for part in alone.posterior(a)]
        with ThreadPoolExecutor(4) as pool:
            for _ in range(5):
                shared.belief.root.learn(np.zeros((12, 12)), np.zeros(12))
                if not len(shared.belief.leaves.counts):
                    shared.observe(X, A, r)
                for found in pool.map(lambda _, it=shared: [p for a in range(8) for p in it.posterior(a)], range(8)):
                    assert all((have == want).all() for have, want in zip(found, wanted, strict=True))
