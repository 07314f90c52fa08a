"""Policies that play a few listed actions at each context, and nothing else."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.typing import Array, Ints
from manyarms.errors import InvalidInput
from manyarms.policies.base import (
    ROWS,
    PolicyRows,
    StreamedPolicy,
    Values,
    first_above,
    group_arrays,
    lowest_ids,
    row_blocks,
)
from manyarms.policies.in_context import InContext, Listed

LISTED = 1 << 20  # listed actions that are held at once


class SupportRows(PolicyRows):
    """Probabilities of listed actions, ids (b, k0) distinct in each row; everything else has none."""

    def __init__(self, ids: Ints, probabilities: Array, actions: int) -> None:
        self.ids, self.probabilities, self._actions = ids, probabilities, actions
        self.total = probabilities.sum(axis=1)

    def mass(self, first: int, last: int) -> Array:
        out = np.zeros((len(self.ids), last - first))
        row, column = np.nonzero((self.ids >= first) & (self.ids < last) & (self.probabilities > 0))
        out[row, self.ids[row, column] - first] = self.probabilities[row, column]
        return out

    def mass_at(self, ids: Ints) -> Array:
        # one sorted list of (row, id) pairs written as numbers; padding of probability 0 counts as absent
        listed, count = self.ids, self._actions
        if len(listed) * count > validate.MOST:  # such pairs are too many for 64 bits: only the ids at hand are counted
            names, where = np.unique(np.concatenate([listed.ravel(), ids.ravel()]), return_inverse=True)
            listed, ids = where[: listed.size].reshape(listed.shape), where[listed.size :].reshape(ids.shape)
            count = len(names)
        row = np.arange(len(listed))[:, None] * count
        used = self.probabilities > 0
        keys = (row + listed)[used]
        order = np.argsort(keys)
        keys, mass = keys[order], self.probabilities[used][order]
        asked = row + ids
        place = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
        return np.where(keys[place] == asked, mass[place], 0.0)

    def only(self, index: Ints) -> PolicyRows:
        return SupportRows(self.ids[index], self.probabilities[index], self._actions)


class SupportedPolicy(StreamedPolicy):
    """A policy from its support: ids and probabilities of the few actions it plays at each context."""

    @abstractmethod
    def support_block(self, X: Array) -> tuple[Ints, Array]:
        """Ids (b, k0), distinct in each row, and their probabilities (b, k0), for a block of contexts."""

    def rows(self, X: Array) -> PolicyRows:
        """The policy at a block of contexts."""
        return SupportRows(*self.support_block(X), self.action_count)

    def support(self, X: npt.ArrayLike) -> tuple[Ints, Array]:
        """Ids (n, k0) and probabilities (n, k0) of the actions that are played at each context."""
        X = self._contexts(X)
        parts = [self.support_block(X[start : start + ROWS]) for start in range(0, max(1, len(X)), ROWS)]
        return np.concatenate([ids for ids, _ in parts]), np.concatenate([p for _, p in parts])

    def expectation(self, X: npt.ArrayLike, values: Values) -> Array:
        """The sum over a of pi(a|x_i) values(x_i, a), (n,); values are asked for the support only."""
        X = self._contexts(X)
        out = np.empty(len(X))
        for part, ids, probabilities in self._supports(X):
            out[part] = support_expectation(X[part], ids, probabilities, values)
        return out

    def _supports(self, X: Array) -> Iterator[tuple[slice, Ints, Array]]:
        """Supports of consecutive contexts, as many at a time as LISTED numbers hold: a wide support takes fewer."""
        start, blocks, listed = 0, [], 0
        for part in row_blocks(len(X)):
            blocks.append(self.support_block(X[part]))
            listed += blocks[-1][0].size
            if listed >= LISTED or part.stop == len(X):
                ids, probabilities = (np.concatenate(arrays) for arrays in zip(*blocks, strict=True))
                yield slice(start, part.stop), ids, probabilities
                start, blocks, listed = part.stop, [], 0

    def group_mass(self, X: npt.ArrayLike, labels: npt.ArrayLike, wanted: npt.ArrayLike) -> Array:
        """The sum of pi(a|x_i) over the actions with labels[a] == wanted[i], (n,): over the support only."""
        X = self._contexts(X)
        groups, asked = group_arrays(labels, wanted, self.action_count, len(X))
        out = np.empty(len(X))
        for part in row_blocks(len(X)):
            ids, probabilities = self.support_block(X[part])
            inside = groups[ids] == asked[part][:, None]
            out[part] = (probabilities * inside).sum(axis=1) / probabilities.sum(axis=1)
        return out

    def sample_rows(self, X: npt.ArrayLike, rng: int | np.random.Generator | None = None) -> Ints:
        """One action for every context, (n,)."""
        X = self._contexts(X)
        points = validate.seeded(rng).random(len(X))
        out = np.empty(len(X), dtype=np.int64)
        for part in row_blocks(len(X)):
            ids, probabilities = self.support_block(X[part])
            upto = probabilities.cumsum(axis=1)
            out[part] = ids[np.arange(len(ids)), first_above(upto, points[part] * upto[:, -1], probabilities)]
        return out

    def in_context(self, x: npt.ArrayLike) -> InContext:
        """The policy in one context (d,): its support is found once for all draws and probabilities."""
        ids, probabilities = self.support_block(self._one_context(x))
        return Listed(SupportRows(ids, probabilities, self.action_count), ids, probabilities)

    def _best(self, X: Array, wanted: int, barred: Ints) -> Ints:
        """(n, wanted): the most probable actions, found in the support alone.

        Where it holds too few actions that are not barred, the rest are those of probability 0 with the lowest ids.
        """
        found = np.empty((len(X), wanted), dtype=np.int64)
        for part in row_blocks(len(X)):
            ids, probabilities = self.support_block(X[part])
            mass = np.where(np.isin(ids, barred), 0.0, probabilities)
            order = np.lexsort((ids, -mass), axis=1)[:, :wanted]
            best = np.take_along_axis(ids, order, axis=1)
            found[part, : best.shape[1]] = best
            for row in np.flatnonzero((mass > 0).sum(axis=1) < wanted):
                listed = best[row, np.take_along_axis(mass[row], order[row], axis=0) > 0]
                rest = lowest_ids(wanted - len(listed), np.union1d(listed, barred))
                found[part.start + row] = np.concatenate([listed, rest])
        return found


def softmax_rows(scores: Array) -> Array:
    """(b, k): exp(scores) over their sum in each row."""
    mass = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(mass / mass.sum(axis=1, keepdims=True))


def support_expectation(X: Array, ids: Ints, probabilities: Array, values: Values) -> Array:
    """The sum over the listed actions of probability times value, (n,)."""
    out = np.zeros(len(X))
    if ids.shape[1] == 1:
        order = np.argsort(ids[:, 0], kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(ids[order, 0])) + 1):
            if len(rows):
                out[rows] = probabilities[rows, 0] * values(X[rows], ids[rows[:1], 0])[:, 0]
        return out
    for i in range(len(X)):
        used = probabilities[i] > 0
        out[i] = values(X[i : i + 1], ids[i, used])[0] @ probabilities[i, used]
    return out


class DeterministicPolicy(SupportedPolicy):
    """Plays decide(x) and nothing else.

    decide: a function of contexts (n, d) that gives ids (n,), such as an agent's `decide` under a decision that does
    not draw, or a reward model's best action.
    """

    smallest_probability = 1.0

    def __init__(self, decide: Callable[[Array], npt.ArrayLike], actions: int) -> None:
        super().__init__(actions)
        if not callable(decide):
            raise InvalidInput("decide", validate.describe(decide), "a function of contexts that gives an id for each")
        self._decide = decide

    def support_block(self, X: Array) -> tuple[Ints, Array]:
        """The one action of each context, with probability 1."""
        ids = self._decide(X) if len(X) else np.empty(0, dtype=np.int64)
        return self._ids("decide", ids, (len(X),))[:, None], np.ones((len(X), 1))


__all__ = ["DeterministicPolicy", "SupportRows", "SupportedPolicy", "softmax_rows", "support_expectation"]
