"""One writer at a time in a folder.

The lock is on the folder itself and belongs to the open descriptor: it leaves no file behind, and the system takes it back from a
process that is killed. Threads of one process exclude each other as processes do. Readers never wait.

Windows and some network file systems have no such locks; there writers go without one, and `only_writer` says so.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from manyarms.errors import StorageError

PATIENCE = 60.0  # seconds that a writer waits for another one: a save takes a fraction of it
BETWEEN_TRIES = 0.005
_HELD = {errno.EAGAIN, errno.EACCES, errno.EWOULDBLOCK}


@contextmanager
def only_writer(folder: Path) -> Iterator[bool]:
    """Keep other writers out of a folder; whether they are kept out, or the system cannot do it."""
    try:
        import fcntl
    except ImportError:  # pragma: no cover - Windows
        yield False
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        locked, end = False, time.monotonic() + PATIENCE
        while not locked:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                locked = True
            except OSError as error:
                if error.errno not in _HELD:  # the file system has no locks
                    break
                if time.monotonic() > end:
                    raise StorageError(
                        f"{folder}: cannot be written: another process has been writing there for {PATIENCE:.0f} s"
                    ) from None
                time.sleep(BETWEEN_TRIES)
        try:
            yield locked
        finally:
            if locked:  # by name, since a process forked meanwhile holds the descriptor as well
                fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


__all__ = ["only_writer"]
