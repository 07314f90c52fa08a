"""The best k of many actions by inner product x^T beta_a: exactly, or through an index with its recall measured.

    scan = ExactScan(actions)                        # (K, l), float32 for half the memory and time
    ids, scores = scan.search(queries, k=100)        # (n, k) each, falling; equal scores go to the lowest id
    index = FaissIndex(actions)                      # needs the extra `faiss`
    print(index.recall(queries, k=100))              # on your own queries: recall depends on the data

Policies with an inner-product head reduce their best actions to this search (thesis, lines 5425-5429). Both classes have
the same two methods. `exclude` bars actions: ids (m,) for all queries, or (n, m) for each its own, padded with -1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.top_k import top_k
from manyarms._base.typing import AnyArray, Array, Ints
from manyarms.errors import InvalidInput, MissingExtra, UnknownAction

ROWS = 256  # queries in a block
FEW = 6  # up to so many queries are faster one by one: a product with a thin matrix is slow
SCORES = 256 * 2048  # scores in a block: with float32 2 MB, near the second-level cache
GATHERED = 1 << 22  # numbers in a block of gathered actions
ONE_QUERY = 1 << 17  # scores in a block of a single query: they are still in the cache when they are compared
LARGEST_SINGLE = 1e37  # float32 ends at 3.4e38
GROUPS = 1000  # least number of strided groups whose maxima give a threshold


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


class ExactScan:
    """Looks at every action.

    One query is one matrix-vector product and little else: the maxima of strided groups of actions give a threshold that
    at least k scores reach, and only the few that reach it are kept and sorted. Groups of neighbours would do badly where
    actions lie in order of popularity. Many queries go in blocks of queries x actions.
    """

    def __init__(self, actions: npt.ArrayLike) -> None:
        self.actions = _matrix(actions)
        self.reach = float(np.sqrt(_squared_lengths(self.actions).max()))  # the largest length of an action

    def __repr__(self) -> str:
        return f"ExactScan(actions={len(self.actions):,}, dim={self.actions.shape[1]}, {self.actions.dtype})"

    def search(self, queries: npt.ArrayLike, k: int, exclude: npt.ArrayLike | None = None) -> tuple[Ints, AnyArray]:
        """Ids (n, k) and inner products (n, k), falling; equal products go to the lowest id."""
        asked = _queries(queries, self.actions, self.reach)
        barred = _Barred(exclude, len(asked), len(self.actions))
        k = barred.enough(k)
        ids = np.empty((len(asked), k), dtype=np.int64)
        scores = np.empty((len(asked), k), dtype=self.actions.dtype)
        if len(asked) <= FEW:
            for i, row in enumerate(asked):
                ids[i], scores[i] = self._one(row, k, barred, i)
            return ids, scores
        for start in range(0, len(asked), ROWS):
            part = slice(start, start + ROWS)
            ids[part], scores[part] = self._block(asked[part], k, barred, start)
        return ids, scores

    def recall(self, queries: npt.ArrayLike, k: int) -> Recall:
        """1: this is what others are measured against."""
        asked = _queries(queries, self.actions, self.reach)
        return Recall(1.0, 1.0, _Barred(None, len(asked), len(self.actions)).enough(k), len(asked))

    def _one(self, asked: AnyArray, k: int, barred: _Barred, number: int) -> tuple[Ints, AnyArray]:
        room = np.empty(min(ONE_QUERY, len(self.actions)), dtype=self.actions.dtype)
        pairs = barred.of_rows(number, number + 1) if barred.most else None
        limit = -np.inf  # at least k scores reach it
        ids, values = [], []
        for first in range(0, len(self.actions), len(room)):
            rows = self.actions[first : first + len(room)]
            scores = np.matmul(rows, asked, out=room[: len(rows)])
            if pairs is not None:
                barred.bar(scores[None], pairs, first)
            kept = np.flatnonzero(scores >= limit) if first else None
            if kept is None or len(kept) > 8 * k:  # the first block, or one that is better than all before
                limit = max(limit, _threshold(scores, k))
                kept = np.flatnonzero(scores >= limit)
            ids.append(kept + first)
            values.append(scores[kept])
        return _largest(np.concatenate(ids), np.concatenate(values), k)

    def _block(self, asked: AnyArray, k: int, barred: _Barred, start: int) -> tuple[Ints, AnyArray]:
        width = min(max(1, SCORES // len(asked)), len(self.actions))
        room = np.empty((len(asked), width), dtype=self.actions.dtype)
        pairs = barred.of_rows(start, start + len(asked))

        def blocks() -> Any:
            for first in range(0, len(self.actions), width):
                rows = self.actions[first : first + width]
                found = np.matmul(asked, rows.T, out=room[:, : len(rows)])
                barred.bar(found, pairs, first)
                yield found

        ids, scores = top_k(blocks(), k)
        return ids, scores


class FaissIndex:
    """An inverted-file index of FAISS, its findings scored again exactly and filtered.

    Rows get one more coordinate, sqrt(M^2 - ||beta_a||^2) with M the largest length, and queries a 0 there: all rows are
    then equally long, and the nearest is the one with the largest inner product, which inverted lists are good at.
    Queries are stretched to length M as well. That changes no order of actions, but the cells that a query looks into:
    a short query would go to the cells near the origin, wherever it points.

    lists: cells of the index, about sqrt(K) unless given. probes: cells that a query looks into; more is slower and
    finds more. longer: so many times k are fetched and scored again in the precision of `actions`, because FAISS
    works in float32. A query that found too few, or lost too many to a filter, looks into four times as many cells, and
    so on; one for whom all cells are not enough goes to the exact scan.
    """

    def __init__(
        self,
        actions: npt.ArrayLike,
        *,
        lists: int | None = None,
        probes: int | None = None,
        longer: float = 2.0,
        seed: int = 0,
    ) -> None:
        faiss = _faiss()
        self.actions = _matrix(actions)
        self.exact = ExactScan(self.actions)
        self.reach = self.exact.reach
        count, dim = self.actions.shape
        self.lists = validate.count("lists", max(1, round(count**0.5)) if lists is None else lists)
        if self.lists > count:
            raise InvalidInput("lists", self.lists, f"at most the number of actions, {count}")
        self.probes = validate.count("probes", max(1, self.lists // 16) if probes is None else probes)
        self.longer = validate.positive("longer", longer)
        if self.longer < 1:
            raise InvalidInput("longer", longer, "at least 1: as many as are asked for")
        self._index = faiss.IndexIVFFlat(faiss.IndexFlatL2(dim + 1), dim + 1, self.lists, faiss.METRIC_L2)
        self._index.cp.seed = validate.count("seed", seed, least=0)
        self._index.cp.min_points_per_centroid = 1
        self._index.cp.max_points_per_centroid = 64  # more points change the cells little and take most of the time
        rows = _augmented(self.actions)
        self._index.train(rows)
        self._index.add(rows)

    def __repr__(self) -> str:
        return f"FaissIndex(actions={len(self.actions):,}, lists={self.lists}, probes={self.probes})"

    @classmethod
    def tuned(cls, actions: npt.ArrayLike, queries: npt.ArrayLike, k: int, recall: float = 0.95, **more: Any) -> Self:
        """The index with the fewest probes, among 1, 2, 4, ..., that reaches a recall on these queries."""
        recall = validate.probability("recall", recall)
        index = cls(actions, probes=1, **more)
        while float(index.recall(queries, k)) < recall and index.probes < index.lists:
            index.probes = min(2 * index.probes, index.lists)
        return index

    def search(self, queries: npt.ArrayLike, k: int, exclude: npt.ArrayLike | None = None) -> tuple[Ints, AnyArray]:
        """Ids (n, k) and exact inner products (n, k), falling; some of the true best may be missing."""
        asked = _queries(queries, self.actions, self.reach)
        barred = _Barred(exclude, len(asked), len(self.actions))
        k = barred.enough(k)
        ids = np.empty((len(asked), k), dtype=np.int64)
        scores = np.empty((len(asked), k), dtype=self.actions.dtype)
        step = max(1, GATHERED // max(1, self._fetched(k, barred) * self.actions.shape[1]))
        for start in range(0, len(asked), step):
            part = slice(start, start + step)
            ids[part], scores[part] = self._block(asked[part], k, barred, start)
        return ids, scores

    def recall(self, queries: npt.ArrayLike, k: int) -> Recall:
        """The part of the true best k that `search` finds, measured on these queries.

        An action as good as the k-th best counts as found, whichever of equals it is.
        """
        asked = _queries(queries, self.actions, self.reach)
        if not len(asked):
            raise InvalidInput("queries", "none", "at least one query")
        best, _ = self.exact.search(asked, k)
        found, scores = self.search(asked, k)
        # both scored by the same sums: a product and a sum of products differ in their last digit
        limit = _scores_at(self.actions, asked, best).min(axis=1, keepdims=True)
        share = (scores >= limit).mean(axis=1)
        return Recall(float(share.mean()), float(share.min()), found.shape[1], len(asked))

    def _fetched(self, k: int, barred: _Barred) -> int:
        return min(len(self.actions), int(np.ceil(self.longer * k)) + (0 if barred.shared is not None else barred.most))

    def _block(self, asked: AnyArray, k: int, barred: _Barred, start: int) -> tuple[Ints, AnyArray]:
        ids, scores = self._probed(asked, np.arange(start, start + len(asked)), k, barred, self.probes)
        probes = self.probes
        while len(short := np.flatnonzero(np.isneginf(scores[:, -1]))) and probes < self.lists:
            probes = min(4 * probes, self.lists)
            ids[short], scores[short] = self._probed(asked[short], start + short, k, barred, probes)
        for i in short:
            found, _ = self.exact.search(asked[i : i + 1], k, barred.of_row(start + int(i)))
            ids[i], scores[i] = found[0], _scores_at(self.actions, asked[i : i + 1], found)[0]
        return ids, scores

    def _probed(self, asked: AnyArray, numbers: Ints, k: int, barred: _Barred, probes: int) -> tuple[Ints, AnyArray]:
        """Ids and exact scores of queries with the given numbers from so many cells; -inf where there are no more."""
        faiss = _faiss()
        rows = np.zeros((len(asked), self.actions.shape[1] + 1), dtype=np.float32)
        lengths = np.sqrt(_squared_lengths(asked))[:, None]
        rows[:, :-1] = asked * (self.reach / np.where(lengths > 0, lengths, 1.0))
        settings = faiss.SearchParametersIVF(nprobe=probes)
        if barred.shared is not None:  # FAISS leaves them out itself: no list is long enough for a large filter
            batch = faiss.IDSelectorBatch(barred.shared)
            settings = faiss.SearchParametersIVF(nprobe=probes, sel=faiss.IDSelectorNot(batch))
        _, ids = self._index.search(rows, self._fetched(k, barred), params=settings)
        scores = _scores_at(self.actions, asked, np.maximum(ids, 0))
        scores[ids < 0] = -np.inf
        if barred.shared is None and barred.most:
            for i, number in enumerate(numbers):
                scores[i, np.isin(ids[i], barred.of_row(int(number)))] = -np.inf
        order = np.lexsort((ids, -scores), axis=1)[:, :k]
        return np.take_along_axis(ids, order, axis=1), np.take_along_axis(scores, order, axis=1)


# ---- what both share


class _Barred:
    """Actions that must not be found: none, the same for all queries (`shared`), or each query its own."""

    def __init__(self, exclude: npt.ArrayLike | None, queries: int, actions: int) -> None:
        self.actions = actions
        self.shared: Ints | None = None
        self._row = self._id = np.empty(0, dtype=np.int64)
        self.most = 0
        if exclude is None:
            return
        given = np.asarray(exclude)
        if given.size and given.dtype.kind not in "iu":
            raise UnknownAction("exclude", f"type {given.dtype}", "whole numbers")
        if given.ndim not in (1, 2) or (given.ndim == 2 and len(given) != queries):
            raise InvalidInput(
                "exclude", f"shape {given.shape}", f"ids of shape (m,), or ({queries}, m) padded with -1"
            )
        lowest = 0 if given.ndim == 1 else -1
        wrong = (given < lowest) | (given >= actions)
        if wrong.any():
            raise UnknownAction("exclude", int(given[wrong].flat[0]), f"actions from 0 to {actions - 1}")
        if given.ndim == 1:
            self.shared = np.unique(given).astype(np.int64)
            self.most = len(self.shared)
            return
        row, column = np.nonzero(given >= 0)
        pairs = np.unique(row * actions + given[row, column].astype(np.int64))
        self._row, self._id = pairs // actions, pairs % actions
        self.most = int(np.bincount(self._row, minlength=1).max())

    def enough(self, k: int) -> int:
        """k, if so many actions are on offer to every query."""
        k = validate.count("k", k)
        if k > self.actions - self.most:
            barred = f" less {self.most} excluded" if self.most else ""
            raise InvalidInput("k", k, f"at most the number of actions, {self.actions}{barred}")
        return k

    def of_rows(self, first: int, last: int) -> tuple[Ints, Ints]:
        """Pairs (row counted from `first`, id) of queries first..last-1, by rising id."""
        lower, upper = np.searchsorted(self._row, [first, last])
        order = np.argsort(self._id[lower:upper], kind="stable")
        return self._row[lower:upper][order] - first, self._id[lower:upper][order]

    def of_row(self, row: int) -> Ints:
        """What one query must not find."""
        return self.shared if self.shared is not None else self.of_rows(row, row + 1)[1]

    def bar(self, scores: AnyArray, pairs: tuple[Ints, Ints], first: int) -> None:
        """Put -inf at what is barred among scores (b, m) of the actions first..first+m-1."""
        if self.shared is not None:
            lower, upper = np.searchsorted(self.shared, [first, first + scores.shape[1]])
            scores[:, self.shared[lower:upper] - first] = -np.inf
        elif self.most:
            row, column = pairs
            lower, upper = np.searchsorted(column, [first, first + scores.shape[1]])
            scores[row[lower:upper], column[lower:upper] - first] = -np.inf


def _threshold(scores: AnyArray, k: int) -> float:
    """A number that at least k of the scores (m,) reach, and few more; -inf where there are too few to find one."""
    groups = max(GROUPS, 10 * k)
    deep = len(scores) // groups
    if deep < 2:
        return -np.inf
    # group j has the scores j, j + groups, j + 2 groups, ...: the k largest maxima are k scores
    maxima = scores[: deep * groups].reshape(deep, groups).max(axis=0)
    return float(np.partition(maxima, groups - k)[groups - k])


def _largest(ids: Ints, values: AnyArray, k: int) -> tuple[Ints, AnyArray]:
    """The k largest of values (m,) with rising ids, falling, ties to the lowest id."""
    if len(values) > 4 * k:  # many ties, or too few actions for a threshold
        limit = np.partition(values, len(values) - k)[len(values) - k]
        keep = values > limit
        keep[np.flatnonzero(values == limit)[: k - int(keep.sum())]] = True
        ids, values = ids[keep], values[keep]
    order = np.argsort(-values, kind="stable")[:k]
    return ids[order], values[order]


def _scores_at(actions: AnyArray, queries: AnyArray, ids: Ints) -> AnyArray:
    """Inner products (n, m) with the actions `ids` (n, m), in blocks of gathered rows."""
    out = np.empty(ids.shape, dtype=actions.dtype)
    step = max(1, GATHERED // max(1, ids.shape[1] * actions.shape[1]))
    for start in range(0, len(queries), step):
        part = slice(start, start + step)
        np.einsum("nd,nmd->nm", queries[part], actions[ids[part]], out=out[part])
    return out


def _augmented(actions: AnyArray) -> AnyArray:
    """Rows of equal length, (K, l + 1) float32: sqrt(M^2 - ||beta_a||^2) is put behind each."""
    squared = _squared_lengths(actions)
    rows = np.empty((len(actions), actions.shape[1] + 1), dtype=np.float32)
    rows[:, :-1] = actions
    rows[:, -1] = np.sqrt(np.maximum(squared.max() - squared, 0.0))
    return rows


def _squared_lengths(actions: AnyArray) -> Array:
    return np.concatenate(
        [
            np.einsum("kd,kd->k", part, part, dtype=np.float64)
            for part in (actions[first : first + ONE_QUERY] for first in range(0, len(actions), ONE_QUERY))
        ]
    )


def _matrix(actions: npt.ArrayLike) -> AnyArray:
    given: Any = np.asarray(actions)
    checked = validate.as_array("actions", given, (None, None))
    return np.ascontiguousarray(given if given.dtype == np.float32 else checked)


def _queries(queries: npt.ArrayLike, actions: AnyArray, reach: float) -> AnyArray:
    rows = validate.as_floats("queries", queries)
    if rows.ndim != 2 or rows.shape[1] != actions.shape[1]:
        raise InvalidInput("queries", f"shape {rows.shape}", f"an array of shape (n, {actions.shape[1]})")
    if actions.dtype == np.float32:
        longest = float(np.sqrt(np.einsum("nd,nd->n", rows, rows).max(initial=0.0)))
        if longest * max(reach, 1.0) > LARGEST_SINGLE:
            came = f"a query of length {longest:.3g} beside an action of length {reach:.3g}"
            raise InvalidInput("queries", came, "products that single precision can hold (or actions in float64)")
    return rows.astype(actions.dtype, copy=False)


def _faiss() -> Any:
    try:
        import faiss
    except ImportError as error:
        raise MissingExtra("faiss-cpu", "faiss", "an index for inner products") from error
    return faiss


__all__ = ["ExactScan", "FaissIndex", "Recall", "Retriever"]
