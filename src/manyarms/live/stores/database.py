"""What a live log needs of a database: transactions that are durable when they return, and consistent reads.

The statements are those of `log.py` and the same for every database: placeholders are question marks, types are those that
`schema.py` names. A database translates what it must.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Protocol

from manyarms.errors import ManyArmsError

Row = tuple[Any, ...]


class Reader(Protocol):
    """Statements that see one state of the database."""

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        """Run one statement; its rows, if it gives any."""


class Transaction(Reader, Protocol):
    """Statements that happen together or not at all."""

    changed: int
    """How many rows the last statement changed."""

    def following(self) -> tuple[int, float]:
        """The position and the time that `place` would give, not used up."""

    def place(self) -> tuple[int, float]:
        """The next position of the log and its time, used up: positions follow each other in the order of commits.

        The time is that of the caller's clock, or that of the position before where the clock has gone back.
        """


Work = Callable[[Transaction], Any]


class Database(ABC):
    """A database that is open. Threads may share it."""

    kind: ClassVar[str]

    @abstractmethod
    def write(self, work: Sequence[Work]) -> list[Any]:
        """All this work in one transaction, durable when it returns: what each piece returned.

        A piece that refuses (a ManyArmsError, raised before it has changed anything) has the error as its result, and the others
        go on. Whatever else goes wrong, nothing of the transaction is kept: StoreUnavailable.
        """

    @abstractmethod
    def reading(self) -> AbstractContextManager[Reader]:
        """Statements that all see the state in which the first of them finds the database."""

    @abstractmethod
    def close(self) -> None:
        """Give back what is held. What was written is safe without it."""

    def read(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        """The rows of one statement."""
        with self.reading() as reader:
            return reader.execute(sql, parameters)

    def do(self, work: Work) -> Any:
        """One piece of work in a transaction of its own; raises what it refuses."""
        [result] = self.write([work])
        if isinstance(result, ManyArmsError):
            raise result
        return result


__all__ = ["Database", "Reader", "Row", "Transaction", "Work"]
