"""Estimates for large action spaces as objectives: weights of clusters or neighbourhoods in place of single actions.

    MIPS      1/n sum_i pi(C_i|X_i) / pi0(C_i|X_i) R_i                                      (thesis, lines 2090-2102)
    OffCEM    1/n sum_i pi(C_i|X_i) / pi0(C_i|X_i) (R_i - r_hat(X_i, A_i)) + E_pi[r_hat]    (thesis, lines 2104-2111)
    PC        1/n sum_i pi(N(A_i)|X_i) / pi0(N(A_i)|X_i) R_i                                (thesis, lines 2128-2143)

POTEC is OffCEM for a TwoStagePolicy (thesis, lines 2113-2126). All need pi0 of every action at each context: a logging
policy, or a support whose probabilities sum to 1.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from manyarms._base.typing import AnyArray, Array, Bools, Ints
from manyarms.errors import InvalidInput
from manyarms.estimators.base import Batch, RowObjective, Rows, Tensor, Terms, some_rows
from manyarms.estimators.logging_policy import RewardModel, require_whole
from manyarms.estimators.models import checked_model, no_ids
from manyarms.estimators.neighbours import Neighbours, cluster_actions
from manyarms.estimators.oracles import FiniteProblem, greedy, group_means, predictions, proportional, same_group
from manyarms.logs.data import LoggedData

LISTED = 1 << 20  # neighbours in a block of rows
ROUNDS = 1 << 14  # rows whose groups' masses are taken at a time


class MIPS(RowObjective):
    """Marginalised IPS: labels (K,) give the cluster of each action; `MIPS.learned` finds them by k-means.

    The best policy plays the cluster with the largest mean reward under pi0, and within it any action: the oracle here plays
    them all alike (thesis, lines 2094-2102, 4871-4888).
    """

    name: ClassVar[str] = "mips"

    def __init__(self, labels: npt.ArrayLike) -> None:
        self.labels = _codes(labels)

    @classmethod
    def learned(cls, embeddings: npt.ArrayLike, clusters: int, *, seed: int = 0) -> MIPS:
        """With clusters by k-means on embeddings (K, d)."""
        return cls(cluster_actions(embeddings, clusters, seed=seed))

    @property
    def settings(self) -> dict[str, float]:
        return {"clusters": float(self.labels.max() + 1)}

    def prepare(self, log: LoggedData) -> Rows:
        wanted = _wanted(self.labels, log)
        active = some_rows(log.rewards)
        columns = {
            "reward": log.rewards,
            "propensity": _group_propensities(self.labels, wanted, log, self.name, active),
        }
        return Rows(no_ids(len(log)), columns, active, self.labels, wanted)

    def contributions(self, terms: Terms, batch: Batch) -> Tensor:
        assert terms.group_log_mass is not None
        return terms.group_log_mass.exp() / batch.columns["propensity"] * batch.columns["reward"]

    def oracle(self, problem: FiniteProblem) -> Array:
        """All actions of the best cluster alike."""
        labels = self.labels if problem.labels is None else problem.labels
        return proportional(greedy(group_means(problem, labels, problem.rewards)) @ same_group(labels))


class OffCEM(RowObjective):
    """Conjunct effect modelling: clusters' weights for what a model leaves over, plus the model's value.

    The best policy plays the action with the largest r_hat(x, a) plus the mean of r - r_hat under pi0 in its cluster (thesis,
    lines 2108-2111, 4890-4893); a TwoStagePolicy contains it (thesis, lines 4895-4941).
    """

    name: ClassVar[str] = "offcem"

    def __init__(self, labels: npt.ArrayLike, model: RewardModel) -> None:
        self.labels = _codes(labels)
        self.model = model

    @property
    def settings(self) -> dict[str, float]:
        return {"clusters": float(self.labels.max() + 1)}

    def prepare(self, log: LoggedData) -> Rows:
        wanted = _wanted(self.labels, log)
        model = checked_model(self.model, log)
        columns = {
            "residual": log.rewards - model.predict(log.contexts, log.actions),
            "propensity": _group_propensities(self.labels, wanted, log, self.name, None),
        }
        return Rows(no_ids(len(log)), columns, None, self.labels, wanted, model)

    def contributions(self, terms: Terms, batch: Batch) -> Tensor:
        assert terms.group_log_mass is not None and terms.expectation is not None
        weight = terms.group_log_mass.exp() / batch.columns["propensity"]
        return weight * batch.columns["residual"] + terms.expectation

    def oracle(self, problem: FiniteProblem) -> Array:
        """The largest r_hat plus its cluster's mean error."""
        labels = self.labels if problem.labels is None else problem.labels
        r_hat = predictions(problem, self.model)
        return greedy(r_hat + group_means(problem, labels, problem.rewards - r_hat))


class PC(RowObjective):
    """Policy convolution: weights of neighbourhoods of embeddings (K, f), the k nearest or all within less than a radius.

    The best policy plays the action a with the largest sum of pi0(b|x) r(x, b) / pi0(N(b)|x) over the b that have a among
    their neighbours (thesis, lines 4943-4958; the text's lines 2141-2143 sum over N(a), the same where being near is mutual).
    """

    name: ClassVar[str] = "pc"

    def __init__(self, embeddings: npt.ArrayLike, *, k: int | None = None, radius: float | None = None) -> None:
        self.neighbours = Neighbours(embeddings, k=k, radius=radius)

    @property
    def settings(self) -> dict[str, float]:
        near = self.neighbours
        return {"k": float(near.k)} if near.k is not None else {"radius": float(near.radius or 0.0)}

    def prepare(self, log: LoggedData) -> Rows:
        count = len(self.neighbours.embeddings)
        if count != log.action_count:
            raise InvalidInput("embeddings", f"{count} rows", f"one for each of the log's {log.action_count} actions")
        whole, active = require_whole(log, self.name), some_rows(log.rewards)
        used = np.arange(len(log)) if active is None else np.flatnonzero(active)
        lists = _Lists(self.neighbours, log.actions, used)
        propensities = np.ones(len(log))
        step = max(1, LISTED // max(1, lists.longest))
        for start in range(0, len(used), step):
            index = used[start : start + step]
            ids = lists(index)
            mass = whole.of_many(index, np.maximum(ids, 0)) * (ids >= 0)
            propensities[index] = mass.sum(axis=1)
        _refuse_nothing(propensities, "neighbourhood")
        return Rows(lists, {"reward": log.rewards, "propensity": propensities}, active)

    def contributions(self, terms: Terms, batch: Batch) -> Tensor:
        mass = terms.log_probability.exp().sum(1)
        return mass / batch.columns["propensity"] * batch.columns["reward"]

    def oracle(self, problem: FiniteProblem) -> Array:
        """The largest sum over the neighbourhoods that an action is in."""
        near = self._table() if problem.neighbours is None else np.asarray(problem.neighbours)
        mass = problem.logging @ near.T  # (nx, K): pi0(N(b)|x)
        share = np.where(problem.logging > 0, problem.logging / np.where(mass > 0, mass, 1.0), 0.0)
        return greedy((share * problem.rewards) @ near)

    def _table(self) -> Array:
        count = len(self.neighbours.embeddings)
        out = np.zeros((count, count))
        for action, ids in self.neighbours.lists(np.arange(count)):
            out[action, ids] = 1.0
        return out


class _Lists:
    """Neighbours of the actions that some rows of a log played, side by side; rows ask for theirs by number."""

    def __init__(self, neighbours: Neighbours, actions: Ints, rows: Ints) -> None:
        played, place = np.unique(actions[rows], return_inverse=True)
        self._place = np.zeros(len(actions), dtype=np.int64)
        self._place[rows] = place
        found = [ids for _, ids in neighbours.lists(played)]
        self._sizes = np.array([len(ids) for ids in found], dtype=np.int64)
        self._starts = np.cumsum(self._sizes) - self._sizes
        self._flat = np.concatenate(found) if found else np.empty(0, dtype=np.int64)
        self.longest = int(self._sizes.max(initial=0))

    def __call__(self, index: Ints) -> Ints:
        """(b, m): neighbours of the actions of some rows, as wide as the longest list among them, -1 behind the others."""
        if not len(index):
            return np.empty((0, 0), dtype=np.int64)
        place = self._place[index]
        columns = np.arange(int(self._sizes[place].max()))
        real = columns < self._sizes[place][:, None]
        return np.where(real, self._flat[np.where(real, self._starts[place][:, None] + columns, 0)], -1)


def _codes(labels: npt.ArrayLike) -> Ints:
    """Labels of any kind as whole numbers from 0."""
    array: AnyArray = np.asarray(labels)
    if array.ndim != 1 or not len(array) or array.dtype.kind not in "iubSU":
        raise InvalidInput("labels", f"shape {array.shape} and type {array.dtype}", "one label for each action, (K,)")
    return np.asarray(np.unique(array, return_inverse=True)[1], dtype=np.int64)


def _wanted(labels: Ints, log: LoggedData) -> Ints:
    if len(labels) != log.action_count:
        expected = f"one for each of the log's {log.action_count} actions"
        raise InvalidInput("labels", f"{len(labels)} labels", expected)
    return labels[log.actions]


def _group_propensities(labels: Ints, wanted: Ints, log: LoggedData, purpose: str, active: Bools | None) -> Array:
    """pi0(C_i|x_i), (n,); 1 in rows that are not active, where nobody asks."""
    require_whole(log, purpose)
    used = np.arange(len(log)) if active is None else np.flatnonzero(active)
    out = np.ones(len(log))
    for start in range(0, len(used), ROUNDS):
        index = used[start : start + ROUNDS]
        out[index] = require_whole(log.rows(index), purpose).group_mass(labels, wanted[index])
    _refuse_nothing(out, "group")
    return out


def _refuse_nothing(mass: Array, what: str) -> None:
    if not mass.min() > 0:
        row = int(np.argmin(mass))
        came = f"no probability for the {what} of the action played in row {row}"
        raise InvalidInput("log", came, "a logging policy that can play what it played")


__all__ = ["MIPS", "PC", "OffCEM"]
