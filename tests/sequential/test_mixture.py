"""The mixture is the integral that it is said to be, at any size of its arguments."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

from manyarms.sequential.mixture import boundary, log_mixture


def log_integral(a: float, s: float) -> float:
    """ln of the integral over (0, 1) of (1−λ)^(a−1) exp((a+s)λ), by tanh–sinh quadrature in log space."""
    t = np.linspace(-7.5, 7.5, 300_001)
    stretched = np.pi * np.sinh(t)
    log_u, log_lam = -np.logaddexp(0, -stretched), -np.logaddexp(0, stretched)  # 1 − λ and λ
    g = (a - 1) * log_u + (a + s) * np.exp(log_lam) + np.log(np.pi * np.cosh(t)) + log_u + log_lam
    return float(g.max() + np.log(np.exp(g - g.max()).sum() * (t[1] - t[0])))


@pytest.mark.parametrize("rho", [0.1, 1.0, 30.0])
def test_against_quadrature(rho: float) -> None:
    rng = np.random.default_rng(0)
    start = log_integral(rho, 0.0)
    for _ in range(30):
        v, size = 10 ** rng.uniform(-6, 7), 10 ** rng.uniform(-4, 6)
        for s in (size, -size):
            want = log_integral(v + rho, s) - start
            assert float(log_mixture(v, s, rho)) == pytest.approx(want, rel=1e-8, abs=1e-8), (v, s)


def test_the_formula_as_it_is_printed() -> None:
    """With incomplete gamma functions, where they neither under- nor overflow."""
    for v, s, rho in [(0.0, 1.0, 1.0), (3.0, 2.0, 1.0), (40.0, 15.0, 2.0), (10.0, -4.0, 0.5)]:
        gamma = lambda a, x: math.log(special.gammainc(a, x)) + special.gammaln(a)  # noqa: E731
        want = s + v + rho * math.log(rho) - (v + rho) * math.log(s + v + rho)
        want += gamma(v + rho, s + v + rho) - gamma(rho, rho)
        assert float(log_mixture(v, s, rho)) == pytest.approx(want, rel=1e-12, abs=1e-12)


def test_nothing_has_happened_yet() -> None:
    for rho in (0.01, 1.0, 1e6):
        assert float(log_mixture(0.0, 0.0, rho)) == 0.0


def test_it_rises_with_the_excess_and_is_finite_at_any_size() -> None:
    sizes = 10.0 ** np.arange(-12, 101, 2)
    excesses = np.concatenate([-sizes[::-1], [0.0], sizes])
    for variation in [0.0, *10.0 ** np.arange(-10, 201, 5)]:
        found = log_mixture(variation, excesses, 1.0)
        assert np.isfinite(found).all()
        assert (np.diff(found) >= -1e-9 * np.maximum(1, np.abs(found[1:]))).all(), variation
        assert (
            found <= np.maximum(excesses, 0) * (1 + 1e-12)
        ).all()  # never above it, so that alarms can skip the rest


def test_the_two_ways_to_compute_it_agree_where_they_meet() -> None:
    """On either side of the switch to the continued fraction, and to the normal law."""
    for a in (0.5, 5.0, 60.0, 70.0, 1e6, 1e12, 1e15):
        edge = -min(4 * math.sqrt(a), a / 2)
        near, far = log_mixture(a - 0.5, np.array([edge * (1 - 1e-9), edge * (1 + 1e-9)]), 0.5)
        assert near == pytest.approx(far, abs=1e-6), a
    for z in (-5.0, 0.0, 4.0):
        below, above = (float(log_mixture(v, z * math.sqrt(v), 1.0)) for v in (0.999e16, 1.001e16))
        assert below == pytest.approx(above, abs=2e-3)  # ½ ln of their ratio


@pytest.mark.parametrize("variation", [0.0, 1e-9, 1.0, 1234.5, 1e9, 1e17, 1e150])
@pytest.mark.parametrize("alpha", [0.5, 0.05, 1e-12])
def test_the_boundary_is_where_the_mixture_reaches_the_threshold(variation: float, alpha: float) -> None:
    threshold = -math.log(alpha)
    found = boundary(variation, 1.0, threshold)
    assert float(log_mixture(variation, found, 1.0)) >= threshold
    assert float(log_mixture(variation, found * (1 - 1e-9), 1.0)) < threshold
