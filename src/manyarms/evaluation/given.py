"""What stands for a policy in an evaluation: something that knows what the policy would have done in each chunk of a log.

Nothing is computed for all rows at once, nor for rounds x actions: a chunk is asked for when it comes. `policy_like.py` says what
may be given, and turns it into one of these.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from manyarms.logs.data import LoggedData
from manyarms.logs.row_sketch import RowSketch
from manyarms.policies.base import Policy


class Given(ABC):
    """What stands for a policy, on one log."""

    notes: tuple[str, ...] = ()
    """What a reader of the results must know."""

    training_rows: RowSketch | None = None
    logged_only: bool = False
    """Whether it knows the probabilities of the logged actions alone; settled once it has looked at the first rows."""

    estimated: bool = False
    """Whether its probabilities are estimates."""

    columns_for: str = ""
    """What it needs the log's original columns for."""

    policy: Policy | None = None
    """The policy itself, where it can be asked about any context."""

    def __init__(self, argument: str, name: str, actions: int) -> None:
        self.argument, self.name, self.action_count = argument, name, actions

    def __repr__(self) -> str:
        return self.name

    @abstractmethod
    def on(self, part: LoggedData, start: int) -> Policy:
        """The policy at the rows of a chunk, the first of which is row `start` of the log."""

    def look(self, first: LoggedData) -> None:
        """Be told the first rows of the log, before anything is asked."""
        return

    def require_rows(self, rows: int) -> None:
        """Refuse to stand for a log of so many rows."""
        return


__all__ = ["Given"]
