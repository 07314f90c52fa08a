"""Importance-weight corrections, defined once for estimation, learning and bounds.

With w = pi(a|x) / pi0(a|x), a correction replaces w by a regularised weight w_hat, and the estimate of pi's value is the
mean of w_hat * r (thesis, Sections 7, 8.2 and 8.6):

    ips         NoCorrection          w
    cips        ClipPropensities      pi / max(pi0, tau)             IPS-max; tau = 0 is IPS
    ips-min     ClipWeights           min(w, M)                      M = infinity is IPS
    es          ExponentialAlpha      pi / pi0^alpha                 alpha = 1 is IPS
    es-beta     ExponentialBeta       w^beta                         beta = 1 is IPS
    ix          ImplicitExploration   pi / (pi0 + gamma)             gamma = 0 is IPS
    harmonic    Harmonic              w / (1 - s + s w)              strength s = 0 is IPS
    shrinkage   Shrinkage             l w / (l + w^2)                l = infinity is IPS
    ls          LogSmoothing          log(1 + l w r) / (l r)         l = 0 is IPS
    ls-linear   LinearLogSmoothing    pi log(1 + l r / pi0) / (l r)  l = 0 is IPS

`CORRECTIONS` has them by name. A correction that is registered there is an estimator by that name in `evaluate` and on the
command line, and `IPS(correction)` in `learn` and under bounds; the formulas hold for NumPy arrays and torch tensors alike.
"""

from manyarms.weights.base import CORRECTIONS, Correction, NoCorrection, Rule
from manyarms.weights.clipping import ClipPropensities, ClipWeights
from manyarms.weights.exponential_smoothing import ExponentialAlpha, ExponentialBeta
from manyarms.weights.harmonic import Harmonic
from manyarms.weights.implicit_exploration import ImplicitExploration
from manyarms.weights.logarithmic_smoothing import LinearLogSmoothing, LogSmoothing
from manyarms.weights.shrinkage import Shrinkage

__all__ = [
    "CORRECTIONS", "ClipPropensities", "ClipWeights", "Correction", "ExponentialAlpha", "ExponentialBeta", "Harmonic",
    "ImplicitExploration", "LinearLogSmoothing", "LogSmoothing", "NoCorrection", "Rule", "Shrinkage",
]  # fmt: skip
