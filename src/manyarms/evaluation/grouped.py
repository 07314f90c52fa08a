"""Estimators for large action spaces, which weigh groups or neighbourhoods of actions in place of single ones.

    MIPS     mean of pi(C|x) / pi0(C|x) r                                C the cluster of the action (thesis, 2090-2102)
    OffCEM   mean of pi(C|x) / pi0(C|x) (r - r_hat) + E_pi[r_hat]        (thesis, lines 2110-2118)
    PC       mean of pi(N(A)|x) / pi0(N(A)|x) r                          N(A) its neighbours (thesis, 2131-2146, 4771-4775)

Their weights need pi0 of all actions at each context: a logging policy, or a whole support. Their variance is small, and
their bias is what the actions of one group differ in.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manyarms._base.typing import AnyArray, Array, Ints
from manyarms.errors import InvalidInput
from manyarms.estimators.logging_policy import RewardModel
from manyarms.estimators.neighbours import Neighbours, cluster_actions
from manyarms.evaluation.estimators import bounds_of, residual_range
from manyarms.evaluation.terms import Base, Case, Terms
from manyarms.weights import NoCorrection

LISTED = 1 << 20  # numbers in a block of rows x neighbours


def _checked_labels(labels: npt.ArrayLike) -> AnyArray:
    array = np.asarray(labels)
    if array.ndim != 1 or not len(array) or array.dtype.kind not in "iubSU":
        raise InvalidInput("labels", f"shape {array.shape} and type {array.dtype}", "one label for each action, (K,)")
    return array


def _fit(labels: AnyArray, case: Case) -> AnyArray:
    if len(labels) != case.log.action_count:
        raise InvalidInput(
            "labels", f"{len(labels)} labels", f"one for each of the log's {case.log.action_count} actions"
        )
    return labels


def _span(case: Case, model: RewardModel | None = None) -> tuple[float, float] | None:
    """Numbers between which the terms lie: a group that was played has at least the floor's probability."""
    most = NoCorrection().bound(case.settings.propensity_floor)
    rewards = case.settings.reward_range if model is None else residual_range(case, model)
    base = (0.0, 0.0) if model is None else bounds_of(model)
    if most is None or rewards is None or base is None:
        return None
    return base[0] + min(0.0, most * rewards[0]), base[1] + max(0.0, most * rewards[1])


class MIPS(Base):
    """Marginalised IPS: weights of clusters, pi(C_i|x_i) / pi0(C_i|x_i) (thesis, lines 2090-2102).

    labels (K,): the cluster of each action; or `MIPS.learned` finds clusters by k-means on embeddings. Unbiased where
    the actions of a cluster have the same mean reward.
    """

    name = "mips"

    def __init__(self, labels: npt.ArrayLike) -> None:
        self.labels = _checked_labels(labels)

    @classmethod
    def learned(cls, embeddings: npt.ArrayLike, clusters: int, *, seed: int = 0) -> MIPS:
        """With clusters by k-means on embeddings (K, d)."""
        return cls(cluster_actions(embeddings, clusters, seed=seed))

    @property
    def label(self) -> str:
        """The name with the number of clusters."""
        return f"mips ({len(np.unique(self.labels))} clusters)"

    def of(self, case: Case) -> Terms:
        """pi(C|x) / pi0(C|x) r."""
        ours, theirs = case.group_masses(_fit(self.labels, case), "MIPS")
        weights = ours / theirs
        note = "unbiased only where the actions of a cluster have the same mean reward"
        return Terms(weights * case.log.rewards, weights, False, note, span=_span(case))


class OffCEM(Base):
    """Clusters' weights for what a model leaves over: w_C (r - r_hat) + E_pi[r_hat] (thesis, lines 2110-2118).

    Unbiased where the model gets the differences within each cluster right.
    """

    name = "offcem"

    def __init__(self, labels: npt.ArrayLike, model: RewardModel) -> None:
        self.labels = _checked_labels(labels)
        self.model = model

    @property
    def label(self) -> str:
        """The name with the number of clusters."""
        return f"offcem ({len(np.unique(self.labels))} clusters)"

    def of(self, case: Case) -> Terms:
        """w_C (r - r_hat) + E_pi[r_hat]."""
        ours, theirs = case.group_masses(_fit(self.labels, case), "OffCEM")
        weights = ours / theirs
        values = weights * (case.log.rewards - case.predicted(self.model)) + case.expected(self.model)
        note = "unbiased only where the model gets the differences within each cluster right"
        return Terms(values, weights, False, note, span=_span(case, self.model))


class PC(Base):
    """Policy convolution: weights of neighbourhoods, pi(N(A_i)|x_i) / pi0(N(A_i)|x_i) (thesis, lines 2131-2146).

    embeddings (K, d); k: the k nearest, the action itself among them (k = 1 is IPS; thesis, lines 4771-4775), or
    radius: all within less than that Euclidean distance. Unbiased only in special cases (k = 1; or, k = K, where all
    actions have one mean reward).
    """

    name = "pc"

    def __init__(self, embeddings: npt.ArrayLike, *, k: int | None = None, radius: float | None = None) -> None:
        self.neighbours = Neighbours(embeddings, k=k, radius=radius)

    @property
    def label(self) -> str:
        """The name with the size of neighbourhoods."""
        near = self.neighbours
        return f"pc (k={near.k})" if near.k is not None else f"pc (radius={near.radius:.3g})"

    def of(self, case: Case) -> Terms:
        """pi(N(A)|x) / pi0(N(A)|x) r."""
        if len(self.neighbours.embeddings) != case.log.action_count:
            came = f"{len(self.neighbours.embeddings)} rows"
            raise InvalidInput("embeddings", came, f"one for each of the log's {case.log.action_count} actions")
        ours, theirs = self._masses(case)
        weights = ours / theirs
        note = "biased by what neighbours differ in"
        return Terms(weights * case.log.rewards, weights, False, note, span=_span(case))

    def _masses(self, case: Case) -> tuple[Array, Array]:
        """pi and pi0 of the neighbourhood of each logged action, (n,) each; lists live for one batch only."""
        whole, log = case.whole("PC"), case.log
        ours, theirs = np.empty(len(log)), np.empty(len(log))
        by_action = np.argsort(log.actions, kind="stable")
        played, starts = np.unique(log.actions[by_action], return_index=True)
        ends = np.append(starts[1:], len(log))
        batch: list[tuple[Ints, Ints]] = []  # rows, and the neighbours of their action
        longest = count = 0

        def flush() -> None:
            ids = np.zeros((count, longest), dtype=np.int64)
            real = np.zeros((count, longest), dtype=np.bool_)
            at = 0
            for some, near in batch:
                ids[at : at + len(some), : len(near)] = near
                real[at : at + len(some), : len(near)] = True
                at += len(some)
            index = np.concatenate([some for some, _ in batch])
            pi = case.policy.probabilities_of_many(log.contexts[index], ids)
            ours[index] = (pi * real).sum(axis=1)
            theirs[index] = (whole.of_many(index, ids) * real).sum(axis=1)

        for (_, near), start, end in zip(self.neighbours.lists(played), starts.tolist(), ends.tolist(), strict=True):
            room = max(1, LISTED // max(longest, len(near)))
            for first in range(start, end, room):
                rows = by_action[first : min(first + room, end)]
                if batch and (count + len(rows)) * max(longest, len(near)) > LISTED:
                    flush()
                    batch, longest, count = [], 0, 0
                batch.append((rows, near))
                longest, count = max(longest, len(near)), count + len(rows)
        flush()
        if not theirs.min() > 0:
            row = int(np.argmin(theirs))
            came = f"no probability for the neighbourhood of the action played in row {row}"
            raise InvalidInput("log", came, "a logging policy that can play what it played")
        return ours, theirs


__all__ = ["MIPS", "PC", "OffCEM"]
