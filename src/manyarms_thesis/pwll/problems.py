"""Problems of the experiments that learn policies from logs over large action spaces: a world with a log of it.

A world is made of interaction data, or is a generated catalogue. Training users make the log, validation users choose settings,
and test users judge what was learned; no user is two of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from manyarms._base.typing import AnyArray, Array, Ints
from manyarms.errors import InvalidInput
from manyarms.estimators.neighbours import cluster_actions
from manyarms.logs import LoggedData
from manyarms.policies import DeterministicPolicy, Policy
from manyarms.policies.support import SupportedPolicy
from manyarms.rewards.bayesian import dm_frequentist
from manyarms.rewards.linear import LinearModel
from manyarms.worlds import CatalogueWorld, Interactions, InteractionWorld, read_interactions
from manyarms.worlds.interaction_files import InteractionSet, interactions_of
from manyarms_thesis.harness.data import MADE_UP, is_readable

if TYPE_CHECKING:
    from manyarms.learning.trainable import Learnable

CATALOGUE = "catalogue"
Judges = Literal["train", "validation", "test"]
RIDGE = 1.0  # of the reward model, a regression for each action, where nobody chose another
GROUPS = 30  # of test users, the same in all runs: errors are made of the differences between them
TUNING_SEED = 20_260_000  # of the log that settings are chosen with: none of a run's own
VALIDATION_SEED = TUNING_SEED + 1  # of a catalogue's contexts to choose by; the log's seed draws the log's own
VALIDATION_CONTEXTS = 1_000  # of a generated catalogue, where nothing else is said


@dataclass(frozen=True, eq=False)
class Problem:
    """A world with a log of it, and what learners make of them once: clusters and reward models.

    clusters: how many. seed: of the log; the world, its split and its clusters are the same for all runs. made_of: what
    `logged_problem` was called with, but for the seed.
    """

    world: InteractionWorld | CatalogueWorld
    log: LoggedData
    clusters: int
    seed: int = 0
    made_of: Mapping[str, Any] = field(default_factory=dict)
    _models: dict[float, LinearModel] = field(default_factory=dict, repr=False)

    @property
    def embeddings(self) -> AnyArray:
        """beta_0, (K, d) float32."""
        return self.world.embeddings

    @cached_property
    def labels(self) -> Ints:
        """Clusters of actions by k-means on beta_0 (thesis, Appendix D.4.1)."""
        return _labels(self.world, min(self.clusters, self.world.actions))

    def model(self, ridge: float = RIDGE) -> LinearModel:
        """r_hat(x, a) = x^T theta_a, a ridge regression for every action (thesis, Appendix D.4.1)."""
        if ridge not in self._models:
            self._models[ridge] = dm_frequentist(self.log, ridge)
        return self._models[ridge]

    def for_tuning(self) -> Problem:
        """The same world with a log of its own, as long as a run's: what settings are chosen with."""
        told = dict(self.made_of)
        return logged_problem(seed=TUNING_SEED, **{key: value for key, value in told.items() if key != "enough"})

    # ---- what a policy is worth

    def values(self, policy: Policy, who: Judges = "test") -> Array:
        """(n,): the exact expected reward with each user of a part (in a catalogue: at each context)."""
        if isinstance(self.world, InteractionWorld):
            return self.world.values(policy, who)
        X = self._contexts(who)
        if isinstance(policy, SupportedPolicy):
            ids, probabilities = policy.support(X)
            return np.asarray(np.einsum("nk,nk->n", probabilities, self.world.mean_reward(X, ids)))
        return policy.expectation(X, self.world.values)

    def values_of_mode(self, policy: Learnable, who: Judges = "test") -> Array:
        """(n,): the same for the policy's most probable actions."""
        if isinstance(self.world, InteractionWorld):
            return self.world.values(DeterministicPolicy(policy.decide_rows, policy.action_count), who)
        X = self._contexts(who)
        return self.world.mean_reward(X, np.asarray(policy.decide_rows(X))[:, None])[:, 0]

    def value(self, policy: Policy) -> float:
        """The exact expected reward for test users."""
        return float(self.values(policy).mean())

    def value_in_log(self, policy: Policy) -> float:
        """The exact expected reward for those who are in the log: what the estimates of a log are estimates of."""
        return float(self.values(policy, "train" if isinstance(self.world, InteractionWorld) else "test").mean())

    def value_of_mode(self, policy: Learnable) -> float:
        """The exact expected reward of the policy's most probable actions, for test users."""
        return float(self.values_of_mode(policy).mean())

    def moved(self, one: Policy, other: Policy) -> float:
        """The mean total variation distance between two policies, at some test users: 0 where nothing has changed."""
        K = self.world.actions
        X = self._contexts("test")[: max(4, min(50, 2_000_000 // K))]
        every = np.broadcast_to(np.arange(K), (len(X), K))
        distance = abs(one.probabilities_of_many(X, every) - other.probabilities_of_many(X, every))
        return float(0.5 * distance.sum(axis=1).mean())

    def _contexts(self, who: Judges) -> Array:
        if isinstance(self.world, InteractionWorld):
            return self.world.contexts(who)
        return self.world.test_contexts if who == "test" else _other_contexts(self.world)


def by_group(each: Array, groups: int = GROUPS) -> Array:
    """(groups,): means over fixed random groups of the test users; the same users are together in every run."""
    order = np.random.default_rng(len(each)).permutation(len(each))
    return np.array([each[part].mean() for part in np.array_split(order, min(groups, len(each)))])


@lru_cache(maxsize=2)
def _other_contexts(world: CatalogueWorld) -> Array:
    """Contexts of a catalogue that are neither in a log nor tested on."""
    return world.contexts(VALIDATION_CONTEXTS, VALIDATION_SEED)


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
    made_of = {"data": data, "rows": rows, "clusters": clusters, **world}
    count = rows if enough is None else min(rows, enough)
    if isinstance(made, InteractionWorld):
        log = made.log("train", count, seed % (1 << 32))
    else:
        log = made.log(count, seed % (1 << 32))
    return Problem(made, log, clusters, seed, made_of)


class GeneratedCatalogue(CatalogueWorld):
    """A generated catalogue whose contexts have another length: what unscaled embeddings do to real ones.

    The rewards are those of contexts of full length. length: of a context, about; None leaves contexts as they are.
    """

    def __init__(self, actions: int, dim: int, *, length: float | None = None, **settings: Any) -> None:
        self.factor = 1.0 if length is None else length / float(np.sqrt(dim))
        super().__init__(actions, dim, **settings)

    def contexts(self, rounds: int, seed: int | np.random.Generator = 0) -> Array:
        """n contexts, (n, d), the first coordinate the same for all."""
        return self.factor * super().contexts(rounds, seed)

    def _wishes(self, X: Array) -> Array:
        return super()._wishes(X / self.factor)


@lru_cache(maxsize=8)
def _world(data: str, parameters: tuple[tuple[str, Any], ...]) -> InteractionWorld | CatalogueWorld:
    """One for all runs of a process: its split and its embeddings have a seed of their own, 0."""
    chosen = dict(parameters)
    if data == CATALOGUE:
        return GeneratedCatalogue(**chosen, seed=0)
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


__all__ = [
    "CATALOGUE", "GROUPS", "RIDGE", "GeneratedCatalogue", "Problem", "by_group", "interactions_for", "is_there", "logged_problem",
    "made_up_interactions",
]  # fmt: skip
