"""Models of an unknown logging policy: p(a | x) from rows of contexts and actions.

Each is fitted to a part of a log, and then claims for rows the probability of the action played, or of every action
(for a block of rows at a time).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from manyarms._base import validate
from manyarms._base.tables import Shown
from manyarms._base.typing import AnyArray, Array, Ints
from manyarms.errors import InvalidInput
from manyarms.logs.data import LoggedData, LogSource, a_log
from manyarms.logs.labels import comparable, labels_of

MOST_CELLS = 50_000_000  # of a table of groups × actions
BLOCK = 4096


class PropensityModel(Protocol):
    """What has been fitted; `labels` are the groups of the rows, where the model knows groups, and `numbers` their numbers
    in the log that it was fitted to, where they are of that log and must not speak for themselves."""

    def own(self, X: Array, actions: Ints, labels: AnyArray | None = None, numbers: Ints | None = None) -> Array:
        """p(a_i | x_i), (n,)."""
        ...

    def every(self, X: Array, labels: AnyArray | None = None, numbers: Ints | None = None) -> Array:
        """p(· | x_i), (n, K); for a few rows at a time."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class FrequencyTable(Shown):
    """How often each action was played in each group of rows.

        p(a | g) = (n_ga + s / K) / (n_g + s)

    with s = smoothing, in rows spread evenly over all actions. A group that was never seen has the shares of all rows.
    """

    labels: AnyArray  # (G,) sorted; one label where rows were not grouped
    probabilities: Array  # (G, K)
    rows: Ints  # (G,)
    overall: Array  # (K,)
    grouped: bool

    def probabilities_of(self, actions: Ints, labels: AnyArray | None = None) -> Array:
        """p(a_i | g_i), (n,)."""
        if not self.grouped:
            return np.asarray(self.probabilities[0][actions])
        groups, known = self._groups(labels, len(actions))
        return np.where(known, self.probabilities[groups, actions], self.overall[actions])

    def own(self, X: Array, actions: Ints, labels: AnyArray | None = None, numbers: Ints | None = None) -> Array:
        return self.probabilities_of(actions, labels)

    def every(self, X: Array, labels: AnyArray | None = None, numbers: Ints | None = None) -> Array:
        """p(· | g_i), (n, K)."""
        if not self.grouped:
            return np.broadcast_to(self.probabilities[0], (len(X), len(self.overall)))
        groups, known = self._groups(labels, len(X))
        return np.where(known[:, None], self.probabilities[groups], self.overall)

    def _groups(self, labels: AnyArray | None, rows: int) -> tuple[Ints, AnyArray]:
        if labels is None or np.shape(labels) != (rows,):
            came = "none" if labels is None else f"an array of shape {np.shape(labels)}"
            raise InvalidInput("labels", came, f"the group of each of the {rows} rows")
        labels = labels_of("labels", labels)
        if not comparable(self.labels, labels):
            raise InvalidInput("labels", f"labels of type {labels.dtype}", f"labels of type {self.labels.dtype}")
        groups = np.minimum(np.searchsorted(self.labels, labels), len(self.labels) - 1)
        return groups, self.labels[groups] == labels


def action_frequencies(
    source: LogSource, by: str | AnyArray | None = None, *, smoothing: float = 0.0
) -> FrequencyTable:
    """Count actions, in all or within groups, in one pass.

    by: None for all rows together, "groups" for the log's own groups, or an array with the group of each row.
    """
    smoothing = validate.not_negative("smoothing", smoothing)
    a_log("source", source)
    by = by if isinstance(by, str | None) else labels_of("by", by)
    K = source.action_count
    counts: dict[object, Array] = {}
    at = 0
    for chunk in source.chunks():
        labels = _labels_of(chunk, by, at)
        at += len(chunk)
        distinct, member = np.unique(labels, return_inverse=True)
        if by is None and K > MOST_CELLS:
            raise InvalidInput("source", f"a log of {K:,} actions", f"at most {MOST_CELLS:,}, to count each of them")
        if (len(counts) + len(distinct)) * K > MOST_CELLS:
            came = f"more than {MOST_CELLS // K:,} groups of {K:,} actions"
            raise InvalidInput("by", came, "coarser groups, so that the table of groups × actions stays small")
        for index, label in enumerate(distinct.tolist()):
            found = np.bincount(chunk.actions[member == index], minlength=K).astype(np.float64)
            counts[label] = counts[label] + found if label in counts else found
    if isinstance(by, np.ndarray) and len(by) != at:
        raise InvalidInput("by", f"{len(by)} labels", f"{at} labels, one per row")
    names = sorted(counts)  # type: ignore[type-var]
    table = np.stack([counts[name] for name in names])
    rows = table.sum(axis=1)
    overall = (table.sum(axis=0) + smoothing / K) / (rows.sum() + smoothing)
    shares = (table + smoothing / K) / (rows[:, None] + smoothing)
    return FrequencyTable(np.array(names), shares, rows.astype(np.int64), overall, by is not None)


def _labels_of(chunk: LoggedData, by: str | AnyArray | None, at: int) -> AnyArray:
    if by is None:
        return np.zeros(len(chunk), dtype=np.int64)
    if isinstance(by, str):
        return own_groups(chunk, by)
    if len(by) < at + len(chunk):
        raise InvalidInput("by", f"{len(by)} labels", "the group of each row")
    return by[at : at + len(chunk)]


def own_groups(log: LoggedData, by: str) -> AnyArray:
    """The log's own groups, which are what "groups" asks for."""
    if by != "groups":
        raise InvalidInput("by", repr(by), 'None, "groups", or an array with the group of each row')
    log.require("groups", purpose="frequencies by group")
    return np.asarray(log.groups)


@dataclass(frozen=True, eq=False)
class NearestModel:
    """p(a | x) from the k nearest rows j of a reference log (Euclidean, standardised contexts):

        p(a | x) = (Σ_j s_j(a) + s q(a)) / (k + s)

    s_j(a) is the probability of a in row j's support where the reference has supports, otherwise 1 for the action that
    row j played; q are the shares of the actions in the whole reference, s = smoothing.
    """

    reference: LoggedData
    tree: Any
    centre: Array
    scale: Array
    shares: Array  # (K,)
    neighbours: int
    smoothing: float

    def own(self, X: Array, actions: Ints, labels: AnyArray | None = None, numbers: Ints | None = None) -> Array:
        found = np.empty(len(X))
        for start in range(0, len(X), BLOCK):
            part = slice(start, start + BLOCK)
            near = self.nearest(X[part], None if numbers is None else numbers[part])
            hits = self._hits(near, actions[part])
            found[part] = (hits + self.smoothing * self.shares[actions[part]]) / (self.neighbours + self.smoothing)
        return found

    def every(self, X: Array, labels: AnyArray | None = None, numbers: Ints | None = None) -> Array:
        near = self.nearest(X, numbers)
        sums = np.zeros((len(X), len(self.shares)))
        rows = np.arange(len(X))
        for j in range(near.shape[1]):
            if self.reference.support is None or self.reference.support_probabilities is None:
                sums[rows, self.reference.actions[near[:, j]]] += 1.0
            else:
                ids, p = self.reference.support[near[:, j]], self.reference.support_probabilities[near[:, j]]
                np.add.at(sums, (rows[:, None], ids), p)
        claims: Array = (sums + self.smoothing * self.shares) / (self.neighbours + self.smoothing)
        return claims

    def nearest(self, X: Array, numbers: Ints | None) -> Ints:
        """The reference rows nearest to each row, (n, k); rows of the reference itself do not count themselves."""
        k = self.neighbours + (numbers is not None)
        near = np.asarray(self.tree.query((X - self.centre) / self.scale, k=k)[1]).reshape(len(X), k)
        if numbers is None:
            return near
        own = near == numbers[:, None]
        own[:, -1] |= ~own.any(axis=1)  # many rows with the same context: then the last one goes
        return np.asarray(near[~own].reshape(len(X), k - 1))

    def _hits(self, near: Ints, actions: Ints) -> Array:
        if self.reference.support is None or self.reference.support_probabilities is None:
            return np.asarray((self.reference.actions[near] == actions[:, None]).sum(axis=1), dtype=np.float64)
        total = np.zeros(len(near))
        for j in range(near.shape[1]):
            same = self.reference.support[near[:, j]] == actions[:, None]
            total += np.where(same, self.reference.support_probabilities[near[:, j]], 0.0).sum(axis=1)
        return total


def fit_nearest(reference: LoggedData, neighbours: int, smoothing: float, leave_out_self: bool) -> NearestModel:
    """The model above; refused where the reference has too few rows."""
    from scipy.spatial import cKDTree  # slow to import

    available = len(reference) - int(leave_out_self)
    if neighbours > available:
        raise InvalidInput("neighbours", neighbours, f"at most {available}, the rows there are")
    centre, scale = reference.contexts.mean(axis=0), reference.contexts.std(axis=0)
    scale = np.where(scale > 1e-12 * np.abs(centre), scale, 1.0)
    shares = np.bincount(reference.actions, minlength=reference.action_count) / len(reference)
    tree = cKDTree((reference.contexts - centre) / scale)
    return NearestModel(reference, tree, centre, scale, shares, neighbours, smoothing)


__all__ = [
    "FrequencyTable", "NearestModel", "PropensityModel", "action_frequencies", "fit_nearest", "own_groups",
]  # fmt: skip
