"""The truth that dTS's posterior is held to: exact where links are linear, and distances that are what they are called."""

from __future__ import annotations

import numpy as np
import pytest

from manyarms import DiffusionPrior
from manyarms.beliefs.messages import Chain
from manyarms_thesis.dts.sampling import (
    Evidence,
    approximate_posterior,
    distance,
    gaussian_posterior,
    prior_centres,
    sliced_wasserstein,
    true_posterior,
)


def linear_chain() -> DiffusionPrior:
    rng = np.random.default_rng(0)
    return DiffusionPrior(1, 2, [rng.uniform(-1, 1, (2, 2)) for _ in range(2)], [0.3, 0.5, 1.0])


@pytest.mark.parametrize("n", [0, 1, 12])
def test_all_agree_where_everything_is_gaussian(n: int, rng: np.random.Generator) -> None:
    prior = linear_chain()
    evidence = Evidence.of(rng.uniform(-1, 1, (n, 2)), rng.standard_normal(n), 0.8)
    covariance = np.linalg.inv(np.linalg.inv(prior.marginal().covariance) + evidence.G)
    mean = covariance @ evidence.b
    truth, effective = true_posterior(prior_centres(prior, 100_000, 1), prior.covariances[0], evidence, 20_000, rng)
    assert effective > 5_000
    clouds = {
        "importance sampling": truth,
        "dTS": approximate_posterior(Chain(prior), evidence, 20_000, rng),
        "closed form": gaussian_posterior(np.zeros(2), prior.marginal().covariance, evidence, 20_000, rng),
    }
    for name, cloud in clouds.items():
        np.testing.assert_allclose(cloud.mean(axis=0), mean, atol=0.05, err_msg=name)
        np.testing.assert_allclose(np.cov(cloud.T), covariance, atol=0.08, err_msg=name)


def test_weights_do_not_overflow(rng: np.random.Generator) -> None:
    """Far from the prior and with a tiny noise, some draw is still the nearest."""
    prior = linear_chain()
    evidence = Evidence.of(100 * np.eye(2), np.array([1e4, -1e4]), 1e-3)
    truth, effective = true_posterior(prior_centres(prior, 1_000, 1), prior.covariances[0], evidence, 50, rng)
    assert np.isfinite(truth).all()
    assert effective >= 1


def test_distances(rng: np.random.Generator) -> None:
    cloud = rng.standard_normal((4_000, 2))
    same = distance(cloud, cloud)
    assert (same.mean, same.covariance, same.sliced) == (0, 0, 0)
    moved = distance(cloud, cloud + np.array([3.0, 4.0]))
    assert moved.mean == pytest.approx(5.0)
    assert moved.covariance == pytest.approx(0.0, abs=1e-12)
    # the mean over directions u of (shift . u)^2 is |shift|^2 / d
    assert moved.sliced == pytest.approx(5.0 / np.sqrt(2))
    assert distance(cloud, 2 * cloud).covariance == pytest.approx(3.0)
    three = rng.standard_normal((500, 3))
    assert sliced_wasserstein(three, three + 1.0) == pytest.approx(1.0, rel=0.2)
