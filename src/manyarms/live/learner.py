"""The learner: cuts chunks where it holds the lease, and follows the chunks that were cut, here or elsewhere.

Every process has one, in a thread of its own or called by hand. Only one of them cuts; all of them fold what was cut, each for
itself, with the same result.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager

from manyarms.errors import ManyArmsError, StorageError
from manyarms.live import cutting, lease, snapshots
from manyarms.live.records import Chunk
from manyarms.live.state import State, View
from manyarms.live.stores.database import Database


class Learner:
    """Holds the state of this process, and publishes views of it."""

    def __init__(self, database: Database, state: State, *, snapshot_every: int, cuts: bool = True) -> None:
        """snapshot_every: chunks between two snapshots. cuts: whether this process may become the learner."""
        self._database = database
        self._state: State | None = state
        self._lock = threading.RLock()  # one at a time folds
        self._holder = uuid.uuid4().hex
        self._token: int | None = None
        self._sighting = lease.Sighting()
        self._renewed = -float("inf")
        self._snapshot_every = snapshot_every
        self._last_snapshot = state.chunk.version
        self._cuts = cuts
        self.view: View = state.view()
        self.failure: ManyArmsError | None = None  # of the last round in the background; None where it went well

    # ---- one round

    def learn(self) -> View:
        """Cut what is new, if this process is the learner or can become it; fold what was cut; the newest view."""
        with self._alone():
            if self._cuts:
                self._cut()
            self.follow()
            if self._token is not None and self.view.version >= self._last_snapshot + self._snapshot_every:
                self.snapshot()
            return self.view

    def follow(self) -> View:
        """Fold what was cut since, here or elsewhere."""
        with self._alone():
            start = self._state
            if start is None:
                start = snapshots.newest(self._database)
            self._state = None  # whatever breaks off half way, nobody sees it: the next time begins with a snapshot
            self._state = state = snapshots.fold(self._database, start)
            if state.chunk.version != self.view.version:
                self.view = state.view()
            return self.view

    def snapshot(self) -> None:
        """Keep the state in the store."""
        with self._alone():
            snapshots.write(self._database, self._whole())
            self._last_snapshot = self.view.version

    def _alone(self) -> AbstractContextManager[bool]:
        self._database.require_own_process()  # before the lock, which a thread of the other process may hold for ever
        return self._lock

    def _whole(self) -> State:
        self.follow()
        assert self._state is not None
        return self._state

    def _cut(self) -> Chunk | None:
        now = time.monotonic()
        if self._token is None or now - self._renewed > lease.SECONDS / 3:
            self._token = self._database.do(lease.take(self._holder, self._sighting))
            self._renewed = now
        if self._token is None:
            return None
        try:
            allowed = lease.held(self._holder, self._token)
            cut: Chunk | None = self._database.do(cutting.cut(self.view.agreed, self.view.upto, self._token, allowed))
            return cut
        except lease.NotTheLearner:
            self._token = None
            return None

    @property
    def is_learner(self) -> bool:
        """Whether this process held the lease when it last looked."""
        return self._token is not None

    def state_bytes(self) -> bytes:
        """The state, as a snapshot would keep it."""
        from manyarms.live.packing import pack_state

        with self._alone():
            return pack_state(self._whole())

    def resign(self) -> None:
        """Give the lease back, so that another process need not wait for its end."""
        with self._alone():
            if self._token is not None:
                self._database.do(lease.give_up(self._holder, self._token))
                self._token = None


class Background:
    """Calls a function again and again in a thread, until it is stopped; an error of the store waits for the next time."""

    def __init__(
        self, name: str, work: Callable[[], object], every: float, failed: Callable[[ManyArmsError | None], None]
    ):
        self._work = work
        self._every = every
        self._failed = failed
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._work()
                self._failed(None)
            except ManyArmsError as error:
                self._failed(error)
            except Exception as error:  # told to whoever asks, rather than a thread that is silently gone
                self._failed(StorageError(f"{type(error).__name__}: {error}"))
            self._wake.wait(self._every)
            self._wake.clear()

    def wake(self) -> None:
        """Do not wait any longer."""
        self._wake.set()

    def stop(self) -> None:
        """Finish the round, and no more."""
        self._stop.set()
        self._wake.set()
        self._thread.join()


__all__ = ["Background", "Learner"]
