"""Pareto k: against tails whose shape is known, against maximum likelihood, and in a stream."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import manyarms.weights.tails as tails
from manyarms.evaluation import evaluate
from manyarms.logs.data import LoggedData
from manyarms.policies import FixedPolicy
from manyarms.weights.tails import LargestWeights, largest_reliable_k, pareto_shape


def k_of(weights, parts=1):
    largest = LargestWeights()
    for part in np.array_split(weights, parts):
        largest.add(part)
    return largest.pareto_k()


@pytest.mark.parametrize("k", [-0.5, 0.1, 0.5, 0.8, 1.2])
def test_generalised_pareto_draws_and_maximum_likelihood(k):
    """20,000 draws: the error of k is about (1 + k) / sqrt(n), here 0.016 at most; scipy maximises the likelihood."""
    x = stats.genpareto.rvs(k, scale=3.0, size=20_000, random_state=1)
    found = pareto_shape(x)
    assert found == pytest.approx(k, abs=0.1)
    assert found == pytest.approx(stats.genpareto.fit(x, floc=0)[0], abs=0.05)
    assert pareto_shape(1e6 * x) == pytest.approx(found, abs=1e-9)


def zhang_and_stephens(x):
    """The paper's steps, one number at a time."""
    x, n = sorted(x), len(x)
    m = 30 + int(n**0.5)
    first = x[int(n / 4 + 0.5) - 1]
    thetas = [1 / x[-1] + (1 - (m / (j - 0.5)) ** 0.5) / (3 * first) for j in range(1, m + 1)]
    ks = [sum(np.log(1 - t * one) for one in x) / n for t in thetas]
    logs = [n * (np.log(-t / k) - k - 1) for t, k in zip(thetas, ks, strict=True)]
    weights = [1 / sum(np.exp(other - one) for other in logs) for one in logs]
    theta = sum(t * w for t, w in zip(thetas, weights, strict=True)) / sum(weights)
    k = sum(np.log(1 - theta * one) for one in x) / n
    return (n * k + 5) / (n + 10)


def test_the_paper_written_out(rng):
    for k in (-0.2, 0.4, 0.9):
        x = stats.genpareto.rvs(k, size=60, random_state=rng)
        assert pareto_shape(x) == pytest.approx(zhang_and_stephens(x), abs=1e-9)


@pytest.mark.parametrize("alpha", [1.1, 1.5, 3.0])
def test_weights_with_a_known_tail(alpha):
    """Pareto weights of tail index alpha have k = 1/alpha; 3 sqrt(n) of a million are 3,000 draws of the tail."""
    w = np.random.default_rng(2).pareto(alpha, 1_000_000) + 1
    assert k_of(w) == pytest.approx(1 / alpha, abs=0.15)
    assert k_of(w, parts=30) == k_of(w)


def test_light_tails_are_light(rng):
    assert k_of(rng.exponential(size=200_000)) < 0.25
    assert k_of(rng.random(200_000)) < 0


def test_a_stream_keeps_what_it_needs(rng, monkeypatch):
    monkeypatch.setattr(tails, "KEPT", 50)
    w = rng.pareto(1.5, 5_000)
    largest = LargestWeights()
    for part in np.array_split(w, 60):
        largest.add(part)
        assert len(largest._kept) <= 100 + 84
    top = np.sort(w)[::-1]
    assert largest.pareto_k() == pytest.approx(pareto_shape(top[:50] - top[50]))


def test_no_tail_no_k():
    assert k_of(np.ones(1000)) is None and k_of(np.zeros(1000)) is None and k_of(np.array([3.0])) is None
    assert k_of(np.where(np.arange(1000) % 10 == 0, 10.0, 0.0)) is None  # a deterministic policy: equal weights
    assert k_of(np.where(np.arange(1000) % 20 == 0, 20.0, 0.0)) < 0.5  # fewer than the threshold leaves: bounded


def test_thresholds_depend_on_the_rows():
    assert largest_reliable_k(10**6) == 0.7 and largest_reliable_k(100) == 0.5 and largest_reliable_k(1) < 0


def test_it_is_reported_and_warned_of():
    """Propensities that are uniform powers: weights with tail index 1/0.9."""
    rng, n = np.random.default_rng(3), 20_000
    heavy = rng.random(n) ** 0.9
    for propensities, told in ((heavy, True), (np.clip(heavy, 0.2, 1), False)):
        log = LoggedData(np.ones((n, 1)), np.zeros(n, dtype=int), rng.random(n), 2, propensities=propensities)
        found = evaluate(FixedPolicy([0.5, 0.5]), log, ["snips"], replicates=0)
        assert found.overlap.heavy_tailed is told
        assert any("Pareto k" in text for text in found.warnings) is told
        assert "Pareto k" in str(found)


def test_weights_of_hundreds_of_orders_of_magnitude():
    """A quartile that is 0 beside the largest weight divides nothing: k is a number, and a large one."""
    weights = LargestWeights()
    weights.add(np.array([1e300, 1e200, 1e-20, 2e-20, 3e-20, 4e-20, 5e-20, 6e-20] + [1e-30] * 40))
    k = weights.pareto_k()
    assert k is not None and k > 1
