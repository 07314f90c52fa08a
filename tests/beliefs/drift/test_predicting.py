"""One-step predictive densities against numerical integration, and against what a density must be."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad

import manyarms as ma
from manyarms.beliefs import Poisson
from manyarms.beliefs.drift.predicting import expanded

CASES = [(0.0, 1.0), (-3.0, 0.2), (2.0, 9.0), (0.5, 1e-6), (-8.0, 4.0), (1.0, 0.0)]


@pytest.mark.parametrize(("mean", "variance"), CASES)
def test_the_probabilities_of_a_click_and_of_none_sum_to_one(mean: float, variance: float) -> None:
    """The nodes of the two are not the same: each is around the mode of its own."""
    logs = [expanded(ma.Logistic(), reward, mean, variance).log_density(ma.Logistic()) for reward in (0.0, 1.0)]
    assert sum(math.exp(one) for one in logs) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("reward", [0.0, 1.0, 7.0, 60.0])
@pytest.mark.parametrize(("mean", "variance"), [(0.0, 1.0), (2.0, 0.3), (-1.0, 2.0)])
def test_counts_against_quadrature(mean: float, variance: float, reward: float) -> None:
    seen = expanded(Poisson(), reward, mean, variance)

    def density(u: float) -> float:
        return math.exp(reward * u - math.exp(u) - (u - mean) ** 2 / (2 * variance) - at_mode)

    at_mode = reward * seen.mode - math.exp(seen.mode) - (seen.mode - mean) ** 2 / (2 * variance)
    width = 12 / math.sqrt(1 / variance + seen.slope)
    value, _ = quad(density, seen.mode - width, seen.mode + width, limit=200)
    expected = math.log(value) + at_mode - 0.5 * math.log(2 * math.pi * variance)
    assert seen.log_density(Poisson()) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("kind", ["independent", "hierarchical", "mixed effects"])
def test_scoring_changes_nothing(kind: str) -> None:
    """A belief that tells how likely its rows were is the belief that does not, to the last bit."""
    from drifting_gaussian import TimedRows, a_prior
    from manyarms.beliefs import belief_of
    from manyarms.beliefs.drift.drift_memory import DriftMemory

    prior = a_prior(kind, np.random.default_rng(0))
    for likelihood in (ma.Linear(0.5), ma.Logistic()):
        rows = TimedRows.drawn(60, 4, 2, 20.0, np.random.default_rng(1))
        rewards = rows.rewards if likelihood.exact else (rows.rewards > 0).astype(float)
        told, plain = (belief_of(prior, likelihood, drift=ma.Drift(half_life=5, clock="time")) for _ in range(2))
        scores = np.full(60, np.nan)
        assert isinstance(told.memory, DriftMemory) and isinstance(plain.memory, DriftMemory)
        told.memory.learn(told, rows.X, rows.actions, rewards, rows.times, scores=scores)
        plain.memory.learn(plain, rows.X, rows.actions, rewards, rows.times)
        assert np.isfinite(scores).all()
        for name, array in plain.arrays().items():
            np.testing.assert_array_equal(told.arrays()[name], array)
