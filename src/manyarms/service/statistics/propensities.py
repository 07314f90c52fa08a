"""How likely what was done was: propensities of the last day by powers of ten, and what they are worth."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

HOURS = 24
KINDS = ("exact", "estimated")
LEAST_POWER, PARTS = -8, 2  # bins of half a power of ten, from 1e-8 up to 1; the first has all that is below, too
BINS = -LEAST_POWER * PARTS
EDGES = [10.0 ** (LEAST_POWER + number / PARTS) for number in range(BINS + 1)]


def bin_of(propensity: float) -> int:
    """The bin of a propensity above 0: bins have their upper ends, and not their lower ones."""
    return min(BINS - 1, max(0, math.ceil((math.log10(propensity) - LEAST_POWER) * PARTS - 1e-9) - 1))


class Propensities:
    """Counts by hour, kind and bin, and the sums that an effective sample size needs."""

    def __init__(self) -> None:
        self._stamp = np.full(HOURS + 1, -1, dtype=np.int64)
        self._counts = np.zeros((HOURS + 1, len(KINDS), BINS), dtype=np.int64)
        self._sums = np.zeros((HOURS + 1, 2))  # of 1/p and of its square

    def add(self, at: float, propensity: float, kind: str) -> None:
        """One more. What is 0 has no weight, and is not counted."""
        hour = int(at // 3600)
        slot = hour % (HOURS + 1)
        if not propensity > 0 or self._stamp[slot] > hour:
            return
        if self._stamp[slot] < hour:
            self._stamp[slot] = hour
            self._counts[slot] = 0
            self._sums[slot] = 0.0
        self._counts[slot, KINDS.index(kind), bin_of(propensity)] += 1
        weight = 1.0 / max(propensity, 1e-150)
        self._sums[slot] += (weight, weight * weight)

    def body(self, now: float, decisions: int) -> dict[str, Any]:
        """The last day, this hour among it. decisions: of the same time; those without a propensity are the rest."""
        inside = (self._stamp > int(now // 3600) - HOURS) & (self._stamp >= 0)
        counts = self._counts[inside].sum(axis=0)
        one, two = self._sums[inside].sum(axis=0).tolist()
        known = int(counts.sum())
        return {
            "edges": EDGES,
            "kinds": {kind: counts[place].tolist() for place, kind in enumerate(KINDS)},
            "exact": int(counts[0].sum()),
            "estimated": int(counts[1].sum()),
            "none": max(0, decisions - known),
            "effective": one * one / two if two else None,
            "known": known,
        }


__all__ = ["BINS", "EDGES", "Propensities", "bin_of"]
