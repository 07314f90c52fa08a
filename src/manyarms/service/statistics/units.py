"""About how many different units there were, in 4 kB: counted by the longest run of zeros in hashes (HyperLogLog)."""

from __future__ import annotations

import math

import numpy as np

from manyarms.live.records import hashed

BITS = 12
CELLS = 1 << BITS
_SCALE = 0.7213 / (1 + 1.079 / CELLS)


class DistinctUnits:
    """Different texts, within about 2 %; exact to a few where they are few (Flajolet, Fusy, Gandouet and Meunier, 2007)."""

    def __init__(self) -> None:
        self._longest = np.zeros(CELLS, dtype=np.uint8)

    def add(self, unit: str) -> None:
        """One that may have come before."""
        number = hashed("distinct", unit)
        cell, rest = number & (CELLS - 1), number >> BITS
        run = 62 - BITS - rest.bit_length() + 1
        if run > self._longest[cell]:
            self._longest[cell] = run

    def number(self) -> int:
        """How many there were."""
        estimate = _SCALE * CELLS**2 / float((2.0 ** -self._longest.astype(np.float64)).sum())
        empty = int((self._longest == 0).sum())
        if estimate <= 2.5 * CELLS and empty:
            estimate = CELLS * math.log(CELLS / empty)
        return round(estimate)


__all__ = ["DistinctUnits"]
