"""Worker processes on this machine: started fresh, one thread each, ended cleanly when the user interrupts.

    with local(workers=4) as engine:
        for piece, outcome in engine.map(function, pieces):     # as they come
            total += outcome

`function` and the pieces are pickled: a function of a module, and plain data. Processes are spawned and not forked: their
linear algebra then starts with the thread count set here, and an outcome does not depend on how many workers there are.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import connection
from typing import Any, TypeVar

from manyarms._base import validate
from manyarms.errors import InvalidInput, ManyArmsError

THREAD_VARIABLES = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
)  # fmt: skip
SECONDS_BETWEEN_MESSAGES = 0.1

Piece = TypeVar("Piece")
Outcome = TypeVar("Outcome")


class WorkerDied(ManyArmsError):
    """A worker process ended without an answer, most often for want of memory."""


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Local:
    """A pool of workers; `local` opens and closes one."""

    def __init__(self, workers: int, hear: Callable[[Any], None] | None = None) -> None:
        self.workers = validate.count("workers", workers)
        if hear is not None and not callable(hear):
            raise InvalidInput("hear", validate.describe(hear), "a function of what workers tell, or None")
        self._hear = hear
        context = multiprocessing.get_context("spawn")
        self._messages: Any = None if hear is None else context.SimpleQueue()
        self._others = set(multiprocessing.active_children())
        self._executor = ProcessPoolExecutor(
            self.workers, mp_context=context, initializer=_start_worker, initargs=(self._messages,)
        )

    def map(self, function: Callable[[Piece], Outcome], pieces: Sequence[Piece]) -> Iterator[tuple[Piece, Outcome]]:
        """Each piece with its outcome, as they come; the first error ends the pass."""
        finished: queue.SimpleQueue[Future[Outcome]] = queue.SimpleQueue()
        futures: dict[Future[Outcome], Piece] = {}
        try:
            for piece in pieces:
                future = self._executor.submit(function, piece)
                futures[future] = piece
                future.add_done_callback(finished.put)
            while futures:
                future = self._next(finished)
                yield futures.pop(future), future.result()
        except BrokenProcessPool as error:
            raise WorkerDied(
                "a worker process ended without an answer (often: not enough memory); try fewer workers"
            ) from error

    def _next(self, finished: queue.SimpleQueue[Future[Outcome]]) -> Future[Outcome]:
        """The next finished piece; messages are passed on while waiting for it, and all that came before it."""
        while True:
            try:
                future = finished.get(timeout=None if self._hear is None else SECONDS_BETWEEN_MESSAGES)
            except queue.Empty:
                future = None
            while self._hear is not None and not self._messages.empty():
                self._hear(self._messages.get())
            if future is not None:
                return future

    def close(self) -> None:
        """Wait for the workers and end them."""
        self._executor.shutdown(wait=True, cancel_futures=True)

    def abandon(self) -> None:
        """End the workers now, whatever they are doing."""
        for child in multiprocessing.active_children():
            if child not in self._others:
                child.terminate()
        # nothing is cancelled: the executor itself fails what is left, and stumbles over cancelled work
        self._executor.shutdown(wait=True)


@contextmanager
def local(workers: int | None = None, hear: Callable[[Any], None] | None = None) -> Iterator[Local]:
    """A pool for the length of a block, with a worker a core by default; an error or an interruption ends it at once.

    hear: is called, in this process, with what workers `tell` while they work.
    """
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    try:
        pool = Local(cores() if workers is None else workers, hear)
        try:
            yield pool
            pool.close()
        except BaseException:
            pool.abandon()
            raise
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


_messages: Any = None  # of a worker: the way to its parent, if that listens


def tell(message: object) -> None:
    """Send a message to the process that started this worker; nothing happens where nobody listens."""
    if _messages is not None:
        _messages.put(message)


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for work forever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def _start_worker(messages: Any) -> None:
    global _messages
    _messages = messages
    # the parent alone decides what an interruption means
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


__all__ = ["Local", "WorkerDied", "cores", "local", "tell"]
