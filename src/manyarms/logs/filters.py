"""Filters: which actions may be chosen, as callers say it, in rows of the catalogue.

For all contexts a filter is a list of ids. In a batch each context may have its own: a list of lists of ids, a boolean matrix
(n, K), or a sparse one (SciPy's CSR), whose columns are the actions in the catalogue's order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.text import counted
from manyarms._base.typing import AnyArray, Ints
from manyarms.errors import InvalidInput
from manyarms.logs.actions import ActionId, Actions


@runtime_checkable
class SparseMatrix(Protocol):
    """What is used of SciPy's sparse matrices."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, K)."""

    def tocsr(self) -> SparseRows:
        """The same by rows."""


class SparseRows(Protocol):
    """A sparse matrix by rows."""

    data: AnyArray
    indices: AnyArray
    indptr: AnyArray


Filter = npt.ArrayLike | Iterable[ActionId] | Sequence[Iterable[ActionId]] | SparseMatrix | None
"""What `candidates` and `exclude` take: ids; for each context of a batch its own ids; a boolean or sparse matrix (n, K)."""


def rows_of(name: str, ids: object, names: Actions | None, actions: int) -> Ints:
    """The rows of ids, all of which must be known; without names ids are rows."""
    if names is None:
        return validate.action_ids(name, _plain(ids), actions)
    rows = names.rows(ids, name)  # type: ignore[arg-type]
    return np.sort(rows) if isinstance(ids, set | frozenset) else rows  # the order of a set is no order


def known_rows(name: str, ids: object, names: Actions | None, actions: int) -> Ints:
    """The rows of those ids that are known: an action that is not there need not be left out."""
    if names is None:
        rows = validate.integers(name, _plain(ids), 1, "a list of integers, ids of actions")
        return rows[(rows >= 0) & (rows < actions)]
    return names.known(ids, name)  # type: ignore[arg-type]


def _plain(ids: object) -> npt.ArrayLike:
    if not isinstance(ids, set | frozenset):
        return ids  # type: ignore[return-value]
    try:
        return sorted(ids)
    except TypeError:  # things that are no numbers, which are refused by what comes next
        return list(ids)


def is_each(value: object) -> bool:
    """Whether a filter has a part for each context of a batch."""
    if value is None:
        return False
    if isinstance(value, np.ndarray):
        return value.ndim == 2 or (value.ndim == 1 and value.dtype == object and len(value) > 0 and _is_list(value[0]))
    if isinstance(value, list | tuple):
        return len(value) > 0 and _is_list(value[0])
    return hasattr(value, "tocsr")


def _is_list(value: object) -> bool:
    return not isinstance(value, int | str | bytes) and np.iterable(value)


def is_matrix(value: object) -> bool:
    """Whether a filter is a boolean or a sparse matrix, by actions of the whole catalogue."""
    return hasattr(value, "tocsr") or (isinstance(value, np.ndarray) and value.ndim == 2 and value.dtype == bool)


def filter_of(
    name: str, value: Filter, names: Actions | None, actions: int, contexts: int | None, *, unknown: bool = False
) -> Ints | list[Ints] | None:
    """Rows for all contexts, or a list of rows for each of so many (None: there is one, which is no batch).

    unknown: ids that are not known are left out, in place of being refused.
    """
    if value is None:
        return None
    find = known_rows if unknown else rows_of
    if not is_each(value):
        return find(name, value, names, actions)
    matrix = _matrix(name, value, actions)
    number = len(value) if matrix is None else len(matrix)  # type: ignore[arg-type]
    if contexts is None:
        raise InvalidInput(
            name, f"filters for {counted(number, 'context')} of a batch", "a list of ids: there is one context"
        )
    if number != contexts:
        raise InvalidInput(name, f"{number} lists or rows", f"{contexts}, one for each context")
    if matrix is not None:
        return matrix
    return [find(f"{name}[{i}]", ids, names, actions) for i, ids in enumerate(value)]  # type: ignore[arg-type]


def _matrix(name: str, value: object, actions: int) -> list[Ints] | None:
    """The columns of each row of a boolean or sparse matrix that are set; None for lists."""
    if isinstance(value, np.ndarray) and is_matrix(value):
        _check_shape(name, value.shape, actions)
        where, columns = np.nonzero(value)
        return np.split(columns, np.cumsum(np.bincount(where, minlength=len(value)))[:-1]) if len(value) else []
    if not isinstance(value, SparseMatrix):
        return None
    _check_shape(name, value.shape, actions)
    rows = value.tocsr()
    if rows.data.dtype.kind not in "biuf":
        raise InvalidInput(name, f"a sparse matrix of type {rows.data.dtype}", "one of booleans or numbers")
    counts = np.add.reduceat(np.append(rows.data != 0, False).astype(np.int64), rows.indptr[:-1])
    counts[np.diff(rows.indptr) == 0] = 0
    columns = rows.indices[rows.data != 0].astype(np.int64)
    return [np.unique(part) for part in np.split(columns, np.cumsum(counts)[:-1])] if len(counts) else []


def _check_shape(name: str, shape: tuple[int, ...], actions: int) -> None:
    if len(shape) != 2 or shape[1] != actions:
        raise InvalidInput(name, f"a matrix of shape {shape}", f"one of shape (n, {actions}), a column for each action")


__all__ = ["Filter", "SparseMatrix", "filter_of", "is_each", "is_matrix", "known_rows", "rows_of"]
