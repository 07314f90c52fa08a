"""Connections that read: made when they are needed, one reader each, kept for the next, at most so many."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Generic, Protocol, TypeVar

from manyarms.errors import StorageError, StoreUnavailable

MOST_READERS = 16
"""Connections of one process that read at the same time; the next reader waits for one of them."""


class Closeable(Protocol):
    """A connection."""

    def close(self) -> None: ...


Connection = TypeVar("Connection", bound=Closeable)


class Connections(Generic[Connection]):
    """At most `most` connections at a time; whoever comes too late waits up to `patience` seconds.

    `spoils` says of an error whether the connection that it came from must not be used again; `alive` whether one that was put
    aside still can be.
    """

    def __init__(
        self,
        where: str,
        make: Callable[[], Connection],
        *,
        spoils: Callable[[BaseException], bool],
        alive: Callable[[Connection], bool] = lambda _: True,
        patience: float,
    ) -> None:
        self.most = MOST_READERS
        self._where = where
        self._make = make
        self._spoils = spoils
        self._alive = alive
        self._patience = patience
        self._change = threading.Condition()
        self._idle: list[Connection] = []
        self._in_use = 0
        self._dropped = 0  # of those in use
        self._generation = 0
        self._closed = False

    @property
    def dropped_in_use(self) -> int:
        """How many readers have a connection that is to be closed when they give it back."""
        return self._dropped

    @contextmanager
    def one(self) -> Iterator[Connection]:
        """A connection that nobody else uses meanwhile."""
        with self._change:
            if not self._change.wait_for(lambda: self._in_use < self.most or self._closed, self._patience):
                raise StoreUnavailable(f"{self._where}: {self.most} others have been reading for {self._patience:g} s")
            if self._closed:
                raise StorageError(f"{self._where}: the store is closed")
            self._in_use += 1
            generation = self._generation
            connection = self._idle.pop() if self._idle else None
        good = True
        try:
            if connection is not None and not self._alive(connection):
                connection.close()
                connection = None
            if connection is None:
                connection = self._make()
            yield connection
        except BaseException as error:
            good = not self._spoils(error)
            raise
        finally:
            with self._change:
                self._in_use -= 1
                if generation != self._generation:
                    self._dropped -= 1
                    good = False
                if good and connection is not None:
                    self._idle.append(connection)
                self._change.notify()
            if not good and connection is not None:
                connection.close()

    def drop(self) -> None:
        """Close all connections: those in use when they are given back."""
        with self._change:
            self._generation += 1
            self._dropped = self._in_use
            idle, self._idle = self._idle, []
        for connection in idle:
            with suppress(Exception):
                connection.close()

    def close(self) -> None:
        """Drop all connections, and give out no more."""
        with self._change:
            self._closed = True
            self._change.notify_all()
        self.drop()


__all__ = ["MOST_READERS", "Connections"]
