"""The k largest of many scores that come in blocks, exactly, with ties going to the lowest id."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from manyarms._base.typing import Array, Ints


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
    """In place: the best k of what was kept and of a new block; its columns have higher ids than all kept ones."""
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
    # kept columns come in no order, so ties are ranked by id; nearly always there is room for all of them
    crowded = np.flatnonzero(ties.sum(axis=1) > room[:, 0])
    for row in crowded:
        columns = np.flatnonzero(ties[row])
        ties[row, columns[np.argsort(owners[row, columns], kind="stable")][room[row, 0] :]] = False
    keep = above | ties
    best[touched] = scores[keep].reshape(-1, k)
    ids[touched] = owners[keep].reshape(-1, k)


__all__ = ["top_k"]
