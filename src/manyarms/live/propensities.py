"""Propensities that are not known exactly, computed behind the decisions: version by version, from the store alone.

The worker folds the log for itself, some versions behind, and stops at every version to estimate the propensities of the
decisions made by it, from the decision's own draw number: whoever does it, and whenever, gets the same.
"""

from __future__ import annotations

import json
import threading
from contextlib import suppress

from manyarms.errors import ManyArmsError
from manyarms.live import log, snapshots
from manyarms.live.deciding import propensities
from manyarms.live.records import DecisionRecord
from manyarms.live.state import State, View
from manyarms.live.stores.database import Database, Transaction, Work

AT_ONCE = 64  # decisions whose propensities are written together
UNKNOWN = (0.0, 0.0, 0.0, -1.0, 0)
"""What is written where the propensity cannot be known any more: no draws, and an error below 0."""
MISSING = (
    "SELECT version FROM decisions d WHERE propensity IS NULL AND erased = 0 "
    "AND NOT EXISTS (SELECT 1 FROM propensities p WHERE p.decision = d.position)"
)


class PropensityWorker:
    """Finds decisions without a propensity, and computes it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._state: State | None = None

    def work(self, most: int | None = None) -> int:
        """Compute what is missing, the oldest version first; how many were computed. most: no more than about so many."""
        done = 0
        with self._lock:
            while most is None or done < most:
                rows = self._database.read(f"{MISSING} ORDER BY version LIMIT 1")
                if not rows:
                    break
                number = self._of_version(rows[0][0])
                if not number:
                    break
                done += number
        return done

    def _of_version(self, version: int) -> int:
        state, self._state = self._state, None
        if state is None or state.chunk.version > version:
            state = snapshots.state_of(self._database, version)
        else:
            state = snapshots.fold(self._database, state, version)
        # what decided is gone: compacted, or an event that it had learned from was erased
        lost = state.chunk.version != version or self._erased_since(state.chunk.upto)
        view, done = None if lost else state.view(), 0
        while True:
            sql = f"{MISSING.replace('SELECT version', 'SELECT position')} AND version = ? ORDER BY position LIMIT {AT_ONCE}"
            positions = [row[0] for row in self._database.read(sql, (version,))]
            if not positions:
                break
            with self._database.reading() as reader:
                records = log.decisions_at(reader, positions)
            found = [_computed(view, record) for record in records.values()]
            self._database.write(found)
            done += len(found)
        self._state = None if lost else state
        return done

    def _erased_since(self, upto: int) -> bool:
        """Whether an event that was folded up to this position has been erased after it."""
        rows = self._database.read("SELECT body FROM operations WHERE kind = 'erase' AND position > ?", (upto,))
        return any(json.loads(body)["decision"] <= upto for (body,) in rows)


def _computed(view: View | None, record: DecisionRecord) -> Work:
    """Writes the propensity of a decision, unless somebody has, or it has been erased meanwhile; `view` None: nobody can tell."""
    values = UNKNOWN
    if view is not None:
        with suppress(ManyArmsError):  # an arm that cannot tell
            found = propensities(view, record)
            values = (found["propensity"], found["arm_propensity"], found["inclusion"], found["error"], found["draws"])

    def work(tx: Transaction) -> None:
        there = tx.execute("SELECT erased FROM decisions WHERE position = ?", (record.position,))
        known = tx.execute("SELECT 1 FROM propensities WHERE decision = ?", (record.position,))
        if there and not there[0][0] and not known:
            tx.execute(
                "INSERT INTO propensities (decision, propensity, arm_propensity, inclusion, error, draws) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (record.position, *values),
            )

    return work


__all__ = ["PropensityWorker"]
