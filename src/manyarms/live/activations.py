"""Activations: decisions that might never be shown, and are.

An activation is an entry of the log. A decision that was made as inactive counts from the position of its activation on: rewards
that came before are learned then. It is refused once the decision's waiting time is over, by the log's time or by a chunk that
was cut: what the fold has left behind as never shown stays so.
"""

from __future__ import annotations

from manyarms.errors import Conflict, UnknownEvent
from manyarms.live import log
from manyarms.live.cutting import settings_changed
from manyarms.live.records import Chunk
from manyarms.live.settings import SettingsInTime
from manyarms.live.stores.database import Reader, Transaction, Work


def activate(event: str, agreed: SettingsInTime, known: int) -> Work:
    """Write that a decision is shown; where it is active already nothing changes.

    agreed: the settings, by the operations up to the position `known`.
    """

    def work(tx: Transaction) -> None:
        found = tx.execute("SELECT position, at, erased, active FROM decisions WHERE id = ?", (event,))
        if not found:
            raise UnknownEvent(f"no event {event!r}: never decided here, or compacted since")
        where, decided, erased, active = found[0]
        if erased:
            raise UnknownEvent(f"event {event!r} was erased")
        if active or tx.execute("SELECT 1 FROM activations WHERE decision = ?", (where,)):
            return
        position, at = tx.following()
        last, wait = log.last_chunk(tx) or Chunk(), agreed.of(where).wait
        changed = settings_changed(tx, known)  # where it waits otherwise than is known here, no chunk has it yet
        over = decided <= at - wait and (changed is None or where <= changed)
        if where <= last.due or over:
            raise Conflict(
                f"event {event!r} was decided {at - decided:.6g} s ago and never activated: its waiting time, {wait:g} s, is "
                "over, and it counts as never shown"
            )
        tx.execute("INSERT INTO activations (position, decision, at) VALUES (?, ?, ?)", (position, where, at))
        tx.place()

    return work


def activated_between(reader: Reader, after: int, upto: int) -> list[int]:
    """The decisions (by position) whose activations have positions in (after, upto], in the order of these."""
    sql = "SELECT decision FROM activations WHERE position > ? AND position <= ? ORDER BY position"
    return [decision for (decision,) in reader.execute(sql, (after, upto))]


__all__ = ["activate", "activated_between"]
