"""From an address to a database with the tables of today in it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from manyarms._base.files import as_path, reason
from manyarms.errors import InvalidInput, StorageError
from manyarms.live.stores import schema
from manyarms.live.stores.database import Clock, Database, Reader, Transaction
from manyarms.live.stores.sqlite import SQLite

_NAMES = {found[1] for sql in schema.TABLES if (found := re.match(r"CREATE TABLE (\w+)", sql))}


def open_database(address: Path | str, *, clock: Clock | None = None) -> Database:
    """The store at an address, made if there is none, and brought up to date if it is of an older version.

    `address` is the path of an SQLite file, ``":memory:"`` for a store that ends with the process, or
    ``postgresql://user@host:port/database``. `clock`: a `SteadyClock` of the system's time unless given.
    """
    database = _database(address, clock)
    try:
        prepare(database)
    except BaseException:
        database.close()
        raise
    return database


def open_existing(address: Path | str) -> Database:
    """The store at an address; where there is none, nothing is made."""
    if (path := _path(address)) is not None:
        try:
            found = path.stat()
        except OSError as error:
            raise StorageError(f"{path}: there is no live store: {reason(error)}") from error
        if not found.st_size:
            raise StorageError(f"{path}: there is no live store: the file is empty")
    database = _database(address, None)
    try:
        with database.reading() as reader:
            version = _version(database, reader)
        if not version or not database.read("SELECT 1 FROM meta WHERE name = 'origin'"):
            raise StorageError(f"{database!r}: there is no live store in it yet")
        prepare(database)
    except BaseException:
        database.close()
        raise
    return database


@contextmanager
def opened(store: Path | str | Database) -> Iterator[Database]:
    """A store that is there, by its address, closed afterwards; or one that is open, which stays so."""
    if isinstance(store, Database):
        yield store
        return
    with open_existing(store) as database:
        yield database


def is_postgresql(address: object) -> bool:
    """Whether an address names a database of a server, and not a file."""
    return isinstance(address, str) and bool(re.match(r"postgres(ql)?://", address))


def _path(address: object) -> Path | None:
    """The file that an address names; None for PostgreSQL."""
    if is_postgresql(address):
        return None
    if isinstance(address, str) and (found := re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", address)):
        raise InvalidInput("store", f"{found[1]}://...", "a path, or an address that begins with postgresql://")
    return as_path("store", address)


def is_nowhere(address: Path | str) -> bool:
    """Whether there is no file yet where a store would be made. A server has to be asked: False."""
    path = _path(address)
    return path is not None and (address == ":memory:" or not os.path.exists(path))


def _database(address: Path | str, clock: Clock | None) -> Database:
    if is_postgresql(address):
        from manyarms.live.stores.postgresql import PostgreSQL  # needs a package that SQLite does not

        return PostgreSQL(str(address), clock=clock)
    if address == ":memory:":
        return SQLite.in_memory(clock=clock)
    path = _path(address)
    assert path is not None
    return SQLite(path, clock=clock)


def prepare(database: Database) -> None:
    """Make the tables in a new store, and migrate an old one; nothing is changed in what is not ours."""
    with database.reading() as reader:
        found = _version(database, reader)
    if found != schema.VERSION:
        database.making(lambda tx: _bring_up_to_date(database, tx))


def _bring_up_to_date(database: Database, tx: Transaction) -> None:
    """One transaction: an interrupted one leaves the store as it was. Another process may have done it meanwhile."""
    found = _version(database, tx)
    if found == 0:
        for sql in schema.TABLES:
            tx.execute(sql)
    else:
        for version in range(found, schema.VERSION):
            for sql in schema.MIGRATIONS[version]:
                tx.execute(sql)
    tx.execute("DELETE FROM meta WHERE name = ?", (schema.VERSION_NAME,))
    tx.execute("INSERT INTO meta (name, body) VALUES (?, ?)", (schema.VERSION_NAME, str(schema.VERSION)))


def _version(database: Database, reader: Reader) -> int:
    """The version of a store, 0 for one that is to be made. What is not ours, or of tomorrow, is refused."""
    tables = database.tables(reader)
    rows = []
    if tables >= {"meta", "counter"}:
        rows = reader.execute("SELECT body FROM meta WHERE name = ?", (schema.VERSION_NAME,))
    if not rows:
        if tables & _NAMES if database.shared else tables:
            raise StorageError(f"{database!r}: this database is not a store of live agents: it has other tables in it")
        return 0
    [(body,)] = rows
    version = int(body) if re.fullmatch(r"[0-9]{1,9}", body) else -1
    if version not in schema.MIGRATIONS and version != schema.VERSION:
        raise StorageError(
            f"{database!r}: the store is of version {body}, and this release reads versions {min(schema.MIGRATIONS)} to "
            f"{schema.VERSION}"
        )
    return version


__all__ = ["is_nowhere", "is_postgresql", "open_database", "open_existing", "opened", "prepare"]
