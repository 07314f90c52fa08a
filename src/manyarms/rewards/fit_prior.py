"""Empirical Bayes: noise and prior variances fitted to a log by marginal likelihood, with a check on held-out rows.

A structure (which actions share what, W_a, the shapes of the covariances) is given as a prior; three numbers are fitted:

    t    the variance of the noise (linear rewards)
    s0   what the actions' own covariances are multiplied by
    s1   what the latent vector's covariance is multiplied by

by maximising the evidence in their logarithms (evidence.py has formula and gradient; each step costs one pass over the per-action
sums, none over the rows). There is one latent vector in a log, so s1 is known from d' numbers only, with a relative error of
about sqrt(2 / d'); the standard errors say so. Whether the fitted belief is right about its own uncertainty is then measured
on held-out rows: how often their rewards lie inside the predictive intervals.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from manyarms._base import validate
from manyarms._base.tables import Shown, Table, text_of
from manyarms._base.text import counted, number
from manyarms._base.typing import Array
from manyarms.beliefs import Belief, Likelihood, Linear, belief_of
from manyarms.beliefs.belief import Rounds
from manyarms.errors import InvalidInput
from manyarms.logs.data import CHUNK, LogSource
from manyarms.priors import ActionPrior, HierarchicalPrior, LatentPrior, MixedEffectPrior, TwoLevelPrior
from manyarms.rewards.bayesian import BeliefModel
from manyarms.rewards.evidence import Evidence, statistics
from manyarms.rewards.reading import log_source, rows_of

GaussianStructure = ActionPrior | HierarchicalPrior | MixedEffectPrior | LatentPrior | TwoLevelPrior
LEVELS = (0.5, 0.8, 0.9, 0.95)
BINS = 10
FURTHEST = math.log(1e6)  # no number is moved further than this factor from where it starts
STEP = 1e-4  # of the logarithms, for the curvature


@dataclass(frozen=True, eq=False, repr=False)
class PredictiveCalibration(Shown):
    """Whether a belief knows how much it does not know, on rows that it has not learned.

    Linear rewards: `coverage` of the central predictive intervals at `levels`, with binomial standard errors (rows of one
    action share its parameter, so that the true errors are somewhat larger), and `spread`, the mean of ((r - mean) / sd)^2,
    which should be 1. Binary rewards: `levels` are mean predicted probabilities in bins of equal size, and `coverage` the
    share of rewards 1 in each. log_density: the mean log predictive density of a row.
    """

    rows: int
    levels: Array
    coverage: Array
    standard_errors: Array
    log_density: float
    spread: float | None = None

    @property
    def worst(self) -> float:
        """The largest deviation of coverage from its level, in standard errors."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.abs(self.coverage - self.levels) / self.standard_errors
        return float(np.nanmax(ratio))

    def _table(self) -> Table:
        rows = list(zip(self.levels.tolist(), self.coverage.tolist(), self.standard_errors.tolist(), strict=True))
        spread = [] if self.spread is None else [f"spread {self.spread:.4g}, where 1 is right"]
        return Table(
            f"coverage on {counted(self.rows, 'row')}: at most {self.worst:.1f} standard errors from what it should be",
            ("should be", "is", "std. error"),
            rows,
            [*spread, f"mean log density of a row: {number(self.log_density)}"],
        )


@dataclass(frozen=True, eq=False, repr=False)
class FittedPrior(Shown):
    """A prior and a likelihood with fitted variances.

    action_scale and latent_scale multiplied the covariances of the structure (1 where they were not fitted, latent_scale None
    without a latent vector); `errors` are standard errors of the *logarithms* of what was fitted, by name, from the
    curvature. `at_bound` names what ended at the edge of its range: the data do not determine it.
    """

    prior: GaussianStructure
    likelihood: Likelihood
    log_evidence: float
    action_scale: float
    latent_scale: float | None
    errors: dict[str, float]
    at_bound: tuple[str, ...] = ()
    calibration: PredictiveCalibration | None = None

    def _table(self) -> Table:
        variance = self.likelihood.noise_variance
        fitted = {} if variance is None else {"noise": math.sqrt(variance)}
        fitted["action covariance x"] = self.action_scale
        fitted |= {} if self.latent_scale is None else {"latent covariance x": self.latent_scale}
        edge = [f"at the edge of what was searched: {', '.join(self.at_bound)}"] if self.at_bound else []
        return Table(
            ", ".join(f"{name} {number(value)}" for name, value in fitted.items()),
            rows=[
                ("prior", text_of(self.prior)),
                ("likelihood", text_of(self.likelihood)),
                ("log evidence", f"{self.log_evidence:.6g}"),
                *((f"std. error of log {name}", number(error)) for name, error in self.errors.items()),
            ],
            notes=edge,
            parts=[] if self.calibration is None else [self.calibration._table()],
        )


def fit_prior(
    source: LogSource,
    structure: GaussianStructure,
    likelihood: Likelihood = Linear(),
    *,
    noise: bool = True,
    action: bool = True,
    latent: bool = True,
    held_out: float = 0.2,
    seed: int = 0,
) -> FittedPrior:
    """Fit the noise and the scales of a prior's covariances to a log by marginal likelihood.

    structure: the prior whose shapes, means and W_a are kept, and whose scales are where the search starts; `likelihood.noise`
    is where the noise starts. noise, action, latent: what is to be fitted. held_out: the share of rows that is left out of the
    fit and serves the calibration check (0: none). The source is read twice, three times with held-out rows; of linear
    rewards nothing is held that grows with its rows.
    """
    log_source(source)
    if not isinstance(structure, GaussianStructure):
        kinds = "ActionPrior, HierarchicalPrior, MixedEffectPrior, LatentPrior or TwoLevelPrior"
        raise InvalidInput(
            "structure", validate.describe(structure), f"independent actions or one latent vector: {kinds}"
        )
    held_out, seed = validate.probability("held_out", held_out), validate.seed(seed)
    if held_out == 1:
        raise InvalidInput("held_out", 1, "a fraction below 1: nothing would be left to fit")
    noise, action = validate.flag("noise", noise), validate.flag("action", action)
    latent = validate.flag("latent", latent)
    belief = belief_of(structure, likelihood)
    evidence = Evidence(statistics(_part(source, belief, held_out, seed, False), belief), belief)
    variance = likelihood.noise_variance
    wanted = {"noise": noise and variance is not None, "action": action, "latent": latent and not evidence.known}
    start = np.array([0.0 if variance is None else math.log(variance), 0.0, 0.0])
    free = np.array([wanted[name] for name in wanted])
    found, value = _maximise(evidence, start, free)
    names = [name for name in wanted if wanted[name]]
    errors = dict(zip(names, _errors(evidence, found, free).tolist(), strict=True))
    edge = np.abs(found - start) > FURTHEST - 1e-3
    t, s0, s1 = (float(v) for v in np.exp(found))
    fitted = FittedPrior(
        scaled(structure, s0, s1),
        likelihood if variance is None else Linear(math.sqrt(t)),
        value,
        s0,
        None if evidence.known else s1,
        errors,
        tuple(name for name, is_free, out in zip(wanted, free, edge, strict=True) if is_free and out),
    )
    if held_out == 0:
        return fitted
    model = BeliefModel(belief_of(fitted.prior, fitted.likelihood))
    model.belief.fold(_part(source, model.belief, held_out, seed, False))
    return replace(fitted, calibration=_calibration(model, _part(source, model.belief, held_out, seed, True)))


def scaled(structure: GaussianStructure, action: float, latent: float) -> GaussianStructure:
    """The prior with its covariances multiplied: the actions' own by `action`, the latent vector's by `latent`."""
    if isinstance(structure, ActionPrior):
        return replace(structure, covariance=action * structure.covariance)
    if isinstance(structure, MixedEffectPrior):
        return structure.scaled(effect_covariance=latent, action_covariance=action)
    return replace(
        structure,
        covariance=latent * structure.covariance,
        action_covariance=action * structure.action_covariance,
    )


def calibration(model: BeliefModel, source: LogSource) -> PredictiveCalibration:
    """How well a belief's predictive distributions fit rows that it has not learned."""
    validate.instance("model", model, BeliefModel, "a belief as a reward model, such as sdm(log, prior) gives")
    log_source(source)
    return _calibration(model, rows_of(source, model.belief))


def _part(source: LogSource, belief: Belief, held_out: float, seed: int, wanted: bool) -> Iterator[Rounds]:
    """The rows that are held out, or the others: the same ones in every pass, however the chunks are cut."""
    rng = np.random.default_rng(seed)
    for all_X, all_actions, all_rewards in rows_of(source, belief):
        for start in range(0, len(all_actions), CHUNK):  # a log in memory comes in larger parts
            some = slice(start, start + CHUNK)
            X, actions, rewards = all_X[some], all_actions[some], all_rewards[some]
            chosen = (rng.random(len(actions)) < held_out) == wanted
            if chosen.all():
                yield X, actions, rewards
            elif chosen.any():
                yield X[chosen], actions[chosen], rewards[chosen]


# ---- the search -------------------------------------------------------------------------------------------------------


def _maximise(evidence: Evidence, start: Array, free: Array) -> tuple[Array, float]:
    """The free logarithms that maximise the evidence, by L-BFGS with the exact gradient."""
    from scipy.optimize import minimize  # late: it takes a while to import, and only a fit needs it

    if not free.any():
        return start, evidence(*np.exp(start))[0]
    rows = max(1, evidence.statistics.rows, len(evidence.statistics.ids))

    def loss(logs: Array) -> tuple[float, Array]:
        full = start.copy()
        full[free] = logs
        value, gradient = evidence(*np.exp(full))
        return -value / rows, -gradient[free] / rows

    bounds = [(v - FURTHEST, v + FURTHEST) for v in start[free]]
    result = minimize(
        loss, start[free], jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-14, "gtol": 1e-9}
    )
    found = start.copy()
    found[free] = result.x
    return found, evidence(*np.exp(found))[0]


def _errors(evidence: Evidence, found: Array, free: Array) -> Array:
    """Standard errors of the fitted logarithms, from differences of the gradient; NaN where the curvature tells none."""
    places = np.flatnonzero(free)
    hessian = np.empty((len(places), len(places)))
    for row, place in enumerate(places):
        step = np.zeros(len(found))
        step[place] = STEP
        ahead, behind = evidence(*np.exp(found + step))[1], evidence(*np.exp(found - step))[1]
        hessian[row] = (ahead - behind)[free] / (2 * STEP)
    try:
        covariance = np.linalg.inv(-(hessian + hessian.T) / 2)
    except np.linalg.LinAlgError:
        return np.full(len(places), np.nan)
    with np.errstate(invalid="ignore"):
        return np.sqrt(np.diag(covariance))


# ---- the check --------------------------------------------------------------------------------------------------------


def _calibration(model: BeliefModel, chunks: Iterator[Rounds]) -> PredictiveCalibration:
    likelihood, noise_variance = model.likelihood, model.likelihood.noise_variance
    if noise_variance is None and not likelihood.binary:
        raise InvalidInput("likelihood", repr(likelihood), "linear or binary rewards, for a check of calibration")
    counts, predicted = _Coverage(LEVELS), []
    for X, actions, rewards in chunks:
        mean, variance = model.moments_of(X, actions)
        if noise_variance is not None:
            counts.add(mean, variance + noise_variance, rewards)
        else:  # bins of equal size need all of them; so does the belief
            predicted.append((likelihood.predictive_mean(mean, variance), rewards))
    if not counts.rows and not predicted:
        raise InvalidInput("held_out", "no row at all", "a fraction that leaves some rows out")
    if noise_variance is not None:
        return counts.found()
    probabilities, seen = (np.concatenate(column) for column in zip(*predicted, strict=True))
    return binary_calibration(probabilities, seen)


class _Coverage:
    """Coverage of central intervals of N(mean, variance), over rows that come a chunk at a time."""

    def __init__(self, levels: Sequence[float]) -> None:
        self.levels = np.array(levels)
        self.rows, self.inside = 0, np.zeros(len(self.levels), dtype=np.int64)
        self.density, self.squares = 0.0, 0.0  # sums over the rows

    def add(self, mean: Array, variance: Array, rewards: Array) -> None:
        z = (rewards - mean) / np.sqrt(variance)
        self.rows += len(z)
        self.inside += [np.count_nonzero(np.abs(z) <= ndtri(0.5 + level / 2)) for level in self.levels.tolist()]
        self.density -= 0.5 * float((np.log(2 * math.pi * variance) + z**2).sum())
        self.squares += float((z**2).sum())

    def found(self) -> PredictiveCalibration:
        n, errors = self.rows, np.sqrt(self.levels * (1 - self.levels) / self.rows)
        return PredictiveCalibration(n, self.levels, self.inside / n, errors, self.density / n, self.squares / n)


def gaussian_calibration(
    mean: Array, variance: Array, rewards: Array, levels: Sequence[float] = LEVELS
) -> PredictiveCalibration:
    """Coverage of central intervals of N(mean, variance)."""
    counts = _Coverage(levels)
    counts.add(mean, variance, rewards)
    return counts.found()


def binary_calibration(probabilities: Array, rewards: Array, bins: int = BINS) -> PredictiveCalibration:
    """Predicted and observed shares of rewards 1, in bins of equal size by prediction."""
    order = np.argsort(probabilities, kind="stable")
    parts = [part for part in np.array_split(order, min(bins, len(order))) if len(part)]
    predicted = np.array([probabilities[part].mean() for part in parts])
    seen = np.array([rewards[part].mean() for part in parts])
    spread = np.array([np.sqrt((probabilities[part] * (1 - probabilities[part])).sum()) / len(part) for part in parts])
    p = np.clip(probabilities, 1e-12, 1 - 1e-12)
    density = float((rewards * np.log(p) + (1 - rewards) * np.log1p(-p)).mean())
    return PredictiveCalibration(len(order), predicted, seen, spread, density)


__all__ = [
    "FittedPrior",
    "GaussianStructure",
    "PredictiveCalibration",
    "binary_calibration",
    "calibration",
    "fit_prior",
    "gaussian_calibration",
    "scaled",
]
