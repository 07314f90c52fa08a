"""Agents as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyarms._base.tables import Cell, Table
from manyarms._base.text import counted

if TYPE_CHECKING:
    from manyarms.agents.deciding import Decider
    from manyarms.beliefs import Belief


def agent_table(agent: Decider, belief: Belief, version: int) -> Table:
    """What an agent is, and how far it has come; the belief is one that nobody changes meanwhile."""
    catalogue = belief.catalogue
    title = f"{agent.name}: {counted(catalogue.alive, 'action')}, contexts of length {belief.dim:,}"
    rows: list[tuple[Cell, ...]] = [
        ("decides by", repr(agent.decision)),
        ("belief", f"{type(belief).__name__}, {belief.likelihood!r}"),
        *([] if belief.memory is None else [("forgets", repr(belief.memory.how))]),
        ("actions played", f"{len(catalogue.played):,}"),
        ("actions retired", f"{catalogue.size - catalogue.alive:,}"),
        ("changes learned", f"{version:,}"),
        ("decisions numbered", f"{agent.draws:,}"),
        ("memory", f"{belief.nbytes / 1e6:,.1f} MB" if belief.nbytes >= 1e5 else f"{belief.nbytes / 1e3:,.1f} kB"),
    ]
    return Table(title, rows=rows)


__all__ = ["agent_table"]
