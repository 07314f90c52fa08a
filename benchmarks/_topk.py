"""The best k of a catalogue for one context, against the one matrix-vector product that no exact search can do without."""

from __future__ import annotations

import numpy as np
from _report import Figures
from _timing import alternate, clock, over, summary

from manyarms.policies.retrieval import ExactScan


def topk_over_gemv(actions: int = 1_000_000, dim: int = 64, k: int = 100, turns: int = 30) -> Figures:
    """The exact best k for one context: how many times the CPU time of `actions @ x`, in float32 on one thread."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((actions, dim), dtype=np.float32)
    scan = ExactScan(rows)
    held: list[object] = []  # what a turn made is released when no clock runs

    def search() -> float:
        x = rng.standard_normal((1, dim), dtype=np.float32)
        start = clock()
        found = scan.search(x, k)
        spent = clock() - start
        held[:] = [found]
        return spent

    def product() -> float:
        x = rng.standard_normal(dim, dtype=np.float32)
        start = clock()
        scores = rows @ x
        spent = clock() - start
        held[:] = [scores]
        return spent

    times = alternate(turns, search, product)
    print(f"  {actions:,} x {dim}, k = {k}: " + summary(("search", "product"), times))
    return {"topk_over_gemv": over(times, 0, 1)}
