"""A live log in one SQLite file.

Write-ahead log with `synchronous=FULL`: SQLite writes a transaction's pages to the log and has the disk confirm them (fsync)
before COMMIT returns, and before any other connection can see them. One connection writes, under a lock; reads have connections
of their own and never wait for writers. Other processes may have the same file open: writers take turns (BEGIN IMMEDIATE), for
at most `patience` seconds each.

Whatever fails, the connections are given up and the next call opens new ones: a store that works again is used again.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

from manyarms._base import validate
from manyarms._base.files import as_path
from manyarms.errors import StorageError, StoreUnavailable
from manyarms.live.stores import sqlite_errors
from manyarms.live.stores.connections import Connections
from manyarms.live.stores.database import Clock, Counter, Database, Reader, Row, Work, run_all
from manyarms.live.stores.sqlite_file import LogReplaced, StoreFile
from manyarms.live.stores.steady_clock import SteadyClock

_MAKING = threading.Lock()  # closing a file gives up all locks that the process has on it, those of SQLite among them


@lru_cache(maxsize=1024)
def _statement(sql: str) -> str:
    """A statement with SQLite's names of types."""
    return re.sub(r"\bBYTES\b", "BLOB", sql)


class _Reading:
    """Statements on one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        return self._run(sql, parameters).fetchall()

    def _run(self, sql: str, parameters: Sequence[object]) -> sqlite3.Cursor:
        try:
            return self._connection.execute(_statement(sql), parameters)
        except (OverflowError, UnicodeError) as error:  # an integer beyond 64 bits, text that is none
            raise sqlite3.DataError(str(error)) from error


class _Writing(_Reading):
    """A transaction: statements, and positions."""

    def __init__(self, connection: sqlite3.Connection, clock: Clock) -> None:
        super().__init__(connection)
        self.changed = 0
        self.steps = 0
        self.counter = Counter(self._stored, clock)

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        cursor = self._run(sql, parameters)
        rows = cursor.fetchall()
        self.changed = max(cursor.rowcount, 0)
        if self.changed or (cursor.rowcount < 0 and cursor.description is None):  # rows, or tables
            self.steps += 1
        return rows

    def following(self) -> tuple[int, float]:
        return self.counter.following()

    def place(self) -> tuple[int, float]:
        return self.counter.next()

    def changed_since(self, steps: int) -> bool:
        return self.steps != steps

    def settle(self) -> None:
        """Write the counter back."""
        if self.counter.given:
            self._run("UPDATE counter SET position = ?, at = ?", self.counter.last())

    def _stored(self) -> tuple[int, float]:
        [(position, at)] = self._run("SELECT position, at FROM counter", ()).fetchall()
        return position, at


class SQLite(Database):
    """A log in an SQLite file, which is made where there is none; only its owner may read it then.

    `patience`: seconds that a writer waits for another process, and a reader for one of `connections.MOST_READERS` connections.

    The file, and those that SQLite keeps beside it (-wal, -shm), belong together: they are backed up by SQLite's own means
    (`.backup`, `VACUUM INTO`) while the store is open.
    """

    kind = "sqlite"
    shared = False
    synchronous: ClassVar[str] = "FULL"

    def __init__(self, path: Path | str, *, clock: Clock | None = None, patience: float = 10.0) -> None:
        super().__init__()
        self._file = StoreFile(as_path("path", path))
        self._clock: Clock = SteadyClock() if clock is None else clock
        self._patience = validate.number("patience", patience, least=0.0, most=3600.0)
        self._lock = threading.Lock()  # of the one connection that writes
        self._writer: sqlite3.Connection | None = None
        self._readers = Connections(
            str(self.path), self._open_reader, spoils=sqlite_errors.spoils_connection, patience=self._patience
        )
        self._closed = False
        with _MAKING:
            self._file.make()
            with self._errors():
                self._writer = self._open_writer()

    @staticmethod
    def in_memory(*, clock: Clock | None = None) -> SQLite:
        """A log that ends with the process: for tests, and to measure what the disk costs."""
        return _InMemory(clock)

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self._file.path

    def __repr__(self) -> str:
        return f"SQLite({str(self.path)!r})"

    # ---- writing

    def write(self, work: Sequence[Work]) -> list[Any]:
        self.require_own_process()
        with self._lock, self._errors():
            connection = self._writer = self._writer or self._open_writer()
            try:
                self._take_turn(connection)
                self._file.require_same()
                tx = _Writing(connection, self._clock)
                results, keep = run_all(tx, work)
                if keep:
                    tx.settle()
                    connection.execute("COMMIT")
                    self._file.require_same()  # nobody is told of what is in a file that has lost its name
                else:
                    connection.execute("ROLLBACK")
            except BaseException as error:
                with suppress(sqlite3.Error):
                    connection.rollback()
                if isinstance(error, LogReplaced):
                    self._give_up_all()
                elif sqlite_errors.spoils_connection(error):
                    self._give_up_writer()
                raise
            return results

    def _take_turn(self, connection: sqlite3.Connection) -> None:
        """Begin a transaction that writes, when no other process has one.

        SQLite asks again after ever longer sleeps, of up to 0.1 s; beside a busy writer that meant waits of a second. The gaps
        between two transactions of another process are found by asking often.
        """
        deadline = time.monotonic() + self._patience
        pause = 0.0002
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if sqlite_errors.code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
            time.sleep(pause)
            pause = min(1.1 * pause, 0.001)

    def _open_writer(self) -> sqlite3.Connection:
        """The connection that writes, with what makes it durable in force; called under the lock."""
        connection = self._connect()
        try:
            self._require_ours(connection)
            self._into_wal(connection)
            connection.execute(f"PRAGMA synchronous={self.synchronous}")
            connection.execute("PRAGMA fullfsync=ON")  # macOS: the disk's own cache too
            connection.execute(f"PRAGMA journal_size_limit={1 << 26}")
            self._begin_watching(connection)
            connection.execute("PRAGMA busy_timeout=0")  # from here on `_take_turn` waits
            self._file.sync_folder()
        except BaseException:
            connection.close()
            raise
        return connection

    def _require_ours(self, connection: sqlite3.Connection) -> None:
        """Refuse a database of somebody else's, before its mode is changed."""
        tables = self.tables(_Reading(connection))
        if tables and not tables >= {"meta", "counter"}:
            raise StorageError(f"{self.path}: this database is not a store of live agents: it has other tables in it")

    def _into_wal(self, connection: sqlite3.Connection) -> None:
        """Switch to the write-ahead log; two processes that do so at once do not wait for each other by themselves."""
        deadline = time.monotonic() + self._patience
        while True:
            try:
                [(mode,)] = connection.execute("PRAGMA journal_mode=WAL").fetchall()
                break
            except sqlite3.OperationalError as error:
                if sqlite_errors.code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
        if mode != "wal":
            raise StorageError(f"{self.path}: this file system cannot have a write-ahead log: choose a local disk")

    # ---- reading

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        with self._reader() as connection:
            connection.execute("BEGIN")
            try:
                yield _Reading(connection)
            finally:
                connection.rollback()

    def read(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        with self._reader() as connection:
            return _Reading(connection).execute(sql, parameters)

    def tables(self, reader: Reader) -> set[str]:
        return {name for (name,) in reader.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}

    @contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        """A connection that nobody else uses meanwhile, to the files that have the names."""
        self.require_own_process()
        try:
            with self._errors(), self._readers.one() as connection:
                self._file.require_same()
                yield connection
        except LogReplaced:
            if self._lock.acquire(blocking=False):  # if not, the writer will notice
                try:
                    self._give_up_all()
                finally:
                    self._lock.release()
            raise

    def _open_reader(self) -> sqlite3.Connection:
        """A connection that reads."""
        connection = self._connect()
        try:
            connection.execute("PRAGMA query_only=ON")
            self._begin_watching(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    # ---- connections

    def _connect(self) -> sqlite3.Connection:
        """A connection to the file, which is not made by it."""
        if self._closed:
            raise StorageError(f"{self.path}: the store is closed")
        if (
            self._readers.dropped_in_use
        ):  # connections of one process share the log's index, so that old and new ones must not meet
            raise StoreUnavailable(f"{self.path}: somebody still reads the log that was there before")
        self._file.require_file()
        return sqlite3.connect(
            f"file:{quote(os.fsencode(self.path))}?mode=rw",
            uri=True,
            timeout=self._patience,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )

    def _begin_watching(self, connection: sqlite3.Connection) -> None:
        """Have SQLite open the log and its index, and remember which files they are."""
        connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
        self._file.require_file()
        self._file.pin()

    def _give_up_writer(self) -> None:
        """Close the connection that writes, so that the next call begins anew; called under the lock."""
        writer, self._writer = self._writer, None
        if writer is not None:
            self._file.unpin()
            with suppress(sqlite3.Error):
                writer.close()

    def _give_up_all(self) -> None:
        """Close all connections, those in use when they come back; called under the lock."""
        if self._writer is not None:
            with suppress(sqlite3.Error):  # into the file, what is in a log that has lost its name
                self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        self._give_up_writer()
        self._readers.drop()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Errors of SQLite as errors of ours."""
        try:
            yield
        except sqlite3.Error as error:
            raise sqlite_errors.translated(error, str(self.path), self._patience) from error

    def close(self) -> None:
        self.require_own_process()
        with self._lock:
            self._closed = True
            self._readers.close()
            self._give_up_all()


class _InMemory(SQLite):
    """An SQLite file where files are memory, if the system has such a place, and in a temporary folder if not."""

    synchronous = "OFF"

    def __init__(self, clock: Clock | None) -> None:
        memory = "/dev/shm"
        folder = tempfile.mkdtemp(prefix="manyarms-", dir=memory if os.access(memory, os.W_OK) else None)
        self._removed = weakref.finalize(self, _remove, folder, os.getpid())
        super().__init__(Path(folder) / "live.db", clock=clock)

    def close(self) -> None:
        super().close()
        self._removed()


def _remove(folder: str, process: int) -> None:
    """Remove a folder of this process; not that of the process that it was forked from."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


__all__ = ["SQLite"]
