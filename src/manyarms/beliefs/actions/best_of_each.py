"""The best k so far in each of many contexts, and the score that whoever comes next has to beat.

A place is that of a played action among the scores of the offer, p >= 0, or that of a unit among its counts, written ~u < 0.
"""

from __future__ import annotations

import numpy as np

from manyarms._base.typing import Array, Bools, Ints


class BestOfEach:
    """k places for each of n contexts, best first."""

    def __init__(self, contexts: int, k: int) -> None:
        self.scores = np.full((contexts, k), -np.inf)
        self.places = np.zeros((contexts, k), dtype=np.int64)

    @property
    def floor(self) -> Array:
        """(n,): what a score must exceed to be among the best k; a view that moves as they do."""
        return self.scores[:, -1]

    @property
    def complete(self) -> Bools:
        """(n,): where k have been found."""
        return self.floor > -np.inf

    def add(self, rows: Ints, scores: Array, places: Ints) -> None:
        """Scores in these contexts, in any order, several in one if need be; each action comes once."""
        above = scores > self.floor[rows]
        if not above.all():
            rows, scores, places = rows[above], scores[above], places[above]
        if not len(rows):
            return
        if self.scores.shape[1] == 1:
            order = np.argsort(scores, kind="stable")  # of several in one context the last, and so the largest, stays
            self.scores[rows[order], 0] = scores[order]
            self.places[rows[order], 0] = places[order]
            return
        touched = np.unique(rows)
        k = self.scores.shape[1]
        all_rows = np.concatenate([np.repeat(touched, k), rows])
        all_scores = np.concatenate([self.scores[touched].ravel(), scores])
        all_places = np.concatenate([self.places[touched].ravel(), places])
        order = np.lexsort((-all_scores, all_rows))
        lengths = np.bincount(np.searchsorted(touched, rows), minlength=len(touched)) + k
        starts = np.cumsum(lengths) - lengths
        best = order[starts[:, None] + np.arange(k)]
        self.scores[touched], self.places[touched] = all_scores[best], all_places[best]


__all__ = ["BestOfEach"]
