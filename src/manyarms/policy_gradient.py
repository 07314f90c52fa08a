"""Policies learned from logs by gradient ascent on an estimate of their value: a linear softmax, NumPy, one small loop.

    pi(a|x) in proportion to exp(x^T beta_a),    maximise over beta    (1/n) sum_i sum_a pi(a|X_i) w_i(a)

Every objective here is linear in pi row by row, with weights w_i(a) that the log fixes (thesis, lines 4742-4788):

    IPS     r_i / max(pi0(a|x_i), tau) at a = A_i                      the correction may be any that is linear in pi
    snIPS   the ratio of the sums of pi r / pi0 and of pi / pi0
    MIPS    r_i / pi0(C_i|x_i) at all actions of the cluster C_i of A_i
    PC      r_i / pi0(N(A_i)|x_i) at the k nearest neighbours N(A_i) of A_i
    DR      IPS of r_i - r_hat(x_i, A_i), plus r_hat(x_i, a) at all a
    DM      r_hat(x_i, a) at all a

so one gradient serves them all: d/d beta_a = mean_i pi(a|x_i) (w_i(a) - sum_b pi(b|x_i) w_i(b)) x_i. It is summed over blocks of
contexts and actions; no array of rounds x actions is made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from manyarms import validate
from manyarms._typing import AnyArray, Array, Ints
from manyarms.errors import InvalidInput
from manyarms.evaluation.neighbours import Neighbours
from manyarms.evaluation.whole import RewardModel
from manyarms.logs.data import LoggedData
from manyarms.policies.base import Policy, Values, action_blocks, row_blocks
from manyarms.policies.softmax import SoftmaxPolicy
from manyarms.weights import Correction, NoCorrection


@dataclass(frozen=True, eq=False)
class RowWeights:
    """w_i(a) of an objective for the rows of a log.

    ids, values (n, m): weights at single actions. labels (K,), wanted (n,), group_values (n,): a weight for all actions a with
    labels[a] == wanted[i]. dense: a weight for every action, as a function of contexts and ids. importance (n,): only for the
    self-normalised objective, the weights pi0^-1 whose sum with pi it divides by.
    """

    ids: Ints
    values: Array
    labels: AnyArray | None = None
    wanted: AnyArray | None = None
    group_values: Array | None = None
    dense: Values | None = None
    importance: Array | None = None

    def rows(self, index: Ints | slice) -> RowWeights:
        """The weights of some rows."""

        def some(array: AnyArray | None) -> AnyArray | None:
            return None if array is None else array[index]

        return RowWeights(
            self.ids[index],
            self.values[index],
            self.labels,
            some(self.wanted),
            some(self.group_values),
            self.dense,
            some(self.importance),
        )


class Objective(Protocol):
    """What is to be maximised: a name, and its weights for a log."""

    name: ClassVar[str]

    def weights(self, log: LoggedData) -> RowWeights:
        """w_i(a) for all rows of the log."""


# ---- objectives -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class IPS:
    """Inverse propensity scoring; ClipPropensities(tau) is the thesis's clipped form (lines 4747-4751)."""

    correction: Correction = field(default_factory=NoCorrection)
    name: ClassVar[str] = "IPS"

    def weights(self, log: LoggedData) -> RowWeights:
        return RowWeights(log.actions[:, None], self.factor(log, log.rewards)[:, None])

    def factor(self, log: LoggedData, rewards: Array) -> Array:
        """What pi(A_i|x_i) is multiplied by."""
        log.require("propensities", purpose=self.name)
        if not self.correction.linear_in_policy:
            raise InvalidInput("correction", self.correction.name, "a correction that is linear in the policy")
        assert log.propensities is not None
        return self.correction.terms(np.ones(len(log)), log.propensities, rewards)


@dataclass(frozen=True)
class SelfNormalisedIPS:
    """snIPS: sum of w r over sum of w (thesis, lines 4752-4755); its gradient is exact for the batch it is taken on."""

    name: ClassVar[str] = "snIPS"

    def weights(self, log: LoggedData) -> RowWeights:
        log.require("propensities", purpose=self.name)
        assert log.propensities is not None
        inverse = 1.0 / log.propensities
        return RowWeights(log.actions[:, None], (log.rewards * inverse)[:, None], importance=inverse)


@dataclass(frozen=True, eq=False)
class MIPS:
    """Marginalised IPS over clusters of actions, labels (K,) (thesis, lines 4757-4761)."""

    labels: AnyArray
    name: ClassVar[str] = "MIPS"

    def weights(self, log: LoggedData) -> RowWeights:
        policy = _logging_policy(log, self.name)
        labels = np.asarray(self.labels)
        if labels.shape != (log.action_count,):
            raise InvalidInput(
                "labels", f"shape {labels.shape}", f"one label for each of the {log.action_count} actions"
            )
        wanted = labels[log.actions]
        inverse = 1.0 / policy.group_mass(log.contexts, labels, wanted)
        none = np.empty((len(log), 0))
        return RowWeights(none.astype(np.int64), none, labels, wanted, log.rewards * inverse)


@dataclass(frozen=True, eq=False)
class PC:
    """Policy convolution over the k nearest neighbours of an action, given as ids (K, k), the action among them.

    (thesis, lines 4762-4765; `nearest` finds them.)
    """

    neighbours: Ints
    name: ClassVar[str] = "PC"

    def weights(self, log: LoggedData) -> RowWeights:
        policy = _logging_policy(log, self.name)
        table = np.asarray(self.neighbours)
        if table.ndim != 2 or len(table) != log.action_count:
            raise InvalidInput(
                "neighbours", f"shape {table.shape}", f"one row for each of the {log.action_count} actions"
            )
        ids = table[log.actions]
        mass = policy.probabilities_of_many(log.contexts, ids).sum(axis=1)
        return RowWeights(ids, np.repeat((log.rewards / mass)[:, None], ids.shape[1], axis=1))


@dataclass(frozen=True, eq=False)
class DR:
    """Doubly robust: the model's value, and IPS of what it leaves unexplained (thesis, lines 4782-4787)."""

    model: RewardModel
    correction: Correction = field(default_factory=NoCorrection)
    name: ClassVar[str] = "DR"

    def weights(self, log: LoggedData) -> RowWeights:
        left = log.rewards - self.model.predict(log.contexts, log.actions)
        factor = IPS(self.correction).factor(log, left)
        return RowWeights(log.actions[:, None], factor[:, None], dense=self.model.block)


@dataclass(frozen=True, eq=False)
class DM:
    """The direct method: the model's value (thesis, lines 1731-1733, 1803-1806); its best policy is the model's greedy one."""

    model: RewardModel
    name: ClassVar[str] = "DM"

    def weights(self, log: LoggedData) -> RowWeights:
        none = np.empty((len(log), 0))
        return RowWeights(none.astype(np.int64), none, dense=self.model.block)


def nearest(embeddings: npt.ArrayLike, k: int) -> Ints:
    """(K, k) ids of the k nearest actions to each in its embedding (K, f), itself among them."""
    near = Neighbours(embeddings, k=k)
    return np.stack([ids for _, ids in near.lists(np.arange(len(near.embeddings)))])


def _logging_policy(log: LoggedData, purpose: str) -> Policy:
    """The logging policy itself: propensities of the logged actions alone do not give those of their groups."""
    log.require("logging", purpose=purpose)
    if not isinstance(log.logging, Policy):
        raise InvalidInput(
            "log.logging", validate.describe(log.logging), f"a Policy with masses of groups, for {purpose}"
        )
    return log.logging


# ---- value and gradient -----------------------------------------------------------------------------------------------


def value_and_gradient(beta: Array, X: Array, weights: RowWeights) -> tuple[float, Array]:
    """The objective of pi_beta on some rows, and its gradient (K, d)."""
    policy = SoftmaxPolicy(beta)
    if weights.importance is not None:
        return _self_normalised(policy, X, weights)
    gradient = np.zeros(beta.shape)
    total = 0.0
    for part in row_blocks(len(X)):
        total += _add_gradient(policy, X[part], weights.rows(part), gradient)
    gradient /= len(X)
    return total / len(X), gradient


def _self_normalised(policy: SoftmaxPolicy, X: Array, weights: RowWeights) -> tuple[float, Array]:
    """V = sum pi v / sum pi w; its gradient is that of sum pi (v - V w) / sum pi w with V held."""
    assert weights.importance is not None
    pi = policy.probabilities_of_many(X, weights.ids)
    mass = float(pi[:, 0] @ weights.importance)
    value = float((pi * weights.values).sum()) / mass
    held = (weights.values - value * weights.importance[:, None]) * (len(X) / mass)
    _, gradient = value_and_gradient(policy.weights, X, RowWeights(weights.ids, held))
    return value, gradient


def _add_gradient(policy: SoftmaxPolicy, x: Array, weights: RowWeights, gradient: Array) -> float:
    """Add the sum over a block of contexts to the gradient; the sum of the objective's terms."""
    K = policy.action_count
    rows = policy.rows(x)
    normaliser = rows.normaliser(K)[:, None]
    single = rows.mass_at(weights.ids) / normaliser * weights.values  # pi w at single actions
    expected = single.sum(axis=1)
    spread = weights.dense is not None or weights.labels is not None
    if spread:
        for first, last in action_blocks(K):
            expected += np.einsum("bk,bk->b", rows.mass(first, last) / normaliser, _spread(x, weights, first, last))
    for first, last in action_blocks(K):
        pi = rows.mass(first, last) / normaliser
        pi *= _spread(x, weights, first, last) - expected[:, None] if spread else -expected[:, None]
        gradient[first:last] += pi.T @ x
    if weights.ids.shape[1]:
        np.add.at(gradient, weights.ids.ravel(), (single[:, :, None] * x[:, None, :]).reshape(-1, x.shape[1]))
    return float(expected.sum())


def _spread(x: Array, weights: RowWeights, first: int, last: int) -> Array:
    """The part of w_i(a) that many actions have, for a block of them."""
    out = np.zeros((len(x), last - first))
    if weights.dense is not None:
        out += weights.dense(x, np.arange(first, last))
    if weights.labels is not None and weights.wanted is not None and weights.group_values is not None:
        out += np.where(weights.labels[None, first:last] == weights.wanted[:, None], weights.group_values[:, None], 0.0)
    return out


# ---- the loop ---------------------------------------------------------------------------------------------------------


class Adam:
    """Gradient ascent with running means of the gradient and of its square."""

    def __init__(self, shape: tuple[int, ...], rate: float, decay: float = 0.0) -> None:
        self.rate, self.decay = validate.positive("learning_rate", rate), validate.not_negative("decay", decay)
        self._first, self._second = np.zeros(shape), np.zeros(shape)
        self._steps = 0

    def step(self, parameters: Array, gradient: Array) -> None:
        """In place: one step up the gradient (less decay times the parameters)."""
        g = gradient - self.decay * parameters if self.decay else gradient
        self._steps += 1
        self._first += 0.1 * (g - self._first)
        self._second += 0.001 * (g * g - self._second)
        mean, square = self._first / (1 - 0.9**self._steps), self._second / (1 - 0.999**self._steps)
        parameters += self.rate * mean / (np.sqrt(square) + 1e-8)


@dataclass(frozen=True, eq=False)
class Learned:
    """A policy, and the objective on the log after every epoch (for batches: their mean on the way)."""

    policy: SoftmaxPolicy
    history: Array


def learn_policy(
    log: LoggedData,
    objective: Objective,
    *,
    epochs: int = 20,
    batch: int | None = 512,
    learning_rate: float = 0.1,
    decay: float = 0.0,
    start: npt.ArrayLike | None = None,
    seed: int = 0,
    progress: Callable[[int, float], None] | None = None,
) -> Learned:
    """A linear softmax policy that maximises an objective on a log, by Adam.

    batch: rows in a step, in a new random order every epoch; None takes all rows in every step. start: beta (K, d), zeros (the
    uniform policy) unless given. decay: weight decay.
    """
    epochs = validate.count("epochs", epochs)
    size = len(log) if batch is None else min(len(log), validate.count("batch", batch))
    shape = (log.action_count, log.dim)
    beta = np.zeros(shape) if start is None else validate.as_array("start", start, shape).copy()
    weights, rng = objective.weights(log), validate.seeded(seed)
    adam = Adam(shape, learning_rate, decay)
    history = np.empty(epochs)
    for epoch in range(epochs):
        order = rng.permutation(len(log))
        values = []
        for first in range(0, len(log), size):
            index = order[first : first + size]
            value, gradient = value_and_gradient(beta, log.contexts[index], weights.rows(index))
            adam.step(beta, gradient)
            values.append(value)
        history[epoch] = float(np.mean(values))
        if progress is not None:
            progress(epoch + 1, history[epoch])
    return Learned(SoftmaxPolicy(beta), history)


__all__ = [
    "DM",
    "DR",
    "IPS",
    "MIPS",
    "PC",
    "Adam",
    "Learned",
    "Objective",
    "RowWeights",
    "SelfNormalisedIPS",
    "learn_policy",
    "nearest",
    "value_and_gradient",
]
