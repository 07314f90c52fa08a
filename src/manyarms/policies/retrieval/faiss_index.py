"""The best k actions through an inverted-file index of FAISS."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.linalg import GATHERED, inner_products_at
from manyarms._base.typing import AnyArray, Ints
from manyarms.errors import InvalidInput, MissingExtra
from manyarms.policies.retrieval.base import Exclusions, OfActions, Recall, squared_norms
from manyarms.policies.retrieval.exact_scan import ExactScan

SQUARED = 1e-15, 1e15  # lengths that single precision can square, and sum


class FaissIndex(OfActions):
    """An inverted-file index of FAISS, its findings scored again exactly and filtered.

    PolicyRows get one more coordinate, sqrt(M^2 - ||beta_a||^2) with M the largest length, and queries a 0 there: all rows are
    then equally long, and the nearest is the one with the largest inner product, which inverted lists are good at.
    Queries are stretched to length M as well. That changes no order of actions, but the cells that a query looks into:
    a short query would go to the cells near the origin, wherever it points.

    lists: cells of the index, about sqrt(K) unless given. probes: cells that a query looks into; more is slower and
    finds more. longer: how many times k are fetched and scored again in the precision of `actions`, because FAISS
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
        super().__init__(actions)
        self.exact = ExactScan(self.actions)
        count, dim = self.actions.shape
        self.lists = validate.count("lists", max(1, round(count**0.5)) if lists is None else lists)
        if self.lists > count:
            raise InvalidInput("lists", self.lists, f"at most the number of actions, {count}")
        self.probes = validate.count("probes", max(1, self.lists // 16) if probes is None else probes)
        self.probes = min(self.probes, self.lists)
        self.longer = validate.positive("longer", longer)
        if self.longer < 1:
            raise InvalidInput("longer", longer, "at least 1: as many as are asked for")
        self._index = faiss.IndexIVFFlat(faiss.IndexFlatL2(dim + 1), dim + 1, self.lists, faiss.METRIC_L2)
        self._index.cp.seed = validate.seed(seed) % 2**31  # FAISS takes so many bits of it
        self._index.cp.min_points_per_centroid = 1
        self._index.cp.max_points_per_centroid = 64  # more points change the cells little and take most of the time
        # FAISS squares in single precision: lengths that it could not square are counted in the largest one
        self._unit = 1.0 if SQUARED[0] <= self.largest_norm <= SQUARED[1] else self.largest_norm or 1.0
        rows = _augmented(self.actions, self._unit)
        self._index.train(rows)
        self._index.add(rows)

    def __repr__(self) -> str:
        return f"FaissIndex(actions={len(self.actions):,}, lists={self.lists}, probes={self.probes})"

    @classmethod
    def tuned(
        cls,
        actions: npt.ArrayLike,
        queries: npt.ArrayLike,
        k: int,
        recall: float = 0.95,
        *,
        lists: int | None = None,
        longer: float = 2.0,
        seed: int = 0,
    ) -> Self:
        """The index with the fewest probes, among 1, 2, 4, ..., that reaches a recall on these queries."""
        recall = validate.probability("recall", recall)
        index = cls(actions, lists=lists, probes=1, longer=longer, seed=seed)
        while float(index.recall(queries, k)) < recall and index.probes < index.lists:
            index.probes = min(2 * index.probes, index.lists)
        return index

    def search(self, queries: npt.ArrayLike, k: int, exclude: npt.ArrayLike | None = None) -> tuple[Ints, AnyArray]:
        """Ids (n, k) and exact inner products (n, k), falling; some of the true best may be missing."""
        asked, excluded, ids, scores = self.prepared(queries, k, exclude)
        k = ids.shape[1]
        step = max(1, GATHERED // max(1, self._fetched(k, excluded) * self.actions.shape[1]))
        for start in range(0, len(asked), step):
            part = slice(start, start + step)
            ids[part], scores[part] = self._block(asked[part], k, excluded, start)
        return ids, scores

    def recall(self, queries: npt.ArrayLike, k: int) -> Recall:
        """The part of the true best k that `search` finds, measured on these queries.

        An action as good as the k-th best counts as found, whichever of equals it is.
        """
        asked = self.checked_queries(queries)
        if not len(asked):
            raise InvalidInput("queries", "none", "at least one query")
        best, _ = self.exact.search(asked, k)
        found, scores = self.search(asked, k)
        # both scored by the same sums: a product and a sum of products differ in their last digit
        limit = inner_products_at(asked, self.actions, best).min(axis=1, keepdims=True)
        share = (scores >= limit).mean(axis=1)
        return Recall(float(share.mean()), float(share.min()), found.shape[1], len(asked))

    def _fetched(self, k: int, excluded: Exclusions) -> int:
        return min(
            len(self.actions), int(np.ceil(self.longer * k)) + (0 if excluded.shared is not None else excluded.most)
        )

    def _block(self, asked: AnyArray, k: int, excluded: Exclusions, start: int) -> tuple[Ints, AnyArray]:
        ids, scores = self._probed(asked, np.arange(start, start + len(asked)), k, excluded, self.probes)
        probes = self.probes
        while len(short := np.flatnonzero(np.isneginf(scores[:, -1]))) and probes < self.lists:
            probes = min(4 * probes, self.lists)
            ids[short], scores[short] = self._probed(asked[short], start + short, k, excluded, probes)
        for i in short:
            found, _ = self.exact.search(asked[i : i + 1], k, excluded.of_row(start + int(i)))
            ids[i], scores[i] = found[0], inner_products_at(asked[i : i + 1], self.actions, found)[0]
        return ids, scores

    def _probed(
        self, asked: AnyArray, numbers: Ints, k: int, excluded: Exclusions, probes: int
    ) -> tuple[Ints, AnyArray]:
        """Ids and exact scores of queries with the given numbers from `probes` cells; -inf where there are no more."""
        faiss = _faiss()
        rows = np.zeros((len(asked), self.actions.shape[1] + 1), dtype=np.float32)
        lengths = np.sqrt(squared_norms(asked))[:, None]
        rows[:, :-1] = asked * (self.largest_norm / self._unit / np.where(lengths > 0, lengths, 1.0))
        settings = faiss.SearchParametersIVF(nprobe=probes)
        if excluded.shared is not None:  # FAISS leaves them out itself: no list is long enough for a large filter
            batch = faiss.IDSelectorBatch(excluded.shared)
            settings = faiss.SearchParametersIVF(nprobe=probes, sel=faiss.IDSelectorNot(batch))
        _, ids = self._index.search(rows, self._fetched(k, excluded), params=settings)
        scores = inner_products_at(asked, self.actions, np.maximum(ids, 0))
        scores[ids < 0] = -np.inf
        if excluded.shared is None and excluded.most:
            for i, number in enumerate(numbers):
                scores[i, np.isin(ids[i], excluded.of_row(int(number)))] = -np.inf
        order = np.lexsort((ids, -scores), axis=1)[:, :k]
        return np.take_along_axis(ids, order, axis=1), np.take_along_axis(scores, order, axis=1)


def _augmented(actions: AnyArray, unit: float) -> AnyArray:
    """Rows of equal length, (K, l + 1) float32, counted in `unit`: sqrt(M^2 - ||beta_a||^2) is put behind each."""
    rows = np.empty((len(actions), actions.shape[1] + 1), dtype=np.float32)
    rows[:, :-1] = actions if unit == 1.0 else actions / unit
    squared = squared_norms(actions) if unit == 1.0 else squared_norms(rows[:, :-1])
    rows[:, -1] = np.sqrt(np.maximum(squared.max() - squared, 0.0))
    return rows


def _faiss() -> Any:
    try:
        import faiss
    except ImportError as error:
        raise MissingExtra("faiss-cpu", "faiss", "an index for inner products") from error
    return faiss


__all__ = ["FaissIndex"]
