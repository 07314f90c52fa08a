"""An agent whose inner agent is replaced by another now and then: what the two kinds of them have in common."""

from __future__ import annotations

from typing import Any

from manyarms._base.typing import Array


class Replaced:
    """Decides as `agent` does, whichever that is now."""

    agent: Any

    def __init__(self) -> None:
        self._told: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []  # what another agent has to be told, too

    @property
    def belief(self) -> Any:
        """What it knows now."""
        return self.agent.belief

    @property
    def played(self) -> int:
        """How many actions the agent of now has played."""
        return int(self.agent.played)

    @property
    def nbytes(self) -> int:
        """Of the agent."""
        return int(self.agent.nbytes)

    def decide(self, x: Array) -> Any:
        """What the agent chooses."""
        return self.agent.decide(x)


__all__ = ["Replaced"]
