"""Limits of a call: processor time, so that a busy machine does not decide what hangs, and memory."""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOM = 8 << 30  # bytes that a call may take
ASLEEP = 120.0  # seconds by the clock: what waits for ever uses no processor


class Hang(BaseException):
    """The limit is over."""


@contextmanager
def limit(seconds: float) -> Iterator[None]:
    """A call ends here after so many seconds of processor time, or when it has slept for two minutes more."""

    def stop(*_: object) -> None:
        raise Hang

    before = {number: signal.signal(number, stop) for number in (signal.SIGPROF, signal.SIGALRM)}
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, 20 * seconds + ASLEEP)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def limit_memory() -> None:
    """From here on the process may take ROOM more than it holds; what asks for more gets a MemoryError."""
    if (table := Path("/proc/self/statm")).exists():
        held = int(table.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (held + ROOM, held + ROOM))
