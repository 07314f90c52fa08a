"""Extremes of normals: what a bound on the largest noise promises."""

from __future__ import annotations

import numpy as np

from manyarms._base.noise import above_normal, normal_from_log_cdf


def test_the_bound_is_never_below_and_never_far_above() -> None:
    log_cdf = -np.concatenate([np.logspace(-290, 3, 20_001), np.random.default_rng(0).exponential(size=20_000)])
    z, bound = normal_from_log_cdf(log_cdf), np.array([above_normal(one) for one in log_cdf.tolist()])
    assert np.isfinite(bound).all()
    assert (bound > z).all()
    assert (bound - z)[z > 0].max() < 1.0


def test_noise_that_no_float_tells_from_none_above_has_a_bound() -> None:
    assert min(above_normal(log_cdf) for log_cdf in (0.0, -0.0, -5e-324)) > 37
