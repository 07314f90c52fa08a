"""The file of an SQLite store: made once, and the same one as long as it is open.

An open connection goes on writing into a file that has been deleted or replaced, and nobody would ever find what it wrote. So
the file, its write-ahead log and their index are looked up by name before anything is written, and again before anybody is told
that it was.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from manyarms._base.files import reason
from manyarms.errors import StorageError, StoreUnavailable

Identity = tuple[int, int]


class LogReplaced(StoreUnavailable):
    """The file is there, but the log beside it is not the one that the connections have open."""


class StoreFile:
    """The database's file and the two beside it."""

    def __init__(self, path: Path) -> None:
        self.path = Path(
            os.path.realpath(path)
        )  # as SQLite has it: the log lies beside the file, not beside a link to it
        self._made: Identity | None = None
        self._beside: dict[str, Identity] = {}

    def make(self) -> None:
        """Make an empty file that its owner alone may read, unless there is a file."""
        try:
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            return
        except OSError as error:
            raise StoreUnavailable(f"{self.path}: cannot be made: {reason(error)}") from error
        self.sync_folder()

    def sync_folder(self) -> None:
        """Make the names of new files durable."""
        try:
            folder = os.open(self.path.parent, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise StoreUnavailable(f"{self.path.parent}: cannot be written to disk: {reason(error)}") from error

    def require_file(self) -> None:
        """Refuse what is no file, and another file than the one that was opened first."""
        found = self._identity("")
        if self._made is None:
            self._made = found
        elif found != self._made:
            raise StoreUnavailable(
                f"{self.path}: this is another file than the one that was opened: put that back, or open the store again"
            )

    def pin(self) -> None:
        """Remember the files beside it, unless they are known; called when a connection has opened them."""
        if not self._beside:
            self._beside = {suffix: self._identity(suffix) for suffix in ("-wal", "-shm")}

    def unpin(self) -> None:
        """Forget the files beside it; called when connections are closed, whose last one removes them."""
        self._beside = {}

    def require_same(self) -> None:
        """Refuse when any of the files has been deleted or replaced."""
        self.require_file()
        for suffix, identity in self._beside.items():
            try:
                same = self._identity(suffix) == identity
            except StoreUnavailable:
                same = False
            if not same:
                raise LogReplaced(f"{self.path}{suffix}: deleted or replaced while the store was open")

    def _identity(self, suffix: str) -> Identity:
        """Device and number of a file, which stay its own whatever it is called."""
        name = f"{self.path}{suffix}"
        try:
            found = os.stat(name)
        except FileNotFoundError:
            raise StoreUnavailable(f"{name}: the file is gone") from None
        except OSError as error:
            raise StoreUnavailable(f"{name}: cannot be reached: {reason(error)}") from error
        if not stat.S_ISREG(found.st_mode):
            raise StorageError(f"{name}: this is not a file")
        return found.st_dev, found.st_ino


__all__ = ["LogReplaced", "StoreFile"]
