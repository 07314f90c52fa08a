"""The gamma–exponential mixture: one number that is large only if a sum has grown more than chance allows.

For λ in [0, 1), ψ(λ) = −ln(1−λ) − λ, and a sum with excess s = Σ(X − μ) and variation v = Σ(X − X̂)²,

    E = ∫ exp(λs − ψ(λ)v) f(λ) dλ,      f(λ) ∝ (1−λ)^(ρ−1) exp(ρλ),      so that E = K(v + ρ, s) / K(ρ, 0)
    K(a, s) = ∫₀¹ (1−λ)^(a−1) exp((a+s)λ) dλ  =  γ(a, z) z^(−a) e^z,        z = a + s, γ the lower incomplete gamma function

which is formula (60) of Howard, Ramdas, McAuliffe and Sekhon, "Time-uniform, nonparametric, nonasymptotic confidence sequences"
(2021), with c = 1: exp(λs − ψ(λ)v) = (1−λ)^v exp(λ(s+v)), and f brings its own power and exponential.

K itself overflows; its logarithm is taken from parts that are of its own size:

    s ≥ 0, or not far below    ln K = a(y − ln(1+y)) + c(a) + ln P(a, z),   y = s/a,  c(a) = lnΓ(a) + a − a ln a
    s far below 0, or z ≤ 0    K = 1/(a−z + z/(a+1−z + 2z/(a+2−z + 3z/(a+3−z + …))))

P(a, a+s) ≥ ½ for s ≥ 0 (the median of a gamma law is below its mean), so that nothing underflows there, and the fraction has
converged after some tens of terms where P would.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy import special

from manyarms._base.typing import Array

HUGE = 1e16  # from here on a and a + s are the same double for excesses that matter, and the gamma law is normal
TERMS = 2_000
POINTS = 64  # of a bracket, at once
SERIES = [(-1) ** k / k for k in range(10, 1, -1)]  # of y − ln(1+y) = y²/2 − y³/3 + …, the highest power first


def log_mixture(variation: npt.ArrayLike, excess: npt.ArrayLike, rho: float) -> Array:
    """ln E, entry by entry; never above max(excess, 0), rising in the excess, and 0 where both are 0."""
    a, s = np.broadcast_arrays(np.asarray(variation, dtype=np.float64) + rho, np.asarray(excess, dtype=np.float64))
    start = _log_k(np.array([rho]), np.zeros(1))[0]
    return np.asarray(_log_k(a.ravel(), s.ravel()) - start).reshape(a.shape)


def boundary(variation: float, rho: float, log_threshold: float) -> float:
    """The least excess at which ln E reaches a threshold above 0, rounded up."""
    low, high = 0.0, math.sqrt(variation + rho) + log_threshold
    while log_mixture(variation, high, rho) < log_threshold:
        low, high = high, 2 * high
    while high - low > 4 * math.ulp(high):
        points = np.linspace(low, high, POINTS + 1)
        reached = np.append(log_mixture(variation, points[1:-1], rho) >= log_threshold, True)
        first = 1 + int(np.argmax(reached))
        low, high = float(points[first - 1]), float(points[first])
    return high


def _log_k(a: Array, s: Array) -> Array:
    """ln K(a, s)."""
    out = np.empty(len(a))
    far = s < -np.minimum(4 * np.sqrt(a), a / 2)  # there SciPy's gammainc stops its series too early
    for i in np.flatnonzero(far):
        out[i] = -_log_of_fraction(float(a[i]), float(s[i]))
    a, s = a[~far], s[~far]
    peak = a * _less_its_log(s / a)
    out[~far] = peak + _stirling(a) + _log_p(a, s, peak)
    return out


def _less_its_log(y: Array) -> Array:
    """y − ln(1 + y) for y > −1, to all digits: it is y²/2 near 0."""
    small = np.abs(y) < 0.02
    with np.errstate(under="ignore"):
        near = np.where(small, y, 0.0)
        return np.where(small, near * near * np.polyval(SERIES, near), y - np.log1p(np.where(small, 0.0, y)))


def _stirling(a: Array) -> Array:
    """lnΓ(a) + a − a ln a."""
    large = np.maximum(a, 20.0)
    inverse = 1 / large
    with np.errstate(under="ignore"):
        square = inverse * inverse
        tail = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680)))
    small = np.minimum(a, 20.0)
    direct = special.gammaln(small) + small - small * np.log(small)
    return np.where(a > 20, 0.5 * np.log(2 * np.pi / large) + tail, direct)


def _log_p(a: Array, s: Array, peak: Array) -> Array:
    """ln P(a, a + s), where it is not so small that P underflows. peak: a(y − ln(1+y)), the normal exponent."""
    huge = a >= HUGE
    if not huge.any():
        return np.asarray(np.log(special.gammainc(a, a + s)))
    exact = np.log(special.gammainc(np.where(huge, 1.0, a), np.where(huge, 1.0, a + s)))
    return np.asarray(np.where(huge, special.log_ndtr(np.copysign(np.sqrt(2 * peak), s)), exact))


def _log_of_fraction(a: float, s: float) -> float:
    """ln(−s + z/(1−s + 2z/(2−s + …))) by Lentz's method; −s is a − z."""
    z, value, c, d = a + s, -s, -s, 0.0
    for n in range(1, TERMS):
        d = 1 / (n - s + n * z * d)
        c = n - s + n * z / c
        value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return math.log(value)


__all__ = ["boundary", "log_mixture"]
