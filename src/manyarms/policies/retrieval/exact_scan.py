"""The best k actions by looking at every one of them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy.typing as npt

from manyarms._base.top_k import inner_products, one_query_top_k, top_k_by_rows
from manyarms._base.typing import AnyArray, Ints
from manyarms.policies.retrieval.base import OfActions, Recall

FEW = 6  # up to this many queries are faster one by one: a product with a thin matrix is slow
SCORES = 256 * 2048  # scores in a block: with float32 2 MB, near the second-level cache


class ExactScan(OfActions):
    """Looks at every action (K, l): one query at a time, or many in blocks of queries x actions (`_base/top_k.py`)."""

    def __repr__(self) -> str:
        return f"ExactScan(actions={len(self.actions):,}, dim={self.actions.shape[1]}, {self.actions.dtype})"

    def search(self, queries: npt.ArrayLike, k: int, exclude: npt.ArrayLike | None = None) -> tuple[Ints, AnyArray]:
        """Ids (n, k) and inner products (n, k), falling; equal products go to the lowest id."""
        asked, excluded, ids, scores = self.prepared(queries, k, exclude)
        k = ids.shape[1]
        if len(asked) <= FEW:
            for i, query in enumerate(asked):
                ids[i], scores[i] = one_query_top_k(query, self.actions, k, excluded.mask(i, i + 1))
            return ids, scores

        def blocks(part: slice) -> Iterable[AnyArray]:
            width = max(1, SCORES // (part.stop - part.start))
            return inner_products(asked[part], self.actions, excluded.mask(part.start, part.stop), width)

        return top_k_by_rows(len(asked), k, blocks, self.actions.dtype)

    def recall(self, queries: npt.ArrayLike, k: int) -> Recall:
        """1: this is what others are measured against."""
        _, _, ids, _ = self.prepared(queries, k, None)
        return Recall(1.0, 1.0, ids.shape[1], len(ids))


__all__ = ["ExactScan"]
