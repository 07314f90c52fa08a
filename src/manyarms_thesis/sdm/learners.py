"""Problems, learners and the task of the offline chapters: a log from a world, a policy learned from it, its exact value.

One run draws a world and one log. A learner is given the log's first n rows for rising n, and what it decides is
valued with the true parameters on fresh contexts: no estimate enters the figures.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyarms._base.typing import AnyArray, Array, Ints
from manyarms.errors import InvalidInput
from manyarms.estimators import DR, MIPS, PC, SNIPS, Objective, cIPS
from manyarms.estimators.neighbours import cluster_actions
from manyarms.logs import LoggedData
from manyarms.policies import Policy, SoftmaxPolicy, UniformPolicy
from manyarms.priors import LatentPrior, ParameterPrior
from manyarms.rewards import (
    BeliefModel,
    LinearModel,
    dm_bayes,
    dm_frequentist,
    pessimism_width,
    sdm,
)
from manyarms.worlds import World, log_from, skewed_policy
from manyarms.worlds.latent import Latent
from manyarms_thesis.harness.movielens import movielens_world
from manyarms_thesis.harness.online import likelihood_of, linear_noise
from manyarms_thesis.harness.spec import Call, Columns, Run

EVALUATED = 10_000  # fresh contexts on which a policy is valued
RIDGE = 1.0  # of DM (Freq)
STEPS, BATCH, RATE = 300, 512, 0.1  # Adam steps, rows in each, learning rate, of the policies learned by gradient


@dataclass(frozen=True, eq=False)
class Problem:
    """A world, the policy that logs there, and the sizes of log that learners are given.

    prior: what sDM knows. embeddings (K, f) and labels (K,): what PC and MIPS know of the actions, no more than that.
    seed: for what all learners of a run shall have in common, beside world and log.
    """

    world: World
    logging: Policy
    sizes: tuple[int, ...]
    prior: ParameterPrior
    marginal: ParameterPrior
    embeddings: Array
    labels: AnyArray | None = None
    seed: int = 0


def _logging(kind: str, actions: int, seed: int) -> Policy:
    if kind == "uniform":
        return UniformPolicy(actions)
    if kind == "skewed":
        return skewed_policy(actions, seed=np.random.default_rng([seed, 1997]))
    raise InvalidInput("logging", repr(kind), "'uniform' or 'skewed'")


def latent_problem(*, seed: int, sizes: Sequence[int], logging: str = "uniform", **parameters: Any) -> Problem:
    """sDM's own world (thesis, Section 6.5.1). Prior means W_a mu are what MIPS and PC know of an action."""
    world = Latent(**parameters, seed=seed)
    prior, policy = world.prior(), _logging(logging, world.actions, seed)
    return Problem(world, policy, tuple(sizes), prior, prior, prior.matrices @ prior.mean, seed=seed)


def movielens_problem(*, seed: int, sizes: Sequence[int], logging: str = "uniform", **parameters: Any) -> Problem:
    """Movies and users (thesis, Section 6.5.2): a mixture's clusters, and the centres they give each movie."""
    world = movielens_world(seed=seed, **parameters)
    prior = world.prior()
    embeddings = prior.weights @ prior.effect_mean
    policy = _logging(logging, world.actions, seed)
    labels = prior.weights.argmax(axis=1)
    return Problem(world, policy, tuple(sizes), prior, world.action_prior(), embeddings, labels, seed)


# ---- learners: what each makes of a log (thesis, Appendix C.4.1) ------------------------------------------------------

Decide = Callable[[Array], Ints]
Learned = LinearModel | Policy | Decide


def learn_sdm(
    *,
    problem: Problem,
    log: LoggedData,
    seed: int,
    likelihood: str = "linear",
    delta: float | None = None,
    width: float | None = None,
    error: float | None = None,
    parts: str = "both",
) -> BeliefModel | Decide:
    """sDM; pessimistic with the thesis's width for a delta, or with a width given; with a wrong prior for an error."""
    # errors of all sizes are the same draws, shifted: what differs between them is then their size
    prior = problem.prior if error is None else misspecified(problem.prior, error, parts, problem.seed)
    model = sdm(log, prior, likelihood_of(problem.world, likelihood))
    if delta is None and width is None:
        return model
    wide = width if width is not None else pessimism_width(model.dim, float(delta or 0.0))
    return lambda X: np.asarray(model.decide(X, width=wide))


def learn_dm_bayes(*, problem: Problem, log: LoggedData, seed: int) -> LinearModel:
    """The direct method with the marginal prior of every action."""
    return dm_bayes(log, problem.marginal, linear_noise(problem.world))


def learn_dm_frequentist(*, problem: Problem, log: LoggedData, seed: int) -> LinearModel:
    """The direct method with a ridge regression for every action."""
    return dm_frequentist(log, RIDGE)


def learn_by_gradient(*, problem: Problem, log: LoggedData, seed: int, objective: str, steps: int = STEPS) -> Policy:
    """A linear softmax policy that climbs an objective from the uniform policy."""
    from manyarms.learning import learn  # late: it needs PyTorch

    epochs = max(1, round(steps / -(-len(log) // BATCH)))
    start = SoftmaxPolicy(np.zeros((log.action_count, log.dim)))
    return learn(
        log, start, objective_of(objective, problem, log), epochs=epochs, batch=BATCH, learning_rate=RATE, seed=seed,
        precision="fp64", device="cpu",
    ).policy  # fmt: skip


def objective_of(name: str, problem: Problem, log: LoggedData) -> Objective:
    """An objective by name, with this project's choice of what the thesis leaves open."""
    K = log.action_count
    tau, groups = 0.25 / K, max(2, round(K**0.5))
    makers: dict[str, Callable[[], Objective]] = {
        "IPS": lambda: cIPS(tau),
        "snIPS": SNIPS,
        "DR": lambda: DR(dm_frequentist(log, RIDGE), tau),
        "MIPS": lambda: MIPS(
            problem.labels if problem.labels is not None else cluster_actions(problem.embeddings, groups)
        ),
        "PC": lambda: PC(problem.embeddings, k=max(2, groups // 2)),
    }
    if name not in makers:
        raise InvalidInput("objective", repr(name), "one of " + ", ".join(makers))
    return makers[name]()


def misspecified(prior: ParameterPrior, error: float, parts: str, seed: int) -> LatentPrior:
    """The prior with noise uniform on [v, v + 0.5] added to its parameters, v = `error` (thesis, Appendix C.4.3).

    parts: "mean" for mu and every entry of the W_a, "covariance" for the variances in Sigma and Sigma_a (adding to entries
    off the diagonal need not leave a covariance), "both" for all of them.
    """
    if not isinstance(prior, LatentPrior):
        raise InvalidInput("prior", type(prior).__name__, "a LatentPrior")
    if parts not in ("mean", "covariance", "both"):
        raise InvalidInput("parts", repr(parts), "'mean', 'covariance' or 'both'")
    rng = np.random.default_rng([seed, 4807])

    def noise(shape: tuple[int, ...], wanted: bool) -> Array:
        drawn = rng.uniform(error, error + 0.5, shape)
        return drawn if wanted else np.zeros(shape)

    mean, covariance = parts in ("mean", "both"), parts in ("covariance", "both")
    return LatentPrior(
        prior.matrices + noise(prior.matrices.shape, mean),
        prior.mean + noise(prior.mean.shape, mean),
        prior.covariance + np.diag(noise((prior.latent_dim,), covariance)),
        prior.action_covariance + np.diag(noise((prior.dim,), covariance)),
    )


LEARNERS: dict[str, Call] = {
    "sDM": Call(learn_sdm),
    "DM (Bayes)": Call(learn_dm_bayes),
    "DM (Freq)": Call(learn_dm_frequentist),
    **{name: Call(learn_by_gradient, {"objective": name}) for name in ("IPS", "snIPS", "DR", "MIPS", "PC")},
}


# ---- the task ---------------------------------------------------------------------------------------------------------


def value_by_size(run: Run) -> Columns:
    """One run: a log of `rounds` rows, the learner on its first n rows for each n, and the exact value of what it decides."""
    problem: Problem = run.draw_problem()
    world = problem.world
    log = log_from(world, run.rounds, problem.logging, seed=np.random.default_rng([run.problem_seed, 1714]))
    X = world.contexts(EVALUATED)  # the world's stream goes on: none of these is in the log
    best, optimal = world.optimal(X)
    top = float(optimal.mean())
    sizes = [n for n in problem.sizes if n <= run.rounds] or [run.rounds]
    rows: list[dict[str, float]] = []
    for n in sizes:
        start = time.perf_counter()
        made = run.method(problem=problem, log=log.rows(slice(0, n)), seed=run.method_seed)
        found = value_of(made, world, X)
        found["seconds"] = time.perf_counter() - start
        found |= spread_of(made, problem, X, best)
        rows.append(found)
    table = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return {
        "n": np.array(sizes),
        **table,
        "optimal": top,
        "relative_reward": table["value"] / top,
        "mode_relative_reward": table["mode_value"] / top,
        # the value lost per context, and the time per row
        "regret": top - table["value"],
        "milliseconds_a_round": 1e3 * float(table["seconds"][-1]) / sizes[-1],
    }


def value_of(made: Learned, world: World, X: Array) -> dict[str, float]:
    """The exact mean reward on contexts X: of the policy itself, and of its most probable actions."""
    if isinstance(made, Policy):
        value = float(made.expectation(X, lambda x, ids: world.rewards.mean(x @ world.theta[ids].T)).mean())
        mode = float(np.mean(world.mean_reward(X, made.decide(X))))  # type: ignore[attr-defined]
        return {"value": value, "mode_value": mode}
    actions = np.asarray(made.decide(X) if isinstance(made, LinearModel) else made(X))
    value = float(np.mean(world.mean_reward(X, actions)))
    return {"value": value, "mode_value": value}


def spread_of(made: object, problem: Problem, X: Array, best: Ints) -> dict[str, float]:
    """E||X||_(Sigma_hat_(pi*(X))), and how likely the logging policy is to play the best action; 0 without a belief."""
    spread = float(np.sqrt(made.moments_of(X, best)[1]).mean()) if isinstance(made, BeliefModel) else 0.0
    return {"spread": spread, "coverage": float(problem.logging.probabilities_of(X, best).mean())}


__all__ = [
    "EVALUATED", "LEARNERS", "Problem", "latent_problem", "learn_sdm", "misspecified", "movielens_problem", "objective_of",
    "spread_of", "value_by_size", "value_of",
]  # fmt: skip
