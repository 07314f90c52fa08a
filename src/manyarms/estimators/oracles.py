"""Finite problems: few contexts and actions with everything known, on which best policies can be written down.

The oracle policy of an objective maximises its mean over all logs (thesis, Section 7.1; proofs, Appendix D).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.policy_tables import greedy, proportional
from manyarms._base.typing import Array, Bools, Ints
from manyarms.errors import InvalidInput
from manyarms.logs.data import LoggedData
from manyarms.rewards.base import RewardModel

WHOLE = 1e-9  # a number of copies may be off an integer by this


@dataclass(frozen=True, eq=False)
class FiniteProblem:
    """nx contexts and K actions with Bernoulli rewards, all probabilities known.

    contexts (nx, d)            context_probabilities (nx,)
    logging (nx, K)             pi0(a|x); may be 0
    rewards (nx, K)             mean rewards, in [0, 1]
    model (nx, K)               r_hat(x, a); labels (K,): the cluster of every action; neighbours (K, K), [a, b]: b is in the
                                neighbourhood N(a). Where they are not given, an objective takes its own.
    """

    contexts: Array
    context_probabilities: Array
    logging: Array
    rewards: Array
    model: Array | None = None
    labels: Ints | None = None
    neighbours: Bools | None = None

    def __post_init__(self) -> None:
        contexts = validate.as_array("contexts", self.contexts, (None, None))
        rewards = validate.as_array("rewards", self.rewards, (len(contexts), None))
        shape = (len(contexts), rewards.shape[1])
        if rewards.min() < 0 or rewards.max() > 1:
            raise InvalidInput("rewards", f"{rewards.min():g} to {rewards.max():g}", "mean rewards in [0, 1]")
        probabilities = _law("context_probabilities", self.context_probabilities, (len(contexts),))
        logging = _law("logging", self.logging, shape)
        model = None if self.model is None else validate.owned(validate.as_array("model", self.model, shape))
        if self.labels is not None and np.shape(self.labels) != (shape[1],):
            raise InvalidInput("labels", f"shape {np.shape(self.labels)}", f"one label for each of {shape[1]} actions")
        if self.neighbours is not None and np.shape(self.neighbours) != (shape[1], shape[1]):
            raise InvalidInput("neighbours", f"shape {np.shape(self.neighbours)}", f"shape {(shape[1], shape[1])}")
        owned = {"contexts": contexts, "context_probabilities": probabilities, "logging": logging, "rewards": rewards}
        for name, array in owned.items():
            object.__setattr__(self, name, validate.owned(array))
        object.__setattr__(self, "model", model)
        for name in ("labels", "neighbours"):
            given = getattr(self, name)
            object.__setattr__(self, name, None if given is None else validate.owned(np.asarray(given)))

    @property
    def action_count(self) -> int:
        """K."""
        return int(self.rewards.shape[1])

    def log(self, rounds: int) -> LoggedData:
        """A log in which everything happens as often as its probability says: on it an objective is its own mean.

        Refused unless rounds x p(x) x pi0(a|x) x p(r|x, a) is an integer for every context, action and reward.
        """
        rounds = validate.count("rounds", rounds)
        seen = self.context_probabilities[:, None] * self.logging
        cells = rounds * np.stack([seen * (1 - self.rewards), seen * self.rewards], axis=2)
        copies = np.rint(cells).astype(np.int64)
        if np.abs(cells - copies).max() > WHOLE * rounds:
            raise InvalidInput("rounds", rounds, "a number that makes every expected count an integer")
        x, a, r = (np.repeat(index.ravel(), copies.ravel()) for index in np.indices(copies.shape))
        K = self.action_count
        return LoggedData(
            self.contexts[x], a, r.astype(np.float64), K, self.logging[x, a],
            support=np.tile(np.arange(K), (len(x), 1)), support_probabilities=self.logging[x],
        )  # fmt: skip

    def value(self, policy: Array) -> float:
        """The mean reward of a policy (nx, K)."""
        return float(self.context_probabilities @ (policy * self.rewards).sum(axis=1))


def _law(name: str, values: npt.ArrayLike, shape: tuple[int, ...]) -> Array:
    array = validate.as_array(name, values, shape)
    if array.min() < 0 or np.abs(array.sum(axis=-1) - 1).max() > 1e-9:
        raise InvalidInput(name, "numbers below 0 or with another sum", "probabilities that sum to 1")
    return array


def group_means(problem: FiniteProblem, labels: npt.ArrayLike, values: Array) -> Array:
    """(nx, K): the mean of values (nx, K) under pi0 within the cluster of each action; 0 where pi0 never plays there."""
    same = same_group(labels)
    mass = problem.logging @ same
    above = (problem.logging * values) @ same
    return np.where(mass > 0, above / np.where(mass > 0, mass, 1.0), 0.0)


def same_group(labels: npt.ArrayLike) -> Array:
    """(K, K): 1 where two actions have the same label."""
    array = np.asarray(labels)
    return np.asarray(array[:, None] == array[None, :], dtype=np.float64)


def predictions(problem: FiniteProblem, model: RewardModel) -> Array:
    """(nx, K): what the problem says of r_hat, or what the objective's own model says."""
    if problem.model is not None:
        return problem.model
    return model.block(problem.contexts, np.arange(problem.action_count))


__all__ = ["FiniteProblem", "greedy", "group_means", "predictions", "proportional", "same_group"]
