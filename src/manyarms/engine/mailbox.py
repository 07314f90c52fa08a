"""The way of messages from tasks on a cluster to the process that has started them: an actor of Ray's, which it asks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

SECONDS_BETWEEN_MESSAGES = 0.2


class Mailbox:
    """What workers have to say, until it is fetched; and how work that they did together has ended."""

    def __init__(self) -> None:
        self._messages: list[Any] = []
        self._answer: tuple[str, Any] | None = None

    def put(self, message: Any) -> None:
        """A message."""
        self._messages.append(message)

    def messages(self) -> list[Any]:
        """All that have come since the last call."""
        found, self._messages = self._messages, []
        return found

    def end(self, kind: str, said: Any) -> None:
        """An "outcome", or an "error", which counts whatever else is said."""
        if self._answer is None or self._answer[0] != "error":
            self._answer = kind, said

    def answer(self) -> tuple[str, Any] | None:
        """How it has ended; None while nobody has said."""
        return self._answer


class Way:
    """From a worker into the mailbox."""

    def __init__(self, mailbox: Any) -> None:
        self._mailbox = mailbox
        self._last: Any = None

    def put(self, message: object) -> None:
        """A message on its way."""
        self._last = self._mailbox.put.remote(message)

    def wait(self) -> None:
        """Until all messages are in the mailbox; one worker's arrive in the order in which they were sent."""
        import ray

        if self._last is not None:
            ray.get(self._last)


@contextmanager
def listening(ray: Any, hear: Callable[[Any], None] | None) -> Iterator[Any]:
    """A mailbox for the length of a block, whose messages are passed on to `hear`."""
    mailbox = ray.remote(num_cpus=0)(Mailbox).remote()
    ended = threading.Event()

    def pass_on() -> None:
        while hear is not None:
            last = ended.wait(SECONDS_BETWEEN_MESSAGES)
            for message in ray.get(mailbox.messages.remote()):
                hear(message)
            if last:
                return

    thread = threading.Thread(target=pass_on, daemon=True)
    thread.start()
    try:
        yield mailbox
    finally:
        ended.set()
        thread.join()


__all__ = ["Mailbox", "Way", "listening"]
