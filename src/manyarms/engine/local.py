"""Worker processes on this machine: started fresh, one thread each, ended cleanly when the user interrupts.

    with local(workers=4) as engine:
        for piece, outcome in engine.map(function, pieces):     # as they come
            total += outcome

Functions and pieces are sent to them: a function of a module, and plain data. Processes are spawned and not forked: their
linear algebra then starts with the thread count set here, and an outcome does not depend on how many workers there are.
"""

from __future__ import annotations

import mmap
import os
import pickle
import queue
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from manyarms._base import validate
from manyarms.engine.base import FAILURES, NO_COMMON, Engine, NoCommon, Outcome, Piece, Tree, WorkerDied
from manyarms.errors import InvalidInput

if TYPE_CHECKING:  # otherwise when processes are started: most calls start none
    from concurrent.futures import Future

THREAD_VARIABLES = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
)  # fmt: skip
SECONDS_BETWEEN_MESSAGES = 0.1
ALIGNED = 64  # bytes at a multiple of which arrays begin


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Local(Engine):
    """A pool of workers; `local` opens and closes one."""

    def __init__(self, workers: int, hear: Callable[[Any], None] | None = None) -> None:
        self.workers = validate.count("workers", workers)
        if hear is not None and not callable(hear):
            raise InvalidInput("hear", validate.describe(hear), "a function of what workers tell, or None")
        self._hear = hear
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor

        context = multiprocessing.get_context("spawn")
        self._messages: Any = None if hear is None else context.SimpleQueue()
        self._others = set(multiprocessing.active_children())
        self._executor = ProcessPoolExecutor(
            self.workers, mp_context=context, initializer=_start_worker, initargs=(self._messages,)
        )

    def map(
        self, function: Callable[..., Outcome], pieces: Sequence[Piece], *, common: Any = NO_COMMON
    ) -> Iterator[tuple[Piece, Outcome]]:
        for place, outcome in self._outcomes(function, pieces, common):
            yield pieces[place], outcome

    def reduce_parts(
        self,
        function: Callable[..., Sequence[Outcome]],
        pieces: Sequence[Piece],
        combine: Callable[[Outcome, Outcome], Outcome],
        parts: int,
        *,
        common: Any = NO_COMMON,
    ) -> Iterator[Outcome]:
        trees = [Tree(len(pieces), combine) for _ in range(parts)]
        for place, outcome in self._outcomes(function, pieces, common):
            for tree, part in zip(trees, outcome, strict=True):
                tree.add(place, part)
        while trees:
            yield trees.pop(0).top

    def train(
        self,
        function: Callable[..., Outcome],
        workers: int,
        *,
        common: Any = NO_COMMON,
        failures: int = FAILURES,
        hear: Callable[[Any], None] | None = None,
    ) -> Outcome:
        from manyarms.engine.local_training import train

        outcome: Outcome = train(function, validate.count("workers", workers), common, failures, hear or self._hear)
        return outcome

    def _outcomes(
        self, function: Callable[..., Outcome], pieces: Sequence[Piece], common: Any
    ) -> Iterator[tuple[int, Outcome]]:
        """The place of each piece with its outcome, as they come."""
        from concurrent.futures.process import BrokenProcessPool

        finished: queue.SimpleQueue[Future[Outcome]] = queue.SimpleQueue()
        futures: dict[Future[Outcome], int] = {}
        with sent_once(common) as more:
            try:
                for place, piece in enumerate(pieces):
                    future = self._executor.submit(_call, function, piece, more)
                    futures[future] = place
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
        import multiprocessing

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


# ---- what all pieces need is written once, and read by a worker when its first piece comes


@contextmanager
def sent_once(common: Any) -> Iterator[str | None]:
    """The file that holds what is common, for as long as the block lasts; None where there is nothing."""
    if isinstance(common, NoCommon):
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="manyarms-") as folder:
        arrays: list[pickle.PickleBuffer] = []
        told = pickle.dumps(common, protocol=pickle.HIGHEST_PROTOCOL, buffer_callback=arrays.append)
        path, places = os.path.join(folder, "common"), []
        with open(path + ".arrays", "wb") as stream:
            for array in arrays:
                stream.write(bytes(-stream.tell() % ALIGNED))
                raw = array.raw()
                places.append((stream.tell(), raw.nbytes))
                stream.write(raw)
        with open(path, "wb") as stream:
            pickle.dump((told, places), stream)
        yield path


_common: tuple[str, Any] = "", None  # of a worker: where the last came from, and what it was


def received(path: str) -> Any:
    """What lies in the file, read once. Arrays are mapped: all workers have one copy, of which each reads what it needs."""
    global _common
    if _common[0] != path:
        with open(path, "rb") as stream:
            told, places = pickle.load(stream)
        with open(path + ".arrays", "rb") as stream:
            whole = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY) if any(n for _, n in places) else b""
        _common = path, pickle.loads(told, buffers=[memoryview(whole)[at : at + size] for at, size in places])
    return _common[1]


def _call(function: Callable[..., Any], piece: Any, common: str | None) -> Any:
    return function(piece) if common is None else function(piece, received(common))


# ---- the life of a worker

_messages: Any = None  # of a worker: the way to its parent, if that listens


def tell(message: object) -> None:
    """Send a message to the process that started this worker; nothing happens where nobody listens."""
    if _messages is not None:
        _messages.put(message)


def tell_through(messages: Any) -> None:
    """From now on `tell` of this process puts messages there."""
    global _messages
    _messages = messages


def end_with_parent() -> None:
    """A worker whose parent was killed would wait for work forever."""
    import multiprocessing
    from multiprocessing import connection

    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def _start_worker(messages: Any) -> None:
    tell_through(messages)
    # the parent alone decides what an interruption means
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end_with_parent, daemon=True).start()


__all__ = ["Local", "WorkerDied", "cores", "local", "tell"]
