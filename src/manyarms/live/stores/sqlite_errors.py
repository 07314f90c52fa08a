"""What SQLite says when something goes wrong, in plain words and as errors of this package."""

from __future__ import annotations

import sqlite3

from manyarms.errors import StorageError, StoreUnavailable

_UNAVAILABLE = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_READONLY: "it can only be read: the file, its folder or the disk is read-only",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened: the file or its folder is gone, or access is refused",
    sqlite3.SQLITE_PERM: "access is refused",
    sqlite3.SQLITE_IOERR: "the disk fails",
    sqlite3.SQLITE_NOMEM: "there is not enough memory",
    sqlite3.SQLITE_PROTOCOL: "its locks cannot be had",
    sqlite3.SQLITE_NOLFS: "the file is larger than the system allows",
    sqlite3.SQLITE_INTERRUPT: "the call was interrupted",
}
_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_DAMAGED = {
    sqlite3.SQLITE_NOTADB: "this is not an SQLite database, or its first page is damaged",
    sqlite3.SQLITE_CORRUPT: "the database is damaged: restore a backup",
    sqlite3.SQLITE_FORMAT: "the database is damaged: restore a backup",
}


def code(error: sqlite3.Error) -> int | None:
    """SQLite's primary result code; None where Python's module has refused by itself."""
    extended = getattr(error, "sqlite_errorcode", None)
    return None if extended is None else extended & 0xFF


def spoils_connection(error: BaseException) -> bool:
    """Whether the connection cannot be trusted afterwards: not where it had to wait, the disk is full or a statement is wrong."""
    if not isinstance(error, sqlite3.Error):
        return False
    found = code(error)
    return found in _DAMAGED or (found in _UNAVAILABLE and found != sqlite3.SQLITE_FULL)


def translated(error: sqlite3.Error, where: str, patience: float) -> StorageError:
    """The error as this package raises it."""
    found = code(error)
    if found in _LOCKED:
        return StoreUnavailable(f"{where}: locked by another process for {patience:g} s")
    if found in _DAMAGED:
        return StorageError(f"{where}: {_DAMAGED[found]} (SQLite: {error})")
    if found in _UNAVAILABLE:
        return StoreUnavailable(f"{where}: {_UNAVAILABLE[found]} (SQLite: {error})")
    return StorageError(f"{where}: SQLite refuses a statement: {error}")


__all__ = ["code", "spoils_connection", "translated"]
