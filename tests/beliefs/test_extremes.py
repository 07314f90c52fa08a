"""The largest of m standard normals, and its successors, have their law for every m from 1 to a billion."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import log_ndtr

from manyarms._base.noise import log_cdf_of_largest, normal_from_log_cdf
from manyarms._base.typing import Array


def largest(m: int, n: int, rng: np.random.Generator) -> Array:
    """n draws of the largest of m."""
    return normal_from_log_cdf(log_cdf_of_largest(np.full(n, m), 0.0, rng))


@pytest.mark.parametrize("m", [1, 2, 3, 10, 200])
def test_the_largest_against_direct_simulation(m: int, rng: np.random.Generator) -> None:
    direct = rng.standard_normal((5000, m)).max(axis=1)
    assert stats.ks_2samp(largest(m, 5000, rng), direct).pvalue > 1e-6


@pytest.mark.parametrize("m", [1, 2, 7, 1000, 10**6, 10**9])
def test_the_largest_against_its_distribution_function(m: int, rng: np.random.Generator) -> None:
    """P(max <= z) = Phi(z)^m, computed as exp(m log Phi(z)). No draw may be infinite, however large m is."""
    draws = largest(m, 20_000, rng)
    assert np.isfinite(draws).all()
    assert stats.kstest(draws, lambda z: np.exp(m * log_ndtr(z))).pvalue > 1e-6


@pytest.mark.parametrize(("m", "k"), [(2, 2), (3, 2), (5, 5), (40, 3)])
def test_successors_against_sorted_draws(m: int, k: int, rng: np.random.Generator) -> None:
    """The j-th order statistic by the chain of ceilings, each margin and the smallest gap (which sees dependence)."""
    n = 5000
    chain, ceiling = np.empty((n, k)), np.zeros(n)
    for j in range(k):
        ceiling = log_cdf_of_largest(np.full(n, m - j), ceiling, rng)
        chain[:, j] = normal_from_log_cdf(ceiling)
    direct = -np.sort(-rng.standard_normal((n, m)), axis=1)[:, :k]
    assert (np.diff(chain, axis=1) < 0).all()
    for j in range(k):
        assert stats.ks_2samp(chain[:, j], direct[:, j]).pvalue > 1e-6
    assert stats.ks_2samp(np.diff(chain, axis=1).max(axis=1), np.diff(direct, axis=1).max(axis=1)).pvalue > 1e-6


def test_quantiles_are_accurate_in_both_tails() -> None:
    """From 1e-15 above the median's side of one to probabilities of exp(-700)."""
    log_cdf = np.concatenate([-np.logspace(-15, 0, 200), -np.logspace(0.01, np.log10(700), 400)])
    z = normal_from_log_cdf(log_cdf)
    assert (np.diff(z) < 0).all()
    # |d log Phi / dz| turns an error of log Phi into one of z
    slope = np.exp(-z * z / 2 - log_cdf) / np.sqrt(2 * np.pi)
    error = np.abs(log_ndtr(z) - log_cdf) / slope
    assert_allclose(error, 0.0, atol=1e-10)


def test_counts_may_differ() -> None:
    counts = np.array([1, 10, 10**9])
    draws = np.array(
        [normal_from_log_cdf(log_cdf_of_largest(counts, 0.0, np.random.default_rng(s))) for s in range(400)]
    )
    for column, m in zip(draws.T, counts.tolist(), strict=True):
        assert stats.kstest(column, lambda z, m=m: np.exp(m * log_ndtr(z))).pvalue > 1e-6
