"""What waits to be uploaded, in a small SQLite file or in memory: there before anything is returned, gone once it arrived."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from manyarms._base import files
from manyarms._base.text import counted
from manyarms._base.typing import Spec
from manyarms.errors import Overloaded, StorageError, StoreUnavailable

DECISION: Literal["decision"] = "decision"
REWARD: Literal["reward"] = "reward"
FORMAT = 1
_TABLES = """
CREATE TABLE IF NOT EXISTS waiting (number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, body TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS bundle (one INTEGER PRIMARY KEY CHECK (one = 1), agent TEXT NOT NULL, etag TEXT, data BLOB NOT NULL);
"""


@dataclass(frozen=True)
class Waiting:
    """An entry of the queue: a decision or a reward, as it is uploaded."""

    number: int
    kind: str
    body: Spec


class UploadQueue:
    """Entries in the order in which they came, at most so many. Threads may share it; processes may open the same file.

    path: a file, or None for memory. It also keeps the last bundle, so that deciding can go on where the service is out of reach.
    """

    synchronous = "FULL"  # what was returned is on the disk

    def __init__(self, path: str | Path | None, most: int) -> None:
        self._most, self._count = most, 0
        self._lock = threading.Lock()
        file = ":memory:" if path is None else files.as_path("queue", path)
        self._name = "memory" if path is None else str(path)
        if isinstance(file, Path):
            _make_private(file)
        with self._readable():
            self._database = sqlite3.connect(file, timeout=10.0, isolation_level=None, check_same_thread=False)
            try:
                self._prepare()
            except BaseException:
                self._database.close()
                raise

    def _prepare(self) -> None:
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute(f"PRAGMA synchronous = {self.synchronous}")
        [(version,)] = self._database.execute("PRAGMA user_version")
        if version not in (0, FORMAT):
            raise StorageError(f"{self._name}: a queue of format {version}, and this release reads {FORMAT}")
        self._database.executescript(_TABLES)
        self._database.execute(f"PRAGMA user_version = {FORMAT}")
        self._recount()

    def _recount(self) -> None:
        self._count = int(self._database.execute("SELECT COUNT(*) FROM waiting").fetchone()[0])

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """SQLite's errors as ours."""
        try:
            yield
        except sqlite3.OperationalError as error:
            raise StoreUnavailable(f"{self._name}: {error}") from error
        except sqlite3.ProgrammingError as error:
            raise StoreUnavailable(f"{self._name}: this queue is closed") from error
        except sqlite3.DatabaseError as error:
            raise StorageError(f"{self._name}: not a queue, or damaged: {error}") from error

    def put(self, kind: Literal["decision", "reward"], body: Spec) -> None:
        """Add an entry; refused where there are too many, so that nothing is dropped in silence."""
        with self._lock, self._readable():
            if self._count >= self._most:
                text = f"{counted(self._count, 'entry waits', 'entries wait')} to be uploaded, the most there may be"
                raise Overloaded(f"{text}: is the service out of reach?")
            self._database.execute("INSERT INTO waiting (kind, body) VALUES (?, ?)", (kind, json.dumps(body)))
            self._count += 1

    def first(self, number: int) -> list[Waiting]:
        """The oldest entries."""
        with self._lock, self._readable():
            rows = self._database.execute("SELECT number, kind, body FROM waiting ORDER BY number LIMIT ?", (number,))
            return [Waiting(place, kind, json.loads(body)) for place, kind, body in rows]

    def remove(self, numbers: Sequence[int]) -> None:
        """Entries that arrived, or never will."""
        with self._lock, self._readable():
            self._database.execute("BEGIN IMMEDIATE")
            self._database.executemany("DELETE FROM waiting WHERE number = ?", [(number,) for number in numbers])
            self._database.execute("COMMIT")
            self._recount()

    def __len__(self) -> int:
        return self._count

    def keep_bundle(self, agent: str, etag: str | None, data: bytes) -> None:
        """Keep a bundle, in the place of the one before."""
        with self._lock, self._readable():
            self._database.execute("INSERT OR REPLACE INTO bundle VALUES (1, ?, ?, ?)", (agent, etag, data))

    def bundle(self, agent: str) -> tuple[str | None, bytes] | None:
        """The ETag and the bytes of the bundle that was kept; None where there is none for this agent."""
        with self._lock, self._readable():
            found = self._database.execute("SELECT etag, data FROM bundle WHERE agent = ?", (agent,)).fetchall()
            return (found[0][0], bytes(found[0][1])) if found else None

    def close(self) -> None:
        """Let the file go; what waits stays in it."""
        with self._lock:
            self._database.close()


def _make_private(file: Path) -> None:
    """A new file is its owner's alone, and so is what SQLite puts beside it: contexts are in it."""
    with suppress(OSError):  # it is there; or SQLite says what is wrong
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


__all__ = ["DECISION", "REWARD", "UploadQueue", "Waiting"]
