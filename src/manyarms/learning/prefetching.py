"""One item ahead: what an iterator gives next is made in a thread of its own while the last is used."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")


class Ahead(Generic[T]):
    """Goes through an iterator in another thread, never further than one item ahead of its user.

    What goes wrong there is raised here, in the place of the item. `close` ends the thread once the item that it is at is made.
    """

    def __init__(self, items: Iterator[T]) -> None:
        self._stopped = threading.Event()
        self._items, self._made = items, SimpleQueue[tuple[T] | BaseException | None]()
        self._wanted = threading.Semaphore(1)
        self._thread: threading.Thread | None = None

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        if self._stopped.is_set():
            raise StopIteration
        if self._thread is None:
            self._thread = threading.Thread(target=self._make, name="manyarms-windows", daemon=True)
            self._thread.start()
        found = self._made.get()
        if isinstance(found, tuple):
            self._wanted.release()
            return found[0]
        self.close()
        if found is None:
            raise StopIteration
        raise found

    def close(self) -> None:
        """End it; what was made ahead is let go."""
        self._stopped.set()
        self._wanted.release()
        if self._thread is not None:
            self._thread.join()

    def _make(self) -> None:
        try:
            while True:
                self._wanted.acquire()
                if self._stopped.is_set():
                    break
                self._made.put((next(self._items),))
        except StopIteration:
            self._made.put(None)
        except BaseException as error:
            self._made.put(error)


__all__ = ["Ahead"]
