"""A live log in a PostgreSQL database, for several machines.

Every transaction that writes first locks the counter's row, so that they take turns, in whichever process they run: positions are
in the order of commits, and work may look before it writes, as with SQLite. `synchronous_commit` is set for the session, whatever
the server's default; a server with `fsync=off` is refused.

Statements that give no rows are sent together with the next one that does (pipeline mode), without waiting for each answer; all
answers are in before the commit counts. With one look and one row for each piece of work that takes a third off a transaction, on
loopback.
"""

from __future__ import annotations

import re
import select
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from manyarms._base import validate
from manyarms._base.validate import describe
from manyarms.errors import InvalidInput, MissingExtra, StorageError, StoreUnavailable
from manyarms.live.stores import postgresql_errors
from manyarms.live.stores.connections import Connections
from manyarms.live.stores.database import Clock, Counter, Database, Reader, Row, Work, run_all
from manyarms.live.stores.steady_clock import SteadyClock

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[Row]
    Cursor = psycopg.Cursor[Row]

_TYPES = {"INTEGER": "BIGINT", "REAL": "DOUBLE PRECISION", "BYTES": "BYTEA"}
_TAKE_TURNS = "SELECT position, at FROM counter FOR UPDATE"
_MAKE_ALONE = "SELECT pg_advisory_xact_lock(7020396482094035285)"  # any number, the same for every process of ours
_LONGEST = 600.0  # seconds, for one statement
_FORGETFUL = (
    60.0  # seconds after which the server ends a transaction whose process has gone to sleep, and lets others go on
)


@lru_cache(maxsize=1024)
def _statement(sql: str) -> tuple[str, bool]:
    """A statement as PostgreSQL and psycopg read it, and whether it gives rows."""
    text = re.sub(r"\b(INTEGER|REAL|BYTES)\b", lambda found: _TYPES[found[0]], sql)
    return text.replace("%", "%%").replace("?", "%s"), bool(
        re.match(r"\s*(SELECT|WITH|SHOW)\b", sql) or "RETURNING" in sql
    )


def _send(cursor: Cursor, text: str, parameters: Sequence[object]) -> None:
    """Run a statement, or have it on its way where there is a pipeline."""
    import psycopg

    try:
        cursor.execute(text, [int(value) if value.__class__ is bool else value for value in parameters])
    except UnicodeError as error:  # text that is none
        raise psycopg.DataError(str(error)) from error


class _Reading:
    """Statements on one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        cursor = self._connection.cursor(binary=True)
        _send(cursor, _statement(sql)[0], parameters)
        return cursor.fetchall() if cursor.description is not None else []


class _Writing:
    """A transaction: statements, and positions.

    Statements that give no rows wait here until one that does, or the end, and all of them go out together, the server's answers
    asked for at once (sync). A transaction whose process then sleeps is idle to the server, which ends it after a while; it
    would not be while statements wait in psycopg's pipeline.
    """

    def __init__(self, connection: Connection, pipeline: psycopg.Pipeline, lock: str, clock: Clock) -> None:
        self._connection = connection
        self._pipeline = pipeline
        self._waiting: list[tuple[Cursor, str, Sequence[object]]] = []
        self._changing: list[Cursor] = []  # what may have changed something, and has no answer yet
        self._changes: list[int] = []  # rows of those that have one; -1: tables
        self._last: Cursor | None = None
        self._last_changing = False
        self.counter = Counter(self._stored, clock)
        self._wait_for("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
        self._lock = self._wait_for(lock)
        self.flush()

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        text, gives_rows = _statement(sql)
        self._last = cursor = self._connection.cursor(binary=True)
        self._waiting.append((cursor, text, tuple(parameters)))
        self._last_changing = not gives_rows or "RETURNING" in sql
        if self._last_changing:
            self._changing.append(cursor)
        if gives_rows:
            self.flush()
            return cursor.fetchall()
        return []

    def _wait_for(self, text: str) -> Cursor:
        """A statement without parameters, to be sent with the next."""
        cursor = self._connection.cursor(binary=True)
        self._waiting.append((cursor, text, ()))
        return cursor

    def flush(self, *, sync: bool = True) -> None:
        """Send what waits, and have all answers; without `sync` when the pipeline is left."""
        waiting, self._waiting = self._waiting, []
        for statement in waiting:
            _send(*statement)
        if waiting and sync:
            self._pipeline.sync()
            self._changes += [cursor.rowcount for cursor in self._changing]
            self._changing = []  # a cursor keeps the parameters of its statement

    @property
    def changed(self) -> int:
        self.flush()
        return max(self._last.rowcount, 0) if self._last is not None and self._last_changing else 0

    @property
    def steps(self) -> int:
        return len(self._changes) + len(self._changing)

    def changed_since(self, steps: int) -> bool:
        self.flush()
        return any(number != 0 for number in self._changes[steps:])

    def following(self) -> tuple[int, float]:
        return self.counter.following()

    def place(self) -> tuple[int, float]:
        return self.counter.next()

    def end(self, keep: bool) -> Cursor:
        """Write the counter back and commit, or take everything back; the pipeline is left afterwards."""
        if not keep:
            self._waiting = []
        elif self.counter.given:
            self.execute("UPDATE counter SET position = ?, at = ?", self.counter.last())
        last = self._wait_for("COMMIT" if keep else "ROLLBACK")
        self.flush(sync=False)
        return last

    def _stored(self) -> tuple[int, float]:
        """What the counter says: read by the lock, but where it locks something else."""
        rows = self._lock.fetchall() if self._lock.description and len(self._lock.description) == 2 else []
        [(position, at)] = rows or self.execute("SELECT position, at FROM counter")
        return position, at


class PostgreSQL(Database):
    """A log in a PostgreSQL database, named as ``postgresql://user@host:port/database``.

    `patience`: seconds that a connection may take, that a writer waits for another process, and a reader for a connection.
    `require_fsync`: refuse a server that says a commit is durable and does not wait for its disk.

    A connection that is lost (the server restarts) ends the calls that are under way with StoreUnavailable; the next call
    connects anew. If it is lost in the moment of the commit, nobody can know whether the server has done it: StoreUnavailable is
    raised although the transaction may stand. Calls carry ids, so that trying again is safe: it finds what was done.

    Other tables may stand in the same database. The log's are made where the connection's `search_path` says.
    """

    kind = "postgresql"
    shared = True

    def __init__(
        self, address: str, *, clock: Clock | None = None, patience: float = 10.0, require_fsync: bool = True
    ) -> None:
        super().__init__()
        self._patience = validate.number("patience", patience, least=0.001, most=3600.0)
        self._require_fsync = validate.flag("require_fsync", require_fsync)
        self._clock: Clock = SteadyClock() if clock is None else clock
        self._closed = False
        self._options, self._where = self._read_address(address)
        self._lock = threading.Lock()  # of the one connection that writes
        self._writer: Connection | None = None
        self._readers: Connections[Connection] = Connections(
            self._where,
            self._open_reader,
            spoils=postgresql_errors.spoils_connection,
            alive=_alive,
            patience=self._patience,
        )
        with self._errors():
            self._writer = self._open_writer()

    def __repr__(self) -> str:
        return f"PostgreSQL({self._where!r})"

    # ---- writing

    def write(self, work: Sequence[Work]) -> list[Any]:
        return self._write(work, _TAKE_TURNS)

    def making(self, work: Work) -> Any:
        [result] = self._write([work], _MAKE_ALONE)
        if isinstance(result, Exception):
            raise result
        return result

    def _write(self, work: Sequence[Work], lock: str) -> list[Any]:
        self.require_own_process()
        with self._lock, self._errors():
            if self._writer is not None and not _alive(self._writer):
                self._writer.close()
                self._writer = None
            connection = self._writer = self._writer or self._open_writer()
            try:
                with connection.pipeline() as pipeline:
                    tx = _Writing(connection, pipeline, lock, self._clock)
                    results, keep = run_all(tx, work)
                    last = tx.end(keep)
                if keep and last.statusmessage != "COMMIT":
                    raise StoreUnavailable(f"{self._where}: the server has not kept the transaction")
            except BaseException as error:
                self._abandon(connection, error)
                raise
            return results

    def _abandon(self, connection: Connection, error: BaseException) -> None:
        """Take back what was done, and close the connection where it cannot be trusted afterwards; called under the lock."""
        trusted = isinstance(error, Exception) and not isinstance(error, StoreUnavailable)  # not after an interrupt
        trusted = trusted and not postgresql_errors.spoils_connection(error)
        if trusted:
            try:
                connection.execute("ROLLBACK")
            except Exception:  # whatever it was: what cannot be taken back is closed, and the first error is raised
                trusted = False
        if not trusted:
            self._writer = None
            with suppress(Exception):
                connection.close()

    # ---- reading

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        self.require_own_process()
        with self._errors(), self._readers.one() as connection:
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                yield _Reading(connection)
            finally:
                if not connection.closed:
                    connection.execute("ROLLBACK")

    def read(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        self.require_own_process()
        with self._errors(), self._readers.one() as connection:
            return _Reading(connection).execute(sql, parameters)

    def tables(self, reader: Reader) -> set[str]:
        rows = reader.execute(
            "SELECT relname::text FROM pg_class WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND pg_table_is_visible(oid) "
            "AND left(relnamespace::regnamespace::text, 3) <> 'pg_'"
        )
        return {name for (name,) in rows}

    # ---- connections

    def _read_address(self, address: object) -> tuple[dict[str, Any], str]:
        """What psycopg needs to connect, and the address as it may be shown."""
        psycopg = _psycopg()
        from psycopg.conninfo import conninfo_to_dict

        expected = "an address such as postgresql://user@host:5432/database"
        if not isinstance(address, str):
            raise InvalidInput("address", describe(address), expected)
        try:
            found = conninfo_to_dict(address)
        except (psycopg.Error, UnicodeError):  # what it says may have the password in it
            raise InvalidInput("address", "text that cannot be read as one", expected) from None
        keepalive = max(1, round(self._patience / 4))
        options: dict[str, Any] = {
            "connect_timeout": max(1, round(self._patience)),
            "keepalives_idle": keepalive,
            "keepalives_interval": keepalive,
            "keepalives_count": 3,
            "tcp_user_timeout": round(self._patience * 1000),
            "application_name": "manyarms",
            **found,
            "client_encoding": "utf8",
        }
        user, host, port = (found.get(key) for key in ("user", "host", "port"))
        who = f"{quote(str(user))}@" if user else ""
        where = f"{host or found.get('hostaddr') or 'localhost'}{f':{port}' if port else ''}"
        return options, f"postgresql://{who}{where}/{found.get('dbname') or ''}"

    def _connect(self) -> Connection:
        """A connection, on which every statement is a transaction of its own unless BEGIN says otherwise."""
        if self._closed:
            raise StorageError(f"{self._where}: the store is closed")
        connection: Connection = _psycopg().connect(autocommit=True, **self._options)
        return connection

    def _open_writer(self) -> Connection:
        """The connection that writes, with what makes it durable in force; called under the lock."""
        connection = self._connect()
        try:
            found = {
                name: connection.execute(f"SHOW {name}").fetchall()[0][0]
                for name in ("fsync", "server_encoding", "synchronous_commit")
            }
            if found["fsync"] != "on" and self._require_fsync:
                raise StoreUnavailable(
                    f"{self._where}: the server runs with fsync={found['fsync']}, and may lose what it says is kept: set it to on"
                )
            if found["server_encoding"] != "UTF8":
                raise StorageError(
                    f"{self._where}: the database's encoding is {found['server_encoding']}, and must be UTF8"
                )
            if found["synchronous_commit"] != "remote_apply":  # which waits for more
                connection.execute("SET synchronous_commit = on")
            patience = round(self._patience * 1000)
            connection.execute(f"SET lock_timeout = {patience}")
            connection.execute(f"SET statement_timeout = {round(_LONGEST * 1000)}")
            connection.execute(f"SET idle_in_transaction_session_timeout = {round(_FORGETFUL * 1000)}")
            for name in (
                "idle",
                "interval",
            ):  # the same where the whole machine is gone, and holds what others wait for
                connection.execute(f"SET tcp_keepalives_{name} = {max(1, round(_FORGETFUL / 4))}")
            connection.execute("SET tcp_keepalives_count = 3")
        except BaseException:
            connection.close()
            raise
        return connection

    def _open_reader(self) -> Connection:
        """A connection that reads."""
        connection = self._connect()
        try:
            connection.execute("SET default_transaction_read_only = on")
            connection.execute(f"SET statement_timeout = {round(_LONGEST * 1000)}")
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Errors of PostgreSQL as errors of ours."""
        try:
            yield
        except _psycopg().Error as error:
            # not `from error`: what psycopg says of a connection may have the password in it
            raise postgresql_errors.translated(error, self._where, self._options.get("password")) from None

    def close(self) -> None:
        self.require_own_process()
        with self._lock:
            self._closed = True
            self._readers.close()
            writer, self._writer = self._writer, None
            if writer is not None:
                writer.close()


def _alive(connection: Connection) -> bool:
    """Whether a connection that nobody uses is as it was: a server that stops says so, or at least hangs up."""
    if connection.closed:
        return False
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return not poll.poll(0)


def _psycopg() -> Any:
    """The driver, imported when a PostgreSQL store is."""
    try:
        import psycopg
    except ImportError as error:
        raise MissingExtra("psycopg", "postgresql", "a live log in PostgreSQL") from error
    return psycopg


__all__ = ["PostgreSQL"]
