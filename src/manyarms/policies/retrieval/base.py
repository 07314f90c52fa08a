"""What every search for the best actions shares: recall, excluded actions, and checked queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.private import locked
from manyarms._base.top_k import Mask
from manyarms._base.typing import AnyArray, Array, Ints
from manyarms.errors import InvalidInput, UnknownAction
from manyarms.policies.encoders import float_array

SQUARED_AT_A_TIME = 1 << 17  # rows whose lengths are computed together
LARGEST_SINGLE = 1e37  # float32 ends at 3.4e38


@dataclass(frozen=True)
class Recall:
    """Which part of the true best k an index found: on average over the queries, and for the worst of them."""

    mean: float
    lowest: float
    k: int
    queries: int

    def __float__(self) -> float:
        return self.mean

    def __str__(self) -> str:
        return f"recall@{self.k} {self.mean:.4f} over {self.queries:,} queries (lowest {self.lowest:.3f})"


class Retriever(Protocol):
    """Anything that finds the best k actions of queries (n, l)."""

    def search(self, queries: npt.ArrayLike, k: int, exclude: npt.ArrayLike | None = None) -> tuple[Ints, AnyArray]:
        """Ids (n, k) and inner products (n, k), falling."""

    def recall(self, queries: npt.ArrayLike, k: int) -> Recall:
        """The part of the true best k that `search` finds, measured on these queries."""


class Exclusions:
    """Actions that must not be found: none, the same for all queries (`shared`), or each query its own."""

    def __init__(self, exclude: npt.ArrayLike | None, queries: int, actions: int) -> None:
        self.actions = actions
        self.shared: Ints | None = None
        self._row = self._id = np.empty(0, dtype=np.int64)
        self.most = 0
        if exclude is None:
            return
        wanted = f"ids of shape (m,), or ({queries}, m) padded with -1"
        by_query = exclude.ndim == 2 if isinstance(exclude, np.ndarray) else _is_nested(exclude)
        if isinstance(exclude, list | tuple) and any(isinstance(one, float) for one in exclude):
            raise UnknownAction("exclude", validate.describe(exclude), "integers")
        given = validate.integers("exclude", exclude, 2 if by_query else 1, wanted)
        if by_query and len(given) != queries:
            raise InvalidInput("exclude", f"shape {given.shape}", wanted)
        lowest = 0 if given.ndim == 1 else -1
        wrong = (given < lowest) | (given >= actions)
        if wrong.any():
            raise UnknownAction("exclude", int(given[wrong].flat[0]), f"actions from 0 to {actions - 1}")
        if given.ndim == 1:
            self.shared = np.unique(given)
            self.most = len(self.shared)
            return
        row, column = np.nonzero(given >= 0)
        pairs = np.unique(row * actions + given[row, column])
        self._row, self._id = pairs // actions, pairs % actions
        self.most = int(np.bincount(self._row, minlength=1).max())

    def enough(self, k: int) -> int:
        """k, if every query has at least k actions on offer."""
        k = validate.count("k", k)
        if k > self.actions - self.most:
            excluded = f" less {self.most} excluded" if self.most else ""
            raise InvalidInput("k", k, f"at most the number of actions, {self.actions}{excluded}")
        return k

    def of_rows(self, first: int, last: int) -> tuple[Ints, Ints]:
        """Pairs (row counted from `first`, id) of queries first..last-1, by rising id."""
        lower, upper = np.searchsorted(self._row, [first, last])
        order = np.argsort(self._id[lower:upper], kind="stable")
        return self._row[lower:upper][order] - first, self._id[lower:upper][order]

    def of_row(self, row: int) -> Ints:
        """What one query must not find."""
        return self.shared if self.shared is not None else self.of_rows(row, row + 1)[1]

    def mask(self, first_row: int, last_row: int) -> Mask | None:
        """What puts -inf at the excluded among the scores of queries first_row..last_row-1; None where nothing is excluded."""
        if not self.most:
            return None
        row, column = self.of_rows(first_row, last_row)

        def put(scores: AnyArray, first: int) -> None:
            ids = column if self.shared is None else self.shared
            lower, upper = np.searchsorted(ids, [first, first + scores.shape[1]])
            where = row[lower:upper] if self.shared is None else slice(None)
            scores[where, ids[lower:upper] - first] = -np.inf

        return put


def _is_nested(value: object) -> bool:
    """A list of lists."""
    return isinstance(value, Sequence) and len(value) > 0 and isinstance(value[0], Sequence | np.ndarray)


def squared_norms(rows: AnyArray) -> Array:
    """||row||^2 in float64, (K,)."""
    parts = (rows[first : first + SQUARED_AT_A_TIME] for first in range(0, len(rows), SQUARED_AT_A_TIME))
    return np.concatenate([np.einsum("kd,kd->k", part, part, dtype=np.float64) for part in parts])


class OfActions:
    """A search among actions (K, l), held in float64 or, where they came so, in float32."""

    def __init__(self, actions: npt.ArrayLike) -> None:
        # read row by row, so rows lie side by side; where that takes a copy, the copy is private as well
        self.actions = validate.owned(locked(np.ascontiguousarray(float_array("actions", actions, (None, None)))))
        self.largest_norm = float(np.sqrt(squared_norms(self.actions).max()))

    def checked_queries(self, queries: npt.ArrayLike) -> AnyArray:
        """Queries (n, l) in the precision of the actions."""
        rows = validate.rows("queries", queries, self.actions.shape[1])
        if self.actions.dtype == np.float32:
            longest = float(np.sqrt(np.einsum("nd,nd->n", rows, rows).max(initial=0.0)))
            if longest * max(self.largest_norm, 1.0) > LARGEST_SINGLE:
                came = f"a query of length {longest:.3g} beside an action of length {self.largest_norm:.3g}"
                raise InvalidInput("queries", came, "products that single precision can hold (or actions in float64)")
        return rows.astype(self.actions.dtype, copy=False)

    def prepared(
        self, queries: npt.ArrayLike, k: int, exclude: npt.ArrayLike | None
    ) -> tuple[AnyArray, Exclusions, Ints, AnyArray]:
        """Checked queries (n, l), what they must not find, and room for ids and scores (n, k)."""
        asked = self.checked_queries(queries)
        excluded = Exclusions(exclude, len(asked), len(self.actions))
        shape = len(asked), excluded.enough(k)
        return asked, excluded, np.empty(shape, dtype=np.int64), np.empty(shape, dtype=self.actions.dtype)


__all__ = ["Exclusions", "OfActions", "Recall", "Retriever", "squared_norms"]
