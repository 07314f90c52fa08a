"""Propensities that are not known exactly, computed behind the decisions, from the store alone.

The worker folds the log for itself and stops at every version by which decisions were made, to estimate their propensities from
their own draw numbers: whoever does it, and whenever, gets the same. How far it has come is in the store.
"""

from __future__ import annotations

import threading
import time
import uuid
from contextlib import suppress

from manyarms.errors import ManyArmsError
from manyarms.live import lease, log, snapshots
from manyarms.live.deciding import propensities
from manyarms.live.records import DecisionRecord
from manyarms.live.state import State, View
from manyarms.live.stores.database import Database, Transaction, Work

LEASE = "propensities"
CURSOR = "propensities_upto"
"""The row of `meta` that says up to which position every decision has its propensity."""
AT_ONCE = 256  # decisions looked at together
FOLDED_AT_ONCE = 16  # versions between two pauses
LEAST_PART = 0.001  # of the time
UNKNOWN = (0.0, 0.0, 0.0, -1.0, 0)
"""What is written where the propensity cannot be known any more: no draws, and an error below 0."""


class _Stopped(Exception):
    """Nothing more is to be computed here."""


class PropensityWorker:
    """Finds decisions without a propensity, and computes it.

    part: of the time that it may use, at most 1: after each propensity it pauses as long as that demands, so that threads which
    decide get the interpreter.
    """

    def __init__(self, database: Database, part: float = 1.0) -> None:
        self._database = database
        self._pause = 1.0 / part - 1.0  # for every second of work
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._holder = uuid.uuid4().hex
        self._renewed = 0.0
        self._sighting = lease.Sighting()
        self._state: State | None = None

    def work(self, most: int | None = None, *, share: bool = True) -> int:
        """Compute what is missing; how many were.

        most: stop after about so many. share: leave it to another process where one is at it.
        """
        done = 0
        self._database.require_own_process()  # before the lock, which a thread of the other process may hold for ever
        with self._lock:
            while most is None or done < most:
                if not self._may(share):
                    return done
                with self._database.reading() as reader:
                    after = int(log.get(reader, CURSOR) or 0)
                    some = log.decisions_from(reader, after, AT_ONCE)
                    missing = log.without_propensity(reader, some)
                if not some:
                    return done
                for version in sorted({record.version for record in missing}):
                    of_version = [record for record in missing if record.version == version]
                    computed = self._of_version(version, of_version, share)
                    done += computed
                    if computed < len(of_version):
                        return done
                self._database.do(_move(some[-1].position))
        return done

    def stop(self) -> None:
        """Compute no more: whoever is at it writes what it has, and ends."""
        self._stopped.set()

    def _may(self, share: bool) -> bool:
        """Whether to go on: not stopped, and not left to another process."""
        if self._stopped.is_set():
            return False
        if not share:
            return True
        taken = self._database.do(lease.take(self._holder, self._sighting, name=LEASE)) is not None
        self._renewed = time.monotonic()
        return taken

    def _of_version(self, version: int, records: list[DecisionRecord], share: bool) -> int:
        """Compute these; how many were before it was stopped, or another process took over."""
        found: list[Work] = []
        with suppress(_Stopped):
            view = self._view(version, share)
            for record in records:
                self._go_on(share)
                began = time.monotonic()
                found.append(_computed(view, record))
                self._rest(began)
        self._database.write(found)
        return len(found)

    def _go_on(self, share: bool) -> None:
        """Between two pieces of work: keep the lease, and give up where it is lost, or nothing more is wanted."""
        late = share and time.monotonic() - self._renewed > lease.SECONDS / 3
        if self._stopped.is_set() or (late and not self._may(share)):
            raise _Stopped

    def _rest(self, began: float) -> None:
        """Let others have the time that is theirs, after work that began then."""
        if self._pause:
            self._stopped.wait(self._pause * (time.monotonic() - began))

    def _view(self, version: int, share: bool) -> View | None:
        """What decided; None where nobody knows any more."""
        state, self._state = self._state, None
        try:
            if state is None or state.chunk.version > version:
                state = snapshots.start_of(self._database, version)
            before = -1
            while before < state.chunk.version < version:
                self._go_on(share)
                began, before = time.monotonic(), state.chunk.version
                state = snapshots.fold(self._database, state, min(version, before + FOLDED_AT_ONCE))
                self._rest(began)
        except snapshots.Compacted:
            return None
        # an event that had been learned by then and was erased since: what decided is gone
        lost = state.chunk.version != version or snapshots.erased_since(self._database, state.chunk.upto)
        self._state = None if lost else state
        return None if lost else state.view()


def _move(upto: int) -> Work:
    def work(tx: Transaction) -> None:
        if int(log.get(tx, CURSOR) or 0) < upto:
            log.put(tx, CURSOR, str(upto))

    return work


def _computed(view: View | None, record: DecisionRecord) -> Work:
    """Writes the propensity of a decision, unless somebody has, or it has been erased meanwhile; `view` None: nobody can tell."""
    values: tuple[float, ...] = UNKNOWN
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


__all__ = ["CURSOR", "UNKNOWN", "PropensityWorker"]
