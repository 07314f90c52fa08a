"""What every likelihood must satisfy: mean and slope are derivatives of the potential, and the fit expands it at a mode."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from manyarms._base.typing import Array
from manyarms.beliefs.likelihoods import Gaussian, Likelihood, restore_likelihood
from manyarms.checks.base import refused, require, require_close

SCORES = np.linspace(-4.0, 4.0, 81)
STEP = 1e-5


def check_likelihood(likelihood: Likelihood, rewards: npt.ArrayLike, impossible: npt.ArrayLike = ()) -> None:
    """Run every check of a likelihood; `rewards` are some that it can give, `impossible` some that it cannot."""
    seen, never = np.asarray(rewards, dtype=np.float64), np.asarray(impossible, dtype=np.float64)
    for check in LIKELIHOOD_CHECKS:
        check(likelihood, seen)
    for reward in never.tolist():
        error = refused(partial(likelihood.check, np.array([reward])), f"an impossible reward, {reward}, is refused")
        require(error.argument == "reward", "the error about a reward names it", error.argument)


def derivatives_are_right(likelihood: Likelihood, rewards: Array) -> None:
    """g = A' and g' = A'' > 0, by central differences."""
    for ours, above, name in (
        (likelihood.mean, likelihood.potential, "the mean"),
        (likelihood.slope, likelihood.mean, "the slope"),
    ):
        difference = (above(SCORES + STEP) - above(SCORES - STEP)) / (2 * STEP)
        require_close(ours(SCORES), difference, name, 1e-6, "finite differences")
    require(bool((likelihood.slope(SCORES) > 0).all()), "the mean rises with x^T theta")


def means_can_be_rewards(likelihood: Likelihood, rewards: Array) -> None:
    """Possible rewards pass the check, and means lie in the range that is stated."""
    likelihood.check(rewards)
    means = likelihood.mean(SCORES)
    require(bool(np.isfinite(means).all()), "means are finite")
    if likelihood.binary:
        require(bool(((means >= 0) & (means <= 1)).all()), "means of binary rewards lie in [0, 1]")
        require(bool(np.isin(rewards, (0.0, 1.0)).all()), "binary rewards are 0 or 1", rewards)


def the_fit_is_an_expansion(likelihood: Likelihood, rewards: Array) -> None:
    """The point is the mode that `expansion` names, and G and B are the log-likelihood's derivatives there."""
    rng = np.random.default_rng(3)
    X, r = rng.uniform(-1, 1, (40, 2)), rng.choice(rewards, 40)
    around = Gaussian(np.array([0.5, -0.3]), np.array([[2.0, 0.5], [0.5, 1.0]]))
    point, G, B = likelihood.fit(X, r, np.zeros(2), around)
    dispersion = 1.0 if likelihood.noise_variance is None else likelihood.noise_variance
    gradient = (r - likelihood.mean(X @ point)) @ X / dispersion
    require_close(
        G, (X * likelihood.slope(X @ point)[:, None]).T @ X / dispersion, "the precision", 1e-8, "the curvature"
    )
    if likelihood.expansion == "mle":
        pull, wanted = getattr(likelihood, "ridge", 0.0) * point, G @ point
    else:
        pull, wanted = around.precision @ (point - around.mean), G @ point + gradient
    require_close(B, wanted, "B", 1e-8, "the expansion")
    if not likelihood.exact:  # an exact likelihood is the same Gaussian at every point
        require(float(np.abs(gradient - pull).max()) < 1e-3, "the gradient at the mode is 0", gradient - pull)


def predictive_means_average(likelihood: Likelihood, rewards: Array) -> None:
    """E[g(u)] over a Gaussian is g at its centre where the variance is 0, and within 0.02 of the integral elsewhere."""
    centre = np.linspace(-1.0, 1.0, 5)
    require_close(likelihood.predictive_mean(centre, np.zeros(5)), likelihood.mean(centre), "the predictive mean")
    nodes = np.linspace(-8.0, 8.0, 4001)
    weights = np.exp(-0.5 * nodes**2)
    wanted = likelihood.mean(centre[:, None] + 0.5 * nodes) @ (weights / weights.sum())
    error = float(np.abs(likelihood.predictive_mean(centre, np.full(5, 0.25)) - wanted).max())
    require(error < 0.02 * max(1.0, float(np.abs(wanted).max())), "the predictive mean is an average of means", error)


def it_is_restored_by_name(likelihood: Likelihood, rewards: Array) -> None:
    """Name and options, through JSON, give it back."""
    saved = json.loads(json.dumps({"kind": likelihood.kind, **likelihood.options()}))
    require(restore_likelihood(saved) == likelihood, "a likelihood is restored from its name and options", saved)


LIKELIHOOD_CHECKS: tuple[Callable[[Likelihood, Array], None], ...] = (
    derivatives_are_right,
    means_can_be_rewards,
    the_fit_is_an_expansion,
    predictive_means_average,
    it_is_restored_by_name,
)

__all__ = ["LIKELIHOOD_CHECKS", "check_likelihood"]
