"""Worker processes: started fresh, one thread each, ended cleanly when the user interrupts."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import connection
from typing import Any, TypeVar

import numpy as np

from manyarms.errors import ManyArmsError
from manyarms_thesis.harness.results import Columns
from manyarms_thesis.harness.spec import Item, resolve

THREAD_VARIABLES = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
)  # fmt: skip

Work = TypeVar("Work")
Outcome = TypeVar("Outcome")


class WorkerDied(ManyArmsError):
    """A worker process ended without an answer, most often for want of memory."""


class WorkFailed(ManyArmsError):
    """A run met an error; one plain text, so that it travels between processes."""


def execute(item: Item) -> dict[int, Columns]:
    """Do one piece of work: its columns by run."""
    try:
        return _execute(item)
    except ManyArmsError as error:
        raise WorkFailed(f"{item.experiment}, {item.cell.panel}, {item.agent}: {error}") from None


def _execute(item: Item) -> dict[int, Columns]:
    task = resolve(item.cell.task)
    outcome: dict[int, Columns] = {}
    for run in item.runs:
        columns = task(
            world=item.cell.world,
            agent=item.cell.agents[item.agent],
            rounds=item.cell.rounds,
            world_seed=item.world_seed(run),
            agent_seed=item.agent_seed(run),
        )
        outcome[run] = {name: np.asarray(value) for name, value in columns.items()}
    return outcome


def timed(item: Item) -> float:
    """The seconds that one piece of work takes."""
    start = time.perf_counter()
    execute(item)
    return time.perf_counter() - start


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Pool:
    """Spawned workers. Spawned and not forked: their linear algebra then starts with the thread count set here,
    and the outcome of a run does not depend on how many there are."""

    def __init__(self, workers: int, initializer: Callable[..., None] | None = None, *arguments: Any) -> None:
        self._executor = ProcessPoolExecutor(
            max_workers=workers,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_start_worker,
            initargs=(initializer, arguments),
        )
        self._others = set(multiprocessing.active_children())

    def unordered(self, function: Callable[[Work], Outcome], work: Sequence[Work]) -> Iterator[tuple[Work, Outcome]]:
        """Outcomes as they come."""
        futures: dict[Future[Outcome], Work] = {self._executor.submit(function, piece): piece for piece in work}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool as error:
            raise WorkerDied(
                "a worker process ended without an answer (often: not enough memory); try fewer with --workers"
            ) from error

    def submit(self, function: Callable[[Work], Outcome], piece: Work) -> Future[Outcome]:
        """Hand one piece of work over."""
        return self._executor.submit(function, piece)

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
def workers(count: int, initializer: Callable[..., None] | None = None, *arguments: Any) -> Iterator[Pool]:
    """A pool for the length of a block; an error or an interruption ends its workers at once."""
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    pool = Pool(count, initializer, *arguments)
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


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for work forever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def _start_worker(initializer: Callable[..., None] | None, arguments: tuple[Any, ...]) -> None:
    # the parent alone decides what an interruption means
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if initializer is not None:
        initializer(*arguments)


__all__ = ["Pool", "WorkFailed", "WorkerDied", "cores", "execute", "timed", "workers"]
