"""Problems and learners of the experiments that learn policies from logs over large action spaces.

A problem is a world (interaction data, or a made-up catalogue) with one log; a learner is an objective, a parametrisation and
an optimiser; what comes out is the exact value of the policy for users that nobody trained on, after every epoch.

    pi(a|x) in proportion to exp(phi_0(x)^T beta_a)          heavyweight: beta is learned (thesis, Appendix D.4.1)
    pi(a|x) in proportion to exp(phi_0(x)^T W beta_0,a)      lightweight: W is learned (thesis, Appendix D.4.1)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

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
from manyarms.estimators.neighbours import cluster_actions
from manyarms.evaluation.answers import value_on
from manyarms.logs import LoggedData
from manyarms.policies import (
    DeterministicPolicy,
    Policy,
    Projection,
    SoftmaxPolicy,
    SupportSoftmaxPolicy,
    TwoStagePolicy,
)
from manyarms.rewards.bayesian import dm_frequentist
from manyarms.rewards.linear import LinearModel
from manyarms.worlds import CatalogueWorld, Interactions, InteractionWorld, read_interactions
from manyarms.worlds.interaction_files import InteractionSet, interactions_of
from manyarms_thesis.harness.data import MADE_UP, is_readable
from manyarms_thesis.harness.learning import one_thread, rows_for
from manyarms_thesis.harness.spec import Columns, Run

if TYPE_CHECKING:
    from manyarms.learning.trainable import Learnable

CATALOGUE = "catalogue"
Space = Literal["all", "support", "clusters"]
Weight = Literal["heavy", "light"]
Start = Literal["zero", "logging"]

RIDGE = 1.0  # of the reward model, a regression for each action
# of clipping, IX, ES, RegKL and LS, unless a cell says otherwise
TAU, GAMMA, ALPHA, BETA, SMOOTHING = 0.01, 0.01, 0.5, 0.2, 0.01
RADIUS = 0.1  # of PC (thesis, Appendix D.4.1)


# ---- worlds -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Problem:
    """A world with a log of it, and what learners make of them once: clusters and a reward model.

    clusters: how many. seed: of the log; the world, its split and its clusters are the same for all runs.
    """

    world: InteractionWorld | CatalogueWorld
    log: LoggedData
    clusters: int
    seed: int = 0

    @property
    def embeddings(self) -> AnyArray:
        """beta_0, (K, d) float32."""
        return self.world.embeddings

    @cached_property
    def labels(self) -> Ints:
        """Clusters of actions by k-means on beta_0 (thesis, Appendix D.4.1)."""
        return _labels(self.world, min(self.clusters, self.world.actions))

    @cached_property
    def model(self) -> LinearModel:
        """r_hat(x, a) = x^T theta_a, a ridge regression for every action (thesis, Appendix D.4.1)."""
        return dm_frequentist(self.log, RIDGE)

    def value(self, policy: Policy) -> float:
        """The exact expected reward for test users."""
        return float(self.world.value(policy))

    def value_in_log(self, policy: Policy) -> float:
        """The exact expected reward for those who are in the log: what the estimates of a log are estimates of."""
        if isinstance(self.world, InteractionWorld):
            return float(self.world.value(policy, "train"))
        return float(self.world.value(policy))

    def value_of_mode(self, policy: Learnable) -> float:
        """The exact expected reward of the policy's most probable actions."""
        return self.value(DeterministicPolicy(policy.decide_rows, policy.action_count))


@lru_cache(maxsize=16)
def _labels(world: InteractionWorld | CatalogueWorld, clusters: int) -> Ints:
    """Numbered without gaps: k-means may leave a cluster empty where embeddings are repeated."""
    found = cluster_actions(np.asarray(world.embeddings, dtype=np.float64), clusters, seed=0)
    return np.unique(found, return_inverse=True)[1].astype(np.int64)


def logged_problem(
    *, seed: int, data: str, rows: int, clusters: int, enough: int | None = None, **world: Any
) -> Problem:
    """A data set or a catalogue by name, and a log of it; `enough`: no more rows than that are needed."""
    made = _world(data, tuple(sorted(world.items())))
    count = rows if enough is None else min(rows, enough)
    if isinstance(made, InteractionWorld):
        log = made.log("train", count, seed % (1 << 32))
    else:
        log = made.log(count, seed % (1 << 32))
    return Problem(made, log, clusters, seed)


@lru_cache(maxsize=8)
def _world(data: str, parameters: tuple[tuple[str, Any], ...]) -> InteractionWorld | CatalogueWorld:
    """One for all runs of a process: its split and its embeddings have a seed of their own, 0."""
    chosen = dict(parameters)
    if data == CATALOGUE:
        return CatalogueWorld(**chosen, seed=0)
    return InteractionWorld(interactions_for(data), **chosen, seed=0)


def interactions_for(data: str) -> Interactions:
    """A data set by name, or made-up interactions."""
    return made_up_interactions() if data == MADE_UP else read_interactions(data)  # type: ignore[arg-type]


@lru_cache(maxsize=1)
def made_up_interactions(users: int = 500, items: int = 300, seed: int = 0) -> Interactions:
    """Tastes in five dimensions and popular items: every user has 30 to 60 items, the most liked with some noise."""
    rng = np.random.default_rng(seed)
    tastes, vectors = rng.standard_normal((users, 5)), rng.standard_normal((items, 5))
    scores = tastes @ vectors.T + rng.standard_normal(items) + rng.gumbel(size=(users, items))
    counts = rng.integers(30, 61, size=users)
    order = np.argsort(-scores, axis=1)
    who = np.repeat(np.arange(users), counts)
    what = np.concatenate([row[:count] for row, count in zip(order, counts, strict=True)])
    return interactions_of(who, what, "made-up data")


@lru_cache(maxsize=16)
def is_there(data: str) -> bool:
    """Whether a data set is found under MANYARMS_DATA."""
    if data in (MADE_UP, CATALOGUE):
        return True
    if data not in get_args(InteractionSet):
        raise InvalidInput("data", repr(data), "one of " + ", ".join((*get_args(InteractionSet), MADE_UP, CATALOGUE)))
    return is_readable(read_interactions, data)


# ---- objectives and policies ------------------------------------------------------------------------------------------


def objective_of(name: str, problem: Problem, **options: float) -> Objective:
    """An objective by the name that the thesis gives it, with this project's choice of what the thesis leaves open."""
    makers: Mapping[str, Callable[[], Objective]] = {
        "IPS": IPS,
        "cIPS": lambda: cIPS(options.get("tau", TAU)),
        "ES": lambda: ES(options.get("alpha", ALPHA)),
        "IX": lambda: IX(options.get("gamma", GAMMA)),
        "LS": lambda: LS(options.get("smoothing", SMOOTHING)),
        "snIPS": SNIPS,
        "DM": lambda: DM(problem.model),
        "DR": lambda: DR(problem.model, options.get("tau", TAU)),
        "MIPS": lambda: MIPS(problem.labels),
        "OffCEM": lambda: OffCEM(problem.labels, problem.model),
        "POTEC": lambda: OffCEM(problem.labels, problem.model),
        "PC": lambda: PC(problem.embeddings, radius=RADIUS),
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


def policy_of(problem: Problem, space: Space = "all", weight: Weight = "heavy", start: Start = "zero") -> Learnable:
    """Where learning starts.

    space: all actions, the logging support, or clusters with their best action by the reward model. weight: heavy learns one
    vector an action (or cluster), light a matrix W beside the embeddings (or their means over clusters). start: "zero" is
    the uniform policy; "logging" has the embeddings of the logging policy, or W = I.
    """
    if space not in get_args(Space) or weight not in get_args(Weight) or start not in get_args(Start):
        raise InvalidInput("policy", f"{space}, {weight}, {start}", "all|support|clusters, heavy|light, zero|logging")
    beta = np.asarray(problem.embeddings, dtype=np.float32)
    if space == "clusters":
        beta = means_of(beta, problem.labels)
    encoder = None
    if weight == "light":
        eye = np.eye(beta.shape[1], dtype=np.float32)
        encoder = Projection(eye if start == "logging" else 0 * eye)
    elif start == "zero":
        beta = np.zeros_like(beta)
    if space == "clusters":
        model = problem.model.parameters.astype(np.float32)
        return TwoStagePolicy(beta, problem.labels, model, encoder=encoder)
    if space == "support":
        return SupportSoftmaxPolicy(beta, problem.world.logging, encoder=encoder)
    return SoftmaxPolicy(beta, encoder=encoder)


def means_of(embeddings: AnyArray, labels: Ints) -> AnyArray:
    """The mean embedding of every cluster, (C, d) (thesis, Appendix D.4.1)."""
    counts = np.bincount(labels)
    total = np.zeros((len(counts), embeddings.shape[1]))
    np.add.at(total, labels, embeddings)
    return (total / counts[:, None]).astype(embeddings.dtype)


# ---- one run ----------------------------------------------------------------------------------------------------------


def train(
    *,
    problem: Problem,
    steps: int,
    seed: int,
    objective: str,
    epochs: int,
    batch: int,
    rate: float,
    schedule: str = "constant",
    space: Space | None = None,
    weight: Weight = "heavy",
    start: Start = "zero",
    optimiser: str = "adam",
    curve: bool = False,
    estimates: bool = False,
    **options: float,
) -> Columns:
    """Learn one policy and say what it is worth before and after; curve: after every epoch.

    space: all actions, but clusters for POTEC. estimates: also what the objective says of the policy on the log, beside the
    policy's true value for those who are in the log.
    """
    from manyarms.learning import learn

    one_thread()
    log = problem.log.rows(slice(0, rows_for(steps, epochs, batch)))
    made = objective_of(objective, problem, **options)
    first = policy_of(problem, space or ("clusters" if objective == "POTEC" else "all"), weight, start)
    told: list[tuple[float, float]] = []

    def score(policy: Policy) -> float:
        if estimates:
            told.append((estimate(made, log, policy), problem.value_in_log(policy)))
        return problem.value(policy)

    before = score(first)
    begun = time.perf_counter()
    learned = learn(
        log, first, made, epochs=epochs, batch=batch, learning_rate=rate, schedule=schedule, optimiser=optimiser,
        score=score if curve else None, seed=seed % (1 << 31),
    )  # fmt: skip
    took = time.perf_counter() - begun
    if curve:
        value = np.array([before] + [float(epoch.score or 0.0) for epoch in learned.history])
    else:
        value = np.array([before, score(learned.policy)])
    columns: dict[str, npt.ArrayLike] = {
        "epoch": np.arange(len(value)) if curve else np.array([0, epochs]),
        "value": value,
        "objective": np.array(
            [np.nan] + [epoch.objective for epoch in learned.history[slice(None) if curve else slice(-1, None)]]
        ),
        "mode_value": problem.value_of_mode(learned.policy),
        "logging_value": problem.value(problem.world.logging),
        "milliseconds_a_round": 1e3 * took / (epochs * -(-len(log) // batch)),
        "actions": problem.world.actions,
        "log_rows": len(log),
        "mean_reward": float(log.rewards.mean()),
    }
    if estimates:
        columns |= {"estimate": np.array([e for e, _ in told]), "truth": np.array([t for _, t in told])}
        columns["squared_error"] = np.array([(e - t) ** 2 for e, t in told])
    return columns


def learned_from_enough(run: Run) -> Columns:
    """One run: a log of the problem with as many rows as the steps need, and a policy learned from it."""
    how = run.method.parameters
    problem = run.draw_problem(enough=rows_for(run.rounds, how["epochs"], how["batch"]))
    columns: Columns = run.method(problem=problem, steps=run.rounds, seed=run.method_seed)
    return columns


def estimate(objective: Objective, log: LoggedData, policy: Policy, rows: int = 4096) -> float:
    """What an objective says of a policy on a log."""
    return sum(len(part) * value_on(objective, policy, part) for part in log.chunks(rows)) / len(log)


__all__ = [
    "CATALOGUE", "Problem", "estimate", "interactions_for", "is_there", "learned_from_enough", "logged_problem",
    "made_up_interactions", "means_of", "objective_of", "policy_of", "train",
]  # fmt: skip
