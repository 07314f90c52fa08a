"""What every world is: actions theta_a, a source of contexts, a law of rewards, and exact regret.

    X ~ source,    R | X, a ~ p(. | X^T theta_a),    regret of a in x = max_b r(x, b) - r(x, a)

with r(x, a) = E[R | x, a]. All three reward laws grow with the score x^T theta_a, so the best action is the
one with the largest score whatever the law.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol, Self, cast, get_args, overload

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from manyarms._base import validate
from manyarms._base.best_action import BestAction
from manyarms._base.typing import Array, Ints
from manyarms.errors import InvalidInput, UnknownAction
from manyarms.priors.diffusion import DiffusionPrior
from manyarms.priors.gaussian import ActionPrior, HierarchicalPrior, MixedEffectPrior

RewardKind = Literal["linear", "logistic", "poisson"]
WorldSeed = int | np.random.SeedSequence | None
Chosen = int | np.integer | Ints | Sequence[int]  # one action, or one for each of n contexts

# beyond this mean numpy refuses to draw a Poisson count (it would not fit 64 bits)
LARGEST_POISSON_MEAN = 9e18


@dataclass(frozen=True)
class RewardDistribution:
    """The law of a reward given its score u = x^T theta_a.

    linear N(u, noise^2), logistic Bernoulli(1 / (1 + e^-u)), poisson Poisson(e^u); noise is a standard
    deviation and concerns linear rewards only.
    """

    kind: RewardKind = "linear"
    noise: float = 1.0

    def __post_init__(self) -> None:
        validate.one_of("reward", self.kind, get_args(RewardKind))
        object.__setattr__(self, "noise", validate.positive("noise", self.noise))

    def mean(self, score: Array) -> Array:
        """E[R | score], elementwise."""
        if self.kind == "linear":
            return score
        if self.kind == "logistic":
            return cast(Array, expit(score))
        with np.errstate(over="ignore"):
            mean = np.exp(score)
        if not np.isfinite(mean).all():
            raise InvalidInput(
                "reward", f"a Poisson score of {np.max(score):.3g}", "scores whose exponential is finite"
            )
        return mean

    def draw(self, mean: Array, rng: np.random.Generator) -> Array:
        """Rewards with the given means, one each; floats also where they are 0/1 or counts."""
        if self.kind == "linear":
            return mean + self.noise * rng.standard_normal(mean.shape)
        if self.kind == "logistic":
            return np.asarray(rng.random(mean.shape) < mean, dtype=np.float64)
        if mean.size and mean.max() > LARGEST_POISSON_MEAN:
            raise InvalidInput(
                "reward",
                f"a Poisson mean of {mean.max():.3g}",
                f"means below {LARGEST_POISSON_MEAN:.0e}: use a world of smaller scale or dimension",
            )
        return np.asarray(rng.poisson(mean), dtype=np.float64)


class Contexts(Protocol):
    """Where contexts come from."""

    @property
    def kappa_x(self) -> float:
        """A bound on ||x||^2."""

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """n independent contexts, (n, d)."""


@dataclass(frozen=True)
class Cube:
    """Contexts uniform on [-1, 1]^d."""

    dim: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", validate.count("dim", self.dim))

    @property
    def kappa_x(self) -> float:
        """d: a corner has squared length d."""
        return float(self.dim)

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """n independent contexts, (n, d)."""
        return rng.uniform(-1.0, 1.0, size=(n, self.dim))


@dataclass(frozen=True, eq=False)
class Pool:
    """Contexts drawn uniformly, with repetition, from given rows (m, d)."""

    rows: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", validate.owned(validate.as_array("rows", self.rows, (None, None))))

    @property
    def kappa_x(self) -> float:
        """The largest squared length of a row."""
        return float(np.einsum("md,md->m", self.rows, self.rows).max())

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """n independent contexts, (n, d)."""
        return self.rows[rng.integers(len(self.rows), size=n)]


def streams(seed: WorldSeed) -> tuple[np.random.Generator, np.random.Generator, np.random.Generator]:
    """Independent generators for the world itself, its contexts and its rewards; the same three for one seed."""
    if isinstance(seed, np.random.SeedSequence):
        # spawning changes a SeedSequence: work on an equal one, so that the caller's can be used again
        root = np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key, pool_size=seed.pool_size)
    else:
        root = np.random.SeedSequence(None if seed is None else validate.seed(seed))
    itself, contexts, rewards = (np.random.default_rng(child) for child in root.spawn(3))
    return itself, contexts, rewards


class KnownMeans(ABC):
    """Rewards drawn by a law around means that are known, so that the regret of every decision is."""

    def __init__(self, rewards: RewardDistribution, seed: WorldSeed) -> None:
        self.rewards = validate.instance("rewards", rewards, RewardDistribution, "a RewardDistribution")
        _, self._context_rng, self._reward_rng = streams(seed)

    @abstractmethod
    def _mean(self, x: npt.ArrayLike, a: Chosen) -> Array:
        """r(x, a), of shape () for one context and (n,) for a batch."""

    @abstractmethod
    def _best_mean(self, x: npt.ArrayLike) -> Array:
        """max_b r(x, b), one number a context."""

    @property
    def likelihood(self) -> RewardKind:
        """The name of the reward's law: linear, logistic or poisson."""
        return self.rewards.kind

    @property
    def noise(self) -> float:
        """The standard deviation of linear rewards; without meaning for the other two."""
        return self.rewards.noise

    def replay(self, seed: WorldSeed) -> Self:
        """The same world (the same theta, and the same pool of contexts) with fresh contexts and rewards.

        A replay with the seed the world was made with starts its streams again from the beginning.
        """
        again = copy.copy(self)
        _, again._context_rng, again._reward_rng = streams(seed)
        return again

    @overload
    def reward(self, x: npt.ArrayLike, a: int | np.integer) -> float: ...
    @overload
    def reward(self, x: npt.ArrayLike, a: Ints | Sequence[int]) -> Array: ...
    def reward(self, x: npt.ArrayLike, a: Chosen) -> float | Array:
        """Draw the reward of action a in context x: one row, or rows (n, d) with ids (n,)."""
        return _number_or_array(self.rewards.draw(self._mean(x, a), self._reward_rng))

    @overload
    def mean_reward(self, x: npt.ArrayLike, a: int | np.integer) -> float: ...
    @overload
    def mean_reward(self, x: npt.ArrayLike, a: Ints | Sequence[int]) -> Array: ...
    def mean_reward(self, x: npt.ArrayLike, a: Chosen) -> float | Array:
        """r(x, a), the expected reward: one row, or rows (n, d) with ids (n,)."""
        return _number_or_array(self._mean(x, a))

    @overload
    def regret(self, x: npt.ArrayLike, a: int | np.integer) -> float: ...
    @overload
    def regret(self, x: npt.ArrayLike, a: Ints | Sequence[int]) -> Array: ...
    def regret(self, x: npt.ArrayLike, a: Chosen) -> float | Array:
        """Expected regret max_b r(x, b) - r(x, a): one row, or rows (n, d) with ids (n,)."""
        chosen = self._mean(x, a)
        # the same score computed in two ways may differ in its last digit, and regret is never negative
        return _number_or_array(np.maximum(self._best_mean(x).reshape(chosen.shape) - chosen, 0.0))


def _number_or_array(values: Array) -> float | Array:
    return float(values) if values.ndim == 0 else values


class World(KnownMeans):
    """Actions with known parameters: draws contexts and rewards, and knows the regret of every decision.

    A subclass sets up theta and its source of contexts, and says which priors an agent may be given.
    """

    def __init__(self, theta: Array, rewards: RewardDistribution, source: Contexts, seed: WorldSeed) -> None:
        self.theta = validate.owned(validate.as_array("theta", theta, (None, None)))
        self.source = source
        super().__init__(rewards, seed)

    @property
    def actions(self) -> int:
        """K, the number of actions."""
        return len(self.theta)

    @property
    def dim(self) -> int:
        """d, the length of a context and of an action's parameter."""
        return int(self.theta.shape[1])

    @property
    def kappa_x(self) -> float:
        """A bound on ||x||^2 over all contexts this world can draw."""
        return self.source.kappa_x

    @abstractmethod
    def prior(self) -> MixedEffectPrior | DiffusionPrior:
        """The structured prior for this world: meTS's or dTS's."""

    @abstractmethod
    def action_prior(self) -> ActionPrior:
        """The prior of agents that learn every action alone (LinTS, GLM-TS, LinUCB)."""

    @abstractmethod
    def hierarchical_prior(self) -> HierarchicalPrior:
        """The prior of HierTS, which knows one shared mean."""

    def contexts(self, n: int) -> Array:
        """The next n contexts of the world's own stream, (n, d)."""
        n = validate.room("n", validate.count("n", n, least=0), 16 * self.dim, f"contexts of {self.dim:,} numbers")
        return self.source.draw(n, self._context_rng)

    def candidates(self, number: int) -> Ints:
        """The ids of `number` different actions, any alike, from the stream of contexts: what a round offers, (number,)."""
        number = validate.count("number", number)
        if number > self.actions:
            raise InvalidInput("number", number, f"at most {self.actions}, the number of actions")
        return self._context_rng.choice(self.actions, size=number, replace=False, shuffle=False)

    def optimal(self, contexts: npt.ArrayLike) -> tuple[Ints, Array]:
        """The best action of each row of `contexts` (n, d), and its expected reward; of ties, any."""
        ids, scores = self._best(self._rows(contexts))
        return ids, self.rewards.mean(scores)

    def _mean(self, x: npt.ArrayLike, a: Chosen) -> Array:
        return self.rewards.mean(self._score(x, a))

    def _best_mean(self, x: npt.ArrayLike) -> Array:
        return self.rewards.mean(self._best(np.atleast_2d(np.asarray(x, dtype=np.float64)))[1])

    @cached_property
    def _best(self) -> BestAction:
        return BestAction(self.theta)

    def _rows(self, contexts: npt.ArrayLike) -> Array:
        return validate.rows("contexts", contexts, self.dim)

    def _score(self, x: npt.ArrayLike, a: Chosen) -> Array:
        """x^T theta_a, of shape () for one row and (n,) for a batch."""
        ids = chosen_ids(a)
        if ids.ndim == 0:
            row = validate.as_array("x", x, (self.dim,))
            if not 0 <= ids < self.actions:
                raise UnknownAction("a", int(ids), f"an action from 0 to {self.actions - 1}")
            return np.asarray(row @ self.theta[ids])
        rows = self._rows(x)
        if ids.shape != (len(rows),):
            raise InvalidInput("a", f"shape {ids.shape}", f"one action for each of the {len(rows)} contexts")
        outside = (ids < 0) | (ids >= self.actions)
        if outside.any():
            raise UnknownAction("a", int(ids[outside][0]), f"actions from 0 to {self.actions - 1}")
        return cast(Array, np.einsum("nd,nd->n", rows, self.theta[ids]))


def chosen_ids(a: Chosen) -> Ints:
    """One action, or an array of them, as integers; whether they exist is another question."""
    if isinstance(a, np.ndarray) and a.ndim == 0 and a.dtype.kind in "iu":
        a = int(a)
    if isinstance(a, int | np.integer) and not isinstance(a, bool):
        if not abs(int(a)) < 2**63:
            raise UnknownAction("a", validate.describe(a), "an action of the world")
        return np.asarray(int(a))
    try:
        return validate.integers("a", a)
    except InvalidInput as error:
        raise UnknownAction("a", validate.describe(a), "an integer, or a list of them") from error


__all__ = [
    "Chosen", "Contexts", "Cube", "KnownMeans", "Pool", "RewardDistribution", "RewardKind", "World", "WorldSeed", "chosen_ids",
    "streams",
]  # fmt: skip
