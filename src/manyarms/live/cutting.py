"""Where chunks end: what is new goes into the next one, and which decisions have waited long enough by then."""

from __future__ import annotations

from manyarms.live import log
from manyarms.live.records import Chunk
from manyarms.live.settings import SettingsInTime
from manyarms.live.stores.database import Reader, Transaction, Work


def cut(agreed: SettingsInTime, known: int, token: int, allowed: Work | None) -> Work:
    """Cut the next chunk, of all that is new; None where nothing is.

    agreed: the settings, by the operations up to the position `known`. allowed: refuses where somebody else is the learner.
    """

    def work(tx: Transaction) -> Chunk | None:
        if allowed is not None:
            allowed(tx)
        last = log.last_chunk(tx) or Chunk()
        new = [tx.execute(f"SELECT 1 FROM {table} WHERE position > ? LIMIT 1", (last.upto,)) for table in log.ENTRIES]
        upto, at = tx.following()
        due = max(last.due, due_by(tx, agreed, known, at, last.due))
        if not any(new) and due == last.due:
            return None
        tx.place()
        tx.execute(
            "INSERT INTO chunks (version, upto, due, at, token) VALUES (?, ?, ?, ?, ?)",
            (last.version + 1, upto, due, at, token),
        )
        return Chunk(last.version + 1, upto, due, at, token)

    return work


def due_by(reader: Reader, agreed: SettingsInTime, known: int, now: float, after: int) -> int:
    """The position up to which decisions have waited long enough at this time; those up to `after` have.

    Events settle in the order of positions: a decision is due when its own waiting time is over and all before it are due. Where
    the settings were changed beyond `known`, what was decided since has a waiting time that is not known yet, and is not due.
    """
    ends: list[tuple[int | None, float]] = [(upto, settings.wait) for upto, settings in agreed.former if upto > after]
    ends.append((settings_changed(reader, known), agreed.now.wait))
    due = after
    for upto, wait in ends:
        over = log.due_at(reader, now - wait)
        if upto is None:
            return max(due, over)
        rows = reader.execute(
            "SELECT position FROM decisions WHERE position <= ? ORDER BY position DESC LIMIT 1", (upto,)
        )
        last = int(rows[0][0]) if rows else 0
        if last > due and over < last:
            return max(due, over)
        due = max(due, last)
    return due


def settings_changed(reader: Reader, after: int) -> int | None:
    """Where settings were first changed, or were to be, after a position; None where they were not."""
    sql = "SELECT position FROM operations WHERE kind = 'change_settings' AND position > ? ORDER BY position LIMIT 1"
    rows = reader.execute(sql, (after,))
    return int(rows[0][0]) if rows else None


__all__ = ["cut", "due_by", "settings_changed"]
