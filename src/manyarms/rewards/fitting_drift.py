"""Noise and prior variance of rewards that drift.

A fit that takes rewards to stay (fit_prior.py) finds too much noise where they do not, and under too much noise a log looks as if
it drifted slowly: the half-life, the noise and the scale of the actions' own covariances belong together. They are found together
here, by the prequential log-likelihood of a log's first rows and Nelder and Mead's search over their logarithms. It starts from
what `fit_prior` finds, which also has the scale of the latent vector's covariance: that one stays.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import Array
from manyarms.beliefs import Likelihood, Linear
from manyarms.beliefs.drift.clock import LATEST
from manyarms.errors import InvalidInput
from manyarms.priors import ParameterPrior
from manyarms.rewards.fit_prior import GaussianStructure, fit_prior, scaled
from manyarms.rewards.timed_log import TimedLog

MOST_ROWS = 10_000
MOST_STEPS = 60  # evaluations of the likelihood
START = 1 / 16  # of the log's length: the half-life that the search starts from
FIRST_STEPS = (1.5, 0.35, -0.35)  # in log half-life, log scale and log noise


def fit_scales(
    log: TimedLog, structure: ParameterPrior, likelihood: Likelihood, tell: Callable[[int, int], None] | None = None
) -> tuple[GaussianStructure, Likelihood]:
    """The prior and the likelihood with fitted scales; tell: how many evaluations are done, of at most how many."""
    if not isinstance(structure, GaussianStructure):
        raise InvalidInput(
            "prior", validate.describe(structure), "one Gaussian level, or two, to be fitted; or fit=False"
        )
    from scipy.optimize import minimize  # late: it takes a while to import, and only a fit needs it

    part = log.first(MOST_ROWS)
    static = fit_prior(part.source, structure, likelihood, held_out=0.0)
    noise = math.sqrt(static.likelihood.noise_variance) if static.likelihood.noise_variance else None
    shortest, done = part.length / len(part) / 2, 0

    def parts(logs: Array) -> tuple[float, GaussianStructure, Likelihood]:
        half_life, scale = math.exp(logs[0]), math.exp(logs[1])
        fitted = static.likelihood if noise is None else Linear(noise * math.exp(logs[2]))
        return min(max(half_life, shortest), LATEST), scaled(static.prior, scale, 1.0), fitted

    def loss(logs: Array) -> float:
        nonlocal done
        done += 1
        half_life, prior, fitted = parts(logs)
        found = -float(part.log_densities(prior, fitted, half_life).mean())
        if tell is not None:
            tell(done, MOST_STEPS)
        return found

    start = np.array([math.log(START * part.length), 0.0, 0.0][: 2 if noise is None else 3])
    corners = start + np.vstack([np.zeros(len(start)), np.diag(FIRST_STEPS[: len(start)])])
    options = {"initial_simplex": corners, "maxfev": MOST_STEPS, "xatol": 0.05, "fatol": 5e-4}
    found = minimize(loss, start, method="Nelder-Mead", options=options)
    return parts(found.x)[1:]


__all__ = ["fit_scales"]
