"""Lanes: threads of their own for calls of one kind, so that many or slow ones of one kind do not hold up the others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from manyarms.errors import Overloaded

Told = TypeVar("Told")


class Lane:
    """Some threads, and the calls that they have under way. Calls beyond `most` are refused at once. Used by the event loop."""

    def __init__(self, threads: int, most: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(threads, name)
        self._most = most
        self.under_way = 0

    async def begin(self, start: Callable[[], Future[Told]], *, further: bool = False) -> Told:
        """What a future that `start` makes in a thread comes to: the loop is woken once, when it is there.

        further: the next part of a call that is under way, which is not refused any more.
        """
        if self.under_way >= self._most and not further:
            raise Overloaded(f"{self.under_way} requests of this kind are under way: try again later")
        loop = asyncio.get_running_loop()
        told: asyncio.Future[Told] = loop.create_future()

        def tell(found: Future[Told]) -> None:
            loop.call_soon_threadsafe(_settle, told, found)

        def go() -> None:
            try:
                start().add_done_callback(tell)
            except BaseException as error:
                failed: Future[Told] = Future()
                failed.set_exception(error)
                tell(failed)

        self.under_way += 1
        try:
            self._pool.submit(go)
            return await told
        finally:
            self.under_way -= 1

    async def call(self, function: Callable[..., Told], *arguments: Any, further: bool = False, **options: Any) -> Told:
        """What a function returns that is called in a thread."""

        def done() -> Future[Told]:
            told: Future[Told] = Future()
            told.set_result(function(*arguments, **options))
            return told

        return await self.begin(done, further=further)

    def close(self, *, drop: bool = False) -> None:
        """Wait for what is under way. drop: what has not begun is not done any more."""
        self._pool.shutdown(cancel_futures=drop)


def _settle(told: asyncio.Future[Told], found: Future[Told]) -> None:
    if told.done():  # the client went away
        return
    error = found.exception()
    if error is None:
        told.set_result(found.result())
    else:
        told.set_exception(error)


__all__ = ["Lane"]
