"""Estimators for large action spaces: weights of clusters or neighbourhoods in place of single actions.

    MIPS      1/n sum_i pi(C_i|X_i) / pi0(C_i|X_i) R_i                                      (thesis, Section 7.1.2)
    OffCEM    1/n sum_i pi(C_i|X_i) / pi0(C_i|X_i) (R_i - r_hat(X_i, A_i)) + E_pi[r_hat]    (thesis, Section 7.1.2)
    PC        1/n sum_i pi(N(A_i)|X_i) / pi0(N(A_i)|X_i) R_i                                (thesis, Section 7.1.2)

POTEC is OffCEM for a TwoStagePolicy (thesis, Section 7.1.2). All need pi0 of every action at each context: a logging
policy, or a support whose probabilities sum to 1. Their variance is small, and their bias is what the actions of one group
differ in.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.typing import AnyArray, Array, Ints
from manyarms.errors import InvalidInput
from manyarms.estimators.base import (
    OBJECTIVES,
    Answers,
    Estimator,
    LogColumns,
    Range,
    Request,
    Tensor,
    some_rows,
    weighted_span,
)
from manyarms.estimators.inputs import require_model
from manyarms.estimators.logging_policy import require_full_propensities
from manyarms.estimators.neighbours import Neighbours, cluster_actions
from manyarms.estimators.oracles import FiniteProblem, greedy, group_means, predictions, proportional, same_group
from manyarms.estimators.predictions import bounds_of, checked_model, residual_range, residuals
from manyarms.logs.data import LoggedData
from manyarms.rewards.base import RewardModel
from manyarms.weights import NoCorrection

LISTED = 1 << 20  # neighbours in a block of rows
ROUNDS = 1 << 14  # rows whose groups' masses are taken at a time


class _Grouped(Estimator):
    """Weights are ratios of both policies' masses of a group; a group that was played has at least the floor's probability."""

    row_by_row = True

    def span(self, rewards: Range | None, floor: float) -> Range | None:
        return weighted_span(NoCorrection().bound(floor), rewards, (0.0, 0.0))

    def terms(self, answers: Answers, columns: Mapping[str, Tensor]) -> Tensor:
        return self.weights(answers, columns) * columns["reward"]


class _Clustered(_Grouped):
    """Clusters of actions, given by labels (K,)."""

    def __init__(self, labels: npt.ArrayLike) -> None:
        self.labels = _codes(labels)

    @property
    def settings(self) -> dict[str, float]:
        return {"clusters": float(self.labels.max() + 1)}

    def weights(self, answers: Answers, columns: Mapping[str, Tensor]) -> Tensor:
        return answers.mass / columns["propensity"]

    def wanted(self, log: LoggedData) -> Ints:
        """The cluster of each logged action, (n,)."""
        if len(self.labels) != log.action_count:
            expected = f"one for each of the log's {log.action_count} actions"
            raise InvalidInput("labels", f"{len(self.labels)} labels", expected)
        require_full_propensities(log, self.name)
        return self.labels[log.actions]

    def propensities(self, log: LoggedData, wanted: Ints, index: Ints) -> Array:
        """pi0(C_i|x_i) of some rows, (b,)."""
        every = len(index) == len(log)
        step = len(log) if every else ROUNDS  # a part is a copy
        out = np.empty(len(index))
        for start in range(0, len(index), step):
            part = index[start : start + step]
            known = require_full_propensities(log if every else log.rows(part), self.name)
            out[start : start + step] = known.group_mass(self.labels, wanted[part])
        return _some_probability(out, index, "group")


@OBJECTIVES.register("mips")
class MIPS(_Clustered):
    """Marginalised IPS: labels (K,) give the cluster of each action; `MIPS.learned` finds them by k-means.

    Unbiased where the actions of a cluster have the same mean reward. The best policy plays the cluster with the largest mean
    reward under pi0, and within it any action: the oracle here plays them all alike (thesis, Section 7.1.2 and Appendix D.1.1).
    """

    summary: ClassVar[str] = "inverse propensity scoring of clusters of actions"
    note: str = "unbiased only where the actions of a cluster have the same mean reward"

    @classmethod
    def learned(cls, embeddings: npt.ArrayLike, clusters: int, *, seed: int = 0) -> MIPS:
        """With clusters by k-means on embeddings (K, d)."""
        return cls(cluster_actions(embeddings, clusters, seed=seed))

    def prepare(self, log: LoggedData) -> Request:
        wanted = self.wanted(log)
        columns: LogColumns = {"reward": log.rewards, "propensity": partial(self.propensities, log, wanted)}
        return Request(columns, logged=False, active=some_rows(log.rewards), labels=self.labels, wanted=wanted)

    def oracle(self, problem: FiniteProblem) -> Array:
        """All actions of the best cluster alike."""
        labels = self.labels if problem.labels is None else problem.labels
        return proportional(greedy(group_means(problem, labels, problem.rewards)) @ same_group(labels))


@OBJECTIVES.register("offcem", "potec")
class OffCEM(_Clustered):
    """Conjunct effect modelling: clusters' weights for what a model leaves over, plus the model's value.

    Unbiased where the model gets the differences within each cluster right. The best policy plays the action with the largest
    r_hat(x, a) plus the mean of r - r_hat under pi0 in its cluster (thesis, Section 7.1.2 and Appendix D.1.1); a TwoStagePolicy
    contains it (thesis, Appendix D.1.1).
    """

    summary: ClassVar[str] = "doubly robust at the level of clusters; with a two-stage policy this is POTEC"
    note: str = "unbiased only where the model gets the differences within each cluster right"

    def __init__(self, labels: npt.ArrayLike, model: RewardModel) -> None:
        super().__init__(labels)
        require_model(model)
        self.model = model

    def prepare(self, log: LoggedData) -> Request:
        wanted = self.wanted(log)
        model = checked_model(self.model, log)
        columns: LogColumns = {
            "residual": residuals(model, log),
            "propensity": partial(self.propensities, log, wanted),
        }
        return Request(columns, logged=False, labels=self.labels, wanted=wanted, model=model)

    def terms(self, answers: Answers, columns: Mapping[str, Tensor]) -> Tensor:
        return self.weights(answers, columns) * columns["residual"] + answers.expectation

    def span(self, rewards: Range | None, floor: float) -> Range | None:
        return weighted_span(NoCorrection().bound(floor), residual_range(rewards, self.model), bounds_of(self.model))

    def oracle(self, problem: FiniteProblem) -> Array:
        """The largest r_hat plus its cluster's mean error."""
        labels = self.labels if problem.labels is None else problem.labels
        r_hat = predictions(problem, self.model)
        return greedy(r_hat + group_means(problem, labels, problem.rewards - r_hat))


@OBJECTIVES.register("pc")
class PC(_Grouped):
    """Policy convolution: weights of neighbourhoods of embeddings (K, f), the k nearest or all within less than a radius.

    An action is its own neighbour (k = 1 is IPS; thesis, Appendix C.4.1). Unbiased only in special cases (k = 1; or, k = K,
    where all actions have one mean reward). The best policy plays the action a with the largest sum of
    pi0(b|x) r(x, b) / pi0(N(b)|x) over the b that have a among their neighbours (thesis, Appendix D.1.1; the text's
    Section 7.1.2 sum over N(a), the same where being near is mutual).
    """

    summary: ClassVar[str] = "inverse propensity scoring of neighbourhoods of actions"
    note: str = "biased by what neighbours differ in"
    parameter: ClassVar[str | None] = "k"

    def __init__(self, embeddings: npt.ArrayLike, *, k: int | None = None, radius: float | None = None) -> None:
        self.neighbours = Neighbours(embeddings, k=k, radius=radius)

    @property
    def settings(self) -> dict[str, float]:
        near = self.neighbours
        return {"k": float(near.k)} if near.k is not None else {"radius": float(near.radius or 0.0)}

    def prepare(self, log: LoggedData) -> Request:
        count = len(self.neighbours.embeddings)
        if count != log.action_count:
            raise InvalidInput("embeddings", f"{count} rows", f"one for each of the log's {log.action_count} actions")
        require_full_propensities(log, self.name)
        lists = _NeighbourLists(self.neighbours, log.actions)
        columns: LogColumns = {"reward": log.rewards, "propensity": partial(self._propensities, log, lists)}
        return Request(columns, logged=False, ids=lists, active=some_rows(log.rewards))

    def _propensities(self, log: LoggedData, lists: _NeighbourLists, index: Ints) -> Array:
        """pi0(N(A_i)|x_i) of some rows, (b,)."""
        known, out = require_full_propensities(log, self.name), np.empty(len(index))
        step = max(1, LISTED // max(1, lists.longest(index)))
        for start in range(0, len(index), step):
            part = index[start : start + step]
            ids = lists(part)
            mass = known.of_many(part, np.maximum(ids, 0)) * (ids >= 0)
            out[start : start + step] = mass.sum(axis=1)
        return _some_probability(out, index, "neighbourhood")

    def weights(self, answers: Answers, columns: Mapping[str, Tensor]) -> Tensor:
        return answers.pi.sum(1) / columns["propensity"]

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


class _NeighbourLists:
    """Neighbours of the actions that the rows of a log played; rows ask for theirs by number, and none is looked for twice."""

    def __init__(self, neighbours: Neighbours, actions: Ints) -> None:
        self._neighbours, self._actions = neighbours, actions
        self._found: dict[int, Ints] = {}

    def __call__(self, index: Ints) -> Ints:
        """(b, m): neighbours of the actions of some rows, as wide as the longest list among them, -1 behind the others."""
        lists, place = self._lists(index)
        out = np.full((len(lists), max(map(len, lists), default=0)), -1, dtype=np.int64)
        for row, ids in zip(out, lists, strict=True):
            row[: len(ids)] = ids
        return out[place]

    def longest(self, index: Ints) -> int:
        """The length of the longest list among some rows."""
        return max(map(len, self._lists(index)[0]), default=0)

    def _lists(self, index: Ints) -> tuple[list[Ints], Ints]:
        """The lists of the distinct actions of some rows, and the place of each row's own."""
        played, place = np.unique(self._actions[index], return_inverse=True)
        new = np.array([action for action in played.tolist() if action not in self._found], dtype=np.int64)
        self._found.update(self._neighbours.lists(new))
        return [self._found[action] for action in played.tolist()], place


def _codes(labels: npt.ArrayLike) -> Ints:
    """Labels of any kind as integers from 0, in an array of our own."""
    try:
        array: AnyArray = np.asarray(labels)
    except ValueError:  # lists of different lengths
        raise InvalidInput("labels", validate.describe(labels), "one label for each action, (K,)") from None
    if np.ma.is_masked(labels) or array.ndim != 1 or not len(array) or array.dtype.kind not in "iubSU":
        came = validate.describe(labels if np.ma.is_masked(labels) else array)
        raise InvalidInput("labels", came, "one label for each action, (K,)")
    return np.asarray(np.unique(array, return_inverse=True)[1], dtype=np.int64)


def _some_probability(mass: Array, index: Ints, what: str) -> Array:
    if len(mass) and not mass.min() > 0:
        came = f"no probability for the {what} of the action played in row {int(index[np.argmin(mass)])}"
        raise InvalidInput("log", came, "a logging policy that can play what it played")
    return mass


__all__ = ["MIPS", "PC", "OffCEM"]
