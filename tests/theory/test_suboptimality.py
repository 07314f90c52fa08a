"""Bounds on the Bayesian suboptimality: the printed formulas, their limits, and that they hold in simulation."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from manyarms.beliefs import Linear
from manyarms.errors import InvalidInput
from manyarms.rewards.bayesian import sdm
from manyarms.theory.suboptimality import sdm_covariance_bound, sdm_explicit_bound, second_moment
from manyarms.worlds.latent import Latent
from manyarms.worlds.logged import log_from, skewed_policy

UNIT: dict[str, Any] = {"sigma0": 1.0, "tau": math.sqrt(3.0)}


def test_the_printed_constants() -> None:
    K, n, d = 100, 1_000, 5
    bound = sdm_covariance_bound(K, n, d, 0.3, **UNIT)
    log = math.log(K * n)
    alpha = math.sqrt(d + 2 * math.sqrt(d * log) + 2 * log)
    assert bound.alpha == pytest.approx(alpha)
    assert bound.leading == pytest.approx(0.3 * alpha)
    assert bound.remainder == pytest.approx(math.sqrt((2 * math.log(2 * K) + 2) * 4.0 / n))
    assert bound.total == pytest.approx(bound.leading + bound.remainder)

    rho, g, sigma = 0.2, 0.05, 0.5
    explicit = sdm_explicit_bound(K, n, d, [rho], sigma=sigma, g=g, **UNIT)
    m = math.floor(n * rho / 2)
    l = g * m / 2 / sigma**2 + 1.0
    inside = 1 / l + 3 / l**2 + 4 * ((d + 1) * math.exp(-n * rho**2 / 2) + d * (2 / math.e) ** (g * m / 2))
    assert explicit.spread == pytest.approx(math.sqrt(inside))
    assert explicit.remainder == bound.remainder


def test_coverage_is_averaged_inside_the_root() -> None:
    one = [sdm_explicit_bound(10, 500, 3, [rho], sigma=1.0, g=0.1, **UNIT).spread for rho in (0.1, 0.5)]
    both = sdm_explicit_bound(10, 500, 3, [0.1, 0.5], sigma=1.0, g=0.1, **UNIT).spread
    assert both == pytest.approx(math.sqrt(np.square(one).mean()))


def test_limits() -> None:
    spreads = [sdm_explicit_bound(10, n, 3, [0.1], sigma=1.0, g=0.1, **UNIT).spread for n in (10**5, 10**6, 10**7)]
    for before, after in pairwise(spreads):
        assert before / after == pytest.approx(math.sqrt(10), rel=0.05)  # of the order 1 / sqrt(n rho)
    # no rows at all: the prior's variance and a failure that is certain
    none = second_moment(np.zeros(1), 100, 3, noise=1.0, g=0.1, kappa_x=1.0, kappa_w=1.0, tight=True, **UNIT)
    assert none[0] == pytest.approx(1 + 3 + 4)


def test_tight_is_never_above_in_the_leading_term_for_more_than_a_few_dimensions() -> None:
    for d in (3, 10, 50):
        for n in (100, 10_000):
            plain, tight = (sdm_covariance_bound(100, n, d, 1.0, tight=flag, **UNIT) for flag in (False, True))
            assert tight.total < plain.total
            plain, tight = (
                sdm_explicit_bound(100, n, d, [0.01], sigma=1.0, g=0.5 / d, tight=flag, **UNIT)
                for flag in (False, True)
            )
            assert tight.total < plain.total


@pytest.mark.parametrize("skewed", [False, True])
def test_the_bounds_hold_in_the_world_of_the_theorem(skewed: bool) -> None:
    """Averages over worlds from the prior: measured suboptimality is below all four bounds, and they are not vacuous."""
    K, d, p, n, runs = 8, 3, 4, 400, 30
    gap, spread, cover = np.empty(runs), np.empty(runs), []
    for run in range(runs):
        world = Latent(K, d, p, matrices="orthonormal", unit_contexts=True, noise=0.5, seed=run)
        policy = skewed_policy(K, seed=run) if skewed else skewed_policy(K, 0.0)
        model = sdm(log_from(world, n, policy, seed=run), world.prior(), Linear(0.5))
        X = world.contexts(500)
        best, value = world.optimal(X)
        gap[run] = float((value - world.mean_reward(X, model.decide(X))).mean())
        spread[run] = float(np.sqrt(model.moments_of(X, best)[1]).mean())
        cover.append(policy.probabilities[best])
    measured, error = gap.mean(), gap.std() / math.sqrt(runs)
    assert measured > 0
    for tight in (False, True):
        covariance = sdm_covariance_bound(K, n, d, spread.mean(), tight=tight, **UNIT)
        explicit = sdm_explicit_bound(K, n, d, np.concatenate(cover), sigma=0.5, g=1 / (3 * d), tight=tight, **UNIT)
        assert measured + 2 * error < covariance.total < explicit.total
    # of any use only where it says less than what a policy that knows nothing could lose
    worst = 2 * math.sqrt(2 * math.log(K)) * math.sqrt(4.0 / 3)
    assert sdm_covariance_bound(K, n, d, spread.mean(), tight=True, **UNIT).total < worst


def test_bad_input_is_refused() -> None:
    for bad in ({"K": 0}, {"spread": -1.0}, {"sigma0": -1.0}, {"kappa_x": 0.0}):
        with pytest.raises(InvalidInput):
            sdm_covariance_bound(**{"K": 3, "n": 5, "d": 2, "spread": 1.0, **UNIT, **bad})
    for worse in ({"coverage": []}, {"coverage": [1.5]}, {"g": 0.0}, {"g": 0.6}, {"sigma": 0.0}, {"sigma0": 0.0}):
        with pytest.raises(InvalidInput):
            sdm_explicit_bound(**{"K": 3, "n": 5, "d": 2, "coverage": [0.1], "sigma": 1.0, "g": 0.1, **UNIT, **worse})
