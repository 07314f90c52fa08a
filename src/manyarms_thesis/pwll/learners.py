"""Objectives and policies of the experiments that learn from logs over large action spaces, and one training.

pi(a|x) in proportion to exp(phi_0(x)^T beta_a)          heavyweight: beta is learned (thesis, Appendix D.4.1)
pi(a|x) in proportion to exp(phi_0(x)^T W beta_0,a)      lightweight: W is learned (thesis, Appendix D.4.1)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from manyarms._base.typing import AnyArray, Ints
from manyarms.errors import InvalidInput
from manyarms.estimators import (
    BPR,
    DM,
    DR,
    ES,
    IPS,
    IX,
    LPI,
    LS,
    MIPS,
    PC,
    SNIPS,
    Distance,
    Objective,
    OffCEM,
    RegKL,
    RegKLLinear,
    RowObjective,
    SampleVariance,
    cIPS,
    cLPI,
)
from manyarms.evaluation.answers import value_on
from manyarms.logs import LoggedData
from manyarms.policies import Policy, Projection, SoftmaxPolicy, SupportSoftmaxPolicy, TwoStagePolicy
from manyarms_thesis.pwll.problems import RIDGE, Problem

if TYPE_CHECKING:
    from manyarms.learning import Learned
    from manyarms.learning.trainable import Learnable

Space = Literal["all", "support", "clusters"]
Weight = Literal["heavy", "light"]
Start = Literal["zero", "random", "logging"]

# of clipping, IX, ES, RegKL and LS, unless a cell says otherwise or they are chosen on validation users
TAU, GAMMA, ALPHA, BETA, SMOOTHING = 0.01, 0.01, 0.5, 0.2, 0.01
RADIUS = 0.1  # of PC (thesis, Appendix D.4.1)
PAIRED = 200  # logged actions whose distances to all others tell what a radius means
SIGMA = 0.005  # of random starts, as in the public code of Sakhi et al. (AAAI 2023)


def objective_of(name: str, problem: Problem, **options: float) -> Objective:
    """An objective by the name that the thesis gives it, with this project's choice of what the thesis leaves open."""
    ridge = options.get("ridge", RIDGE)
    makers: Mapping[str, Callable[[], Objective]] = {
        "IPS": IPS,
        "cIPS": lambda: cIPS(options.get("tau", TAU)),
        "ES": lambda: ES(options.get("alpha", ALPHA)),
        "IX": lambda: IX(options.get("gamma", GAMMA)),
        "LS": lambda: LS(options.get("smoothing", SMOOTHING)),
        "snIPS": SNIPS,
        "DM": lambda: DM(problem.model(ridge)),
        "DR": lambda: DR(problem.model(ridge), options.get("tau", TAU)),
        "MIPS": lambda: MIPS(problem.labels),
        "OffCEM": lambda: OffCEM(problem.labels, problem.model(ridge)),
        "POTEC": lambda: OffCEM(problem.labels, problem.model(ridge)),
        "PC": lambda: PC(problem.embeddings, radius=radius_of(problem, options.get("neighbours"))),
        "LPI": LPI,
        "cLPI": lambda: cLPI(options.get("tau", TAU)),
        "RegKL": lambda: RegKL(options.get("beta", BETA)),
        "RegKL-LIN": lambda: RegKLLinear(options.get("beta", BETA)),
        "BPR": BPR,
    }
    if name not in makers:
        raise InvalidInput("objective", repr(name), "one of " + ", ".join(makers))
    made = makers[name]()
    if "svp" in options:
        if not isinstance(made, RowObjective) or made.self_normalised:
            raise InvalidInput("objective", name, "a mean over rows, for a penalty on its variance")
        made = SampleVariance(made, options["svp"])
    return Distance(made, options["distance"]) if "distance" in options else made


def radius_of(problem: Problem, neighbours: float | None) -> float:
    """PC's radius: the thesis's, or that within which a logged action has so many neighbours on average, itself among them.

    A radius means nothing without the scale of the embeddings: at 0.1 (thesis, Appendix D.4.1) an action has no neighbour but
    itself where their mean squared length is 1, and thousands where they are singular vectors of 41,000 items.
    """
    if neighbours is None:
        return RADIUS
    some = problem.log.actions[:PAIRED]
    beta = np.asarray(problem.embeddings, dtype=np.float64)
    squares = np.einsum("kd,kd->k", beta, beta)
    distances = squares[some][:, None] + squares[None, :] - 2 * beta[some] @ beta.T
    within = np.sqrt(np.maximum(np.quantile(distances, min(1.0, neighbours / len(beta))), 0.0))
    return max(float(within), 1e-9)


def policy_of(
    problem: Problem,
    space: Space = "all",
    weight: Weight = "heavy",
    start: Start = "zero",
    ridge: float = RIDGE,
    seed: int = 0,
) -> Learnable:
    """Where learning starts.

    space: all actions, the logging support, or clusters with their best action by the reward model. weight: heavy learns one
    vector an action (or cluster), light a matrix W beside the embeddings (or their means over clusters). start: "zero" is
    the uniform policy; "random" has N(0, SIGMA^2) in place of zeros; "logging" has the embeddings of the logging policy, or
    W = I. ridge: of the reward model of clusters. seed: of a random start.
    """
    if space not in get_args(Space) or weight not in get_args(Weight) or start not in get_args(Start):
        raise InvalidInput(
            "policy", f"{space}, {weight}, {start}", "all|support|clusters, heavy|light, zero|random|logging"
        )
    beta = np.asarray(problem.embeddings, dtype=np.float32)
    if space == "clusters":
        beta = means_of(beta, problem.labels)
    encoder = None
    rng = np.random.default_rng(seed)
    if weight == "light":
        eye = np.eye(beta.shape[1], dtype=np.float32)
        encoder = Projection(eye if start == "logging" else _first(eye, start, rng))
    elif start != "logging":
        beta = _first(beta, start, rng)
    if space == "clusters":
        model = problem.model(ridge).parameters.astype(np.float32)
        return TwoStagePolicy(beta, problem.labels, model, encoder=encoder)
    if space == "support":
        return SupportSoftmaxPolicy(beta, problem.world.logging, encoder=encoder)
    return SoftmaxPolicy(beta, encoder=encoder)


def _first(like: AnyArray, start: Start, rng: np.random.Generator) -> AnyArray:
    """Zeros, or small random numbers, of a shape."""
    if start == "zero":
        return np.zeros_like(like)
    return np.asarray(SIGMA * rng.standard_normal(like.shape, dtype=np.float32), dtype=like.dtype)


def means_of(embeddings: AnyArray, labels: Ints) -> AnyArray:
    """The mean embedding of every cluster, (C, d) (thesis, Appendix D.4.1)."""
    counts = np.bincount(labels)
    total = np.zeros((len(counts), embeddings.shape[1]))
    np.add.at(total, labels, embeddings)
    return (total / counts[:, None]).astype(embeddings.dtype)


def fit(
    problem: Problem,
    log: LoggedData,
    objective: Objective,
    *,
    seed: int,
    epochs: int,
    batch: int,
    rate: float,
    schedule: str = "constant",
    optimiser: str = "adam",
    space: Space = "all",
    weight: Weight = "heavy",
    start: Start = "zero",
    ridge: float = RIDGE,
    after_epoch: Callable[[Policy], float] | None = None,
) -> tuple[Learnable, Learned]:
    """One training: the policy that it starts from, and what was learned."""
    from manyarms.learning import learn

    first = policy_of(problem, space, weight, start, ridge, seed)
    learned = learn(
        log, first, objective, epochs=epochs, batch=batch, learning_rate=rate, schedule=schedule, optimiser=optimiser,
        score=after_epoch, seed=seed % (1 << 31),
    )  # fmt: skip
    return first, learned


def estimate(objective: Objective, log: LoggedData, policy: Policy, rows: int = 4096) -> float:
    """What an objective says of a policy on a log."""
    return sum(len(part) * value_on(objective, policy, part) for part in log.chunks(rows)) / len(log)


__all__ = ["SIGMA", "estimate", "fit", "means_of", "objective_of", "policy_of", "radius_of"]
