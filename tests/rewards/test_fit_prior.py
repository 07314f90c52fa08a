"""The evidence against dense log-densities and finite differences; planted variances found again; honest calibration."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

import manyarms as ma
from manyarms._base.typing import Array, Ints
from manyarms.beliefs import belief_of
from manyarms.errors import InvalidInput
from manyarms.logs.data import LoggedData
from manyarms.priors.latent import LatentPrior
from manyarms.rewards import evidence as evidence_module
from manyarms.rewards.bayesian import sdm
from manyarms.rewards.evidence import Evidence, statistics
from manyarms.rewards.fit_prior import (
    GaussianStructure,
    binary_calibration,
    calibration,
    fit_prior,
    gaussian_calibration,
    scaled,
)
from manyarms.worlds.latent import Latent
from manyarms.worlds.logged import log_from

KINDS = ("independent", "own means", "hierarchical", "mixed", "latent", "latent, own covariances")
K, D = 5, 3


def spd(rng: np.random.Generator, *shape: int) -> Array:
    half = rng.standard_normal(shape)
    return half @ np.swapaxes(half, -1, -2) + 0.3 * np.eye(shape[-1])


def structure(kind: str, rng: np.random.Generator) -> GaussianStructure:
    if kind == "independent":
        return ma.ActionPrior(K, rng.standard_normal(D), spd(rng, D, D))
    if kind == "own means":
        return ma.ActionPrior(K, rng.standard_normal((K, D)), spd(rng, K, D, D))
    if kind == "hierarchical":
        return ma.HierarchicalPrior(K, rng.standard_normal(D), spd(rng, D, D), spd(rng, D, D))
    if kind == "mixed":
        return ma.MixedEffectPrior(
            rng.standard_normal((K, 2)), rng.standard_normal((2, D)), spd(rng, 2 * D, 2 * D), spd(rng, D, D)
        )
    own = spd(rng, K, D, D) if "own" in kind else spd(rng, D, D)
    return LatentPrior(rng.standard_normal((K, D, 2)), rng.standard_normal(2), spd(rng, 2, 2), own)


def dense(prior: GaussianStructure, X: Array, A: Ints, r: Array, t: float) -> float:
    """The log-density of all rewards, from their joint Gaussian in full."""
    belief = belief_of(prior, ma.Linear())
    leaves, p = belief.leaves, belief.root.dim
    W = np.stack([leaves.mixing.apply(np.arange(K), unit).ravel() for unit in np.eye(p)], axis=1)
    spread = belief.root.factor() @ belief.root.factor().T
    covariance = W @ spread @ W.T
    for a, own in enumerate(leaves.prior_covariance(np.arange(K))):
        covariance[a * D : (a + 1) * D, a * D : (a + 1) * D] += own
    H = np.zeros((len(A), K * D))
    for i, a in enumerate(A):
        H[i, a * D : (a + 1) * D] = X[i]
    mean = H @ W @ belief.root.mean()
    return float(multivariate_normal(mean, H @ covariance @ H.T + t * np.eye(len(A))).logpdf(r))


@given(seed=st.integers(0, 2**31 - 1), kind=st.sampled_from(KINDS), n=st.integers(1, 40))
def test_the_evidence_is_the_density_of_the_rewards_and_its_gradient_is_right(seed: int, kind: str, n: int) -> None:
    rng = np.random.default_rng(seed)
    prior = structure(kind, rng)
    X, A, r = rng.standard_normal((n, D)), rng.integers(K, size=n), rng.standard_normal(n)
    belief = belief_of(prior, ma.Linear())
    halves = [(X[some], A[some], r[some]) for some in (slice(0, n // 2), slice(n // 2, n))]
    evidence = Evidence(statistics(halves, belief), belief)
    logs = rng.uniform(-1.5, 1.5, 3)

    def truth(at: Array) -> float:
        t, s0, s1 = np.exp(at)
        return dense(scaled(prior, s0, s1), X, A, r, t)

    value, gradient = evidence(*np.exp(logs))
    assert value == pytest.approx(truth(logs), rel=1e-9, abs=1e-8)
    step = 1e-5
    for place, unit in enumerate(np.eye(3)):
        difference = (truth(logs + step * unit) - truth(logs - step * unit)) / (2 * step)
        if evidence.known and place == 2:
            difference = 0.0
        assert gradient[place] == pytest.approx(difference, rel=1e-4, abs=1e-4)


def test_rows_that_are_made_anew_give_the_same_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    prior = structure("mixed", rng)
    rows = [(rng.standard_normal((30, D)), rng.integers(K, size=30), rng.standard_normal(30))]
    belief = belief_of(prior, ma.Linear())
    held = Evidence(statistics(rows, belief), belief)(0.3, 2.0, 0.7)
    monkeypatch.setattr(evidence_module, "CACHED", 0)
    monkeypatch.setattr(evidence_module, "AT_A_TIME", 1)
    fresh = Evidence(statistics(rows, belief), belief)(0.3, 2.0, 0.7)
    assert fresh[0] == pytest.approx(held[0]) and fresh[1] == pytest.approx(held[1])


def test_planted_variances_are_found_again() -> None:
    """Within four of its own standard errors, over several worlds, starting far off; and not only by being vague."""
    seen: dict[str, list[float]] = {"noise": [], "action": [], "latent": []}
    for seed in range(4):
        world = Latent(300, 4, 30, noise=0.6, latent_scale=2.0, action_scale=0.5, seed=seed)
        true = world.prior()
        start = LatentPrior(true.matrices, true.mean, np.eye(30), np.eye(4))
        found = fit_prior(log_from(world, 6_000), start, ma.Linear(2.0), held_out=0.0)
        assert isinstance(found.likelihood, ma.Linear) and found.calibration is None and not found.at_bound
        logs = {"noise": 2 * math.log(found.likelihood.noise / 0.6), "action": math.log(found.action_scale / 0.5)}
        logs["latent"] = math.log((found.latent_scale or 0.0) / 2.0)
        for name, error in logs.items():
            seen[name].append(error / found.errors[name])
        assert found.errors["noise"] < 0.05 and found.errors["action"] < 0.1 and found.errors["latent"] < 0.4
        assert isinstance(found.prior, LatentPrior)
        np.testing.assert_allclose(found.prior.action_covariance, found.action_scale * np.eye(4))
    for name, errors in seen.items():
        assert np.abs(errors).max() < 4, name
        assert np.std(errors) < 3, name


def test_the_maximum_is_a_maximum_and_parts_can_be_held() -> None:
    world = Latent(50, 3, 4, noise=0.5, seed=3)
    log, prior = log_from(world, 1_000), world.prior()
    best = fit_prior(log, prior, ma.Linear(0.8), held_out=0.0)
    held = fit_prior(log, prior, ma.Linear(0.8), noise=False, latent=False, held_out=0.0)
    nothing = fit_prior(log, prior, ma.Linear(0.8), noise=False, action=False, latent=False, held_out=0.0)
    assert best.log_evidence > held.log_evidence > nothing.log_evidence
    assert set(best.errors) == {"noise", "action", "latent"} and set(held.errors) == {"action"} and not nothing.errors
    assert isinstance(held.likelihood, ma.Linear) and held.likelihood.noise == 0.8 and held.latent_scale == 1.0
    assert "noise" in str(best) and "latent" in str(best)
    again = fit_prior(log, best.prior, best.likelihood, held_out=0.0)
    assert again.action_scale == pytest.approx(1.0, abs=1e-3) and again.latent_scale == pytest.approx(1.0, abs=1e-2)


@pytest.mark.parametrize("kind", KINDS)
def test_every_structure_can_be_fitted(kind: str) -> None:
    rng = np.random.default_rng(4)
    log = LoggedData(rng.standard_normal((200, D)), rng.integers(K, size=200), rng.standard_normal(200), K)
    found = fit_prior(log, structure(kind, rng))
    assert found.calibration is not None and found.calibration.rows > 10
    assert (found.latent_scale is None) == (kind in ("independent", "own means"))
    assert type(found.prior) is type(structure(kind, rng))


def test_what_the_data_do_not_determine_is_said() -> None:
    """Rewards without noise from one parameter for all: the actions' own variance goes to the edge of its range."""
    rng = np.random.default_rng(0)
    X, A = rng.standard_normal((400, 2)), rng.integers(20, size=400)
    log = LoggedData(X, A, X @ [1.0, -1.0] + 0.5 * rng.standard_normal(400), 20)
    prior = ma.HierarchicalPrior(20, np.zeros(2), np.eye(2), np.eye(2))
    found = fit_prior(log, prior, held_out=0.0)
    assert found.action_scale < 0.02
    flat = LoggedData(X, A, np.zeros(400), 20)
    assert "noise" in fit_prior(flat, prior, held_out=0.0).at_bound


def test_calibration_of_a_fitted_belief_is_nominal_and_of_a_wrong_one_is_not() -> None:
    world = Latent(200, 4, 6, noise=0.7, seed=5)
    log, prior = log_from(world, 8_000), world.prior()
    found = fit_prior(log, LatentPrior(prior.matrices, prior.mean, np.eye(6), 0.1 * np.eye(4)), ma.Linear(3.0))
    check = found.calibration
    assert check is not None and 1_400 < check.rows < 1_800
    assert check.worst < 4 and check.spread == pytest.approx(1.0, abs=0.15) and "0.9" in str(check)
    learned, fresh = log.split(0.8, seed=1)
    wrong = calibration(sdm(learned, prior, ma.Linear(0.1)), fresh)
    right = calibration(sdm(learned, prior, ma.Linear(0.7)), fresh)
    assert wrong.worst > 10 and wrong.spread is not None and wrong.spread > 2
    assert right.worst < 4 and right.log_density > wrong.log_density


def test_the_same_rows_are_held_out_whatever_the_chunks() -> None:
    world = Latent(20, 3, 2, seed=1)
    log = log_from(world, 500)

    class Chunked:
        action_count, dim = log.action_count, log.dim

        def chunks(self, rows: int = 0):  # type: ignore[no-untyped-def]
            return log.chunks(37)

    one, other = fit_prior(log, world.prior(), seed=3), fit_prior(Chunked(), world.prior(), seed=3)
    assert one.log_evidence == pytest.approx(other.log_evidence, rel=1e-12)
    assert one.calibration is not None and other.calibration is not None
    np.testing.assert_allclose(one.calibration.coverage, other.calibration.coverage)


def test_logistic_rewards_by_laplace() -> None:
    """Enough rows an action for the approximation: scales within their errors, predictions that match frequencies."""
    world = Latent(60, 3, 12, reward="logistic", latent_scale=0.6, action_scale=0.3, seed=3)
    prior = world.prior()
    start = LatentPrior(prior.matrices, prior.mean, np.eye(12), np.eye(3))
    found = fit_prior(log_from(world, 30_000), start, ma.Logistic())
    assert set(found.errors) == {"action", "latent"} and isinstance(found.likelihood, ma.Logistic)
    assert abs(math.log(found.action_scale / 0.3)) < 4 * found.errors["action"]
    assert found.latent_scale is not None and abs(math.log(found.latent_scale / 0.6)) < 4 * found.errors["latent"]
    check = found.calibration
    assert check is not None and check.worst < 4.5 and len(check.levels) == 10 and check.spread is None


@pytest.mark.parametrize("rows", [2, 60])
def test_the_laplace_evidence_is_the_integral_of_the_gaussian_that_stands_for_the_likelihood(rows: int) -> None:
    """One action, d = 1: sum over a grid of the expansion, exp(l(p) + l'(p) (t - p) - G (t - p)^2 / 2), times the prior."""
    rng = np.random.default_rng(2)
    X, r = rng.standard_normal((rows, 1)), rng.integers(2, size=rows).astype(float)
    prior = ma.ActionPrior(2, np.array([0.3]), np.array([[1.0]]))
    belief = belief_of(prior, ma.Logistic())
    data = statistics([(X, np.zeros(rows, dtype=np.int64), r)], belief)
    value, _ = Evidence(data, belief_of(prior, ma.Logistic()))(1.0, 0.7)
    G, p = float(data.G[0, 0]), float(belief.arrays()["glm.modes"][0, 0])
    grid = np.linspace(-20, 20, 400_001)
    slope = float((r - 1 / (1 + np.exp(-X[:, 0] * p))) @ X[:, 0])
    log_terms = float(r @ (X[:, 0] * p) - np.logaddexp(0, X[:, 0] * p).sum()) + slope * (grid - p)
    log_terms = log_terms - 0.5 * G * (grid - p) ** 2 - (grid - 0.3) ** 2 / 1.4 - 0.5 * math.log(2 * math.pi * 0.7)
    assert value == pytest.approx(math.log(np.exp(log_terms).sum() * (grid[1] - grid[0])), rel=1e-8)


def test_calibrations_themselves() -> None:
    rng = np.random.default_rng(0)
    z = rng.standard_normal(20_000)
    right, narrow = gaussian_calibration(0 * z, 1 + 0 * z, z), gaussian_calibration(0 * z, 0.25 + 0 * z, z)
    assert right.worst < 4 and narrow.worst > 20
    assert right.log_density == pytest.approx(-0.5 * math.log(2 * math.pi * math.e), abs=0.03)
    p = rng.random(20_000)
    hits = (rng.random(20_000) < p).astype(float)
    assert binary_calibration(p, hits).worst < 4
    assert binary_calibration(np.sqrt(p), hits).worst > 10


def test_bad_input_is_refused() -> None:
    rng = np.random.default_rng(0)
    log = LoggedData(rng.standard_normal((20, 2)), rng.integers(3, size=20), rng.standard_normal(20), 3)
    prior = ma.ActionPrior(3, np.zeros(2), np.eye(2))
    for bad in (1.0, -0.1, 2.0):
        with pytest.raises(InvalidInput):
            fit_prior(log, prior, held_out=bad)
    with pytest.raises(InvalidInput):
        fit_prior(log, ma.ActionPrior(3, np.zeros(3), np.eye(3)))
    with pytest.raises(InvalidInput):
        fit_prior(log, prior, ma.Logistic())
    counts = LoggedData(log.contexts, log.actions, np.ones(20), 3)
    with pytest.raises(InvalidInput):
        fit_prior(counts, prior, ma.beliefs.Poisson())
    assert fit_prior(counts, prior, ma.beliefs.Poisson(), held_out=0.0).action_scale > 0
