"""Retention: a thread that compacts the store now and then, so that events are kept for so long and no longer.

Compaction works in small transactions beside those that decide; see `live/compaction.py`. The first is made a minute after the
start, the others at their intervals. Several processes on one store may all do so: who comes second finds nothing to delete.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from manyarms._base import validate
from manyarms.live import Compaction, Live, compact

EVERY = 86_400.0
FIRST = 60.0  # seconds after the start: a service that is restarted every day compacts, too
PATIENCE = 10.0  # seconds for the end
Report = Callable[[Compaction | Exception], None]
"""Told what went, or why nothing did."""


class _Stopped(BaseException):
    """The service ends; what is left is done the next time."""


class Retention:
    """Keeps `keep` seconds of a store, and looks every `every` seconds. It runs until it is closed.

    `last`: what went the last time; `failure`: why it did not work the last time, None if it did. dry_run: nothing is deleted,
    and reports say what would be.
    """

    def __init__(
        self,
        live: Live,
        keep: float,
        every: float = EVERY,
        report: Report | None = None,
        *,
        dry_run: bool = False,
        first: float | None = None,
    ) -> None:
        self.keep = validate.not_negative("keep", keep)
        self.every = validate.number("every", every, above=0.0)
        self.last: Compaction | None = None
        self.failure: str | None = None
        self.done: float | None = None
        """When it was done last, in seconds since 1970."""
        self._live, self._report, self._dry_run = live, report, dry_run
        self._first = min(self.every, FIRST if first is None else validate.not_negative("first", first))
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="manyarms-retention", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        wait = self._first
        while not self._stop.wait(wait):
            try:
                self._compact()
            except _Stopped:
                return
            wait = self.every

    def _compact(self) -> None:
        result: Compaction | Exception
        try:
            self.last = result = compact(
                self._live.database, self.keep, dry_run=self._dry_run, progress=self._stops_at_the_end
            )
            self.failure, self.done = None, time.time()
        except Exception as error:  # whatever it is, the service goes on, and the next time may work
            self.failure, result = f"{type(error).__name__}: {error}", error
        if self._report is not None:
            try:
                self._report(result)
            except Exception as error:
                self.failure = f"its report fails: {type(error).__name__}: {error}"

    def _stops_at_the_end(self, done: int, total: int, words: str) -> None:
        if self._stop.is_set():
            raise _Stopped

    def close(self) -> None:
        """Stop, at the next step of a compaction that is under way: soon, and without waiting for longer than that."""
        self._stop.set()
        self._thread.join(PATIENCE)


__all__ = ["EVERY", "Retention"]
