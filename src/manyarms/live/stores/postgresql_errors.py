"""What PostgreSQL says when something goes wrong, in plain words and as errors of this package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyarms.errors import StorageError, StoreUnavailable

if TYPE_CHECKING:
    import psycopg

# states of SQL (PostgreSQL's manual, appendix A), or the first two characters of them
_UNAVAILABLE = {
    "53100": "the server's disk is full",
    "53200": "the server has not enough memory",
    "53300": "the server has too many connections",
    "25006": "it can only be read: the server is a replica, or its data are read-only",
    "57014": "the server did not answer in time",
    "55P03": "locked by another process for too long",
    "25P03": "the transaction waited too long for this process",
    "28": "access is refused",
    "3D": "there is no such database",
    "57P": "the server is stopping or starting",
    "58": "the server's disk fails",
    "08": "the connection is lost",
}
_DAMAGED = ("XX001", "XX002")
_WORK = ("0A", "21", "22", "23", "42")  # the fault is in what was asked


def spoils_connection(error: BaseException) -> bool:
    """Whether the connection cannot be trusted afterwards."""
    import psycopg

    return isinstance(error, psycopg.Error) and not refused_statement(error)


def refused_statement(error: psycopg.Error) -> bool:
    """Whether the fault is in what was asked."""
    import psycopg

    if error.sqlstate is not None:
        return error.sqlstate.startswith(_WORK)
    return isinstance(
        error, psycopg.DataError | psycopg.ProgrammingError | psycopg.NotSupportedError
    )  # of psycopg's own


def translated(error: psycopg.Error, where: str, password: str | None) -> StorageError:
    """The error as this package raises it, without the password."""
    said = " ".join(str(error).split()) or type(error).__name__
    if password:
        said = said.replace(password, "***")
    if refused_statement(error):
        return StorageError(f"{where}: PostgreSQL refuses a statement: {said}")
    state = error.sqlstate or ""
    if state in _DAMAGED:
        return StorageError(f"{where}: the database is damaged: restore a backup (PostgreSQL: {said})")
    for length in (5, 3, 2):
        if state[:length] in _UNAVAILABLE:
            return StoreUnavailable(f"{where}: {_UNAVAILABLE[state[:length]]} (PostgreSQL: {said})")
    return StoreUnavailable(f"{where}: the server cannot be reached, or the connection is lost (PostgreSQL: {said})")


__all__ = ["refused_statement", "spoils_connection", "translated"]
