"""Limits of a call: processor time, so that a busy machine does not decide what hangs, and memory."""

from __future__ import annotations

import resource
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOM = 8 << 30  # bytes that a call may take
ASLEEP = 10.0  # seconds by the clock in which a call used next to no processor time: it waits for something


class Hang(BaseException):
    """The limit is over."""


@contextmanager
def limit(seconds: float) -> Iterator[None]:
    """A call ends here after so many seconds of processor time, or when it has slept through ten seconds by the clock."""
    used = [time.process_time()]

    def stop(*_: object) -> None:
        raise Hang

    def look(*_: object) -> None:
        before, used[0] = used[0], time.process_time()
        if used[0] - before < ASLEEP / 1000:  # on the busiest machine one that works gets more than that
            raise Hang

    handlers = {signal.SIGPROF: stop, signal.SIGALRM: look}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, ASLEEP, ASLEEP)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def limit_memory(room: int = ROOM) -> None:
    """From here on the process may take so much more than it holds; what asks for more gets a MemoryError."""
    if (table := Path("/proc/self/statm")).exists():
        held = int(table.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (held + room, held + room))
