"""Two stages: a softmax over clusters, then the best action of the cluster by a fixed reward model.

    pi(a|x) = sum over c of pi_cl(c|x) 1[a = argmax over a' in c of r_hat(x, a')],    r_hat(x, a) = x^T theta_a

(POTEC; thesis, Section 7.1.2-2126.) Only the clusters' vectors are learned; the policy plays one action of each cluster.
"""

from __future__ import annotations

from typing import Self

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.private import kept
from manyarms._base.typing import AnyArray, Array, Ints, Spec
from manyarms.errors import InvalidInput
from manyarms.policies.base import ACTIONS, POLICIES, action_blocks
from manyarms.policies.encoders import ContextEncoder, saved_encoder
from manyarms.policies.softmax import LinearScores, OfLinearScores
from manyarms.policies.support import SupportedPolicy, softmax_rows


@POLICIES.register("two-stage")
class TwoStagePolicy(OfLinearScores, SupportedPolicy):
    """A cluster by pi_cl(c|x), in proportion to exp(enc(x)^T beta_c / T); then its best action by x^T theta_a.

    clusters: beta (C, l). labels (K,): the cluster of every action, from 0 to C - 1, none of them empty. model: theta (K, d).
    Among equal predictions the lowest id is best.
    """

    _argument = "clusters"

    def __init__(
        self,
        clusters: npt.ArrayLike,
        labels: npt.ArrayLike,
        model: npt.ArrayLike,
        temperature: float = 1.0,
        encoder: ContextEncoder | None = None,
    ) -> None:
        super().__init__(clusters, temperature, encoder)
        self._predicting = LinearScores("model", model, 1.0)
        self.model = self._predicting.weights
        if self._predicting.dim != self.dim:
            raise InvalidInput("model", f"shape {self.model.shape}", f"an array of shape (n, {self.dim})")
        self._actions, self.cluster_count = len(self.model), len(self.clusters)
        self.labels = _checked_labels(labels, self.action_count, self.cluster_count)
        # members of a cluster side by side, ascending: a block of them holds few clusters, and each in one piece
        self._order = np.argsort(self.labels, kind="stable")
        self._sorted_labels = self.labels[self._order]

    def __repr__(self) -> str:
        return f"TwoStagePolicy(actions={self.action_count}, clusters={self.cluster_count})"

    @property
    def clusters(self) -> AnyArray:
        """beta, (C, l)."""
        return self._linear.weights

    def _scored(self, row: int) -> int:
        """An action is played for its cluster's score."""
        return int(self.labels[row])

    def cluster_probabilities(self, X: Array) -> Array:
        """pi_cl(c|x_i) for a block of contexts, (b, C)."""
        scores = self._linear.scores(self._linear.scaled(self._contexts(X)), 0, self.cluster_count)
        return softmax_rows(scores.astype(np.float64))

    def best_actions(self, X: Array) -> tuple[Ints, Array]:
        """The best action of every cluster for a block of contexts, (b, C), and its prediction, (b, C)."""
        x = self._predicting.scaled(self._contexts(X))
        best = np.full((len(x), self.cluster_count), -np.inf)
        ids = np.zeros(best.shape, dtype=np.int64)
        for first, last in action_blocks(self.action_count, ACTIONS):
            members, owners = self._order[first:last], self._sorted_labels[first:last]
            starts = np.flatnonzero(np.r_[True, owners[1:] != owners[:-1]])
            sizes = np.diff(np.r_[starts, len(owners)])
            values = x @ self.model[members].T
            top = np.maximum.reduceat(values, starts, axis=1)
            place = np.where(values == np.repeat(top, sizes, axis=1), np.arange(len(members)), len(members))
            winners = members[np.minimum.reduceat(place, starts, axis=1)]
            here = slice(int(owners[0]), int(owners[-1]) + 1)  # no cluster is empty, so these are all of them
            better = top > best[:, here]  # a cluster may go on from the block before, with lower ids there
            best[:, here] = np.where(better, top, best[:, here])
            ids[:, here] = np.where(better, winners, ids[:, here])
        return ids, best

    def support_block(self, X: Array) -> tuple[Ints, Array]:
        """One action of every cluster, (b, C), and the cluster's probability, (b, C)."""
        return self.best_actions(X)[0], self.cluster_probabilities(X)

    def arrays(self) -> dict[str, AnyArray]:
        own = {"clusters": self.clusters, "labels": self.labels, "model": self.model}
        return own | saved_encoder(self.encoder)[1]

    @classmethod
    def restored(cls, spec: Spec, arrays: dict[str, AnyArray]) -> Self:
        return cls(arrays["clusters"], arrays["labels"], arrays["model"], **cls._options(spec, arrays))


def _checked_labels(labels: npt.ArrayLike, actions: int, clusters: int) -> Ints:
    array = validate.integers("labels", labels, expected=f"one integer for each of the {actions} actions")
    if len(array) != actions:
        raise InvalidInput("labels", f"{len(array)} integers", f"one integer for each of the {actions} actions")
    if array.min() < 0 or array.max() >= clusters:
        raise InvalidInput("labels", f"{array.min()} to {array.max()}", f"clusters from 0 to {clusters - 1}")
    empty = np.flatnonzero(np.bincount(array, minlength=clusters) == 0)
    if len(empty):
        came = f"no action in cluster {empty[0]} ({len(empty)} empty of {clusters})"
        raise InvalidInput("labels", came, "at least one action in every cluster")
    return kept(array, labels)


__all__ = ["TwoStagePolicy"]
