"""The best k actions by looking at every one of them."""

from __future__ import annotations

import numpy.typing as npt

from manyarms._base.top_k import QUERIES, inner_product_top_k, one_query_top_k
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
        if len(asked) <= FEW:
            for i, query in enumerate(asked):
                ids[i], scores[i] = one_query_top_k(query, self.actions, k, excluded.mask(i, i + 1))
            return ids, scores
        for start in range(0, len(asked), QUERIES):
            part = asked[start : start + QUERIES]
            rows = slice(start, start + len(part))
            mask, width = excluded.mask(rows.start, rows.stop), max(1, SCORES // len(part))
            ids[rows], scores[rows] = inner_product_top_k(part, self.actions, k, mask, width)
        return ids, scores

    def recall(self, queries: npt.ArrayLike, k: int) -> Recall:
        """1: this is what others are measured against."""
        _, _, ids, _ = self.prepared(queries, k, None)
        return Recall(1.0, 1.0, ids.shape[1], len(ids))


__all__ = ["ExactScan"]
