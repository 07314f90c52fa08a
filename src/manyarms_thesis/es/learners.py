"""Problems and learners of the experiments on exponential smoothing and pessimism (thesis, Appendix E.3).

A problem is a labelled data set turned into a logged bandit at an inverse temperature eta_0; a learner is an objective and a
family of policies that starts at N(eta_0 mu_0, I); what comes out is the exact value of the learned policy on test rows.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np

from manyarms.errors import InvalidInput
from manyarms.estimators import ES, IPS, Distance, Objective, SampleVariance
from manyarms.estimators.pessimism import Heuristic, PACBayes
from manyarms.logs import LoggedData
from manyarms.policies import DeterministicPolicy
from manyarms.weights import (
    ClipPropensities,
    Correction,
    ExponentialAlpha,
    Harmonic,
    ImplicitExploration,
    NoCorrection,
    Shrinkage,
)
from manyarms.worlds import SupervisedWorld
from manyarms.worlds.data_files import VARIABLE
from manyarms.worlds.image_files import ImageSet, read_images
from manyarms.worlds.supervised import Family, Fit
from manyarms_thesis.harness.data import MADE_UP, is_readable
from manyarms_thesis.harness.learning import one_thread, rows_for
from manyarms_thesis.harness.spec import Columns

FEATURES = "features.npz"
DELTA = 0.05
# rows of the training sets (thesis, Appendix E.3.1)
ROWS: Mapping[str, int] = {"mnist": 60_000, "fashion-mnist": 60_000, "emnist": 112_800, "cifar100": 50_000}

METHODS = ("bound", "authors", "general", "london", "sakhi1", "sakhi2", "heuristic", "distance", "svp", "estimate")


# ---- worlds -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Problem:
    """A world, an inverse temperature and one log of the logging policy at it."""

    world: SupervisedWorld
    log: LoggedData
    eta0: float


def supervised_problem(*, seed: int, data: str, eta0: float, rows: int, **world: Any) -> Problem:
    """A data set by name and a log of it; world and logging policy are the same for all runs."""
    made = world_of(data, rows, **world)
    return Problem(made, made.log(eta0, seed % (1 << 32)), eta0)


@lru_cache(maxsize=4)
def world_of(data: str, rows: int, test_rows: int | None = None, shrink: int = 1) -> SupervisedWorld:
    """Made once a process."""
    if data == MADE_UP:
        return made_up_world(rows, test_rows or 1_000)
    options: dict[str, Any] = {"rows": rows, "test_rows": test_rows}
    features = features_of(data)
    if features is not None:
        return SupervisedWorld.from_features(features, **options)
    return SupervisedWorld.from_images(cast(ImageSet, data), shrink=shrink, **options)


def features_of(data: str) -> Path | None:
    """A file of features that someone has put beside a data set's pictures, as `features.npz`, if there is one."""
    base = os.environ.get(VARIABLE)
    path = Path(base) / data / FEATURES if base else None
    return path if path is not None and path.is_file() else None


def made_up_world(
    rows: int, test_rows: int = 1_000, classes: int = 5, dim: int = 10, noise: float = 0.9, seed: int = 0
) -> SupervisedWorld:
    """Rows around one random centre a class: made-up data of the same shape."""
    rng = np.random.default_rng([seed, classes, dim])
    centres = rng.standard_normal((classes, dim))
    y = rng.integers(classes, size=rows + test_rows)
    X = centres[y] + noise * rng.standard_normal((len(y), dim))
    fit = Fit(share=max(Fit.share, 100 / rows) if rows > 200 else 0.5)  # a hundred rows at least
    return SupervisedWorld(
        X[:rows], y[:rows], X[rows:], y[rows:], fit=fit, provenance=f"made-up rows of {classes} classes", seed=seed
    )


@lru_cache(maxsize=8)
def is_there(data: str) -> bool:
    """Whether a data set is found under MANYARMS_DATA."""
    if data == MADE_UP:
        return True
    if data not in get_args(ImageSet):
        raise InvalidInput("data", repr(data), "one of " + ", ".join((*get_args(ImageSet), MADE_UP)))
    return is_readable(read_images, data)


def logged_rows(world: Mapping[str, Any]) -> int:
    """How many rounds a log of a setting has, without reading it."""
    rows = int(world["rows"])
    if world["data"] == MADE_UP:
        return made_up_world(rows, 10).rows
    return rows - math.ceil(Fit.share * rows)


# ---- objectives -------------------------------------------------------------------------------------------------------


def correction_of(name: str, value: float) -> Correction:
    """A regularisation of importance weights by the thesis's name and hyper-parameter (Sections 8.2 and 8.6)."""
    makers: Mapping[str, Callable[[float], Correction]] = {
        "IPS": lambda _: NoCorrection(),
        "Clip": ClipPropensities,
        "ES": ExponentialAlpha,
        "IX": ImplicitExploration,
        "Har": lambda lam: Harmonic(1 - lam),  # lambda = 1 is IPS, as in Section 8.6
        "Metelli": Harmonic,  # lambda_2 = 0 is IPS, as in Section 8.2
        "Su": Shrinkage,
    }
    if name not in makers:
        raise InvalidInput("correction", repr(name), "one of " + ", ".join(makers))
    return makers[name](value)


def usual(correction: str, rows: int) -> float:
    """The thesis's fixed parameters: tau = n^(-1/4), alpha = 1 - n^(-1/4) (Section 8.5)."""
    step = float(rows**-0.25)
    return {"ES": 1 - step, "Clip": step, "IX": step, "Har": 1 - step, "IPS": 0.0}[correction]


def objective_of(
    method: str,
    rows: int,
    *,
    correction: str = "ES",
    value: float | str | None = None,
    weights: tuple[float, float, float] | list[float] = (1e-5, 1e-5, 1e-5),
) -> Objective:
    """An objective by name.

    bound, general: the two forms of our bound; authors: the first at the lambda of the authors' code, which bounds nothing;
    london, sakhi1, sakhi2: those of the literature; heuristic: less weights[0] distance, weights[1] variance and weights[2]
    bias; distance: less weights[0] ||mu - mu0||^2; svp: less weights[0] sqrt(Var / n); estimate: nothing taken off. value: of
    the correction's parameter, "adaptive" for ES, or the usual one for this many rows.
    """
    if method not in METHODS:
        raise InvalidInput("method", repr(method), "one of " + ", ".join(METHODS))
    if value == "adaptive":
        estimate: IPS = ES("adaptive")
    else:
        number = usual(correction, rows) if value is None else float(value)
        estimate = IPS(correction_of(correction, number))
    if method in ("london", "sakhi1", "sakhi2", "general"):
        return PACBayes(estimate, DELTA, bound=method)
    if method in ("bound", "authors"):
        return PACBayes(estimate, DELTA, lam="authors" if method == "authors" else None)
    if method == "heuristic":
        return Heuristic(estimate, *weights)
    if method == "distance":
        return Distance(estimate, weights[0] * rows)  # which takes off weight / n
    return SampleVariance(estimate, weights[0]) if method == "svp" else estimate


# ---- learning ----------------------------------------------------------------------------------------------------------


def train(
    *,
    problem: Problem,
    steps: int,
    seed: int,
    method: str,
    family: Family,
    epochs: int,
    batch: int,
    rate: float,
    draws: int = 2_048,
    **options: Any,
) -> Columns:
    """Learn one policy from a log, and say what it is worth before and after.

    draws: of a mixed-logit policy when its value is computed; learning takes 32. sigma is learned by bounds, which price it, and
    stays 1 otherwise (thesis, Appendix E.3.5).
    """
    from manyarms.learning import learn

    one_thread()
    world, eta0 = problem.world, problem.eta0
    log = problem.log.rows(slice(0, rows_for(steps, epochs, batch)))
    objective = objective_of(method, len(log), **options)
    start = world.prior(eta0, family, **({"draws": draws} if family == "mixed-logit" else {}))
    begun = time.perf_counter()
    learned = learn(
        log, start, objective, epochs=epochs, batch=batch, learning_rate=rate, seed=seed % (1 << 31),
        learn_sigma=isinstance(objective, PACBayes), certified=False,
    )  # fmt: skip
    took = time.perf_counter() - begun
    policy: Any = learned.policy
    mode = DeterministicPolicy(policy.decide_rows, world.actions)
    divergence = policy.kl(eta0 * world.mu0, 1.0) if family != "softmax" else float("nan")
    return {
        "epoch": np.array([0, epochs]),
        "value": np.array([float(world.value(start)), float(world.value(policy))]),
        "mode_value": float(world.value(mode)),
        "logging_value": float(world.value(world.logging(eta0))),
        "objective": learned.history[-1].objective,
        "sigma": getattr(policy, "sigma", float("nan")),
        "divergence": divergence,
        "log_rows": len(log),
        "milliseconds_a_round": 1e3 * took / (epochs * -(-len(log) // batch)),
    }


__all__ = [
    "DELTA", "METHODS", "ROWS", "Problem", "correction_of", "features_of", "is_there", "logged_rows", "made_up_world",
    "objective_of", "supervised_problem", "train", "usual", "world_of",
]  # fmt: skip
