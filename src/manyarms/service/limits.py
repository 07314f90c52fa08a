"""How much one caller may ask for: requests a second (a token bucket each) and bytes of a body."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from manyarms.service.problems import Problem

SLOWEST = 30.0  # seconds for a body to come
CLOSE = {"Connection": "close"}
MOST_CALLERS = 10_000  # remembered at once; the one that came longest ago is forgotten first, with a full bucket


class RateLimit:
    """`rate` tokens a second, at most `burst` at once, for each caller; a request takes one. Used by the event loop alone."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, float(burst), clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens, and when that was

    def take(self, caller: str, number: int = 1) -> None:
        """Take tokens, or refuse (429) with the time after which there are enough."""
        if self._rate <= 0.0:
            return
        now = self._clock()
        tokens, then = self._buckets.pop(caller, (self._burst, now))
        tokens = min(self._burst, tokens + (now - then) * self._rate)
        wanted = min(float(number), self._burst)  # a batch larger than the bucket takes all of it
        enough = tokens >= wanted
        self._buckets[caller] = (tokens - wanted if enough else tokens, now)
        if len(self._buckets) > MOST_CALLERS:
            self._buckets.popitem(last=False)
        if not enough:
            wait = max(1, -int(-(wanted - tokens) // self._rate))
            text = f"more than {self._rate:g} requests a second: try again in {wait} s"
            raise Problem(429, text, name="rate", headers={"Retry-After": str(wait)})


class BodyLimit:
    """Refuses bodies of more than so many bytes (413), by what they say of themselves and by what comes, and slow ones (408)."""

    def __init__(self, app: ASGIApp, most: int, refuse: Callable[[Scope, Problem], ASGIApp]) -> None:
        """refuse: the response to a request with this problem."""
        self._app, self._most, self._refuse = app, most, refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count what comes."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        length = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if not length.isdigit() or len(length) > 18 or int(length) > self._most:
            await self._refuse(scope, too_large(self._most))(scope, receive, send)
            return
        came, whole = 0, False
        latest = asyncio.get_running_loop().time() + SLOWEST

        async def counted() -> Message:
            nonlocal came, whole
            if whole:  # what may come now is that the client goes away
                return await receive()
            try:
                async with asyncio.timeout_at(latest):
                    message = await receive()
            except TimeoutError:
                raise Problem(408, f"the body did not come within {SLOWEST:g} s", name="slow", headers=CLOSE) from None
            if message["type"] == "http.request":
                came += len(message.get("body", b""))
                whole = not message.get("more_body", False)
                if came > self._most:
                    raise too_large(self._most)
            return message

        await self._app(scope, counted, send)


def too_large(most: int) -> Problem:
    """What a request with too long a body gets; its connection is closed, since the rest of it is not read."""
    return Problem(413, f"a body of more than {most:,} bytes", name="too-large", headers=CLOSE)


__all__ = ["BodyLimit", "RateLimit", "too_large"]
