"""The tables of a store, row by row: read in pages of bounded size, and compared with what they should be.

Which tables and columns there are is asked of an empty store, made as every store is: a table that the schema gains is copied
with nothing to add here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from manyarms.errors import StorageError
from manyarms.live.stores.database import Reader, Row
from manyarms.live.stores.opening import open_database

PAGE = 1 << 22  # bytes read at a time, about
FIRST, MOST = 8, 4096  # rows of a page: the first one, and at most


@dataclass(frozen=True)
class Layout:
    """A table: its columns, and those of its primary key."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]


def layouts() -> tuple[Layout, ...]:
    """The tables of a store of today."""
    with open_database(":memory:") as empty, empty.reading() as reader:
        return tuple(_layout(reader, name) for name in sorted(empty.tables(reader)))


def _layout(reader: Reader, table: str) -> Layout:
    rows = reader.execute(f"PRAGMA table_info({table})")  # number, name, type, not null, default, place in the key
    key = sorted((row[5], row[1]) for row in rows if row[5])
    return Layout(table, tuple(row[1] for row in rows), tuple(name for _, name in key))


def counts(reader: Reader, tables: tuple[Layout, ...]) -> dict[str, int]:
    """How many rows each table has."""
    return {table.name: int(reader.execute(f"SELECT COUNT(*) FROM {table.name}")[0][0]) for table in tables}


def pages(reader: Reader, table: Layout) -> Iterator[list[Row]]:
    """All rows of a table, in the order of its key. Leases come as given up: whoever held one is not where the copy is.

    Their tokens stay, for those of chunks must not fall.
    """
    columns, key, marks = ", ".join(table.columns), ", ".join(table.key), ", ".join("?" * len(table.key))
    places = [table.columns.index(name) for name in table.key]
    where, last, limit = "", (), FIRST
    while True:
        sql = f"SELECT {columns} FROM {table.name}{where} ORDER BY {key} LIMIT {limit}"
        rows = reader.execute(sql, last)
        if not rows:
            return
        where, last = f" WHERE ({key}) > ({marks})", tuple(rows[-1][place] for place in places)
        fits = PAGE * len(rows) // max(1, sum(map(_size, rows)))
        limit = max(1, min(4 * limit, fits, MOST))
        yield [_given_up(table, row) for row in rows] if table.name == "leases" else rows


def _size(row: Row) -> int:
    return sum(len(value) if isinstance(value, str | bytes) else 8 for value in row)


def _given_up(table: Layout, row: Row) -> Row:
    return tuple(
        {"holder": "", "expires": 0.0}.get(name, value) for name, value in zip(table.columns, row, strict=True)
    )


# ---- is it whole?


def check(reader: Reader, tables: tuple[Layout, ...], expected: Mapping[str, int], where: str) -> None:
    """A StorageError unless every table has so many rows, no position is beyond the last, and snapshots are what they were."""
    found = counts(reader, tables)
    for name, number in expected.items():
        if found[name] != number:
            raise StorageError(f"{where}: {name} has {found[name]:,} rows, and should have {number:,}")
    last = position(reader)
    for table in tables:
        if "position" in table.columns and table.name != "counter":
            [(highest,)] = reader.execute(f"SELECT MAX(position) FROM {table.name}")
            if highest is not None and highest > last:
                raise StorageError(f"{where}: {table.name} goes to position {highest:,}, and the log to {last:,}")
    snapshots = reader.execute("SELECT version, writing, parts, sha256, origin FROM snapshots")
    for version, writing, parts, checksum, _ in snapshots:
        if _hashed(reader, writing, parts) != checksum:
            raise StorageError(f"{where}: the snapshot of version {version} is damaged: its checksum does not match")
    if sum(origin for *_, origin in snapshots) != 1:
        raise StorageError(f"{where}: there is no live store in it: it has no origin")


def _hashed(reader: Reader, writing: str, parts: int) -> str:
    """The checksum of a snapshot, one part in memory at a time."""
    hashed = hashlib.sha256()
    for part in range(parts):
        for (body,) in reader.execute(
            "SELECT body FROM snapshot_parts WHERE writing = ? AND part = ?", (writing, part)
        ):
            hashed.update(body)
    return hashed.hexdigest()


def position(reader: Reader) -> int:
    """The last position of the log."""
    return int(reader.execute("SELECT position FROM counter")[0][0])


def version(reader: Reader) -> int:
    """The newest version; 0 where nothing was folded yet."""
    return int(reader.execute("SELECT COALESCE(MAX(version), 0) FROM chunks")[0][0])


__all__ = ["Layout", "check", "counts", "layouts", "pages", "position", "version"]
