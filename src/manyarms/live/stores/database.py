"""What a live log needs of a database: transactions that are durable when they return, and consistent reads.

The statements are those of `log.py` and the same for every database: placeholders are question marks, types are those that
`schema.py` names, values are None, int (64 bits), float, str and bytes. A database translates what it must.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Protocol, Self

from manyarms.errors import ManyArmsError, StorageError
from manyarms.live.stores.steady_clock import SteadyClock

Row = tuple[Any, ...]
Clock = Callable[[], float]
"""Seconds since 1970. It may jump back, as `time.time` does; a `SteadyClock` does not, and goes on from the log's last time."""


class Reader(Protocol):
    """Statements that see one state of the database."""

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        """Run one statement; its rows, if it gives any."""


class Transaction(Reader, Protocol):
    """Statements that happen together or not at all."""

    @property
    def changed(self) -> int:
        """How many rows the last statement changed."""

    def following(self) -> tuple[int, float]:
        """The position and the time that `place` would give, not used up."""

    def place(self) -> tuple[int, float]:
        """The next position of the log and its time, used up: positions follow each other in the order of commits.

        The time is that of the caller's clock, or that of the position before where the clock has gone back.
        """


Work = Callable[[Transaction], Any]


class Together(ABC):
    """Work that is done for several callers at once, in fewer statements than one by one."""

    def __call__(self, tx: Transaction) -> Any:
        """By itself."""
        [found] = self.all_of(tx, [self])
        if isinstance(found, ManyArmsError):
            raise found
        return found

    @classmethod
    @abstractmethod
    def all_of(cls, tx: Transaction, pieces: Sequence[Any]) -> list[Any]:
        """What becomes of each, in their order: its result, or the error that refuses it, which has changed nothing."""


class Counter:
    """Positions that are given out within one transaction: read once, when the first is asked for, and written back once."""

    def __init__(self, stored: Callable[[], tuple[int, float]], clock: Clock) -> None:
        self._stored = stored
        self._clock = clock
        self._last: tuple[int, float] | None = None
        self.given = 0

    def next(self) -> tuple[int, float]:
        """The next position and its time."""
        if self._last is None:
            self._last = self._stored()
        position, at = self._last
        clock = self._clock
        now = clock.after(at) if isinstance(clock, SteadyClock) else max(at, float(clock()))
        self._last = position + 1, now
        self.given += 1
        return self._last

    def following(self) -> tuple[int, float]:
        """What `next` would give, not given out."""
        mark = self.mark()
        found = self.next()
        self.back_to(mark)
        return found

    def last(self) -> tuple[int, float]:
        """The last position given out, to be written back."""
        assert self._last is not None
        return self._last

    def mark(self) -> tuple[int, tuple[int, float] | None]:
        """Where the counter stands."""
        return self.given, self._last

    def back_to(self, mark: tuple[int, tuple[int, float] | None]) -> None:
        """Take back the positions given out since."""
        self.given, self._last = mark


class Writing(Transaction, Protocol):
    """A transaction as `run_all` needs it."""

    counter: Counter

    @property
    def steps(self) -> int:
        """A number that rises when a statement may have changed something."""

    def changed_since(self, steps: int) -> bool:
        """Whether any statement has changed something since then."""


def run_all(tx: Writing, work: Sequence[Work]) -> tuple[list[Any], bool]:
    """What each piece returned, or refused; and whether the transaction may be kept.

    A refusal that comes after the piece has changed something can be honoured only by taking everything back: that is no harm
    where the piece is alone, and a fault of the piece where it is not.
    """
    results: list[Any] = [None] * len(work)
    for kind, places in _runs(work):
        if kind is not None:
            for place, found in zip(places, kind.all_of(tx, [work[place] for place in places]), strict=True):
                results[place] = found
            continue
        [place] = places
        before, mark = tx.steps, tx.counter.mark()
        try:
            results[place] = work[place](tx)
        except ManyArmsError as refusal:
            tx.counter.back_to(mark)  # a position that nobody uses would be a gap
            results[place] = refusal
            if tx.changed_since(before):
                if len(work) == 1:
                    return results, False
                raise RuntimeError(f"a piece of work refused after it had changed something: {refusal}") from refusal
    return results, True


def _runs(work: Sequence[Work]) -> Iterator[tuple[type[Together] | None, list[int]]]:
    """Places of pieces that are done together, and of others by themselves: these stay between those before and after them."""
    waiting: dict[type[Together], list[int]] = {}
    for place, piece in enumerate(work):
        if isinstance(piece, Together):
            waiting.setdefault(type(piece), []).append(place)
            continue
        yield from waiting.items()
        waiting = {}
        yield None, [place]
    yield from waiting.items()


class Database(ABC):
    """A database that is open. Threads may share it; a process forked from this one may not."""

    kind: ClassVar[str]
    shared: ClassVar[bool]
    """Whether tables of others may stand beside the log's."""

    _clock: Clock

    def __init__(self) -> None:
        self._process = os.getpid()

    def now(self) -> float:
        """What time it is, for any thread. The log's times are given with its positions, in the order of commits (`place`)."""
        return self._clock.read() if isinstance(self._clock, SteadyClock) else float(self._clock())

    @abstractmethod
    def write(self, work: Sequence[Work]) -> list[Any]:
        """All this work in one transaction, durable when it returns: what each piece returned.

        A piece that refuses (a ManyArmsError, raised before it has changed anything) has the error as its result, and the others
        go on. Whatever else goes wrong, nothing of the transaction is kept: StoreUnavailable where the store cannot be written
        now, StorageError where it is damaged or refuses what the work wants to write, and what a piece raised, if that is no
        error of ours. Only where the connection breaks in the very moment of the commit nobody can know, and StoreUnavailable
        is raised although the transaction may stand: whoever tries again does so with the same ids.
        """

    @abstractmethod
    def reading(self) -> AbstractContextManager[Reader]:
        """Statements that all see the state in which the first of them finds the database."""

    @abstractmethod
    def close(self) -> None:
        """Give back what is held. What was written is safe without it."""

    @abstractmethod
    def tables(self, reader: Reader) -> set[str]:
        """The names of the tables there are."""

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

    def making(self, work: Work) -> Any:
        """As `do`, for work that makes or changes tables: no other process does so at the same time."""
        return self.do(work)

    def require_own_process(self) -> None:
        """Refuse the copy of a connection that a forked process has."""
        if os.getpid() != self._process:
            raise StorageError(
                f"this store was opened by process {self._process}, and process {os.getpid()}, forked from it, cannot use its "
                "connections: open the store again after the fork"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


__all__ = ["Clock", "Counter", "Database", "Reader", "Row", "Together", "Transaction", "Work", "Writing", "run_all"]
