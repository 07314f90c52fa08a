"""Compaction: the state at an old version becomes the origin of the log, and what it has folded is deleted.

The origin changes in one transaction, which also deletes the chunks and operations before it; from then on every process that is
behind it begins with it (`snapshots.fold`). Decisions and rewards go afterwards, a few thousand in a transaction, so that nobody
waits long: whatever is left when that is interrupted is deleted by the next compaction, and does no harm until then.

A decision stays as long as the log after the origin needs it: while it waits for its reward at the origin (what is activated
after the origin waited there), and where a reward of it came after the origin. Its activation goes with it. Of the units only
hashes stay: one that comes again is no new one (`log.remember_units`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from manyarms._base import validate
from manyarms._base.tables import Shown, Table
from manyarms.live import log, packing, snapshots
from manyarms.live.progress import Progress, to_whom
from manyarms.live.propensities import PropensityWorker
from manyarms.live.records import Chunk
from manyarms.live.stores.database import Database, Reader, Transaction, Work
from manyarms.live.stores.opening import opened

STEP = 2000  # decisions deleted in one transaction
# a decision that the log after the origin does not need: settled at the origin, and without a reward after it
_DONE = (
    "position <= ? AND NOT EXISTS (SELECT 1 FROM rewards r WHERE r.decision = decisions.position AND r.position > ?)"
)


@dataclass(frozen=True, repr=False)
class Compaction(Shown):
    """What went, or would go: rows by table, bytes in them, and the version that is the origin now.

    moved: whether the origin is another than before.
    """

    version: int
    moved: bool
    decisions: int
    rewards: int
    operations: int
    chunks: int
    snapshots: int
    bytes: int
    dry_run: bool
    activations: int = 0

    def _table(self) -> Table:
        if not self.moved and not self.decisions:
            return Table(f"nothing to compact: the log begins at version {self.version}")
        would, begins = ("would go", "would begin") if self.dry_run else ("gone", "begins")
        title = f"{would}: about {self.bytes / 1e6:,.1f} MB; the log {begins} at version {self.version}"
        names = ("decisions", "rewards", "activations", "operations", "chunks", "snapshots")
        return Table(title, ("rows of", would), [(name, getattr(self, name)) for name in names])


def compact(
    store: str | Path | Database, keep: float, *, dry_run: bool = False, progress: Progress | None = None
) -> Compaction:
    """Make the newest version that is older than `keep` seconds the origin, and delete what it has folded.

    The state stays the same, to the last bit. What was deleted is gone for exports, and its events are unknown: late rewards and
    erasures of them are refused (UnknownEvent), and their ids can be decided anew. Propensities that are missing are computed
    first. dry_run: change nothing, and say what would go.
    """
    keep = validate.not_negative("keep", keep)
    dry_run = validate.flag("dry_run", dry_run)
    told = to_whom(progress)
    with opened(store) as database:
        origin, target = _ends(database, keep)
        with database.reading() as reader:
            planned = _counted(reader, origin, target, dry_run)
        if dry_run:
            return planned
        if target.version > origin.version:
            _compute_missing(database, told)
            _move(database, target)
        done = _sweep(database, target, planned.decisions, told)
        database.do(packing.remove_orphans)
        return replace(planned, decisions=done)


def _ends(database: Database, keep: float) -> tuple[Chunk, Chunk]:
    """The origin now, and as it shall be: the newest chunk that was cut so long ago."""
    _, now = database.do(lambda tx: tx.following())
    with database.reading() as reader:
        origin = log.chunk(reader, snapshots.origin_version(reader)) or Chunk()
        sql = "SELECT version FROM chunks WHERE version > ? AND at <= ? ORDER BY version DESC LIMIT 1"
        rows = reader.execute(sql, (origin.version, now - keep))
        target = log.chunk(reader, rows[0][0]) if rows else None
        return origin, target or origin


def _compute_missing(database: Database, progress: Progress) -> None:
    """Propensities of decisions of versions that can soon not be folded any more."""
    worker, done = PropensityWorker(database), 0
    while number := worker.work(256, share=False):
        done += number
        progress(done, 0, f"{done:,} propensities computed")


def _move(database: Database, target: Chunk) -> None:
    """The state at the target, as the origin. An erasure meanwhile makes it another state: then it is made anew."""
    while True:
        state = snapshots.state_of(database, target.version)
        if state.chunk.version != target.version:
            return  # somebody else has compacted further
        content = packing.pack_state(state)
        writing = packing.write_parts(database, content)
        if database.do(_become_origin(target, writing, content, state.sound_upto)):
            return


def _become_origin(target: Chunk, writing: str, content: bytes, sound_upto: int) -> Work:
    parts, checksum = -(-len(content) // packing.PART), packing.sha256(content)

    def work(tx: Transaction) -> bool:
        if snapshots.origin_version(tx) >= target.version:
            _delete_parts(tx, [writing])
            return True
        erased = tx.execute("SELECT body FROM operations WHERE kind = 'erase' AND position > ?", (sound_upto,))
        lost = not packing.are_there(tx, writing, parts)  # it took so long that they were taken for left over
        if lost or any(json.loads(body)["decision"] <= target.upto for (body,) in erased):
            _delete_parts(tx, [writing])
            return False
        _, at = tx.following()
        _delete_parts(tx, _parts_before(tx, target))
        tx.execute("DELETE FROM snapshots WHERE version <= ?", (target.version,))
        tx.execute("DELETE FROM operations WHERE position <= ?", (target.upto,))
        # its own row stays: the next version follows it
        tx.execute("DELETE FROM chunks WHERE version < ?", (target.version,))
        tx.execute(
            "INSERT INTO snapshots (version, upto, writing, parts, sha256, at, origin) VALUES (?, ?, ?, ?, ?, ?, 1)",
            (target.version, target.upto, writing, parts, checksum, at),
        )
        log.put(tx, "origin", writing)
        return True

    return work


def _parts_before(reader: Reader, target: Chunk) -> list[str]:
    """Parts of snapshots up to the target, and of what operations had brought along by then."""
    rows = reader.execute("SELECT writing FROM snapshots WHERE version <= ?", (target.version,))
    sql = "SELECT body FROM operations WHERE position <= ? AND body LIKE ?"
    brought = [json.loads(body).get("writing") for (body,) in reader.execute(sql, (target.upto, '%"writing"%'))]
    return [writing for (writing,) in rows] + [writing for writing in brought if writing]


def _delete_parts(tx: Transaction, writings: list[str]) -> None:
    for writing in writings:
        tx.execute("DELETE FROM snapshot_parts WHERE writing = ?", (writing,))


# ---- decisions and rewards


def _sweep(database: Database, origin: Chunk, total: int, progress: Progress) -> int:
    """Delete the decisions that the log from this origin on does not need, with their rewards and propensities."""
    done = 0
    while number := database.do(_delete_some(origin)):
        done += number
        progress(done, max(total, done), f"{done:,} decisions deleted")
    return done


def _delete_some(origin: Chunk) -> Work:
    def work(tx: Transaction) -> int:
        sql = f"SELECT position FROM decisions WHERE {_DONE} ORDER BY position LIMIT {STEP}"
        positions = [position for (position,) in tx.execute(sql, (origin.due, origin.upto))]
        for start in range(0, len(positions), log.AT_A_TIME):
            some = positions[start : start + log.AT_A_TIME]
            marks = ", ".join("?" * len(some))
            log.remember_units(tx, some)
            tx.execute(f"DELETE FROM rewards WHERE decision IN ({marks})", some)
            tx.execute(f"DELETE FROM activations WHERE decision IN ({marks})", some)
            tx.execute(f"DELETE FROM propensities WHERE decision IN ({marks})", some)
            tx.execute(f"DELETE FROM decisions WHERE position IN ({marks})", some)
        return len(positions)

    return work


# ---- what would go


def _counted(reader: Reader, origin: Chunk, target: Chunk, dry_run: bool) -> Compaction:
    def of(table: str, bytes_: str, where: str, *values: object) -> tuple[int, int]:
        found = reader.execute(f"SELECT COUNT(*), COALESCE(SUM({bytes_}), 0) FROM {table} WHERE {where}", values)
        return int(found[0][0]), int(found[0][1])

    needed = (target.due, target.upto)
    record = "COALESCE(LENGTH(context), 0) + LENGTH(question) + LENGTH(actions) + LENGTH(details) + LENGTH(id) + 100"
    decisions, in_decisions = of("decisions", record, _DONE, *needed)
    done = f"decision IN (SELECT position FROM decisions WHERE {_DONE})"
    rewards, in_rewards = of("rewards", "LENGTH(id) + 40", done, *needed)
    activations, in_activations = of("activations", "24", done, *needed)
    moved = target.version > origin.version
    operations = of("operations", "LENGTH(body) + 40", "position <= ?", target.upto) if moved else (0, 0)
    chunks = of("chunks", "40", "version < ?", target.version) if moved else (0, 0)
    writings = _parts_before(reader, target) if moved else []
    in_parts = sum(of("snapshot_parts", "LENGTH(body)", "writing = ?", writing)[1] for writing in writings)
    kept = of("snapshots", "0", "version <= ?", target.version)[0] if moved else 0
    size = in_decisions + in_rewards + in_activations + operations[1] + chunks[1] + in_parts
    return Compaction(
        target.version, moved, decisions, rewards, operations[0], chunks[0], kept, size, dry_run, activations
    )  # fmt: skip


__all__ = ["Compaction", "compact"]
