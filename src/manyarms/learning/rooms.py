"""Memory that steps on a processor use again, and what the first pass over the actions leaves there for the second."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from torch import Tensor

Kept = Callable[[int, int], Tensor | None]
"""Where the powers of the scores of a block of actions lie; None where they are not kept."""


@dataclass
class Rooms:
    """Memory that a processor uses again from step to step: new memory costs more than what is written into it.

    held: how many powers of scores the first pass may leave for the second.
    """

    held: int = 0
    _flat: dict[str, Tensor] = field(default_factory=dict)

    def take(self, name: str, like: Tensor, rows: int, columns: int) -> Tensor:
        """(rows, columns) of whatever lies in the room of this name."""
        flat = self._flat.get(name)
        if flat is None or flat.numel() < rows * columns:
            flat = self._flat[name] = like.new_empty(rows * columns)
        return flat[: rows * columns].view(rows, columns)

    def kept_from(self, rows: int, actions: int, size: int) -> int | None:
        """The first action whose block, and all after it, can be kept."""
        if not rows:
            return None
        first = -(-max(0, actions - self.held // rows) // size) * size
        return first if first < actions else None

    def kept(self, like: Tensor, kept_from: int | None, actions: int) -> Kept:
        """Where the powers of a block lie that are kept; nowhere for the others."""
        if kept_from is None:
            return lambda first, last: None
        start, powers = kept_from, self.take("powers", like, actions - kept_from, len(like))
        return lambda first, last: powers[first - start : last - start] if first >= start else None


__all__ = ["Kept", "Rooms"]
