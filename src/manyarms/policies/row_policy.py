"""Policies that are known row by row: at the rows of one part of a log, and nowhere else.

What a policy would have done in a log can be known without the policy: its probabilities of the logged actions in a column, a
matrix of all probabilities, an action or a ranked list for each row. A `RowPolicy` answers like any other policy for the contexts
of its own rows, all of them and in their order; `at` gives it at some of them (`at_rows` does so for any policy).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import numpy.typing as npt

from manyarms._base.typing import AnyArray, Array, Ints
from manyarms.errors import InvalidInput
from manyarms.policies.base import (
    ROWS,
    Policy,
    PolicyRows,
    StreamedPolicy,
    Values,
    action_blocks,
    group_arrays,
    row_blocks,
)
from manyarms.policies.support import SupportRows, support_expectation

Index = slice | Ints


class RowPolicy(StreamedPolicy):
    """A policy at n rows; X in its methods are the contexts of these rows, in their order."""

    logged_only: bool = False
    """Whether it knows the probabilities of the logged actions alone."""

    step: int = ROWS
    """How many rows are asked for at a time."""

    def __init__(self, actions: int, rows: int) -> None:
        super().__init__(actions)
        self.row_count = rows

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.row_count} rows, {self.action_count} actions)"

    @abstractmethod
    def at(self, index: Index) -> RowPolicy:
        """The policy at some of its rows."""

    def probabilities_of_many(self, X: npt.ArrayLike, ids: npt.ArrayLike) -> Array:
        """pi(a_ij|x_i) for ids (n, m)."""
        X = self._own(X)
        ids = self._ids("ids", ids, (len(X), None))
        out = np.empty(ids.shape)
        for part, rows in self._blocks(X):
            out[part] = rows.mass_at(ids[part]) / rows.normaliser(self.action_count)[:, None]
        return out

    def expectation(self, X: npt.ArrayLike, values: Values) -> Array:
        """The sum over a of pi(a|x_i) values(x_i, a), (n,); where few actions are played, values are asked for those."""
        X = self._own(X)
        out = np.empty(len(X))
        for part, rows in self._blocks(X):
            if isinstance(rows, SupportRows):
                out[part] = support_expectation(X[part], rows.ids, rows.probabilities, values)
            else:
                out[part] = self._summed(rows, partial(_valued, values, X[part]))
        return out

    def group_mass(self, X: npt.ArrayLike, labels: npt.ArrayLike, wanted: npt.ArrayLike) -> Array:
        """The sum of pi(a|x_i) over the actions with labels[a] == wanted[i], (n,)."""
        X = self._own(X)
        groups, asked = group_arrays(labels, wanted, self.action_count, len(X))
        out = np.empty(len(X))
        for part, rows in self._blocks(X):
            if isinstance(rows, SupportRows):
                out[part] = (rows.probabilities * (groups[rows.ids] == asked[part][:, None])).sum(axis=1)
            else:
                out[part] = self._summed(rows, partial(_inside, groups, asked[part][:, None]))
        return out

    def _summed(self, rows: PolicyRows, cells: Callable[[Ints], AnyArray]) -> Array:
        """(b,): masses times what a function gives of blocks of actions, summed, over the sum of all masses."""
        total = rows.normaliser(self.action_count)
        above: Array = np.zeros(len(total))
        for first, last in action_blocks(self.action_count):
            above += (rows.mass(first, last) * cells(np.arange(first, last))).sum(axis=1)
        return above / total

    def sample_rows(self, X: npt.ArrayLike, rng: int | np.random.Generator | None = None) -> Ints:
        """Refused: what is drawn is drawn from a policy that is known everywhere."""
        raise InvalidInput("policy", "a policy that is known at the rows of a log only", "one that is known everywhere")

    def _blocks(self, X: Array) -> Iterator[tuple[slice, PolicyRows]]:
        for start in range(0, len(X), self.step):
            part = slice(start, min(start + self.step, len(X)))
            yield part, self.at(part).rows(X[part])

    def _own(self, X: npt.ArrayLike) -> Array:
        found = self._contexts(X)
        if len(found) != self.row_count:
            raise InvalidInput("X", f"{len(found)} contexts", f"those of the policy's own {self.row_count} rows")
        return found


def _valued(values: Values, X: Array, ids: Ints) -> Array:
    return values(X, ids)


def _inside(groups: AnyArray, asked: AnyArray, ids: Ints) -> AnyArray:
    return np.asarray(groups[ids] == asked)


def at_rows(policy: Policy, index: Index) -> Policy:
    """A policy at some of the rows that it is asked about: itself, unless it is known row by row."""
    return policy.at(index) if isinstance(policy, RowPolicy) else policy


class LoggedProbabilities(RowPolicy):
    """pi(a_i|x_i) of the logged actions, (n,), and nothing about any other."""

    logged_only = True

    def __init__(self, probabilities: Array, logged: Ints, actions: int) -> None:
        super().__init__(actions, len(logged))
        self.probabilities, self.logged = probabilities, logged

    def at(self, index: Index) -> RowPolicy:
        """The policy at some of its rows."""
        return LoggedProbabilities(self.probabilities[index], self.logged[index], self.action_count)

    def probabilities_of(self, X: npt.ArrayLike, actions: npt.ArrayLike) -> Array:
        """pi(a_i|x_i), (n,)."""
        self._own(X)
        if not np.array_equal(self._ids("actions", actions, (self.row_count,)), self.logged):
            raise self._refusal()
        return self.probabilities

    def rows(self, X: Array) -> PolicyRows:
        """Refused: of all other actions nothing is known."""
        raise self._refusal()

    def _refusal(self) -> InvalidInput:
        came = "the probabilities of the logged actions alone"
        return InvalidInput("policy", came, "one that knows the probabilities of all actions")


class ListedByRow(RowPolicy):
    """Actions (n, m), distinct in each row, and their probabilities (n, m); all others are never played."""

    def __init__(self, listed: Ints, probabilities: Array, actions: int) -> None:
        super().__init__(actions, len(listed))
        self.listed, self.probabilities = listed, probabilities

    def at(self, index: Index) -> RowPolicy:
        """The policy at some of its rows."""
        return ListedByRow(self.listed[index], self.probabilities[index], self.action_count)

    def rows(self, X: Array) -> PolicyRows:
        """The policy at all of its rows."""
        return SupportRows(self.listed, self.probabilities, self.action_count)


class MatrixOfProbabilities(RowPolicy):
    """The probabilities (n, m) of m actions that are the same in all rows; all others are never played.

    ids: these actions, (m,), distinct; by default all K = m of them.
    """

    def __init__(self, probabilities: Array, ids: Ints | None = None, actions: int | None = None) -> None:
        super().__init__(probabilities.shape[1] if actions is None else actions, len(probabilities))
        self.probabilities = probabilities
        self.ids: Ints = np.arange(probabilities.shape[1]) if ids is None else ids
        self._column: Ints = np.full(self.action_count, -1, dtype=np.int64)
        self._column[self.ids] = np.arange(len(self.ids))

    def at(self, index: Index) -> RowPolicy:
        """The policy at some of its rows."""
        return MatrixOfProbabilities(self.probabilities[index], self.ids, self.action_count)

    def rows(self, X: Array) -> PolicyRows:
        """The policy at all of its rows."""
        return _MatrixRows(self.probabilities, self._column)

    def probabilities_of_many(self, X: npt.ArrayLike, ids: npt.ArrayLike) -> Array:
        """pi(a_ij|x_i) for ids (n, m)."""
        return self.rows(self._own(X)).mass_at(self._ids("ids", ids, (self.row_count, None)))

    def expectation(self, X: npt.ArrayLike, values: Values) -> Array:
        """The sum over a of pi(a|x_i) values(x_i, a), (n,); values are asked for the actions that have a column."""
        X = self._own(X)
        return self._weighed(lambda part, some: values(X[part], self.ids[some]))

    def group_mass(self, X: npt.ArrayLike, labels: npt.ArrayLike, wanted: npt.ArrayLike) -> Array:
        """The sum of pi(a|x_i) over the actions with labels[a] == wanted[i], (n,)."""
        X = self._own(X)
        groups, asked = group_arrays(labels, wanted, self.action_count, len(X))
        return self._weighed(lambda part, some: groups[self.ids[some]] == asked[part][:, None])

    def _weighed(self, cells: Callable[[slice, slice], AnyArray]) -> Array:
        """(n,): the probabilities times what a function gives of blocks of rows and columns, summed."""
        out = np.zeros(self.row_count)
        for part in row_blocks(self.row_count):
            for first, last in action_blocks(len(self.ids)):
                some = slice(first, last)
                out[part] += (self.probabilities[part, some] * cells(part, some)).sum(axis=1)
        return out


class _MatrixRows(PolicyRows):
    def __init__(self, probabilities: Array, column: Ints) -> None:
        self._probabilities, self._column = probabilities, column
        self.total = np.ones(len(probabilities))

    def mass(self, first: int, last: int) -> Array:
        place = self._column[first:last]
        return np.where(place >= 0, self._probabilities[:, place], 0.0)

    def mass_at(self, ids: Ints) -> Array:
        place = self._column[ids]
        return np.where(place >= 0, np.take_along_axis(self._probabilities, np.maximum(place, 0), axis=1), 0.0)

    def only(self, index: Ints) -> PolicyRows:
        return _MatrixRows(self._probabilities[index], self._column)


class ComputedRows(RowPolicy):
    """What a function says, asked for some rows at a time and forgotten afterwards.

    ask: gives the policy at some rows (integers) of the part. step: how many at most.
    """

    def __init__(
        self, ask: Callable[[Ints], RowPolicy], index: Ints, actions: int, step: int, *, logged_only: bool
    ) -> None:
        super().__init__(actions, len(index))
        self._ask, self._index, self.step, self.logged_only = ask, index, step, logged_only

    def at(self, index: Index) -> RowPolicy:
        """The policy at some of its rows."""
        some = self._index[index]
        if len(some) <= self.step:
            return self._ask(some)
        return ComputedRows(self._ask, some, self.action_count, self.step, logged_only=self.logged_only)

    def rows(self, X: Array) -> PolicyRows:
        """The policy at all of its rows."""
        return self._ask(self._index).rows(X)

    # whatever the function's answers are, they know best how to sum themselves

    def probabilities_of(self, X: npt.ArrayLike, actions: npt.ArrayLike) -> Array:
        """pi(a_i|x_i), (n,)."""
        X, ids = self._own(X), self._ids("actions", actions, (self.row_count,))
        return self._joined(lambda policy, part: policy.probabilities_of(X[part], ids[part]), (len(X),))

    def probabilities_of_many(self, X: npt.ArrayLike, ids: npt.ArrayLike) -> Array:
        """pi(a_ij|x_i) for ids (n, m)."""
        X = self._own(X)
        asked = self._ids("ids", ids, (len(X), None))
        return self._joined(lambda policy, part: policy.probabilities_of_many(X[part], asked[part]), asked.shape)

    def expectation(self, X: npt.ArrayLike, values: Values) -> Array:
        """The sum over a of pi(a|x_i) values(x_i, a), (n,)."""
        X = self._own(X)
        return self._joined(lambda policy, part: policy.expectation(X[part], values), (len(X),))

    def group_mass(self, X: npt.ArrayLike, labels: npt.ArrayLike, wanted: npt.ArrayLike) -> Array:
        """The sum of pi(a|x_i) over the actions with labels[a] == wanted[i], (n,)."""
        X = self._own(X)
        groups, asked = group_arrays(labels, wanted, self.action_count, len(X))
        return self._joined(lambda policy, part: policy.group_mass(X[part], groups, asked[part]), (len(X),))

    def _joined(self, answer: Callable[[RowPolicy, slice], Array], shape: tuple[int, ...]) -> Array:
        out = np.empty(shape)
        for start in range(0, self.row_count, self.step):
            part = slice(start, min(start + self.step, self.row_count))
            out[part] = answer(self._ask(self._index[part]), part)
        return out


class OwnContexts(RowPolicy):
    """A policy that reads other contexts than the log's, (n, d'): those of its own encoder."""

    def __init__(self, policy: Policy, contexts: Array) -> None:
        super().__init__(policy.action_count, len(contexts))
        self.policy, self.contexts = policy, contexts

    def at(self, index: Index) -> RowPolicy:
        """The policy at some of its rows."""
        return OwnContexts(self.policy, self.contexts[index])

    def rows(self, X: Array) -> PolicyRows:
        """The policy at all of its rows."""
        return self.policy.rows(self.contexts)

    def probabilities_of(self, X: npt.ArrayLike, actions: npt.ArrayLike) -> Array:
        """pi(a_i|x_i), (n,)."""
        self._own(X)
        return self.policy.probabilities_of(self.contexts, actions)

    def probabilities_of_many(self, X: npt.ArrayLike, ids: npt.ArrayLike) -> Array:
        """pi(a_ij|x_i) for ids (n, m)."""
        self._own(X)
        return self.policy.probabilities_of_many(self.contexts, ids)

    def group_mass(self, X: npt.ArrayLike, labels: npt.ArrayLike, wanted: npt.ArrayLike) -> Array:
        """The sum of pi(a|x_i) over the actions with labels[a] == wanted[i], (n,)."""
        self._own(X)
        return self.policy.group_mass(self.contexts, labels, wanted)


class WithLogged(RowPolicy):
    """A policy whose probabilities of the logged actions are those that were written down, to the last digit."""

    def __init__(self, policy: Policy, probabilities: Array, logged: Ints) -> None:
        super().__init__(policy.action_count, len(logged))
        self.policy, self.probabilities, self.logged = policy, probabilities, logged
        self.smallest_probability = float(getattr(policy, "smallest_probability", 0.0))

    def at(self, index: Index) -> RowPolicy:
        """The policy at some of its rows."""
        return WithLogged(at_rows(self.policy, index), self.probabilities[index], self.logged[index])

    def rows(self, X: Array) -> PolicyRows:
        """The policy at all of its rows."""
        return self.policy.rows(X)

    def probabilities_of(self, X: npt.ArrayLike, actions: npt.ArrayLike) -> Array:
        """pi(a_i|x_i), (n,)."""
        ids = self._ids("actions", actions, (self.row_count,))
        return self.probabilities if np.array_equal(ids, self.logged) else self.policy.probabilities_of(X, ids)

    def probabilities_of_many(self, X: npt.ArrayLike, ids: npt.ArrayLike) -> Array:
        """pi(a_ij|x_i) for ids (n, m)."""
        return self.policy.probabilities_of_many(X, ids)

    def expectation(self, X: npt.ArrayLike, values: Values) -> Array:
        """The sum over a of pi(a|x_i) values(x_i, a), (n,)."""
        return self.policy.expectation(X, values)

    def group_mass(self, X: npt.ArrayLike, labels: npt.ArrayLike, wanted: npt.ArrayLike) -> Array:
        """The sum of pi(a|x_i) over the actions with labels[a] == wanted[i], (n,)."""
        return self.policy.group_mass(X, labels, wanted)


class Renumbered(StreamedPolicy):
    """A policy over the same actions in another order: row a here is row places[a] there."""

    def __init__(self, policy: Policy, places: Ints) -> None:
        super().__init__(len(places))
        self.policy, self.places = policy, places
        self._back = np.argsort(places)
        self.dim = getattr(policy, "dim", None)
        self.training_rows = getattr(policy, "training_rows", None)
        self.smallest_probability = float(getattr(policy, "smallest_probability", 0.0))

    def rows(self, X: Array) -> PolicyRows:
        """The policy at a block of contexts."""
        return _RenumberedRows(self.policy.rows(X), self.places, len(X))

    def probabilities_of(self, X: npt.ArrayLike, actions: npt.ArrayLike) -> Array:
        """pi(a_i|x_i), (n,)."""
        return self.policy.probabilities_of(X, self.places[self._ids("actions", actions, (None,))])

    def probabilities_of_many(self, X: npt.ArrayLike, ids: npt.ArrayLike) -> Array:
        """pi(a_ij|x_i) for ids (n, m)."""
        return self.policy.probabilities_of_many(X, self.places[self._ids("ids", ids, (None, None))])

    def expectation(self, X: npt.ArrayLike, values: Values) -> Array:
        """The sum over a of pi(a|x_i) values(x_i, a), (n,)."""
        return self.policy.expectation(X, lambda some, ids: values(some, self._back[ids]))

    def group_mass(self, X: npt.ArrayLike, labels: npt.ArrayLike, wanted: npt.ArrayLike) -> Array:
        """The sum of pi(a|x_i) over the actions with labels[a] == wanted[i], (n,)."""
        groups: AnyArray = np.asarray(labels)
        return self.policy.group_mass(X, groups[self._back], wanted)


class _RenumberedRows(PolicyRows):
    def __init__(self, rows: PolicyRows, places: Ints, count: int) -> None:
        self._rows, self._places, self._count = rows, places, count

    def mass(self, first: int, last: int) -> Array:
        return self._rows.mass_at(np.broadcast_to(self._places[first:last], (self._count, last - first)))

    def mass_at(self, ids: Ints) -> Array:
        return self._rows.mass_at(self._places[ids])

    def mass_among(self, ids: Ints) -> Array:
        return self._rows.mass_among(self._places[ids])

    def normaliser(self, actions: int) -> Array:
        return self._rows.normaliser(actions)

    def only(self, index: Ints) -> PolicyRows:
        return _RenumberedRows(self._rows.only(index), self._places, len(index))


__all__ = [
    "ComputedRows", "ListedByRow", "LoggedProbabilities", "MatrixOfProbabilities", "OwnContexts", "Renumbered", "RowPolicy",
    "WithLogged", "at_rows",
]  # fmt: skip
