"""An open loop over loopback: requests go out when they are due, whether or not earlier ones have been answered.

How long an answer took is counted from the moment at which the request was due, so that a server that falls behind cannot hide it
by slowing its callers down. The client is a few lines on asyncio's transports: it must not be what is measured.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


class Connection(asyncio.Protocol):
    """One keep-alive connection with one request at a time."""

    def __init__(self) -> None:
        self.transport: Any = None
        self._buffer = b""
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error or ConnectionError("closed"))

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, mark, rest = self._buffer.partition(b"\r\n\r\n")
        if not mark:
            return
        lower = head.lower()
        at = lower.find(b"content-length:")
        length = 0 if at < 0 else int(lower[at + 15 :].split(b"\r\n", 1)[0])
        if len(rest) < length:
            return
        self._buffer = rest[length:]
        if self._answer is not None and not self._answer.done():
            self._answer.set_result((int(head[9:12]), rest[:length]))

    def ask(self, request: bytes) -> asyncio.Future[tuple[int, bytes]]:
        """Send; what comes back."""
        self._answer = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return self._answer


class Pool:
    """Connections to one server, as many as are needed at once."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._free: deque[Connection] = deque()
        self.opened = 0

    async def post(self, path: str, body: Any) -> tuple[int, bytes]:
        """One request."""
        connection = self._free.pop() if self._free else await self._open()
        content = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        head += f"Content-Length: {len(content)}\r\n\r\n"
        found = await connection.ask(head.encode() + content)
        self._free.append(connection)
        return found

    async def _open(self) -> Connection:
        self.opened += 1
        _, connection = await asyncio.get_running_loop().create_connection(Connection, "127.0.0.1", self.port)
        return connection


@dataclass
class Outcome:
    """What an open loop saw: seconds from due to answered, and what was not answered with 2xx."""

    rate: float
    seconds: list[float] = field(default_factory=list)
    refused: int = 0
    late: float = 0.0  # how long after the last request was due the last answer came

    def p(self, quantile: float) -> float:
        """Milliseconds."""
        return 1e3 * float(np.quantile(self.seconds, quantile))


async def open_loop(
    pool: Pool, rate: float, seconds: float, question: Callable[[int], Any], seed: int, *, rewarded: int = 4
) -> Outcome:
    """Decisions at random moments (Poisson); every so many are followed by a reward, up to half a second later."""
    rng = np.random.default_rng(seed)
    due = np.cumsum(rng.exponential(1.0 / rate, size=int(rate * seconds)))
    found = Outcome(rate)
    tasks: list[asyncio.Task[None]] = []
    began = time.perf_counter()

    async def one(number: int, when: float, delay: float) -> None:
        try:
            status, body = await pool.post("/v1/decide", question(number))
        except OSError:
            status, body = 0, b""
        found.seconds.append(time.perf_counter() - began - when)
        if status != 200:
            found.refused += 1
            return
        if number % rewarded == 0:
            await asyncio.sleep(delay)
            try:
                status, _ = await pool.post(
                    "/v1/reward", {"event": json.loads(body)["id"], "value": float(number % 7 == 0)}
                )
            except OSError:
                status = 0
            found.refused += status != 204

    for number, (when, delay) in enumerate(zip(due.tolist(), rng.uniform(0.0, 0.5, len(due)).tolist(), strict=True)):
        pause = began + when - time.perf_counter()
        if pause > 0:
            await asyncio.sleep(pause)
        tasks.append(asyncio.create_task(one(number, when, delay)))
    await asyncio.gather(*tasks)
    found.late = time.perf_counter() - began - float(due[-1])
    return found
