"""Settings, learners and the task of the offline chapters: a log from a world, a policy learned from it, its exact value.

One run draws a world and one log. A learner is given the log's first n rows for rising n, and what it decides is
valued with the true parameters on fresh contexts: no estimate enters the figures.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from manyarms._base.typing import AnyArray, Array, Ints
from manyarms.beliefs import Likelihood, Linear, Logistic
from manyarms.errors import InvalidInput
from manyarms.estimators import DR, MIPS, PC, SNIPS, Objective, cIPS
from manyarms.estimators.neighbours import cluster_actions
from manyarms.logs.data import LoggedData
from manyarms.policies.base import Policy
from manyarms.policies.simple import UniformPolicy
from manyarms.policies.softmax import SoftmaxPolicy
from manyarms.priors.base import ParameterPrior
from manyarms.priors.latent import LatentPrior
from manyarms.rewards import (
    BeliefModel,
    LinearModel,
    dm_bayes,
    dm_frequentist,
    pessimism_width,
    sdm,
)
from manyarms.worlds.base import World
from manyarms.worlds.latent import Latent
from manyarms.worlds.logged import log_from, skewed_policy
from manyarms.worlds.movielens import MovieLens
from manyarms_thesis.harness.spec import Call
from manyarms_thesis.mets.builders import movielens_world

HERE = "manyarms_thesis.sdm.builders"
TASK = f"{HERE}:offline_task"
CAPTION = "Mean over runs; the bars are one standard error long on each side."
NUMBERS = {
    "relative_reward": "relative reward, largest log",
    "mode_relative_reward": "of its most probable actions",
    "regret": "value lost",
    "milliseconds_a_round": "ms a row",
}
EVALUATED = 10_000  # fresh contexts on which a policy is valued

RIDGE = 1.0  # of DM (Freq)
STEPS, BATCH, RATE = 300, 512, 0.1  # Adam steps, rows in each, learning rate, of the policies learned by gradient
LINEAR_NOISE_IN_LOGISTIC_WORLDS = 1.0


@dataclass(frozen=True, eq=False)
class Setting:
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

    @property
    def likelihood(self) -> Likelihood:
        """The linear likelihood with the world's noise; sigma = 1 where rewards are not linear."""
        return Linear(self.world.noise if self.world.likelihood == "linear" else LINEAR_NOISE_IN_LOGISTIC_WORLDS)


def _logging(kind: str, actions: int, seed: int) -> Policy:
    if kind == "uniform":
        return UniformPolicy(actions)
    if kind == "skewed":
        return skewed_policy(actions, seed=np.random.default_rng([seed, 1997]))
    raise InvalidInput("logging", repr(kind), "'uniform' or 'skewed'")


def latent_setting(*, seed: int, sizes: Sequence[int], logging: str = "uniform", **parameters: Any) -> Setting:
    """sDM's own world (thesis, line 1995). Prior means W_a mu are what MIPS and PC know of an action."""
    world = Latent(**parameters, seed=seed)
    prior, policy = world.prior(), _logging(logging, world.actions, seed)
    return Setting(world, policy, tuple(sizes), prior, prior, prior.matrices @ prior.mean, seed=seed)


def movielens_setting(*, seed: int, sizes: Sequence[int], logging: str = "uniform", **parameters: Any) -> Setting:
    """Movies and users (thesis, lines 2017-2019): a mixture's clusters, and the centres they give each movie."""
    world: MovieLens = movielens_world(seed=seed, **parameters)
    prior = world.prior()
    embeddings = prior.weights @ prior.effect_mean
    policy = _logging(logging, world.actions, seed)
    labels = prior.weights.argmax(axis=1)
    return Setting(world, policy, tuple(sizes), prior, world.action_prior(), embeddings, labels, seed)


# ---- learners ---------------------------------------------------------------------------------------------------------


Decide = Callable[[Array], Ints]
Learned = LinearModel | Policy | Decide


def learn(*, kind: str, setting: Setting, log: LoggedData, seed: int, **options: Any) -> Learned:
    """What the learner of that name makes of a log (thesis, lines 4742-4788)."""
    makers: Mapping[str, Callable[..., Learned]] = {
        "sdm": _sdm,
        "dm-bayes": lambda setting, log, seed: dm_bayes(log, setting.marginal, setting.likelihood),
        "dm-freq": lambda setting, log, seed: dm_frequentist(log, RIDGE),
        "gradient": _by_gradient,
    }
    if kind not in makers:
        raise InvalidInput("kind", repr(kind), "one of " + ", ".join(makers))
    return makers[kind](setting, log, seed, **options)


def _sdm(
    setting: Setting,
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
    prior = setting.prior if error is None else misspecified(setting.prior, error, parts, setting.seed)
    model = sdm(log, prior, Logistic() if likelihood == "logistic" else setting.likelihood)
    if delta is None and width is None:
        return model
    wide = width if width is not None else pessimism_width(model.dim, float(delta or 0.0))
    return lambda X: np.asarray(model.decide(X, width=wide))


def misspecified(prior: ParameterPrior, error: float, parts: str, seed: int) -> LatentPrior:
    """The prior with noise uniform on [v, v + 0.5] added to its parameters, v = `error` (thesis, line 4807).

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


def objective_of(name: str, setting: Setting, log: LoggedData) -> Objective:
    """An objective by name, with this project's choice of what the thesis leaves open."""
    K = log.action_count
    tau = 0.25 / K
    if name == "IPS":
        return cIPS(tau)
    if name == "snIPS":
        return SNIPS()
    if name == "DR":
        return DR(dm_frequentist(log, RIDGE), tau)
    groups = max(2, round(K**0.5))
    if name == "MIPS":
        labels = setting.labels if setting.labels is not None else cluster_actions(setting.embeddings, groups)
        return MIPS(labels)
    if name == "PC":
        return PC(setting.embeddings, k=max(2, groups // 2))
    raise InvalidInput("objective", repr(name), "IPS, snIPS, DR, MIPS or PC")


def _by_gradient(setting: Setting, log: LoggedData, seed: int, objective: str = "IPS", steps: int = STEPS) -> Policy:
    epochs = max(1, round(steps / -(-len(log) // BATCH)))
    made = objective_of(objective, setting, log)
    from manyarms.learning import learn as by_gradient  # late: it needs PyTorch

    start = SoftmaxPolicy(np.zeros((log.action_count, log.dim)))  # the uniform policy
    return by_gradient(
        log, start, made, epochs=epochs, batch=BATCH, learning_rate=RATE, seed=seed, precision="fp64", device="cpu"
    ).policy


def learner(kind: str, **options: Any) -> Call:
    """A learner as a cell names it."""
    return Call(f"{HERE}:learn", {"kind": kind, **options})


LEARNERS: dict[str, Call] = {
    "sDM": learner("sdm"),
    "DM (Bayes)": learner("dm-bayes"),
    "DM (Freq)": learner("dm-freq"),
    **{name: learner("gradient", objective=name) for name in ("IPS", "snIPS", "DR", "MIPS", "PC")},
}


# ---- the task ---------------------------------------------------------------------------------------------------------


def offline_task(
    *, world: Call, agent: Call, rounds: int, world_seed: int, agent_seed: int
) -> dict[str, npt.ArrayLike]:
    """One run: a log of `rounds` rows, the learner on its first n rows for each n, and the exact value of what it decides."""
    setting: Setting = world(seed=world_seed)
    log = log_from(setting.world, rounds, setting.logging, seed=np.random.default_rng([world_seed, 1714]))
    X = setting.world.contexts(EVALUATED)  # the world's stream goes on: none of these is in the log
    best, optimal = setting.world.optimal(X)
    top = float(optimal.mean())
    sizes = [n for n in setting.sizes if n <= rounds] or [rounds]
    rows: list[dict[str, float]] = []
    for n in sizes:
        start = time.perf_counter()
        made = agent(setting=setting, log=log.rows(slice(0, n)), seed=agent_seed)
        found = value_of(made, setting.world, X)
        found["seconds"] = time.perf_counter() - start
        found |= spread_of(made, setting, X, best)
        rows.append(found)
    table = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return {
        "n": np.array(sizes),
        **table,
        "optimal": top,
        "relative_reward": table["value"] / top,
        "mode_relative_reward": table["mode_value"] / top,
        # the value lost per context, and the time per row: what pages and forecasts of all experiments know
        "regret": top - table["value"],
        "milliseconds_a_round": 1e3 * float(table["seconds"][-1]) / sizes[-1],
        "agent_bytes": setting.world.actions * setting.world.dim * 8,
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


def spread_of(made: object, setting: Setting, X: Array, best: Ints) -> dict[str, float]:
    """E||X||_(Sigma_hat_(pi*(X))), and how likely the logging policy is to play the best action; 0 without a belief."""
    spread = float(np.sqrt(made.moments_of(X, best)[1]).mean()) if isinstance(made, BeliefModel) else 0.0
    return {"spread": spread, "coverage": float(setting.logging.probabilities_of(X, best).mean())}


__all__ = [
    "CAPTION", "EVALUATED", "HERE", "LEARNERS", "NUMBERS", "TASK", "Setting", "latent_setting", "learn", "learner",
    "misspecified", "movielens_setting", "objective_of", "offline_task", "spread_of", "value_of",
]  # fmt: skip
