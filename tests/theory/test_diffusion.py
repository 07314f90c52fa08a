"""dTS's regret bound: its formula against the printed one, and every step of its proof against simulated posteriors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyarms import DiffusionPrior
from manyarms._base.typing import Array
from manyarms.errors import InvalidInput
from manyarms.theory.diffusion import (
    deviations,
    dts_effective_actions,
    dts_rates,
    dts_regret_bound,
    dts_regret_bound_of,
    link_sizes,
    lints_frequentist_bound,
    lints_regret_bound,
    rate_scenario,
)
from manyarms.theory.regret import mets_regret_bound


def chain(rng: np.random.Generator, d: int, L: int, K: int, sparse: bool = False) -> DiffusionPrior:
    links = []
    for level in range(1, L + 1):
        W = rng.uniform(-1, 1, (d, d))
        if sparse:
            W[:, max(1, d // 2**level) :] = 0
        links.append(W)
    return DiffusionPrior(K, d, links, list(rng.uniform(0.2, 2.0, L + 1)))


class Posterior:
    """The exact conditionals S_a and S_l of a linear chain, and the matrices P_l (thesis, Appendices B.1.2 and B.5)."""

    def __init__(self, prior: DiffusionPrior, sigma: float) -> None:
        self.prior, self.noise = prior, sigma**2
        self.G = np.zeros((prior.actions, prior.dim, prior.dim))

    def observe(self, x: Array, a: int) -> None:
        self.G[a] += np.outer(x, x) / self.noise

    def levels(self) -> tuple[Array, list[Array]]:
        """S_a of all actions, and S_1, ..., S_L."""
        prior = self.prior
        precision = np.linalg.inv(prior.covariances)
        actions = np.linalg.inv(precision[0] + self.G)
        evidence = np.sum(precision[0] - precision[0] @ actions @ precision[0], axis=0)
        latents = []
        assert prior.matrices is not None
        for l, W in enumerate(prior.matrices, start=1):
            S = np.linalg.inv(precision[l] + W.T @ evidence @ W)
            latents.append(S)
            evidence = precision[l] - precision[l] @ S @ precision[l]
        return actions, latents

    def carriers(self, a: int) -> list[Array]:
        """P_(a,1), ..., P_(a,L)."""
        actions, latents = self.levels()
        assert self.prior.matrices is not None
        precision = np.linalg.inv(self.prior.covariances)
        P, out = actions[a] @ precision[0], []
        for l, W in enumerate(self.prior.matrices):
            P = P @ W if l == 0 else P @ latents[l - 1] @ precision[l] @ W
            out.append(P)
        return out


def printed(T: int, K: int, d: int, sigma: float, sigmas: list[float]) -> float:
    """The theorem as it stands in Appendix B.4, without c T delta."""
    v, s2 = [value**2 for value in sigmas], sigma**2
    largest = max(1 + value / s2 for value in v)
    act = v[0] / math.log(1 + v[0] / s2) * d * K * math.log(1 + T * v[0] / (d * s2))
    lat = sum(
        v[l] * largest**l / math.log(1 + v[l] / s2) * d * math.log(1 + v[l] / v[l - 1]) for l in range(1, len(sigmas))
    )
    return math.sqrt(2 * T * (act + lat) * math.log(T))


def test_it_is_the_printed_theorem_but_for_the_first_latent_term() -> None:
    sizes = (1_000, 50, 5, 0.7)
    sigmas = [0.5, 1.0, 1.5]
    as_printed = dts_regret_bound(*sizes, sigmas, first="printed")
    assert as_printed.leading == pytest.approx(printed(*sizes, sigmas), rel=1e-12)
    corrected = dts_regret_bound(*sizes, sigmas)
    assert corrected.latent_terms[1:] == as_printed.latent_terms[1:]
    ratio = corrected.latent_terms[0] / as_printed.latent_terms[0]
    assert ratio == pytest.approx(math.log(1 + 50 * 1.0 / 0.25) / math.log(1 + 1.0 / 0.25))
    assert corrected.total == corrected.leading + corrected.constant > as_printed.total


@given(st.integers(0, 10_000), st.integers(1, 3), st.booleans())
def test_every_step_of_the_proof(seed: int, L: int, sparse: bool) -> None:
    rng = np.random.default_rng(seed)
    d, K, T, sigma, kappa = 3, 4, 30, float(rng.uniform(0.3, 1.5)), 2.0
    prior = chain(rng, d, L, K, sparse)
    gains, active = link_sizes(prior)
    variances = np.square(deviations(prior))
    reach = kappa * np.cumprod([1.0, *gains])
    v = reach * variances
    q = np.cumprod(1 + v[:L] / sigma**2)
    posterior = Posterior(prior, sigma)
    logarithms, action = np.zeros(L), 0.0
    for _ in range(T):
        x = rng.standard_normal(d)
        x *= math.sqrt(kappa) / np.linalg.norm(x)
        a = int(rng.integers(K))
        actions, latents = posterior.levels()
        carriers = posterior.carriers(a)
        spread = [float(x @ P @ S @ P.T @ x) for P, S in zip(carriers, latents, strict=True)]
        assert x @ actions[a] @ x <= v[0] * (1 + 1e-9)
        assert all(value <= bound * (1 + 1e-9) for value, bound in zip(spread, v[1:], strict=True))
        logarithms += np.log1p(np.array(spread) / sigma**2)
        action += math.log1p(float(x @ actions[a] @ x) / sigma**2)
        posterior.observe(x, a)
        _, after = posterior.levels()
        for l in range(L):
            gained = np.linalg.inv(after[l]) - np.linalg.inv(latents[l])
            promised = np.outer(carriers[l].T @ x, carriers[l].T @ x) / (sigma**2 * q[l])
            assert np.linalg.eigvalsh(gained - promised).min() >= -1e-7 * (1 + np.abs(gained).max())
            assert np.trace(gained) <= reach[l + 1] / sigma**2 * (1 + 1e-7)
    for tight in (False, True):
        bound = dts_regret_bound_of(prior, T, sigma=sigma, kappa_x=kappa, tight=tight)
        cost = v / np.log1p(v / sigma**2)
        assert cost[0] * action <= bound.action_term * (1 + 1e-9)
        for l in range(L):
            assert cost[l + 1] * logarithms[l] <= bound.latent_terms[l] * (1 + 1e-9)
    assert active == link_sizes(prior)[1]


def test_the_printed_first_term_is_too_small() -> None:
    """Many rounds of many actions: the determinant that the proof telescopes to exceeds what it is said to be below."""
    d, K, sigma = 3, 50, 0.1
    prior = DiffusionPrior(K, d, [np.eye(d)], [1.0, 1.0])
    posterior = Posterior(prior, sigma)
    for a in range(K):
        for x in np.eye(d).repeat(20, axis=0):
            posterior.observe(x, a)
    _, (S,) = posterior.levels()
    telescoped = -np.linalg.slogdet(S)[1]
    assert telescoped > 3 * d * math.log(1 + 1.0)
    assert telescoped <= d * math.log(1 + K * 1.0)


def test_covariance_decomposition() -> None:
    """Cov(theta_a | data) = S_a + sum_l P_l S_l P_l^T, against conditioning of the whole joint Gaussian."""
    rng = np.random.default_rng(3)
    d, K, L, sigma = 2, 3, 3, 0.8
    prior = chain(rng, d, L, K)
    posterior = Posterior(prior, sigma)
    rows, ids = rng.standard_normal((12, d)), rng.integers(K, size=12)
    for x, a in zip(rows, ids, strict=True):
        posterior.observe(x, int(a))
    shared = prior.marginal().covariance - prior.covariances[0]
    joint = np.kron(np.ones((K, K)), shared) + np.kron(np.eye(K), prior.covariances[0])
    design = np.zeros((12, K * d))
    for i, (x, a) in enumerate(zip(rows, ids, strict=True)):
        design[i, a * d : (a + 1) * d] = x
    exact = np.linalg.inv(np.linalg.inv(joint) + design.T @ design / sigma**2)
    actions, latents = posterior.levels()
    for a in range(K):
        block = exact[a * d : (a + 1) * d, a * d : (a + 1) * d]
        sums = actions[a] + sum(P @ S @ P.T for P, S in zip(posterior.carriers(a), latents, strict=True))
        np.testing.assert_allclose(sums, block, rtol=1e-8)


def test_sparse_links_and_tightness_only_lower_it() -> None:
    sizes = (2_000, 100, 20, 1.0)
    sigmas = [1.0] * 5
    dense = dts_regret_bound(*sizes, sigmas)
    sparse = dts_regret_bound(*sizes, sigmas, active=[20, 10, 5, 2])
    assert sparse.total < dense.total
    assert sparse.latent_terms[3] == pytest.approx(dense.latent_terms[3] / 10)
    for K in (10, 100, 10_000):
        plain, tight = (dts_regret_bound(500, K, 20, 1.0, sigmas, tight=tight) for tight in (False, True))
        assert tight.total <= plain.total


def test_one_latent_is_the_bound_of_meTS_with_one_effect() -> None:
    """L = 1, W = I is a two-level hierarchy: the terms agree where meTS's evidence has reached its limit."""
    ours = dts_regret_bound(10**9, 30, 4, 0.9, [0.6, 1.3], kappa_x=2.0)
    theirs = mets_regret_bound(10**9, 30, 1, 4, 0.9, 0.6, 1.3, 2.0, 1.0)
    # its sigma_max is the larger of the two factors, meTS's is the action's own
    factor = (1 + 2.0 * 0.36 / 0.81) / (1 + 2.0 * 1.69 / 0.81)
    assert ours.action_term == pytest.approx(theirs.action_term)
    assert ours.latent_terms[0] * factor == pytest.approx(theirs.effect_term, rel=1e-6)
    assert ours.constant == pytest.approx(theirs.constant)


def test_lints_bounds() -> None:
    bayes = lints_regret_bound(1_000, 20, 3, 1.0, 2.0)
    assert bayes.effect_term == 0
    cost = 4 / math.log(5)
    assert bayes.leading == pytest.approx(math.sqrt(2000 * 3 * 20 * cost * math.log(1 + 4 * 1000 / 3) * math.log(1000)))
    few, many = (lints_frequentist_bound(1_000, K, 3, 1.0, radius=0.1) for K in (100, 10_000))
    # of order (dK)^(3/2), up to logarithms
    assert 500 < many / few < 2_000
    assert few > bayes.total
    assert lints_frequentist_bound(1, 2, 3, 1.0, 0.1) == lints_frequentist_bound(1, 2, 3, 1.0, 0.1, delta=1.0)
    for delta in (1.5, 4.5, 0.0, -0.1, math.nan):
        with pytest.raises(InvalidInput, match="delta"):
            lints_frequentist_bound(1_000, 20, 3, 1.0, 0.1, delta=delta)


def test_effective_actions_is_the_rate_written_differently() -> None:
    sigmas, sigma, d, K, T = [0.5, 1.0, 2.0], 1.5, 4, 100, 1_000
    effective = dts_effective_actions(K, sigmas, sigma)
    total = sum(value**2 for value in sigmas)
    assert dts_rates(T, K, d, sigmas, sigma=sigma).dts == pytest.approx(math.sqrt(T * d * effective * total))
    assert dts_rates(T, K, d, sigmas).lints == pytest.approx(math.sqrt(T * d * K * total))


@pytest.mark.parametrize("d", [8, 64, 1024])
def test_scenarios(d: int) -> None:
    """(II) is sqrt(T d (K + L)) as printed; (I) is sqrt(2 T d (K + 2^(L+1) - 2)) and not sqrt(T d (K + L))."""
    L, K, T = int(math.log2(d)), 50, 100
    sigmas, active = rate_scenario("constant", d)
    assert len(sigmas) == L + 1
    assert active == [d // 2**l for l in range(1, L + 1)]
    constant = dts_rates(T, K, d, sigmas, active=active)
    assert constant.dts == pytest.approx(math.sqrt(T * d * (K + L)))
    assert constant.lints == pytest.approx(math.sqrt(T * d * K * (L + 1)))
    sigmas, active = rate_scenario("decreasing", d)
    decreasing = dts_rates(T, K, d, sigmas, active=active)
    assert decreasing.dts == pytest.approx(math.sqrt(2 * T * d * (K + 2 ** (L + 1) - 2)))
    assert decreasing.lints == pytest.approx(math.sqrt(T * d * K * (2 ** (L + 2) - 2)))


def test_bad_input() -> None:
    with pytest.raises(InvalidInput, match="at least two"):
        dts_regret_bound(10, 10, 2, 1.0, [1.0])
    with pytest.raises(InvalidInput, match="sigmas"):
        dts_regret_bound(10, 10, 2, 1.0, [0.0, 1.0])
    with pytest.raises(InvalidInput, match="one per link"):
        dts_regret_bound(10, 10, 2, 1.0, [1.0, 1.0], active=[1, 2])
    with pytest.raises(InvalidInput, match="delta"):
        dts_regret_bound(10, 10, 2, 1.0, [1.0, 1.0], delta=2.0)
    with pytest.raises(InvalidInput, match="first"):
        dts_regret_bound(10, 10, 2, 1.0, [1.0, 1.0], first="other")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="decreasing"):
        rate_scenario("growing", 8)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="linear"):
        link_sizes(DiffusionPrior(3, 2, [np.tanh], [1.0, 1.0]))
    with pytest.raises(InvalidInput, match="identity"):
        deviations(DiffusionPrior(3, 2, [np.eye(2)], [np.array([1.0, 2.0]), 1.0]))
