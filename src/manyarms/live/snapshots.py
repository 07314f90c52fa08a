"""Snapshots of the state in the store, and the state from the newest of them and what came after.

The *origin* is the snapshot from which the whole log can be folded again: the first state of all, or where compaction has cut.
"""

from __future__ import annotations

import json

from manyarms.errors import StorageError
from manyarms.live import log, packing
from manyarms.live.records import Chunk
from manyarms.live.state import NeedsRebuild, State
from manyarms.live.stores.database import Database, Reader, Transaction, Work


class Compacted(StorageError):
    """What is asked for begins before the store's origin."""


KEEP = 3  # snapshots beside the origin


def write(database: Database, state: State, origin: bool = False) -> bool:
    """Keep this state in the store; whether it was kept: not where an event in it was erased meanwhile."""
    content = packing.pack_state(state)
    writing = packing.write_parts(database, content)
    parts = -(-len(content) // packing.PART)
    return bool(database.do(_name_whole(state.chunk, writing, parts, packing.sha256(content), origin)))


def _name_whole(chunk: Chunk, writing: str, parts: int, checksum: str, origin: bool) -> Work:
    def work(tx: Transaction) -> bool:
        _, at = tx.following()
        taken = tx.execute(
            "SELECT 1 FROM snapshots WHERE version = ? OR (origin = 1 AND (? = 1 OR version > ?))",
            (chunk.version, int(origin), chunk.version),
        )
        packing.remove_orphans(tx)
        if taken or _erased_after(tx, chunk.upto) or not packing.are_there(tx, writing, parts):
            tx.execute("DELETE FROM snapshot_parts WHERE writing = ?", (writing,))
            return False
        tx.execute(
            "INSERT INTO snapshots (version, upto, writing, parts, sha256, at, origin) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (chunk.version, chunk.upto, writing, parts, checksum, at, int(origin)),
        )
        _leave_newest(tx)
        return True

    return work


def erased_since(database: Database, upto: int) -> bool:
    """Whether something that had been folded up to this position was erased after it."""
    with database.reading() as reader:
        return _erased_after(reader, upto)


def _erased_after(reader: Reader, upto: int) -> bool:
    rows = reader.execute("SELECT body FROM operations WHERE kind = 'erase' AND position > ?", (upto,))
    return any(json.loads(body)["decision"] <= upto for (body,) in rows)


def _leave_newest(tx: Transaction) -> None:
    rows = tx.execute("SELECT writing FROM snapshots WHERE origin = 0 ORDER BY version DESC")
    for (writing,) in rows[KEEP:]:
        tx.execute("DELETE FROM snapshots WHERE writing = ?", (writing,))
        tx.execute("DELETE FROM snapshot_parts WHERE writing = ?", (writing,))


def newest(database: Database, before: int | None = None) -> State:
    """The newest whole snapshot; before: that had folded less than this position."""
    with database.reading() as reader:
        return newest_in(reader, before)


def newest_in(reader: Reader, before: int | None = None) -> State:
    """The same, for a reader."""
    position = reader.execute("SELECT position FROM counter")[0][0]
    sql = "SELECT version, writing, parts, sha256 FROM snapshots{} ORDER BY version DESC"
    if before is None:
        rows = reader.execute(sql.format(""))
    else:
        rows = reader.execute(sql.format(" WHERE upto < ? OR origin = 1"), (before,))
    for _, writing, _, checksum in rows:
        content = packing.read_parts(reader, writing)
        if packing.sha256(content) == checksum:
            state = packing.unpack_state(content)
            state.sound_upto = position
            return state
    raise StorageError("the store has no whole snapshot to begin with")


def fold(database: Database, state: State, version: int | None = None) -> State:
    """Fold what has been cut since, up to a version; where an erasure demands it, from an earlier snapshot on.

    A version before the origin cannot be folded any more: the origin comes instead.
    """
    while True:
        with database.reading() as reader:
            if (begins := origin_version(reader)) > state.chunk.version:  # compacted meanwhile: what comes next is gone
                state = newest_in(reader) if version is None else origin_in(reader)
                if version is not None and begins > version:
                    return state
            chunks = log.chunks_after(reader, state.chunk.version, limit=64)
            chunks = [chunk for chunk in chunks if version is None or chunk.version <= version]
            if not chunks:
                return state
            try:
                for chunk in chunks:
                    _check_next(state, chunk)
                    state.apply(reader, chunk)
                continue
            except NeedsRebuild as needed:
                before = needed.decision
        state = newest(database, before)


def _check_next(state: State, chunk: Chunk) -> None:
    if chunk.version != state.chunk.version + 1:
        raise Compacted(
            f"the log has no chunk {state.chunk.version + 1}: it was compacted, or belongs to another store"
        )


def state_of(database: Database, version: int | None = None) -> State:
    """The state at a version, by default the newest, from the newest snapshot that is not beyond it."""
    return fold(database, newest(database) if version is None else start_of(database, version), version)


def start_of(database: Database, version: int) -> State:
    """The newest snapshot that is not beyond a version: where its fold begins."""
    with database.reading() as reader:
        end = log.chunk(reader, version)
    return origin(database) if end is None else newest(database, end.upto + 1)


def from_origin(database: Database, version: int | None = None) -> State:
    """The state folded from the very beginning of what the store has."""
    return fold(database, origin(database), version)


def origin_version(reader: Reader) -> int:
    """The version of the origin: 0, or where compaction has cut."""
    return int(reader.execute("SELECT version FROM snapshots WHERE origin = 1")[0][0])


def origin(database: Database) -> State:
    """Where the log begins."""
    with database.reading() as reader:
        return origin_in(reader)


def origin_in(reader: Reader) -> State:
    """Where the log begins, for a reader."""
    position = reader.execute("SELECT position FROM counter")[0][0]
    for writing, checksum in reader.execute("SELECT writing, sha256 FROM snapshots WHERE origin = 1"):
        content = packing.read_parts(reader, writing)
        if packing.sha256(content) != checksum:
            raise StorageError("the store's origin is damaged: its checksum does not match")
        state = packing.unpack_state(content)
        state.sound_upto = position
        return state
    raise StorageError("the store has no origin")


__all__ = [
    "fold",
    "from_origin",
    "newest",
    "newest_in",
    "origin",
    "origin_in",
    "origin_version",
    "start_of",
    "state_of",
    "write",
]
