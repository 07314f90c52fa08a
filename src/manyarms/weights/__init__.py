"""Importance-weight corrections, defined once for estimation, learning and bounds.

With w = pi(a|x) / pi0(a|x), a correction replaces w by a regularised weight w_hat, and the estimate of pi's value is the
mean of w_hat * r (thesis, lines 2039-2080, 2397-2435, 2672-2677):

    ips         NoCorrection          w
    cips        ClipPropensities      pi / max(pi0, tau)             IPS-max; tau = 0 is IPS
    ips-min     ClipWeights           min(w, M)                      M = infinity is IPS
    es          ExponentialAlpha      pi / pi0^alpha                 alpha = 1 is IPS
    es-beta     ExponentialBeta       w^beta                         beta = 1 is IPS
    ix          ImplicitExploration   pi / (pi0 + gamma)             gamma = 0 is IPS
    harmonic    Harmonic              w / (1 - s + s w)              strength s = 0 is IPS
    shrinkage   Shrinkage             l w / (l + w^2)                l = infinity is IPS
    ls          LogSmoothing          log(1 + l w r) / (l r)         l = 0 is IPS

"snips" is ips with the self-normalised aggregation: the sum of w r over the sum of w. The formulas use arithmetic and
comparisons only, so `weight` and `terms` also work on torch tensors and can be differentiated by pi.
"""

from manyarms.weights.corrections import (
    ClipPropensities,
    ClipWeights,
    Correction,
    ExponentialAlpha,
    ExponentialBeta,
    Harmonic,
    ImplicitExploration,
    LinearLogSmoothing,
    LogSmoothing,
    NoCorrection,
    Shrinkage,
)
from manyarms.weights.naming import FAMILIES, NAMES, Family, Weighting, named

__all__ = [
    "FAMILIES",
    "NAMES",
    "ClipPropensities",
    "ClipWeights",
    "Correction",
    "ExponentialAlpha",
    "ExponentialBeta",
    "Family",
    "Harmonic",
    "ImplicitExploration",
    "LinearLogSmoothing",
    "LogSmoothing",
    "NoCorrection",
    "Shrinkage",
    "Weighting",
    "named",
]
