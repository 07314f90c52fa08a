"""The k largest of many scores, exactly, with ties going to the lowest id: in blocks, by inner product, or of one query."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from manyarms._base.typing import AnyArray, Array, Ints

QUERIES, ACTIONS = 256, 2048  # in a block: 4 MB of float64 scores, near the second-level cache
ONE_QUERY = 1 << 17  # scores in a block of a single query: they are still in the cache when they are compared
GROUPS = 1000  # least number of strided groups whose maxima give a threshold

Mask = Callable[[AnyArray, int], None]
"""Puts -inf where scores (b, m) of the actions first, ..., first + m - 1 are excluded: mask(scores, first)."""


def top_k(blocks: Iterable[Array], k: int) -> tuple[Ints, Array]:
    """Ids (b, k) and scores (b, k) of the largest, falling, over consecutive blocks (b, m) of columns.

    Only columns above a row's k-th best score so far are looked at: after a few blocks they are few.
    """
    ids: Ints | None = None
    best: Array | None = None
    first = 0
    for block in blocks:
        width = block.shape[1]
        if best is None or ids is None:
            best = np.full((len(block), k), -np.inf, dtype=block.dtype)
            ids = np.full((len(block), k), np.iinfo(np.int64).max)
        if k == 1:
            winner = block.argmax(axis=1)
            found = block[np.arange(len(block)), winner]
            better = found > best[:, 0]
            best[better, 0], ids[better, 0] = found[better], first + winner[better]
        else:
            _merge(best, ids, block, first)
        first += width
    if best is None or ids is None:
        return np.empty((0, k), dtype=np.int64), np.empty((0, k))
    order = np.lexsort((ids, -best), axis=1)
    return np.take_along_axis(ids, order, axis=1), np.take_along_axis(best, order, axis=1)


def _merge(best: Array, ids: Ints, block: Array, first: int) -> None:
    """In place: the best k of those so far and of a new block, whose columns have higher ids."""
    k = best.shape[1]
    # numpy finds the few that are left six times as fast along one axis as along two
    hits = np.flatnonzero(block > best.min(axis=1)[:, None])
    if not len(hits):
        return
    hit_row, hit_column = np.divmod(hits, block.shape[1])
    counts = np.bincount(hit_row, minlength=len(block))
    touched = np.flatnonzero(counts)
    place = np.empty(len(block), dtype=np.int64)
    place[touched] = np.arange(len(touched))
    within = np.arange(len(hit_row)) - np.repeat(np.cumsum(counts) - counts, counts)
    scores = np.full((len(touched), k + int(counts.max())), -np.inf, dtype=block.dtype)
    owners = np.full(scores.shape, np.iinfo(np.int64).max)
    scores[:, :k], owners[:, :k] = best[touched], ids[touched]
    scores[place[hit_row], k + within] = block[hit_row, hit_column]
    owners[place[hit_row], k + within] = first + hit_column
    limit = -np.partition(-scores, k - 1, axis=1)[:, k - 1 : k]
    above = scores > limit
    ties = scores == limit
    room = k - above.sum(axis=1, keepdims=True)
    # the columns so far come in no order, so ties are ranked by id; nearly always there is room for all of them
    crowded = np.flatnonzero(ties.sum(axis=1) > room[:, 0])
    for row in crowded:
        columns = np.flatnonzero(ties[row])
        ties[row, columns[np.argsort(owners[row, columns], kind="stable")][room[row, 0] :]] = False
    keep = above | ties
    best[touched] = scores[keep].reshape(-1, k)
    ids[touched] = owners[keep].reshape(-1, k)


def top_k_by_rows(
    rows: int, k: int, blocks: Callable[[slice], Iterable[AnyArray]], dtype: npt.DTypeLike = np.float64
) -> tuple[Ints, AnyArray]:
    """Ids (n, k) and scores (n, k) of the largest, for some rows at a time, whose blocks of columns `blocks` gives."""
    ids, scores = np.empty((rows, k), dtype=np.int64), np.empty((rows, k), dtype=dtype)
    for start in range(0, rows, QUERIES):
        part = slice(start, min(start + QUERIES, rows))
        ids[part], scores[part] = top_k(blocks(part), k)
    return ids, scores


def inner_product_top_k(queries: AnyArray, actions: AnyArray, k: int) -> tuple[Ints, AnyArray]:
    """Ids (n, k) and inner products (n, k) of the best actions (K, l) for queries (n, l)."""
    return top_k_by_rows(len(queries), k, lambda part: inner_products(queries[part], actions), actions.dtype)


def inner_products(
    queries: AnyArray, actions: AnyArray, mask: Mask | None = None, width: int = ACTIONS
) -> Iterable[AnyArray]:
    """Inner products of queries (b, l) with consecutive actions (K, l), in blocks (b, width) that are read one by one."""
    room = np.empty((len(queries), min(width, len(actions))), dtype=actions.dtype)
    for first in range(0, len(actions), width):
        rows = actions[first : first + width]
        scores = np.matmul(queries, rows.T, out=room[:, : len(rows)])
        if mask is not None:
            mask(scores, first)
        yield scores


def one_query_top_k(query: AnyArray, actions: AnyArray, k: int, mask: Mask | None = None) -> tuple[Ints, AnyArray]:
    """Ids (k,) and inner products (k,) for one query (l,): one matrix-vector product and little else.

    The maxima of strided groups of actions give a threshold that at least k scores reach, and only the few that reach it are
    sorted. Groups of neighbours would do badly where actions lie in order of popularity.
    """
    room = np.empty(min(ONE_QUERY, len(actions)), dtype=actions.dtype)
    limit = -np.inf  # at least k scores reach it
    ids, values = [], []
    for first in range(0, len(actions), len(room)):
        rows = actions[first : first + len(room)]
        scores = np.matmul(rows, query, out=room[: len(rows)])
        if mask is not None:
            mask(scores[None], first)
        above = np.flatnonzero(scores >= limit) if first else None
        if above is None or len(above) > 8 * k:  # the first block, or one that is better than all before
            limit = max(limit, _threshold(scores, k))
            above = np.flatnonzero(scores >= limit)
        ids.append(above + first)
        values.append(scores[above])
    return _largest(np.concatenate(ids), np.concatenate(values), k)


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


__all__ = [
    "ACTIONS",
    "QUERIES",
    "Mask",
    "inner_product_top_k",
    "inner_products",
    "one_query_top_k",
    "top_k",
    "top_k_by_rows",
]
