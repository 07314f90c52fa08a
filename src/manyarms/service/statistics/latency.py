"""How long this process takes to answer: quantiles of the last five minutes, from counts of durations by size."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Any

LEAST = 1e-5  # seconds; sizes grow by 10 % from here, up to about a hundred seconds
GROWTH = math.log(1.1)
SIZES = 170
SLICE = 10.0  # seconds
SLICES = 30
MOST_ROUTES = 64
OTHER = "(others)"
QUANTILES = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))


class Latency:
    """Durations by route. A quantile is told as the upper end of its size: at most 10 % too large."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._routes: dict[str, list[tuple[int, list[int]]]] = {}

    def observe(self, route: str, seconds: float) -> None:
        """One answer. Quick, from any thread."""
        number = int(self._clock() // SLICE)
        size = 0 if seconds <= LEAST else min(SIZES - 1, 1 + int(math.log(seconds / LEAST) / GROWTH))
        with self._lock:
            if route not in self._routes and len(self._routes) >= MOST_ROUTES:
                route = OTHER
            slices = self._routes.setdefault(route, [(-1, [])] * SLICES)
            when, counts = slices[number % SLICES]
            if when != number:
                counts = [0] * SIZES
                slices[number % SLICES] = (number, counts)
            counts[size] += 1

    def body(self) -> dict[str, dict[str, Any]]:
        """By route: how many answers, and quantiles in seconds."""
        oldest = int(self._clock() // SLICE) - SLICES
        found = {}
        with self._lock:
            for route, slices in sorted(self._routes.items()):
                recent = [counts for when, counts in slices if when > oldest and counts]
                if recent:
                    found[route] = [sum(column) for column in zip(*recent, strict=True)]
        return {route: {"count": sum(counts), **_quantiles(counts)} for route, counts in found.items()}


def _quantiles(counts: list[int]) -> dict[str, float]:
    total, seen, found = sum(counts), 0, {}
    wanted = list(QUANTILES)
    for size, count in enumerate(counts):
        seen += count
        while wanted and seen >= wanted[0][1] * total:
            found[wanted.pop(0)[0]] = LEAST * math.exp(size * GROWTH)
    return found


__all__ = ["Latency"]
