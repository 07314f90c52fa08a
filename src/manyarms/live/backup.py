"""A store as one file, taken while it is in use, and a store from such a file.

A backup is one state of the log, read in one reading: everything that was told before it began is in it, and of what came
meanwhile nothing. It is an SQLite file that is itself a store, whichever database it was taken from, so that a store moves from
SQLite to PostgreSQL and back by the same two calls. It gets its name when it is complete, checked and on the disk.
"""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from manyarms._base import files, validate
from manyarms._base.tables import Shown, Table
from manyarms._base.text import counted
from manyarms.errors import InvalidInput, StorageError
from manyarms.live import copying
from manyarms.live.copying import Layout
from manyarms.live.progress import Progress, to_whom
from manyarms.live.stores import schema, sqlite_errors
from manyarms.live.stores.database import Database, Reader, Row, Transaction
from manyarms.live.stores.opening import is_postgresql, open_database, open_existing, opened

BESIDE = ("-wal", "-shm", "-journal")  # what SQLite would take for parts of a file
PARAMETERS = 1000  # of one statement
Insert = Callable[[Layout, list[Row]], None]


@dataclass(frozen=True, repr=False)
class BackedUp(Shown):
    """What was written: the file, its size, the last position and the newest version in it, and rows by table."""

    path: Path
    bytes: int
    position: int
    version: int
    rows: dict[str, int]

    def _table(self) -> Table:
        return Table(f"{self.path}: {_size(self.bytes)}, up to {_upto(self)}", rows=_listed(self.rows))


@dataclass(frozen=True, repr=False)
class Restored(Shown):
    """What was restored: the store, the last position and the newest version in it, and rows by table."""

    store: str
    position: int
    version: int
    rows: dict[str, int]

    def _table(self) -> Table:
        return Table(f"{self.store}: restored up to {_upto(self)}", rows=_listed(self.rows))


def _upto(found: BackedUp | Restored) -> str:
    return f"position {found.position:,}, version {found.version:,}"


def _size(number: int) -> str:
    return f"{number / 1e6:,.1f} MB"


def _listed(rows: dict[str, int]) -> list[tuple[str, str]]:
    return [(name, counted(number, "row")) for name, number in rows.items() if number]


# ---- backing up


def backup(store: str | Path | Database, path: str | Path, *, progress: Progress | None = None) -> BackedUp:
    """Write one state of a store to a new file, which is itself a store. The store may be in use, and nobody waits for it.

    The file appears when it is complete and checked, or not at all; only its owner may read it. What is there is not written
    over. Leases are not taken along: a store that is made from the backup has no learner yet. progress: called now and then
    with how much is done, of how much, and what it is.
    """
    target = _new_file("path", path)
    told = to_whom(progress)
    tables = copying.layouts()
    with opened(store) as database, database.reading() as reader, _becoming(target) as temporary:
        rows = copying.counts(reader, tables)
        open_database(temporary).close()  # the tables, as in every store
        with closing(_Plain(temporary, target)) as copy:
            copy.execute("PRAGMA journal_mode=OFF")  # a file that is not finished counts for nothing
            copy.execute("PRAGMA synchronous=OFF")
            copy.execute("BEGIN")
            _copy(reader, tables, rows, told, copy.insert)
            copy.execute("COMMIT")
            told(0, 0, "checking")
            _check_file(copy, target)
            copying.check(copy, tables, rows, str(target))
            found = copying.position(copy), copying.version(copy)
        size = temporary.stat().st_size
    return BackedUp(target, size, *found, rows)


def _copy(reader: Reader, tables: tuple[Layout, ...], rows: dict[str, int], told: Progress, insert: Insert) -> None:
    done, total = 0, sum(rows.values())
    for table in tables:
        for page in copying.pages(reader, table):
            insert(table, page)
            done += len(page)
            told(done, total, f"{table.name}: {done:,} of {total:,} rows")


def _inserting(table: Layout, rows: int) -> str:
    """The statement that adds so many rows; the counter's, and the version, take the place of those of a new store."""
    marks = ", ".join([f"({', '.join('?' * len(table.columns))})"] * rows)
    instead = ", ".join(f"{name} = excluded.{name}" for name in table.columns)
    target = f"{table.name} ({', '.join(table.columns)})"
    return f"INSERT INTO {target} VALUES {marks} ON CONFLICT ({', '.join(table.key)}) DO UPDATE SET {instead}"


class _Plain:
    """Statements on a file that nobody else has open. known: the name by which errors call it."""

    def __init__(self, path: Path, known: Path, how: str = "mode=rw") -> None:
        self._known = known
        with self._errors():
            self._connection = sqlite3.connect(f"file:{quote(os.fsencode(path))}?{how}", uri=True, isolation_level=None)

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        with self._errors():
            return self._connection.execute(sql, tuple(parameters)).fetchall()

    def insert(self, table: Layout, rows: list[Row]) -> None:
        """Add rows."""
        with self._errors():
            self._connection.executemany(_inserting(table, 1), rows)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise sqlite_errors.translated(error, str(self._known), 0.0) from error

    def close(self) -> None:
        self._connection.close()


def _check_file(reader: Reader, path: Path) -> None:
    found = [text for (text,) in reader.execute("PRAGMA integrity_check(1)")]
    if found != ["ok"]:
        raise StorageError(f"{path}: the database is damaged (SQLite: {found[0]})")


# ---- restoring


def restore(path: str | Path, store: str | Path, *, progress: Progress | None = None) -> Restored:
    """Make a store of a backup: a new SQLite file, or a PostgreSQL database in which there is no store yet.

    Wholly or not at all. The backup stays as it is; one of an older version becomes a store of today's. Where there is a store
    already, nothing is changed.
    """
    source = files.as_path("path", path)
    told = to_whom(progress)
    _require_at_rest(source)
    if is_postgresql(store):
        return _into_postgresql(source, str(store), told)
    return _into_file(source, _new_file("store", store), told)


def _into_file(source: Path, target: Path, told: Progress) -> Restored:
    tables = copying.layouts()
    with _becoming(target) as temporary:
        told(0, 0, "copying")
        shutil.copyfile(source, temporary)
        with _named_instead(temporary, source), open_existing(temporary) as database:  # brought up to date, too
            database.do(_give_up_leases)
            told(0, 0, "checking")
            with database.reading() as reader:
                rows = copying.counts(reader, tables)
                _check_file(reader, source)
                copying.check(reader, tables, rows, str(source))
                found = copying.position(reader), copying.version(reader)
    return Restored(str(target), *found, rows)


def _into_postgresql(source: Path, address: str, told: Progress) -> Restored:
    tables = copying.layouts()
    with open_database(address) as database, closing(_Plain(source, source, "mode=ro&immutable=1")) as reader:
        name = repr(database)

        def work(tx: Transaction) -> Restored:
            _require_empty(tx, tables, name)
            rows = copying.counts(reader, tables)
            _copy(reader, tables, rows, told, _into(tx))
            told(0, 0, "checking")
            copying.check(tx, tables, rows, name)
            return Restored(name, copying.position(tx), copying.version(tx), rows)

        _check_file(reader, source)
        _require_today(reader, source)
        result: Restored = database.do(work)
        return result


def _into(tx: Transaction) -> Insert:
    def insert(table: Layout, rows: list[Row]) -> None:
        each = max(1, PARAMETERS // len(table.columns))
        for start in range(0, len(rows), each):
            some = rows[start : start + each]
            tx.execute(_inserting(table, len(some)), [value for row in some for value in row])
            if tx.changed != len(some):  # to ask is also to send: what waits takes memory
                raise StorageError(f"{table.name}: the server has not taken {len(some):,} rows")

    return insert


def _require_empty(reader: Reader, tables: tuple[Layout, ...], where: str) -> None:
    rows = copying.counts(reader, tables)
    if (
        copying.position(reader)
        or rows["meta"] > 1
        or any(rows[name] for name in rows if name not in ("meta", "counter"))
    ):
        raise StorageError(
            f"{where}: there is a store already, and it is left as it is: name another database or schema"
        )


def _require_today(reader: Reader, source: Path) -> None:
    rows = reader.execute("SELECT body FROM meta WHERE name = ?", (schema.VERSION_NAME,))
    found = rows[0][0] if rows else "unknown"
    if found != str(schema.VERSION):
        raise StorageError(
            f"{source}: the backup is of version {found}, and stores of today of version {schema.VERSION}: restore it into a "
            "file, which brings it up to date, and back that up"
        )


def _give_up_leases(tx: Transaction) -> None:
    tx.execute("UPDATE leases SET holder = ?, expires = ?", ("", 0.0))


# ---- files


def _new_file(name: str, path: object) -> Path:
    """A path where there is nothing yet, in a folder that can be written."""
    target = files.as_path(name, path)
    if "://" in str(path) or str(path) == ":memory:":
        raise InvalidInput(name, validate.describe(str(path)), "the path of a new file")
    files.require_file(name, target)
    for suffix in ("", *BESIDE):
        if os.path.lexists(f"{target}{suffix}"):
            raise StorageError(f"{target}{suffix}: there is something already, and it is not written over")
    return target


def _require_at_rest(source: Path) -> None:
    """A file that nobody writes to: what lies beside it would belong to it."""
    try:
        files.require_regular(source)
    except OSError as error:
        raise StorageError(f"{source}: there is no backup: {files.reason(error)}") from error
    for suffix in BESIDE:
        if os.path.lexists(f"{source}{suffix}"):
            raise StorageError(
                f"{source}: this is a store in use, with a {suffix} beside it, and no backup: back it up first"
            )


@contextmanager
def _becoming(target: Path) -> Iterator[Path]:
    """A new file beside `target`, only for its owner, which gets that name at the end; gone if anything is raised."""
    with files.writing(target):
        files.make_folder(target.parent)
        temporary = files.temporary_name(target)
        try:
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
            yield temporary
            descriptor = os.open(temporary, os.O_RDWR | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            _name(temporary, target)
            files.flush_folder(target.parent)
        finally:
            for suffix in ("", *BESIDE):
                Path(f"{temporary}{suffix}").unlink(missing_ok=True)


def _name(temporary: Path, target: Path) -> None:
    """Give a file its name, unless somebody has taken it meanwhile."""
    try:
        os.link(temporary, target)
    except OSError as error:
        if error.errno == errno.EEXIST:
            raise
        if os.path.lexists(target):  # a file system without links
            raise FileExistsError(errno.EEXIST, "there is something already") from None
        os.replace(temporary, target)


@contextmanager
def _named_instead(temporary: Path, source: Path) -> Iterator[None]:
    """Errors that name the file which the caller named."""
    try:
        yield
    except StorageError as error:
        raise type(error)(str(error).replace(str(temporary), str(source))) from error


__all__ = ["BackedUp", "Restored", "backup", "restore"]
