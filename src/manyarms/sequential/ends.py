"""The ends of an interval that is valid at all times, as a table."""

from __future__ import annotations

from collections.abc import Callable

from manyarms._base.tables import Cell, Table

LEVELS = (0.9, 0.95, 0.99)


def ends_table(title: str, lower: Callable[[float], float], upper: Callable[[float], float] | None = None) -> Table:
    """At the usual levels, each by itself: half of alpha for each of two ends."""
    rows: list[tuple[Cell, ...]] = []
    for level in LEVELS:
        alpha = 1 - level
        if upper is None:
            rows.append((f"{level:.0%}", lower(alpha)))
        else:
            rows.append((f"{level:.0%}", lower(alpha / 2), upper(alpha / 2)))
    return Table(title, ("level", "at least") if upper is None else ("level", "at least", "at most"), rows)


__all__ = ["ends_table"]
